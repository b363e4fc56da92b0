WITH c AS CHANGELOG FROM orders SELECT order_id, changelog_op FROM c WHERE amount > 1
----
Materialize (order_id bigint, changelog_op smallint) append-only; state: the rows
  Project order_id, changelog_op
    Filter amount@1 > 1.00
      Project order_id, amount, changelog_op
        Changelog by (order_id)
          Normalise by (order_id); state: the newest row of each key
            Input orders (order_id, customer, amount, note, updated_at) by key
