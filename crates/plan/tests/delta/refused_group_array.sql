SELECT tags, count(*) FROM things GROUP BY tags
----
ERROR 0A000: GROUP BY or DISTINCT over type text[] is not maintained in a materialized view
HINT: Group by its members, or by its text.
