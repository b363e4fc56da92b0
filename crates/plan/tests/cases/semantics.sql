-- state → append is refused, and AS EVENTS is the remedy.
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'postgres', url = 'x', query = 'y'),
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT OFFSETS '{"0": 1}'
);
--> ERROR 42P17 stage "l" cannot follow stage "h": append rows cannot follow state rows
--> AT l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT OFFSETS '{"0": 1}'
--> DETAIL An event after a row that stands for its key would count the same thing twice.
--> HINT Say AS EVENTS on the first stage if each of its rows is an event, or make the second stage FORMAT UPSERT.
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'postgres', url = 'x', query = 'y') AS EVENTS,
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT OFFSETS '{"0": 1}'
);
--> COLUMNS a integer NOT NULL
--> STAGE h: postgres, bounded append, Plain native, start Earliest, stop None, key [], DeadLetter, options {"query": "y", "url": "x"}
--> STAGE l: kafka, continuous append, Plain json, start Offsets({SplitId("0"): "1"}), stop None, key [], DeadLetter, options {"topic": "t"}
-->   HANDOFF declared, nothing derived
--> NOTICE handoff from stage "h" to stage "l" is declared: it starts at the given offsets; their existence, identity and retention are checked
--> NOTICE PRIMARY KEY (a) of source "s" is not enforced: every row is an event, and rows with the same key are all kept; a table would keep the last of them
CREATE TABLE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'postgres', url = 'x', query = 'y') AS EVENTS,
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT OFFSETS '{"0": 1}'
);
--> Overwrite Mutable
--> COLUMNS a integer NOT NULL KEY
--> STAGE h: postgres, bounded append, Plain native, start Earliest, stop None, key [], DeadLetter, options {"query": "y", "url": "x"}
--> STAGE l: kafka, continuous append, Plain json, start Offsets({SplitId("0"): "1"}), stop None, key [0], DeadLetter, options {"topic": "t"}
-->   HANDOFF declared, nothing derived
--> NOTICE handoff from stage "h" to stage "l" is declared: it starts at the given offsets; their existence, identity and retention are checked
CREATE SOURCE s (a int PRIMARY KEY) WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON AS EVENTS;
--> ERROR 42P17 stage "s": AS EVENTS cannot be said of upsert rows
--> AT WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON AS EVENTS;
--> DETAIL Rows that delete or replace others are no events.
--> HINT Use FORMAT PLAIN, or leave out AS EVENTS.
CREATE SOURCE s (a int PRIMARY KEY) WITH (connector = 'changes') AS EVENTS;
--> ERROR 42P17 stage "s": AS EVENTS cannot be said of changelog rows
--> AT WITH (connector = 'changes') AS EVENTS;
--> DETAIL Rows that delete or replace others are no events.
--> HINT Use FORMAT PLAIN, or leave out AS EVENTS.
-- append → upsert: a PRIMARY KEY makes all that comes before a snapshot.
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h1 WITH (connector = 'files', path = 'x'),
    h2 WITH (connector = 'files', path = 'y'),
    l WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON START AT OFFSETS '{"0": 1}'
);
--> COLUMNS a integer NOT NULL KEY
--> STAGE h1: files, bounded state, Plain native, start Earliest, stop None, key [0], DeadLetter, options {"path": "x"}
--> STAGE h2: files, bounded state, Plain native, start Earliest, stop None, key [0], DeadLetter, options {"path": "y"}
-->   HANDOFF declared, nothing derived
--> STAGE l: kafka, continuous upsert, Upsert json, start Offsets({SplitId("0"): "1"}), stop None, key [0], DeadLetter, options {"topic": "t"}
-->   HANDOFF declared, nothing derived
--> NOTICE stage "h1" is taken as a snapshot: PRIMARY KEY (a) declares its rows unique
--> NOTICE stage "h2" is taken as a snapshot: PRIMARY KEY (a) declares its rows unique
--> NOTICE handoff from stage "h1" to stage "h2" is declared: it is read whole; that its rows continue its predecessor's is stated by the definition
--> NOTICE handoff from stage "h2" to stage "l" is declared: it starts at the given offsets; their existence, identity and retention are checked
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'files', path = 'x') AS EVENTS,
    l WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON START AT OFFSETS '{"0": 1}'
);
--> ERROR 42P17 stage "l" cannot follow stage "h": upsert rows cannot follow append rows
--> AT l WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON START AT OFFSETS '{"0": 1}'
--> DETAIL Rows that are keyed and unique count as a snapshot, and upserts overwrite them by key.
--> HINT Declare the PRIMARY KEY that makes the rows of the first stage unique, and leave out AS EVENTS.
-- append → changelog
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'files', path = 'x'),
    l WITH (connector = 'changes') START AT OFFSETS '{"0": 1}'
);
--> ERROR 42P17 stage "l" cannot follow stage "h": changelog rows cannot follow append rows
--> AT l WITH (connector = 'changes') START AT OFFSETS '{"0": 1}'
--> DETAIL A change names the row that it takes back, and events do not say which row that is.
--> HINT Begin with a snapshot of the table whose changes follow.
-- state → state, upsert, changelog
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h1 WITH (connector = 'postgres', url = 'x', query = 'y'),
    h2 WITH (connector = 'postgres', url = 'x', query = 'z'),
    l WITH (connector = 'changes') START AT COLUMNS (a, a)
);
--> COLUMNS a integer NOT NULL KEY
--> STAGE h1: postgres, bounded state, Plain native, start Earliest, stop None, key [0], DeadLetter, options {"query": "y", "url": "x"}
--> STAGE h2: postgres, bounded state, Plain native, start Earliest, stop None, key [0], DeadLetter, options {"query": "z", "url": "x"}
-->   HANDOFF declared, nothing derived
--> STAGE l: changes, continuous changelog, Plain native, start Columns { split: "a", position: "a" }, stop None, key [0], DeadLetter, options {}
-->   HANDOFF covering, columns
--> NOTICE handoff from stage "h1" to stage "h2" is declared: it is read whole; that its rows continue its predecessor's is stated by the definition
--> NOTICE handoff from stage "h2" to stage "l" is covering: it starts at or before the boundary, after the greatest position that its predecessor's rows carry; what comes twice is reconciled by key
-- upsert → append, state, upsert, changelog
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON STOP AT LATEST,
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON
);
--> ERROR 42P17 stage "l" cannot follow stage "h": append rows cannot follow upsert rows
--> AT l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON
--> DETAIL An event after a row that stands for its key would count the same thing twice.
--> HINT Make the second stage FORMAT UPSERT with a PRIMARY KEY, or feed two tables and join them in a view.
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON STOP AT LATEST,
    l WITH (connector = 'postgres', url = 'x', query = 'y')
);
--> ERROR 42P17 stage "l" cannot follow stage "h": state rows cannot follow upsert rows
--> AT l WITH (connector = 'postgres', url = 'x', query = 'y')
--> DETAIL A snapshot after changes would bring rows back that the changes have removed.
--> HINT Put the snapshot before the changes.
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON STOP AT LATEST,
    l WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON
);
--> COLUMNS a integer NOT NULL KEY
--> STAGE h: kafka, bounded upsert, Upsert json, start Earliest, stop Some(Latest), key [0], DeadLetter, options {"topic": "t"}
--> STAGE l: kafka, continuous upsert, Upsert json, start Handoff, stop None, key [0], DeadLetter, options {"topic": "t"}
-->   HANDOFF exact, log ends
--> NOTICE handoff from stage "h" to stage "l" is exact: it starts where its predecessor ended in the same log; nothing is lost or repeated
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON STOP AT LATEST,
    l WITH (connector = 'changes') START AT OFFSETS '{"0": 1}'
);
--> COLUMNS a integer NOT NULL KEY
--> STAGE h: kafka, bounded upsert, Upsert json, start Earliest, stop Some(Latest), key [0], DeadLetter, options {"topic": "t"}
--> STAGE l: changes, continuous changelog, Plain native, start Offsets({SplitId("0"): "1"}), stop None, key [0], DeadLetter, options {}
-->   HANDOFF declared, nothing derived
--> NOTICE handoff from stage "h" to stage "l" is declared: it starts at the given offsets; their existence, identity and retention are checked
-- changelog → append, state, upsert, changelog
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'changes') STOP AT LATEST,
    l WITH (connector = 'datagen')
);
--> ERROR 42P17 stage "l" cannot follow stage "h": append rows cannot follow changelog rows
--> AT l WITH (connector = 'datagen')
--> DETAIL An event after a row that stands for its key would count the same thing twice.
--> HINT Make the second stage FORMAT UPSERT with a PRIMARY KEY, or feed two tables and join them in a view.
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'changes') STOP AT LATEST,
    l WITH (connector = 'postgres', url = 'x', query = 'y')
);
--> ERROR 42P17 stage "l" cannot follow stage "h": state rows cannot follow changelog rows
--> AT l WITH (connector = 'postgres', url = 'x', query = 'y')
--> DETAIL A snapshot after changes would bring rows back that the changes have removed.
--> HINT Put the snapshot before the changes.
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'changes') STOP AT LATEST,
    l WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON START AT OFFSETS '{"0": 1}'
);
--> COLUMNS a integer NOT NULL KEY
--> STAGE h: changes, bounded changelog, Plain native, start Earliest, stop Some(Latest), key [0], DeadLetter, options {}
--> STAGE l: kafka, continuous upsert, Upsert json, start Offsets({SplitId("0"): "1"}), stop None, key [0], DeadLetter, options {"topic": "t"}
-->   HANDOFF declared, nothing derived
--> NOTICE handoff from stage "h" to stage "l" is declared: it starts at the given offsets; their existence, identity and retention are checked
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'changes') STOP AT LATEST,
    l WITH (connector = 'changes')
);
--> COLUMNS a integer NOT NULL KEY
--> STAGE h: changes, bounded changelog, Plain native, start Earliest, stop Some(Latest), key [0], DeadLetter, options {}
--> STAGE l: changes, continuous changelog, Plain native, start Handoff, stop None, key [0], DeadLetter, options {}
-->   HANDOFF exact, log ends
--> NOTICE handoff from stage "h" to stage "l" is exact: it starts where its predecessor ended in the same log; nothing is lost or repeated
CREATE SOURCE s (a int PRIMARY KEY) WITH STAGES (
    h WITH (connector = 'changes') STOP AT LATEST,
    l WITH (connector = 'changes') START AT OFFSETS '{"0": 1}'
);
--> ERROR 42P17 stage "l" cannot follow stage "h": changelog rows after changelog rows need an exact handoff
--> AT START AT OFFSETS '{"0": 1}'
--> DETAIL A change that is missing or comes twice makes every later one wrong.
--> HINT Let the second stage START AT HANDOFF in the log that the first one reads.
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'changes') STOP AT LATEST,
    l WITH (connector = 'changes')
);
--> COLUMNS a integer
--> STAGE h: changes, bounded changelog, Plain native, start Earliest, stop Some(Latest), key [], DeadLetter, options {}
--> STAGE l: changes, continuous changelog, Plain native, start Handoff, stop None, key [], DeadLetter, options {}
-->   HANDOFF exact, log ends
--> NOTICE handoff from stage "h" to stage "l" is exact: it starts where its predecessor ended in the same log; nothing is lost or repeated
-- No key at all.
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'postgres', url = 'x', query = 'y'),
    l WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON START AT OFFSETS '{"0": 1}'
);
--> ERROR 42P16 stage "l": upsert rows need a PRIMARY KEY
--> AT l WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON START AT OFFSETS '{"0": 1}'
--> HINT Declare the columns that name a row: PRIMARY KEY (…).
CREATE SOURCE s (a int) WITH STAGES (
    h WITH (connector = 'postgres', url = 'x', query = 'y'),
    l WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON START AT OFFSETS '{"0": 1}'
);
--> COLUMNS a integer
--> STAGE h: postgres, bounded append, Plain native, start Earliest, stop None, key [], DeadLetter, options {"query": "y", "url": "x"}
--> STAGE l: kafka, continuous append, Plain json, start Offsets({SplitId("0"): "1"}), stop None, key [], DeadLetter, options {"topic": "t"}
-->   HANDOFF declared, nothing derived
--> NOTICE handoff from stage "h" to stage "l" is declared: it starts at the given offsets; their existence, identity and retention are checked
