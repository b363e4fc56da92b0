WITH c AS (SELECT customer, sum(amount) AS s FROM orders GROUP BY customer) SELECT customer FROM c WHERE s > 100
----
Materialize (customer integer) key (customer); state: the rows
  Project customer
    Filter sum(orders.amount)@1 > 100.00
      Aggregate sum(orders.amount) by (orders.customer); state: one entry per group
        Project customer@1 AS orders.customer, amount@2 AS orders.amount
          Normalise by (order_id); state: the newest row of each key
            Input orders (order_id, customer, amount) by key
