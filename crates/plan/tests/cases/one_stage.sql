CREATE SOURCE s (a int, b text NOT NULL) WITH (connector = 'kafka', topic = 't', properties.group.id = 'g') FORMAT PLAIN ENCODE JSON;
--> COLUMNS a integer, b text NOT NULL
--> STAGE s: kafka, continuous append, Plain json, start Earliest, stop None, key [], DeadLetter, options {"properties.group.id": "g", "topic": "t"}
-- A snapshot has the key; its rows are state.
CREATE SOURCE s (a int PRIMARY KEY, b text) WITH (connector = 'postgres', url = 'x', query = 'SELECT 1', on_error = 'fail');
--> COLUMNS a integer NOT NULL KEY, b text
--> STAGE s: postgres, bounded state, Plain native, start Earliest, stop None, key [0], Fail, options {"query": "SELECT 1", "url": "x"}
-- Events have none, whatever was declared.
CREATE SOURCE s (a int PRIMARY KEY) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON;
--> COLUMNS a integer NOT NULL
--> STAGE s: kafka, continuous append, Plain json, start Earliest, stop None, key [], DeadLetter, options {"topic": "t"}
--> NOTICE PRIMARY KEY (a) of source "s" is not enforced: every row is an event, and rows with the same key are all kept; a table would keep the last of them
-- A table enforces it.
CREATE TABLE s (a int PRIMARY KEY) ON CONFLICT DO NOTHING WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON;
--> Ignore Mutable
--> COLUMNS a integer NOT NULL KEY
--> STAGE s: kafka, continuous append, Plain json, start Earliest, stop None, key [0], DeadLetter, options {"topic": "t"}
-- RisingWave's spellings of a start.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't', scan.startup.mode = 'latest') FORMAT PLAIN ENCODE JSON;
--> COLUMNS a integer
--> STAGE s: kafka, continuous append, Plain json, start Latest, stop None, key [], DeadLetter, options {"topic": "t"}
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't', scan.startup.mode = 'earliest', scan.startup.timestamp.millis = 140000000) FORMAT PLAIN ENCODE JSON;
--> COLUMNS a integer
--> STAGE s: kafka, continuous append, Plain json, start Timestamp { unix_ms: 140000000 }, stop None, key [], DeadLetter, options {"topic": "t"}
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't', scan.startup.mode = 'lastest') FORMAT PLAIN ENCODE JSON;
--> ERROR 22023 stage "s": invalid value for option "scan.startup.mode": "lastest"
--> AT scan.startup.mode = 'lastest') FORMAT PLAIN ENCODE JSON;
--> HINT Perhaps you meant 'latest'.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't', scan.startup.mode = 'timestamp') FORMAT PLAIN ENCODE JSON;
--> ERROR 22023 stage "s": invalid value for option "scan.startup.mode": "timestamp"
--> AT scan.startup.mode = 'timestamp') FORMAT PLAIN ENCODE JSON;
--> HINT Give scan.startup.timestamp.millis, or say START AT TIMESTAMP '…'.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't', scan.startup.timestamp.millis = 'noon') FORMAT PLAIN ENCODE JSON;
--> ERROR 22023 stage "s": invalid value for option "scan.startup.timestamp.millis": "noon"
--> AT scan.startup.timestamp.millis = 'noon') FORMAT PLAIN ENCODE JSON;
--> HINT Give milliseconds since 1970 UTC.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't', scan.startup.mode = 'latest') FORMAT PLAIN ENCODE JSON START AT EARLIEST;
--> ERROR 42601 stage "s": START AT and scan.startup options exclude each other
--> AT START AT EARLIEST;
--> HINT Keep START AT.
-- A connector without those options does not know them.
CREATE SOURCE s (a int) WITH (connector = 'pulsar', topic = 't', service.url = 'x', scan.startup.mode = 'latest') FORMAT PLAIN ENCODE JSON;
--> ERROR 42704 stage "s": connector "pulsar" has no option "scan.startup.mode"
--> AT scan.startup.mode = 'latest') FORMAT PLAIN ENCODE JSON;
--> HINT Say START AT instead.
-- Every clause of a log.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON (x = 1) START AT OFFSETS '{"0": 100, "1": "57"}' STOP AT TIMESTAMP '2026-01-31 12:00:00.5+02';
--> COLUMNS a integer
--> STAGE s: kafka, bounded append, Plain json, start Offsets({SplitId("0"): "100", SplitId("1"): "57"}), stop Some(Timestamp { unix_ms: 1769853600500 }), key [], DeadLetter, options {"topic": "t"}
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT TIMESTAMP '2026-01-31T12:00Z' STOP AT LATEST;
--> COLUMNS a integer
--> STAGE s: kafka, bounded append, Plain json, start Timestamp { unix_ms: 1769860800000 }, stop Some(Latest), key [], DeadLetter, options {"topic": "t"}
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT TIMESTAMP '1970-01-02';
--> COLUMNS a integer
--> STAGE s: kafka, continuous append, Plain json, start Timestamp { unix_ms: 86400000 }, stop None, key [], DeadLetter, options {"topic": "t"}
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT TIMESTAMP '1970-01-01 00:00:01';
--> COLUMNS a integer
--> STAGE s: kafka, continuous append, Plain json, start Timestamp { unix_ms: 1000 }, stop None, key [], DeadLetter, options {"topic": "t"}
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT TIMESTAMP 'yesterday';
--> ERROR 22P02 stage "s": invalid timestamp: "yesterday"
--> AT START AT TIMESTAMP 'yesterday';
--> HINT Write it as '2026-01-31 12:00:00+00'; without a zone it is UTC.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT OFFSETS '[1]';
--> ERROR 22023 stage "s": invalid START AT OFFSETS: not a JSON object
--> AT START AT OFFSETS '[1]';
--> HINT Give a JSON object of splits and positions, as in '{"0": 100, "1": 57}'.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT OFFSETS '{}';
--> ERROR 22023 stage "s": invalid START AT OFFSETS: no split is named
--> AT START AT OFFSETS '{}';
--> HINT Give a JSON object of splits and positions, as in '{"0": 100, "1": 57}'.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON STOP AT OFFSETS '{"0": null}';
--> ERROR 22023 stage "s": invalid STOP AT OFFSETS: the position of split "0" is no string or number
--> AT STOP AT OFFSETS '{"0": null}';
--> HINT Give a JSON object of splits and positions, as in '{"0": 100, "1": 57}'.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON STOP AT OFFSETS 'x';
--> ERROR 22023 stage "s": invalid STOP AT OFFSETS: not JSON: expected value at line 1 column 1
--> AT STOP AT OFFSETS 'x';
--> HINT Give a JSON object of splits and positions, as in '{"0": 100, "1": 57}'.
-- What the first stage cannot start at.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT HANDOFF;
--> ERROR 42P17 stage "s": the first stage cannot START AT HANDOFF
--> AT START AT HANDOFF;
--> DETAIL HANDOFF derives the start from the stage before, and there is none.
--> HINT Use EARLIEST (the default), LATEST, TIMESTAMP or OFFSETS.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT QUERY 'SELECT 1';
--> ERROR 42P17 stage "s": the first stage cannot START AT QUERY
--> AT START AT QUERY 'SELECT 1';
--> DETAIL QUERY derives the start from the stage before, and there is none.
--> HINT Use EARLIEST (the default), LATEST, TIMESTAMP or OFFSETS.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT COLUMNS (a, a);
--> ERROR 42P17 stage "s": the first stage cannot START AT COLUMNS
--> AT START AT COLUMNS (a, a);
--> DETAIL COLUMNS derives the start from the stage before, and there is none.
--> HINT Use EARLIEST (the default), LATEST, TIMESTAMP or OFFSETS.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON ALLOW GAP;
--> COLUMNS a integer
--> STAGE s: kafka, continuous append, Plain json, start Earliest, stop None, key [], DeadLetter, options {"topic": "t"}
CREATE SOURCE s (a int) WITH (connector = 'datagen') ALLOW GAP;
--> COLUMNS a integer
--> STAGE s: datagen, continuous append, Plain native, start Earliest, stop None, key [], DeadLetter, options {}
--> NOTICE ALLOW of stage "s" has no effect: it is the first, and nothing of it expires
