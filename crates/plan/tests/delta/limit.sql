SELECT a FROM bag ORDER BY a LIMIT 3
----
Materialize (a integer) no key; state: the rows
  TopN 3 of (a); state: all rows in order
    Input bag (a) changelog
