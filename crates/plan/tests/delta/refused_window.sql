SELECT a, row_number() OVER (ORDER BY a) FROM bag
----
ERROR 0A000: a window function is not maintained in a materialized view
HINT: Use a plain view: its window is computed when it is read.
