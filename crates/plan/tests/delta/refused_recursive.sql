WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT x FROM r
----
ERROR 0A000: WITH RECURSIVE is not maintained in a materialized view
HINT: Write out the steps, or SELECT from a plain view.
