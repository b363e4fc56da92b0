SELECT a, (SELECT max(customer) FROM orders) FROM bag
----
Materialize (a integer, ?column? integer) no key; state: the rows
  Left join; state: both sides
    Input bag (a) changelog
    Aggregate max(orders.customer); state: one group, all values of min and max
      Project customer@1 AS orders.customer
        Normalise by (order_id); state: the newest row of each key
          Input orders (order_id, customer) by key
