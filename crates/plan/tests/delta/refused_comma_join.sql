SELECT 1 FROM orders, bag
----
ERROR 0A000: a join is not maintained in a materialized view
HINT: Use a plain view: its join is answered when it is read.
