SELECT a, b AS a FROM bag
----
ERROR 42701: column "a" specified more than once
HINT: Give each column of the view a name of its own with AS.
