SELECT b.a, l.order_id FROM bag AS b LEFT JOIN LATERAL (SELECT order_id FROM orders WHERE orders.customer = b.a ORDER BY orders.order_id DESC LIMIT 2) AS l ON true
----
Materialize (a integer, order_id bigint) no key; state: the rows
  Project a, order_id
    Left join on a IS NOT DISTINCT FROM domain 0 0; state: both sides
      Input bag (a) changelog
      Project order_id, domain 0 0
        Filter domain 0 place@2 <= 2
          Project order_id, customer@1 AS domain 0 0, CAST(row_number@2 AS UInt64) AS row_number
            TopN 2 of (order_id DESC) by (customer); state: all rows in order
              Filter customer@1 IS NOT NULL
                Normalise by (order_id); state: the newest row of each key
                  Input orders (order_id, customer) by key
