SELECT DISTINCT ON (a) a, b FROM bag
----
ERROR 0A000: DISTINCT ON is not maintained in a materialized view
HINT: Use GROUP BY with min() or max(), or a plain view.
