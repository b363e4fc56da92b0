SELECT a FROM bag EXCEPT ALL SELECT customer FROM orders
----
Materialize (a integer) no key; state: the rows
  Project a
    Project a, CAST(copy of a row@1 AS UInt64) AS copy of a row
      Anti join on a IS NOT DISTINCT FROM customer AND copy of a row IS NOT DISTINCT FROM copy of a row; state: both sides
        Project a, CAST(copy of a row@1 AS Int64) AS copy of a row
          Project a, CAST(copy of a row@1 AS UInt64) AS copy of a row
            Recompute a window function by (a); state: input and output
              Input bag (a) changelog
        Project customer, CAST(copy of a row@1 AS Int64) AS copy of a row
          Project customer, CAST(copy of a row@1 AS UInt64) AS copy of a row
            Recompute a window function by (customer); state: input and output
              Project customer
                Normalise by (order_id); state: the newest row of each key
                  Input orders (order_id, customer) by key
