SELECT id, unnest(tags) AS tag FROM things
----
Materialize (id bigint, tag text) no key; state: the rows
  Unnest __unnest_placeholder(list_items(things.tags))
    Project id, list_items(tags@1) AS __unnest_placeholder(list_items(things.tags))
      Input things (id, tags) changelog
