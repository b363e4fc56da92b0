SELECT count(*), sum(value), max(at) FROM events
----
Materialize (count bigint, sum double precision, max timestamp) no key; state: the rows
  Aggregate count(*), sum(events.value), max(events.at); state: one group
    Project value@0 AS events.value, at@1 AS events.at
      Input events (value, at) append-only
