SELECT a FROM bag ORDER BY a LIMIT 3
----
NOTICE: LIMIT is computed again from all of its input at each change of it
Materialize (a integer) no key; state: the rows
  Recompute LIMIT, all of it; state: input and output
    Input bag (a) changelog
