SELECT a, (SELECT customer FROM orders) AS c FROM bag
----
Materialize (a integer, c integer) no key; state: the rows
  Project a, one_row(domain 0 rows@1, domain 0 value@2) AS c
    Left join; state: both sides
      Input bag (a) changelog
      Aggregate count(*), max(orders.customer); state: one group, all values of min and max
        Project customer@1 AS orders.customer
          Normalise by (order_id); state: the newest row of each key
            Input orders (order_id, customer) by key
