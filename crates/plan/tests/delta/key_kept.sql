SELECT customer, order_id FROM orders
----
Materialize (customer integer, order_id bigint) key (order_id); state: the rows
  Project customer, order_id
    Normalise by (order_id); state: the newest row of each key
      Input orders (order_id, customer) by key
