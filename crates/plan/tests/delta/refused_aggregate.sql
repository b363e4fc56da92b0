SELECT stddev(a) FROM bag
----
ERROR 0A000: aggregate stddev() is not maintained in a materialized view
HINT: Use a plain view: its aggregates are computed when it is read.
