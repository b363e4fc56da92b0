SELECT a FROM bag EXCEPT SELECT customer FROM orders
----
ERROR 0A000: EXCEPT is not maintained in a materialized view
HINT: Use a plain view, or UNION ALL and GROUP BY.
