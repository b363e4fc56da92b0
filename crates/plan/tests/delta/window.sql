SELECT a, row_number() OVER (ORDER BY a) FROM bag
----
NOTICE: a window function is computed again from all of its input at each change of it
Materialize (a integer, row_number bigint) no key; state: the rows
  Project a, CAST(row_number() ORDER BY [bag.a ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW@1 AS Int64) AS row_number() ORDER BY [bag.a ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    Project a, CAST(row_number() ORDER BY [bag.a ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW@1 AS UInt64) AS row_number() ORDER BY [bag.a ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      Recompute a window function, all of it; state: input and output
        Input bag (a) changelog
