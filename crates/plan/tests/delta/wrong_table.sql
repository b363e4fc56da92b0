SELECT * FROM ordes
----
ERROR 42P01: relation "ordes" does not exist
HINT: Did you mean "orders"?
