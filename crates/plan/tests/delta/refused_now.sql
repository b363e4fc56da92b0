SELECT a, now() FROM bag
----
ERROR 0A000: now(), other than in a comparison of a time with now() or now() and an interval in WHERE, is not maintained in a materialized view
HINT: Write at > now() - INTERVAL '1 hour', an interval without months, joined to others by AND; or use it in the SELECT that reads the view.
