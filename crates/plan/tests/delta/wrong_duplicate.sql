SELECT a, b AS a FROM bag
----
ERROR 42702: column reference "a" is ambiguous
HINT: Put the name of its table in front of it.
