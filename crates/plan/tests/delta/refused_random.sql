SELECT a FROM bag WHERE random() < 0.5
----
ERROR 0A000: random(), which gives another value each time, is not maintained in a materialized view
HINT: Use it in the SELECT that reads the view.
