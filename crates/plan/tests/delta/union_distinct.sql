SELECT a FROM bag UNION SELECT customer FROM orders
----
Materialize (a integer) key (a); state: the rows
  Distinct (a); state: a count per row
    UnionAll
      Input bag (a) changelog
      Project customer
        Normalise by (order_id); state: the newest row of each key
          Input orders (order_id, customer) by key
