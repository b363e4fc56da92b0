SELECT uper(b) FROM bag
----
ERROR 42883: function uper does not exist
HINT: Perhaps you meant the function "upper".
