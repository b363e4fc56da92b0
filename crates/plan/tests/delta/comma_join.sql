SELECT 1 FROM orders, bag
----
NOTICE: a join without an equality compares every row of one side with every row of the other
Materialize (?column? bigint) no key; state: the rows
  Project 1 AS Int64(1)
    Inner join; state: both sides
      Project true AS row
        Project 
          Normalise by (order_id); state: the newest row of each key
            Input orders (order_id) by key
      Project true AS row
        Project 
          Input bag (a) changelog
