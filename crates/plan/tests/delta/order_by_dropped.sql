SELECT a FROM bag ORDER BY a DESC
----
NOTICE: ORDER BY of a materialized view is ignored: its rows have no order
Materialize (a integer) no key; state: the rows
  Input bag (a) changelog
