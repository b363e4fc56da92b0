SELECT kind, min(value), max(at) FROM events GROUP BY kind
----
Materialize (kind text, min double precision, max timestamp) key (kind); state: the rows
  Aggregate min(events.value), max(events.at) by (events.kind); state: one entry per group
    Project kind@0 AS events.kind, value@1 AS events.value, at@2 AS events.at
      Input events (kind, value, at) append-only
