SELECT count(DISTINCT a) FROM bag
----
ERROR 0A000: count(DISTINCT …) is not maintained in a materialized view
HINT: Put SELECT DISTINCT into a subquery in FROM.
