SELECT a, b FROM bag WHERE a > 1
----
Materialize (a integer, b text) no key; state: the rows
  Filter a@0 > 1
    Input bag (a, b) changelog
