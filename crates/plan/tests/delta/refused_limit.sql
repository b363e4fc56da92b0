SELECT a FROM bag ORDER BY a LIMIT 3
----
ERROR 0A000: LIMIT is not maintained in a materialized view
HINT: Leave it out of the view and put ORDER BY and LIMIT into the SELECT that reads it.
