SELECT 1
----
Materialize (?column? bigint) append-only; state: the rows
  Constant, 1 rows
