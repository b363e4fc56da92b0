SELECT a FROM bag WHERE a IN (SELECT customer FROM orders)
----
Materialize (a integer) no key; state: the rows
  Semi join on a = customer; state: both sides
    Input bag (a) changelog
    Project customer
      Normalise by (order_id); state: the newest row of each key
        Input orders (order_id, customer) by key
