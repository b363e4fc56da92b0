SELECT a, now() FROM bag
----
ERROR 0A000: now(), which gives another value each time, is not maintained in a materialized view
HINT: Use it in the SELECT that reads the view.
