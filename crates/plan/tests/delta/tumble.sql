SELECT kind, window_start, count(*) AS n FROM TUMBLE(events, at, INTERVAL '10' MINUTE) GROUP BY kind, window_start
----
Materialize (kind text, window_start timestamp, n bigint) key (kind, window_start); state: the rows
  Aggregate count(*) by (events.kind, events.window_start); state: one entry per group
    Project kind@0 AS events.kind, window_start@1 AS events.window_start
      Project kind, date_bin(IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 600000000000 }, at@1) AS window_start
        Filter at@1 IS NOT NULL
          Input events (kind, at) append-only
