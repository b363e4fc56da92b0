SELECT tags, count(*) FROM things GROUP BY tags
----
Materialize (tags text[], count bigint) key (tags); state: the rows
  Recompute aggregate count() by (tags); state: input and output
    Input things (tags) changelog
