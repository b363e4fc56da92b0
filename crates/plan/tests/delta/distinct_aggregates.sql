SELECT b, count(DISTINCT a), sum(a), count(DISTINCT a + 1) FILTER (WHERE a > 0) AS few FROM bag GROUP BY b
----
Materialize (b text, count bigint, sum bigint, few bigint) key (b); state: the rows
  Project b, count(distinct argument)@1 AS count(DISTINCT bag.a), sum(bag.a), count(distinct argument) FILTER (WHERE distinct filter)@5 AS count(DISTINCT bag.a + Int64(1)) FILTER (WHERE bag.a > Int64(0))
    Inner join on b IS NOT DISTINCT FROM b; state: both sides
      Inner join on b IS NOT DISTINCT FROM b; state: both sides
        Aggregate count(distinct argument) by (bag.b); state: one entry per group
          Project b@0 AS bag.b, distinct argument
            Distinct (bag.b, bag.a); state: a count per row
              Project b@1 AS bag.b, a@0 AS bag.a
                Input bag (a, b) changelog
        Aggregate sum(bag.a) by (bag.b); state: one entry per group
          Project b@1 AS bag.b, a@0 AS bag.a
            Input bag (a, b) changelog
      Aggregate count(distinct argument) FILTER (distinct filter) by (bag.b); state: one entry per group
        Project b@0 AS bag.b, distinct filter, distinct argument
          Distinct (bag.b, bag.a + Int64(1), bag.a > Int32(0)); state: a count per row
            Project b@1 AS bag.b, CAST(a@0 AS Int64) + 1 AS bag.a + Int64(1), a@0 > 0 AS bag.a > Int32(0)
              Input bag (a, b) changelog
