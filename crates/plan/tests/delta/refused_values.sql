VALUES (1), (2)
----
ERROR 0A000: VALUES is not maintained in a materialized view
HINT: INSERT the rows into a table and read that.
