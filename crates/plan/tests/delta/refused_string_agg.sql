SELECT string_agg(b, ',' ORDER BY a) FROM bag
----
ERROR 0A000: aggregate string_agg() is not maintained in a materialized view
HINT: Use a plain view: its aggregates are computed when it is read.
