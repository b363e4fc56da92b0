SELECT a FROM bag EXCEPT ALL SELECT customer FROM orders
----
ERROR 0A000: EXCEPT ALL is not maintained in a materialized view
HINT: Leave ALL out, or count the rows with GROUP BY.
