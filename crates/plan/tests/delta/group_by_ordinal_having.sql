SELECT customer, count(*) AS n FROM orders GROUP BY 1 HAVING count(*) > 2 AND customer > 0
----
Materialize (customer integer, n bigint) key (customer); state: the rows
  Filter count(Int64(1))@1 > 2
    Aggregate count(*) by (orders.customer); state: one entry per group
      Project customer@0 AS orders.customer
        Filter customer@0 > 0
          Project customer
            Normalise by (order_id); state: the newest row of each key
              Input orders (order_id, customer) by key
