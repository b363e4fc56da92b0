SELECT k FROM (SELECT kind AS k, value FROM events) AS e WHERE value > 1
----
Materialize (k text) append-only; state: the rows
  Project kind@0 AS k
    Filter value@1 > 1
      Input events (kind, value) append-only
