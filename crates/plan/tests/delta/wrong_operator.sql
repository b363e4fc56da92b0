SELECT a FROM bag WHERE a > true
----
ERROR 42883: operator does not exist for these types
DETAIL: cannot infer common argument type for comparison operation Int32 > Boolean
HINT: You might need to add explicit type casts.
