SELECT * FROM segue.stages
----
ERROR 0A000: a view cannot read the system relation segue.stages
HINT: SELECT from it directly.
