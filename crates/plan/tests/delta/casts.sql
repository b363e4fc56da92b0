SELECT order_id::text, updated_at::date, '2020-01-01'::timestamp AS t, note::varchar(5) FROM orders
----
Materialize (order_id text, updated_at date, t timestamp, note text) no key; state: the rows
  Project CAST(order_id@0 AS Utf8) AS orders.order_id, CAST(updated_at@2 AS Date32) AS orders.updated_at, 1577836800000000 AS t, left(CAST(note@1 AS Utf8), 5) AS left(orders.note,Int64(5))
    Normalise by (order_id); state: the newest row of each key
      Input orders (order_id, note, updated_at) by key
