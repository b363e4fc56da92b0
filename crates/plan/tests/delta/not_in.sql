SELECT a FROM bag WHERE a NOT IN (SELECT customer FROM orders)
----
Materialize (a integer) no key; state: the rows
  Anti join on a@0 IS NULL; state: both sides
    Anti join; state: both sides
      Anti join on a = customer; state: both sides
        Input bag (a) changelog
        Project customer
          Normalise by (order_id); state: the newest row of each key
            Input orders (order_id, customer) by key
      Distinct (row); state: a count per row
        Project true AS row
          Filter customer@0 IS NULL
            Project customer
              Normalise by (order_id); state: the newest row of each key
                Input orders (order_id, customer) by key
    Distinct (row); state: a count per row
      Project true AS row
        Project customer
          Normalise by (order_id); state: the newest row of each key
            Input orders (order_id, customer) by key
