SELECT customer, count(*), sum(amount), avg(customer), min(note) FROM orders GROUP BY customer
----
Materialize (customer integer, count bigint, sum numeric(38,2), avg numeric(38,16), min text) key (customer); state: the rows
  Aggregate count(*), sum(orders.amount), avg(orders.customer), min(orders.note) by (orders.customer); state: one entry per group, all values of min and max
    Project customer@1 AS orders.customer, amount@2 AS orders.amount, note@3 AS orders.note
      Normalise by (order_id); state: the newest row of each key
        Input orders (order_id, customer, amount, note) by key
