SELECT b.a, o.amount FROM bag b LEFT JOIN orders FOR SYSTEM_TIME AS OF PROCTIME() AS o ON o.customer = b.a
----
ERROR 0A000: a temporal join whose left side can take rows back is not maintained in a materialized view
HINT: Declare the left table APPEND ONLY, or leave FOR SYSTEM_TIME out.
