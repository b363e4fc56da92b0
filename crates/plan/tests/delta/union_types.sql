SELECT a FROM bag UNION ALL SELECT order_id FROM orders
----
Materialize (a bigint) no key; state: the rows
  UnionAll
    Project CAST(a@0 AS Int64) AS a
      Input bag (a) changelog
    Normalise by (order_id); state: the newest row of each key
      Input orders (order_id) by key
