SELECT string_agg(b, ',' ORDER BY a) FROM bag
----
NOTICE: aggregate string_agg() is computed again from all of its input at each change of it
Materialize (string_agg text) no key; state: the rows
  Project CAST(string_agg(bag.b,Utf8(",")) ORDER BY [bag.a ASC NULLS LAST]@0 AS Utf8) AS string_agg(bag.b,Utf8(",")) ORDER BY [bag.a ASC NULLS LAST]
    Project CAST(string_agg(bag.b,Utf8(",")) ORDER BY [bag.a ASC NULLS LAST]@0 AS LargeUtf8) AS string_agg(bag.b,Utf8(",")) ORDER BY [bag.a ASC NULLS LAST]
      Recompute aggregate string_agg(), all of it; state: input and output
        Input bag (a, b) changelog
