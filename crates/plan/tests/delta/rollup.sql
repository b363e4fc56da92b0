SELECT a, count(*) FROM bag GROUP BY ROLLUP (a)
----
Materialize (a integer, count bigint) no key; state: the rows
  Project a, count(Int64(1))@2 AS count(*)
    UnionAll
      Project a, 0 AS __grouping_id, count(Int64(1))
        Aggregate count(*) by (bag.a); state: one entry per group
          Project a@0 AS bag.a
            Input bag (a) changelog
      Project NULL AS a, 1 AS __grouping_id, count(Int64(1))
        Aggregate count(*); state: one group
          Project a
            Input bag (a) changelog
