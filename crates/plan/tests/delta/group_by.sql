SELECT customer, count(*), sum(amount), avg(customer), min(note) FROM orders GROUP BY customer
----
Materialize (customer integer, count bigint, sum numeric(38,2), avg numeric(38,16), min text) key (customer); state: the rows
  Aggregate count(*), sum(orders.amount), avg(orders.customer), min(orders.note) by (orders.customer); state: one entry per group, all values of min and max
    Project customer@0 AS orders.customer, amount@1 AS orders.amount, note@2 AS orders.note
      Project customer, amount, note
        Normalise by (order_id); state: the newest row of each key
          Input orders (order_id, customer, amount, note) by key
