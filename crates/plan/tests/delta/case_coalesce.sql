SELECT CASE WHEN a > 1 THEN 'big' ELSE 'small' END, coalesce(b, 'none') FROM bag
----
Materialize (case text, coalesce text) no key; state: the rows
  Project CASE WHEN a@0 > 1 THEN big ELSE small END AS CASE WHEN bag.a > Int64(1) THEN Utf8("big") ELSE Utf8("small") END, CASE WHEN b@1 IS NOT NULL THEN b@1 ELSE none END AS coalesce(bag.b,Utf8("none"))
    Input bag (a, b) changelog
