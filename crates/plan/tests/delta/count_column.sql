SELECT count(note) AS notes FROM orders
----
Materialize (notes bigint) no key; state: the rows
  Aggregate count(orders.note); state: one group
    Project note@1 AS orders.note
      Normalise by (order_id); state: the newest row of each key
        Input orders (order_id, note) by key
