SELECT a FROM bag WHERE EXISTS (SELECT 1 FROM orders)
----
Materialize (a integer) no key; state: the rows
  Semi join; state: both sides
    Input bag (a) changelog
    Distinct (row); state: a count per row
      Project true AS row
        Project true AS row
          Project 
            Normalise by (order_id); state: the newest row of each key
              Input orders (order_id) by key
