SELECT customer FROM orders
----
Materialize (customer integer) no key; state: the rows
  Project customer
    Normalise by (order_id); state: the newest row of each key
      Input orders (order_id, customer) by key
