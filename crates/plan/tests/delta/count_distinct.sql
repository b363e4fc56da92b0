SELECT count(DISTINCT a) FROM bag
----
Materialize (count bigint) no key; state: the rows
  Aggregate count(distinct argument); state: one group
    Project distinct argument
      Distinct (bag.a); state: a count per row
        Project a@0 AS bag.a
          Input bag (a) changelog
