SELECT 1
----
ERROR 0A000: a SELECT without FROM is not maintained in a materialized view
HINT: Use a plain view for constants.
