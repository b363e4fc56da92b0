SELECT id, total + 1 AS more FROM big_orders WHERE id > 5
----
Materialize (id bigint, more numeric(23,2)) key (id); state: the rows
  Project id, total@1 + 1 AS more
    Filter amount@1 > 100.00 AND order_id@0 > 5
      Normalise by (order_id); state: the newest row of each key
        Input orders (order_id, amount) by key
