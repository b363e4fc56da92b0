SELECT a, b FROM bag UNION ALL SELECT a FROM bag
----
ERROR 42601: UNION queries have different number of columns
