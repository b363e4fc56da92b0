SELECT a, count(*) FROM bag GROUP BY b
----
ERROR 42803: column "bag.a" must appear in the GROUP BY clause or be used in an aggregate function
