SELECT a, generate_series(1, a) AS n FROM bag
----
Materialize (a integer, n bigint) no key; state: the rows
  Unnest __unnest_placeholder(generate_series(Int64(1),bag.a))
    Project a, generate_series(1, CAST(a@0 AS Int64)) AS __unnest_placeholder(generate_series(Int64(1),bag.a))
      Input bag (a) changelog
