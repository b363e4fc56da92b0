SELECT custmer FROM orders
----
ERROR 42703: column "custmer" does not exist
HINT: Perhaps you meant the column "customer".
