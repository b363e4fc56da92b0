SELECT a FROM bag WHERE count(*) > 1
----
ERROR 42803: aggregate functions are not allowed in WHERE
HINT: Use HAVING.
