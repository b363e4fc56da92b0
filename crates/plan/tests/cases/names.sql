-- Names that are not known name the nearest that is.
CREATE SOURCE s (a int) WITH (topic = 't');
--> ERROR 22023 stage "s": option "connector" is required
--> AT WITH (topic = 't');
--> HINT Known connectors are changes, datagen, files, kafka, postgres, pulsar.
CREATE SOURCE s (a int) WITH (connector = 'kafak', topic = 't');
--> ERROR 42704 stage "s": connector "kafak" does not exist
--> AT WITH (connector = 'kafak', topic = 't');
--> HINT Perhaps you meant the connector "kafka".
CREATE SOURCE s (a int) WITH (connector = 'oracle', topic = 't');
--> ERROR 42704 stage "s": connector "oracle" does not exist
--> AT WITH (connector = 'oracle', topic = 't');
--> HINT Known connectors are changes, datagen, files, kafka, postgres, pulsar.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topci = 't');
--> ERROR 42704 stage "s": connector "kafka" has no option "topci"
--> AT topci = 't');
--> HINT Perhaps you meant the option "topic".
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't', "properties." = 't');
--> ERROR 42704 stage "s": connector "kafka" has no option "properties."
--> AT "properties." = 't');
--> HINT Its options are connector, on_error, topic, properties.bootstrap.server, scan.startup.mode, scan.startup.timestamp.millis, properties.*.
CREATE SOURCE s (a int) WITH (connector = 'files', path = '/data', zzz = 't');
--> ERROR 42704 stage "s": connector "files" has no option "zzz"
--> AT zzz = 't');
--> HINT Its options are connector, on_error, path, match_pattern.
CREATE SOURCE s (a int) WITH (connector = 'kafka') FORMAT PLAIN ENCODE JSON;
--> ERROR 22023 stage "s": option "topic" is required
--> AT WITH (connector = 'kafka') FORMAT PLAIN ENCODE JSON;
--> HINT topic: A doc.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't', on_error = 'ignore') FORMAT PLAIN ENCODE JSON;
--> ERROR 22023 stage "s": invalid value for option "on_error": "ignore"
--> AT WITH (connector = 'kafka', topic = 't', on_error = 'ignore') FORMAT PLAIN ENCODE JSON;
--> HINT Give 'dead_letter' (the default) or 'fail'.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLIAN ENCODE JSON;
--> ERROR 42704 stage "s": FORMAT PLIAN does not exist
--> AT FORMAT PLIAN ENCODE JSON;
--> HINT Perhaps you meant FORMAT PLAIN.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSNO;
--> ERROR 42704 stage "s": ENCODE JSNO does not exist
--> AT FORMAT PLAIN ENCODE JSNO;
--> HINT Perhaps you meant ENCODE JSON.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT DEBEZIUM ENCODE XML;
--> ERROR 42704 stage "s": FORMAT DEBEZIUM does not exist
--> AT FORMAT DEBEZIUM ENCODE XML;
--> HINT Use one of PLAIN, UPSERT.
-- What the connector says of a configuration is said of the stage.
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE CSV;
--> ERROR 0A000 stage "s": only ENCODE JSON
--> AT WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE CSV;
CREATE SOURCE s (a int) WITH (connector = 'postgres', url = 'x', query = 'y') FORMAT PLAIN ENCODE JSON;
--> ERROR 22023 stage "s": a query has no FORMAT
--> AT WITH (connector = 'postgres', url = 'x', query = 'y') FORMAT PLAIN ENCODE JSON;
--> HINT Leave it out.
-- Columns and keys.
CREATE SOURCE s (a int, b int, a text) WITH (connector = 'files', path = 'x');
--> ERROR 42701 column "a" specified more than once
--> AT a text) WITH (connector = 'files', path = 'x');
CREATE SOURCE s (a int, PRIMARY KEY (b)) WITH (connector = 'files', path = 'x');
--> ERROR 42703 column "b" named in key does not exist
--> AT PRIMARY KEY (b)) WITH (connector = 'files', path = 'x');
CREATE SOURCE s (a int, PRIMARY KEY (a, a)) WITH (connector = 'files', path = 'x');
--> ERROR 42701 column "a" appears twice in primary key constraint
--> AT PRIMARY KEY (a, a)) WITH (connector = 'files', path = 'x');
CREATE SOURCE s (a int DEFAULT 1) WITH (connector = 'files', path = 'x');
--> ERROR 0A000 column "a": a DEFAULT other than NULL is not supported
--> AT a int DEFAULT 1) WITH (connector = 'files', path = 'x');
--> HINT What a stage lacks is NULL; only tables without stages have defaults.
CREATE SOURCE s (a int DEFAULT NULL, WATERMARK FOR a AS a - 1) WITH (connector = 'files', path = 'x');
--> ERROR 42804 a watermark cannot be of column "a"
--> AT WATERMARK FOR a AS a - 1) WITH (connector = 'files', path = 'x');
--> DETAIL The column is integer.
--> HINT It has to be a timestamp or timestamptz.
CREATE SOURCE s (a int, WATERMARK FOR b AS b - 1) WITH (connector = 'files', path = 'x');
--> ERROR 42703 column "b" named in WATERMARK does not exist
--> AT WATERMARK FOR b AS b - 1) WITH (connector = 'files', path = 'x');
CREATE SOURCE s (a int) WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON;
--> ERROR 42P16 stage "s": upsert rows need a PRIMARY KEY
--> AT WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON;
--> HINT Declare the columns that name a row: PRIMARY KEY (…).
-- Included columns.
CREATE SOURCE s (a int, PRIMARY KEY (k)) INCLUDE key AS k INCLUDE partition AS p INCLUDE offset AS o INCLUDE timestamp AS t INCLUDE header AS h INCLUDE header 'x' AS hx INCLUDE payload AS v INCLUDE stage AS s INCLUDE file AS f WITH (connector = 'kafka', topic = 't') FORMAT UPSERT ENCODE JSON;
--> COLUMNS a integer, k bytea NOT NULL KEY, p text, o bigint, t timestamptz, h jsonb, hx text, v text, s text, f text
--> STAGE s: kafka, continuous upsert, Upsert json, start Earliest, stop None, key [1], DeadLetter, options {"topic": "t"}
CREATE SOURCE s (a int) INCLUDE partition INCLUDE header 'x' WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON;
--> COLUMNS a integer, _rw_kafka_partition text, _rw_kafka_header_x text
--> STAGE s: kafka, continuous append, Plain json, start Earliest, stop None, key [], DeadLetter, options {"topic": "t"}
CREATE SOURCE s (a int) INCLUDE key AS a WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON;
--> ERROR 42701 column "a" specified more than once
--> AT key AS a WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON;
CREATE SOURCE s (a int) INCLUDE ofset WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON;
--> ERROR 42704 INCLUDE OFSET does not exist
--> AT ofset WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON;
--> HINT Perhaps you meant INCLUDE OFFSET.
CREATE SOURCE s (a int) INCLUDE weather WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON;
--> ERROR 42704 INCLUDE WEATHER does not exist
--> AT weather WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON;
--> HINT Perhaps you meant INCLUDE HEADER.
CREATE SOURCE s (a int) INCLUDE key 'x' WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON;
--> ERROR 42601 INCLUDE KEY takes no name in quotes
--> AT key 'x' WITH (connector = 'kafka', topic = 't') FORMAT PLAIN ENCODE JSON;
--> HINT Only INCLUDE HEADER can pick one by name.
