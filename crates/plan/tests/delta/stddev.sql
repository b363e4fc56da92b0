SELECT stddev(a) FROM bag
----
NOTICE: aggregate stddev() is computed again from all of its input at each change of it
Materialize (stddev double precision) no key; state: the rows
  Recompute aggregate stddev(), all of it; state: input and output
    Project a, CAST(a@0 AS Float64) AS computed 0
      Input bag (a) changelog
