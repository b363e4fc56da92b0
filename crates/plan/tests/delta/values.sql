VALUES (1), (2)
----
Materialize (column1 bigint) append-only; state: the rows
  Constant, 2 rows
