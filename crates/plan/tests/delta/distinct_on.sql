SELECT DISTINCT ON (a) a, b FROM bag
----
Materialize (a integer, b text) no key; state: the rows
  Project first_value(bag.a)@1 AS a, first_value(bag.b)@2 AS b
    Recompute aggregate first_value() by (a); state: input and output
      Input bag (a, b) changelog
