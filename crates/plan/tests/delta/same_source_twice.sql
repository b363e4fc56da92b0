SELECT order_id FROM orders WHERE amount > 1 UNION ALL SELECT customer FROM orders
----
Materialize (order_id bigint) no key; state: the rows
  UnionAll
    Project order_id
      Filter amount@1 > 1.00
        Project order_id, amount
          Normalise by (order_id); state: the newest row of each key
            Input orders (order_id, customer, amount) by key
    Project CAST(customer@1 AS Int64) AS order_id
      Normalise by (order_id); state: the newest row of each key
        Input orders (order_id, customer, amount) by key
