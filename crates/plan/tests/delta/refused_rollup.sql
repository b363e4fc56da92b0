SELECT a, count(*) FROM bag GROUP BY ROLLUP (a)
----
ERROR 0A000: GROUPING SETS, CUBE or ROLLUP is not maintained in a materialized view
HINT: Write one SELECT with GROUP BY for each set, joined by UNION ALL.
