SELECT * FROM (SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b) AS n FROM bag) WHERE n <= 2
----
Materialize (a integer, b text, n bigint) no key; state: the rows
  Project a, b, CAST(row_number@2 AS Int64) AS row_number
    Filter row_number() PARTITION BY [bag.a] ORDER BY [bag.b ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW@2 <= 2
      Project a, b, CAST(row_number@2 AS UInt64) AS row_number
        TopN 2 of (b) by (a); state: all rows in order
          Input bag (a, b) changelog
