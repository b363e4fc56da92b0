CREATE TABLE t (a int PRIMARY KEY, b text NOT NULL DEFAULT NULL, c numeric(5,2)[]);
--> Overwrite Mutable
--> COLUMNS a integer NOT NULL KEY, b text NOT NULL, c numeric(5,2)[]
CREATE TABLE t (a int) APPEND ONLY;
--> Ignore AppendOnly
--> COLUMNS a integer
CREATE TABLE t (a int PRIMARY KEY) ON CONFLICT DO UPDATE IF NOT NULL;
--> UpdateIfNotNull Mutable
--> COLUMNS a integer NOT NULL KEY
CREATE TABLE t (a int) ON CONFLICT DO NOTHING;
--> ERROR 42P16 ON CONFLICT of table "t" needs a PRIMARY KEY
--> AT t (a int) ON CONFLICT DO NOTHING;
--> HINT Declare the PRIMARY KEY by which rows are in conflict.
CREATE TABLE t (a int DEFAULT 7);
--> Overwrite Mutable
--> COLUMNS a integer
CREATE TABLE t (a int, a int);
--> ERROR 42701 column "a" specified more than once
--> AT a int);
CREATE TABLE t (a int) INCLUDE key;
--> ERROR 42P16 table "t" has no stages to include from
--> AT key;
--> HINT Leave out INCLUDE, or add WITH (…) or WITH STAGES (…).
CREATE TABLE t (a int PRIMARY KEY) APPEND ONLY WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON;
--> ERROR 42P16 table "t" is APPEND ONLY, and the rows of stage "t" are upsert
--> AT t (a int PRIMARY KEY) APPEND ONLY WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON;
--> HINT Leave out APPEND ONLY.
CREATE TABLE t (a int) APPEND ONLY INCLUDE stage AS stage WITH STAGES (
    h WITH (connector = 'files', path = 'x'),
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT LATEST ALLOW GAP
);
--> Ignore AppendOnly
--> COLUMNS a integer, stage text
--> STAGE h: files, bounded append, Plain native, start Earliest, stop None, key [], DeadLetter, options {"path": "x"}
--> STAGE l: kafka, continuous append, Plain json, start Latest, stop None, key [], DeadLetter, options {"topic": "t"}
-->   HANDOFF weak, nothing derived
--> NOTICE handoff from stage "h" to stage "l" is weak: it starts at the end of the log at CREATE; rows between its predecessor's end and there are lost, and rows that both have come twice
CREATE TABLE t (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'postgres', url = 'x', query = 'y'),
    l WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON START AT OFFSETS '{"0": 1}'
);
--> Overwrite Mutable
--> COLUMNS a integer NOT NULL KEY
--> STAGE h: postgres, bounded state, Plain native, start Earliest, stop None, key [0], DeadLetter, options {"query": "y", "url": "x"}
--> STAGE l: kafka, continuous upsert, Upsert json, start Offsets({SplitId("0"): "1"}), stop None, key [0], DeadLetter, options {"topic": "t"}
-->   HANDOFF declared, nothing derived
--> NOTICE handoff from stage "h" to stage "l" is declared: it starts at the given offsets; their existence, identity and retention are checked
