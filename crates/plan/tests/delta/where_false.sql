SELECT a FROM bag WHERE 1 = 2
----
Materialize (a integer) append-only; state: the rows
  Empty
