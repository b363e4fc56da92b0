SELECT x.a FROM bag
----
ERROR 42P01: missing FROM-clause entry for table "x"
