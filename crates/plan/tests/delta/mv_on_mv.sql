SELECT n, count(*) AS customers FROM totals GROUP BY n
----
Materialize (n bigint, customers bigint) key (n); state: the rows
  Aggregate count(*) by (totals.n); state: one entry per group
    Project n@0 AS totals.n
      Input totals (n) changelog
