SELECT id, unnest(tags) AS tag FROM things
----
Materialize (id bigint, tag text) no key; state: the rows
  Unnest tags
    Input things (id, tags) changelog
