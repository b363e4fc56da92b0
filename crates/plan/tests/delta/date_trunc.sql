SELECT date_trunc('hour', at) AS hour, count(*) FROM events GROUP BY date_trunc('hour', at)
----
Materialize (hour timestamp, count bigint) key (hour); state: the rows
  Aggregate count(*) by (date_trunc(Utf8("hour"),events.at)); state: one entry per group
    Project date_trunc(hour, at@0) AS date_trunc(Utf8("hour"),events.at)
      Input events (at) append-only
