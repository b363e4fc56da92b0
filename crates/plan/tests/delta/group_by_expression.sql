SELECT customer % 10 AS bucket, count(*) FILTER (WHERE amount > 5) AS n FROM orders GROUP BY customer % 10
----
Materialize (bucket bigint, n bigint) key (bucket); state: the rows
  Aggregate count(*) FILTER (orders.amount > Decimal128(5.00,12,2)) by (orders.customer % Int64(10)); state: one entry per group
    Project CAST(customer@1 AS Int64) % 10 AS orders.customer % Int64(10), amount@2 > 5.00 AS orders.amount > Decimal128(5.00,12,2)
      Normalise by (order_id); state: the newest row of each key
        Input orders (order_id, customer, amount) by key
