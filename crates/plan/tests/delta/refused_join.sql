SELECT * FROM orders JOIN bag ON a = customer
----
ERROR 0A000: a join is not maintained in a materialized view
HINT: Use a plain view: its join is answered when it is read.
