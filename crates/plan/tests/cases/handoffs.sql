-- The design's example: a query, then a topic from stated offsets.
CREATE SOURCE orders (
    order_id BIGINT, customer BIGINT, amount NUMERIC(12,2), updated_at TIMESTAMPTZ,
    PRIMARY KEY (order_id)
)
WITH STAGES (
    history WITH (connector = 'postgres', url = 'postgres://app@db/shop',
                  query = 'SELECT order_id, customer, amount, updated_at FROM orders'),
    live    WITH (connector = 'kafka', properties.bootstrap.server = 'kafka:9092', topic = 'shop.orders')
            FORMAT UPSERT ENCODE JSON
            START AT OFFSETS '{"0": 100, "1": 57}'
);
--> COLUMNS order_id bigint NOT NULL KEY, customer bigint, amount numeric(12,2), updated_at timestamptz
--> STAGE history: postgres, bounded state, Plain native, start Earliest, stop None, key [0], DeadLetter, options {"query": "SELECT order_id, customer, amount, updated_at FROM orders", "url": "postgres://app@db/shop"}
--> STAGE live: kafka, continuous upsert, Upsert json, start Offsets({SplitId("0"): "100", SplitId("1"): "57"}), stop None, key [0], DeadLetter, options {"properties.bootstrap.server": "kafka:9092", "topic": "shop.orders"}
-->   HANDOFF declared, nothing derived
--> NOTICE handoff from stage "history" to stage "live" is declared: it starts at the given offsets; their existence, identity and retention are checked
-- A query in the predecessor's snapshot.
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'postgres', url = 'x', query = 'y'),
    l WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON START AT QUERY 'SELECT partition, next FROM marks'
);
--> COLUMNS a integer NOT NULL KEY
--> STAGE h: postgres, bounded state, Plain native, start Earliest, stop None, key [0], DeadLetter, options {"query": "y", "url": "x"}
--> STAGE l: kafka, continuous upsert, Upsert json, start Query("SELECT partition, next FROM marks"), stop None, key [0], DeadLetter, options {"topic": "t"}
-->   HANDOFF declared, query
--> NOTICE handoff from stage "h" to stage "l" is declared: the query of START AT QUERY is answered in its predecessor's snapshot; existence, identity and retention of the positions are checked
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'postgres', url = 'x', query = 'y'),
    l WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON START AT QUERY '  '
);
--> ERROR 22023 stage "l": START AT QUERY is empty
--> AT START AT QUERY '  '
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'files', path = 'x'),
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT QUERY 'SELECT 1'
);
--> ERROR 42P17 stage "l" cannot follow stage "h": START AT QUERY needs query, which stage "h" does not produce
--> AT START AT QUERY 'SELECT 1'
--> DETAIL Stage "h" (connector "files") produces columns; stage "l" (connector "kafka") accepts log ends, query, columns.
--> HINT Give stage "l" START AT COLUMNS (<split>, <position>) or START AT OFFSETS '<json>', or START AT LATEST ALLOW GAP.
-- Two ranges of one log; the default is HANDOFF.
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON STOP AT LATEST,
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON
);
--> COLUMNS a integer
--> STAGE h: kafka, bounded append, Plain json, start Earliest, stop Some(Latest), key [], DeadLetter, options {"topic": "t"}
--> STAGE l: kafka, continuous append, Plain json, start Handoff, stop None, key [], DeadLetter, options {"topic": "t"}
-->   HANDOFF exact, log ends
--> NOTICE handoff from stage "h" to stage "l" is exact: it starts where its predecessor ended in the same log; nothing is lost or repeated
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON STOP AT LATEST,
    l WITH (connector = 'pulsar', topic = 't', service.url = 'x') FORMAT PLAIN ENCODE JSON
);
--> ERROR 42P17 stage "l" cannot follow stage "h": START AT HANDOFF needs two reads of the same log
--> AT WITH (connector = 'pulsar', topic = 't', service.url = 'x') FORMAT PLAIN ENCODE JSON
--> DETAIL Stage "h" (connector "kafka") produces log ends; stage "l" (connector "pulsar") accepts log ends, query, columns.
--> HINT Give stage "l" START AT OFFSETS '<json>', or START AT LATEST ALLOW GAP.
-- Nothing to derive from.
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'postgres', url = 'x', query = 'y'),
    l WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON
);
--> ERROR 42P17 stage "l" cannot follow stage "h": START AT HANDOFF needs log ends, which stage "h" does not produce
--> AT WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON
--> DETAIL Stage "h" (connector "postgres") produces query, columns; stage "l" (connector "kafka") accepts log ends, query, columns.
--> HINT Give stage "l" START AT QUERY '<sql>' or START AT COLUMNS (<split>, <position>) or START AT OFFSETS '<json>', or START AT LATEST ALLOW GAP.
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'files', path = 'x'),
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT HANDOFF
);
--> ERROR 42P17 stage "l" cannot follow stage "h": START AT HANDOFF needs log ends, which stage "h" does not produce
--> AT START AT HANDOFF
--> DETAIL Stage "h" (connector "files") produces columns; stage "l" (connector "kafka") accepts log ends, query, columns.
--> HINT Give stage "l" START AT COLUMNS (<split>, <position>) or START AT OFFSETS '<json>', or START AT LATEST ALLOW GAP.
-- Columns: events must reach it without a hole, rows that stand for keys are reconciled.
CREATE SOURCE s (a int) INCLUDE partition AS p INCLUDE offset AS o WITH STAGES (
    h WITH (connector = 'files', path = 'x'),
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT COLUMNS (p, o)
);
--> COLUMNS a integer, p text, o bigint
--> STAGE h: files, bounded append, Plain native, start Earliest, stop None, key [], DeadLetter, options {"path": "x"}
--> STAGE l: kafka, continuous append, Plain json, start Columns { split: "p", position: "o" }, stop None, key [], DeadLetter, options {"topic": "t"}
-->   HANDOFF declared, columns
--> NOTICE handoff from stage "h" to stage "l" is declared: it starts after the greatest position that its predecessor's rows carry; that they reach it without a hole is stated by the definition
CREATE SOURCE s (a int PRIMARY KEY, p int, o bigint) WITH STAGES (
    h WITH (connector = 'postgres', url = 'x', query = 'y'),
    l WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON START AT COLUMNS (p, o)
);
--> COLUMNS a integer NOT NULL KEY, p integer, o bigint
--> STAGE h: postgres, bounded state, Plain native, start Earliest, stop None, key [0], DeadLetter, options {"query": "y", "url": "x"}
--> STAGE l: kafka, continuous upsert, Upsert json, start Columns { split: "p", position: "o" }, stop None, key [0], DeadLetter, options {"topic": "t"}
-->   HANDOFF covering, columns
--> NOTICE handoff from stage "h" to stage "l" is covering: it starts at or before the boundary, after the greatest position that its predecessor's rows carry; what comes twice is reconciled by key
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'files', path = 'x'),
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT COLUMNS (a, o)
);
--> ERROR 42703 column "o" named in START AT COLUMNS does not exist
--> AT START AT COLUMNS (a, o)
CREATE SOURCE s (a int, o float) WITH STAGES (
    h WITH (connector = 'files', path = 'x'),
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT COLUMNS (a, o)
);
--> ERROR 42804 column "o" named in START AT COLUMNS is no integer or text
--> AT START AT COLUMNS (a, o)
CREATE SOURCE s (a int, p int, o bigint) WITH STAGES (
    h WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON STOP AT LATEST,
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT COLUMNS (p, o)
);
--> ERROR 42P17 stage "l" cannot follow stage "h": START AT COLUMNS needs columns, which stage "h" does not produce
--> AT START AT COLUMNS (p, o)
--> DETAIL Stage "h" (connector "kafka") produces log ends; stage "l" (connector "kafka") accepts log ends, query, columns.
--> HINT Give stage "l" START AT HANDOFF or START AT OFFSETS '<json>', or START AT LATEST ALLOW GAP.
-- Weak handoffs are asked for in so many words.
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'files', path = 'x'),
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT LATEST
);
--> ERROR 42P17 stage "l" cannot follow stage "h": START AT LATEST is a weak handoff
--> AT START AT LATEST
--> DETAIL Records that were written before this statement and that its predecessor does not cover would be lost.
--> HINT Say START AT COLUMNS (<split>, <position>) or START AT OFFSETS '<json>', or accept this with ALLOW GAP or ALLOW OVERLAP.
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'files', path = 'x'),
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT LATEST ALLOW GAP
);
--> COLUMNS a integer
--> STAGE h: files, bounded append, Plain native, start Earliest, stop None, key [], DeadLetter, options {"path": "x"}
--> STAGE l: kafka, continuous append, Plain json, start Latest, stop None, key [], DeadLetter, options {"topic": "t"}
-->   HANDOFF weak, nothing derived
--> NOTICE handoff from stage "h" to stage "l" is weak: it starts at the end of the log at CREATE; rows between its predecessor's end and there are lost, and rows that both have come twice
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'files', path = 'x'),
    l WITH (connector = 'kafka', topic = 't', scan.startup.mode = 'latest') FORMAT PLAIN ENCODE JSON
);
--> ERROR 42P17 stage "l" cannot follow stage "h": START AT LATEST is a weak handoff
--> AT WITH (connector = 'kafka', topic = 't', scan.startup.mode = 'latest') FORMAT PLAIN ENCODE JSON
--> DETAIL Records that were written before this statement and that its predecessor does not cover would be lost.
--> HINT Say START AT COLUMNS (<split>, <position>) or START AT OFFSETS '<json>', or accept this with ALLOW GAP or ALLOW OVERLAP.
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'files', path = 'x'),
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT TIMESTAMP '2026-01-01'
);
--> ERROR 42P17 stage "l" cannot follow stage "h": START AT TIMESTAMP is a weak handoff
--> AT START AT TIMESTAMP '2026-01-01'
--> DETAIL A time is not a position: records that its predecessor does not cover and that are older would be lost, and younger ones that it does cover would be read again.
--> HINT Say START AT COLUMNS (<split>, <position>) or START AT OFFSETS '<json>', or accept this with ALLOW GAP or ALLOW OVERLAP.
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'files', path = 'x'),
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT TIMESTAMP '2026-01-01' ALLOW OVERLAP
);
--> COLUMNS a integer
--> STAGE h: files, bounded append, Plain native, start Earliest, stop None, key [], DeadLetter, options {"path": "x"}
--> STAGE l: kafka, continuous append, Plain json, start Timestamp { unix_ms: 1767225600000 }, stop None, key [], DeadLetter, options {"topic": "t"}
-->   HANDOFF weak, nothing derived
--> NOTICE handoff from stage "h" to stage "l" is weak: it starts at a time; rows between its predecessor's end and there are lost, and rows that both have come twice
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'files', path = 'x'),
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT EARLIEST ALLOW GAP
);
--> ERROR 42P17 stage "l" cannot follow stage "h": START AT EARLIEST is a weak handoff
--> AT START AT EARLIEST ALLOW GAP
--> DETAIL Records that its predecessor has covered would be read again, and older values would replace newer ones until the read has caught up.
--> HINT Say START AT COLUMNS (<split>, <position>) or START AT OFFSETS '<json>', or accept this with ALLOW OVERLAP.
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'files', path = 'x'),
    l WITH (connector = 'kafka', topic = 't', scan.startup.mode = 'earliest') FORMAT PLAIN ENCODE JSON ALLOW OVERLAP
);
--> COLUMNS a integer
--> STAGE h: files, bounded append, Plain native, start Earliest, stop None, key [], DeadLetter, options {"path": "x"}
--> STAGE l: kafka, continuous append, Plain json, start Earliest, stop None, key [], DeadLetter, options {"topic": "t"}
-->   HANDOFF weak, nothing derived
--> NOTICE handoff from stage "h" to stage "l" is weak: it starts at the earliest record that is retained; rows of its predecessor may come again
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'files', path = 'x'),
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT OFFSETS '{"0": 1}' ALLOW GAP
);
--> COLUMNS a integer
--> STAGE h: files, bounded append, Plain native, start Earliest, stop None, key [], DeadLetter, options {"path": "x"}
--> STAGE l: kafka, continuous append, Plain json, start Offsets({SplitId("0"): "1"}), stop None, key [], DeadLetter, options {"topic": "t"}
-->   HANDOFF declared, nothing derived
--> NOTICE handoff from stage "h" to stage "l" is declared: it starts at the given offsets; their existence, identity and retention are checked
-- Reads without positions are read whole.
CREATE SOURCE s (a int) WITH STAGES (
    first WITH (connector = 'files', path = 'x'),
    second WITH (connector = 'files', path = 'y'),
    live WITH (connector = 'datagen', fields.a.kind = 'sequence')
);
--> COLUMNS a integer
--> STAGE first: files, bounded append, Plain native, start Earliest, stop None, key [], DeadLetter, options {"path": "x"}
--> STAGE second: files, bounded append, Plain native, start Earliest, stop None, key [], DeadLetter, options {"path": "y"}
-->   HANDOFF declared, nothing derived
--> STAGE live: datagen, continuous append, Plain native, start Earliest, stop None, key [], DeadLetter, options {"fields.a.kind": "sequence"}
-->   HANDOFF declared, nothing derived
--> NOTICE handoff from stage "first" to stage "second" is declared: it is read whole; that its rows continue its predecessor's is stated by the definition
--> NOTICE handoff from stage "second" to stage "live" is declared: it is read whole; that its rows continue its predecessor's is stated by the definition
CREATE SOURCE s (a int) WITH STAGES (
    first WITH (connector = 'files', path = 'x'),
    second WITH (connector = 'files', path = 'y') START AT HANDOFF
);
--> ERROR 42P17 stage "second" cannot follow stage "first": START AT HANDOFF needs log ends, which stage "first" does not produce
--> AT START AT HANDOFF
--> DETAIL Stage "first" (connector "files") produces columns; stage "second" (connector "files") accepts nothing.
--> HINT Leave out START AT: this stage is read whole.
-- Only the last may go on for ever.
CREATE SOURCE s (a int) WITH STAGES (
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON,
    h WITH (connector = 'files', path = 'x')
);
--> ERROR 42P17 stage "h" cannot follow stage "l": stage "l" never ends
--> AT h WITH (connector = 'files', path = 'x')
--> DETAIL Every stage but the last must be bounded.
--> HINT Put stage "h" before stage "l", or bound stage "l" with STOP AT.
CREATE SOURCE s (a int) WITH STAGES (
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON,
    m WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON
);
--> ERROR 42P17 stage "m" cannot follow stage "l": stage "l" never ends
--> AT m WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON
--> DETAIL Every stage but the last must be bounded.
--> HINT Bound stage "l" with STOP AT.
CREATE SOURCE s (a int) WITH STAGES (
    l WITH (connector = 'files', path = 'x'),
    "l" WITH (connector = 'files', path = 'x')
);
--> ERROR 42710 stage "l" specified more than once
--> AT "l" WITH (connector = 'files', path = 'x')
--> HINT Give each stage a name of its own.
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'files', path = 'x') ALLOW OVERLAP,
    l WITH (connector = 'kafka', topic = 't', topci = 'u') FORMAT PLAIN ENCODE JSON
);
--> ERROR 42704 stage "l": connector "kafka" has no option "topci"
--> AT topci = 'u') FORMAT PLAIN ENCODE JSON
--> HINT Perhaps you meant the option "topic".
