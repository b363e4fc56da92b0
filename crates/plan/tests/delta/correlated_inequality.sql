SELECT a, (SELECT count(*) FROM orders WHERE orders.customer < b.a) AS n FROM bag AS b
----
NOTICE: a join without an equality compares every row of one side with every row of the other
Materialize (a integer, n bigint) no key; state: the rows
  Project a, domain 0 value@2 AS n
    Left join on a IS NOT DISTINCT FROM domain 0 0; state: both sides
      Input bag (a) changelog
      Project domain 0 0, CASE WHEN count(Int64(1))@1 IS NOT NULL THEN count(Int64(1))@1 ELSE 0 END AS domain 0 value
        Left join on a IS NOT DISTINCT FROM domain 0 0 too; state: both sides
          Distinct (a); state: a count per row
            Input bag (a) changelog
          Project count(Int64(1)), domain 0 0@0 AS domain 0 0 too
            Aggregate count(*) by (domain 0 0); state: one entry per group
              Project domain 0 0
                Inner join on customer@0 < domain 0 0@1; state: both sides
                  Project customer
                    Normalise by (order_id); state: the newest row of each key
                      Input orders (order_id, customer) by key
                  Distinct (a); state: a count per row
                    Input bag (a) changelog
