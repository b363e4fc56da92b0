SELECT kind FROM events UNION ALL SELECT note FROM orders WHERE amount < 0
----
Materialize (kind text) no key; state: the rows
  UnionAll
    Input events (kind) append-only
    Project note@1 AS kind
      Filter amount@0 < 0.00
        Project amount, note
          Normalise by (order_id); state: the newest row of each key
            Input orders (order_id, amount, note) by key
