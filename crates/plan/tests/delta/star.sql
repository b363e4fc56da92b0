SELECT * FROM events
----
Materialize (kind text, value double precision, at timestamp) append-only; state: the rows
  Input events (kind, value, at) append-only
