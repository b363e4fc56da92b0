SELECT e.kind, window_end FROM HOP(events, at, INTERVAL '5 minutes', INTERVAL '10 minutes') AS e WHERE e.value > 1
----
Materialize (kind text, window_end timestamp) append-only; state: the rows
  UnionAll
    Project kind, date_bin(IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 300000000000 }, at@2) + IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 600000000000 } AS window_end
      Filter at@2 IS NOT NULL AND value@1 > 1
        Input events (kind, value, at) append-only
    Project kind, date_bin(IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 300000000000 }, at@2) + IntervalMonthDayNano { months: 0, days: 0, nanoseconds: -300000000000 } + IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 600000000000 } AS window_end
      Filter at@2 IS NOT NULL AND value@1 > 1
        Input events (kind, value, at) append-only
