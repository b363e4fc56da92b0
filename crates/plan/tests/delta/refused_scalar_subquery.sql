SELECT a, (SELECT max(customer) FROM orders) FROM bag
----
ERROR 0A000: a subquery in an expression is not maintained in a materialized view
HINT: Use a plain view, or a view for each part.
