SELECT a FROM bag WHERE EXISTS (SELECT 1 FROM orders)
----
ERROR 0A000: a subquery in an expression is not maintained in a materialized view
HINT: Use a plain view, or a view for each part.
