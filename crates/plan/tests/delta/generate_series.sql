SELECT b.a, s.x FROM bag b JOIN generate_series(1, 3) AS s(x) ON b.a = s.x
----
Materialize (a integer, x bigint) no key; state: the rows
  Project a, x
    Inner join on b.a = x; state: both sides
      Project a, CAST(a@0 AS Int64) AS b.a
        Input bag (a) changelog
      Constant, 3 rows
