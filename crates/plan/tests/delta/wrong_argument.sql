SELECT sum(b) FROM bag
----
ERROR 42883: function sum(text) does not exist
