SELECT a FROM bag EXCEPT SELECT customer FROM orders
----
Materialize (a integer) key (a); state: the rows
  Anti join on a IS NOT DISTINCT FROM customer; state: both sides
    Distinct (a); state: a count per row
      Input bag (a) changelog
    Project customer
      Normalise by (order_id); state: the newest row of each key
        Input orders (order_id, customer) by key
