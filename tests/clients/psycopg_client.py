"""What a Python program does with psycopg 3: every type in both formats, parameters, cursors, COPY, errors.

Called with the port of the server; the first thing that is not as it should be ends it with a traceback.
"""

import datetime as dt
import decimal
import sys
import uuid

import psycopg

UTC = dt.timezone.utc
# Column, type, value; each comes back as it was sent.
VALUES = [
    ("b", "boolean", True),
    ("s", "smallint", -32768),
    ("i", "integer", 2147483647),
    ("l", "bigint", -9223372036854775808),
    ("r", "real", 1.5),
    ("d", "double precision", 0.1),
    ("n", "numeric(30,10)", decimal.Decimal("12345678901234567890.1234567890")),
    ("t", "text", "ä€😀'\"\\"),
    ("y", "bytea", b"\x00\xff\\"),
    ("da", "date", dt.date(2024, 2, 29)),
    ("ti", "time", dt.time(23, 59, 59, 999999)),
    ("ts", "timestamp", dt.datetime(1969, 12, 31, 23, 59, 59, 1)),
    ("tz", "timestamptz", dt.datetime(2024, 2, 29, 12, 0, tzinfo=UTC)),
    ("iv", "interval", dt.timedelta(days=3, hours=4, microseconds=5)),
    ("u", "uuid", uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
    ("ai", "integer[]", [1, None, 3]),
    ("at", "text[]", ["a b", "", 'c,"d"']),
]


def connect(port, **options):
    return psycopg.connect(f"host=127.0.0.1 port={port} user=test dbname=test", **options)


def equal(found, expected, what):
    assert found == expected, f"{what}: {found!r} is not {expected!r}"


def types_in_both_formats(conn):
    columns = ", ".join(f"{name} {ty}" for name, ty, _ in VALUES)
    conn.execute(f"CREATE TABLE every_type (id int PRIMARY KEY, {columns}, j jsonb)")
    places = ", ".join(["%s"] * (len(VALUES) + 2))
    values = [value for _, _, value in VALUES]
    insert = f"INSERT INTO every_type VALUES ({places})"
    conn.execute(insert, [1, *values, '{"b": 1, "a": [1, null]}'])
    conn.execute(insert, [2] + [None] * (len(VALUES) + 1))
    for binary in (False, True):
        cursor = conn.cursor(binary=binary)
        row = cursor.execute("SELECT * FROM every_type WHERE id = %s", [1]).fetchone()
        for (name, _, expected), found in zip(VALUES, row[1:]):
            equal(found, expected, f"{name}, binary {binary}")
        equal(row[-1], {"a": [1, None], "b": 1}, f"jsonb, binary {binary}")
        row = cursor.execute("SELECT * FROM every_type WHERE id = 2").fetchone()
        equal(row, (2,) + (None,) * (len(VALUES) + 1), f"NULLs, binary {binary}")
        names = [column.name for column in cursor.description]
        equal(names, ["id"] + [name for name, _, _ in VALUES] + ["j"], "names of columns")
    # Each value finds its own row as a parameter.
    for name, _, value in VALUES:
        found = conn.execute(f"SELECT id FROM every_type WHERE {name} = %s", [value]).fetchall()
        equal(found, [(1,)], f"found by {name}")


def prepared_statements(conn):
    conn.execute("CREATE TABLE p (id int PRIMARY KEY, v text)")
    cursor = conn.cursor()
    cursor.executemany("INSERT INTO p VALUES (%s, %s)", [(i, f"v{i}") for i in range(20)])
    equal(cursor.rowcount, 20, "rows of executemany")
    # The sixth time and after, psycopg uses a statement with a name.
    for i in range(10):
        row = conn.execute("SELECT v FROM p WHERE id = %s", [i]).fetchone()
        equal(row, (f"v{i}",), "a lookup, prepared in the end")
    equal(conn.execute("UPDATE p SET v = %s WHERE id < %s", ["w", 5]).rowcount, 5, "rows of UPDATE")
    equal(conn.execute("DELETE FROM p WHERE v = %s", ["w"]).rowcount, 5, "rows of DELETE")
    equal(conn.execute("SELECT count(*) FROM p", prepare=True).fetchone(), (15,), "what is left")
    with conn.pipeline():
        cursors = [conn.execute("SELECT %s::int + 1", [i]) for i in range(3)]
    equal([cursor.fetchone()[0] for cursor in cursors], [1, 2, 3], "a pipeline")


def server_side_cursors(port):
    with connect(port) as conn:
        with conn.cursor(name="walk") as cursor:
            cursor.execute("SELECT id FROM p ORDER BY id")
            equal(cursor.fetchmany(3), [(5,), (6,), (7,)], "the first rows of a cursor")
            equal(cursor.fetchone(), (8,), "the next row")
            equal(len(cursor.fetchall()), 11, "the rest")


def copy(conn):
    conn.execute("CREATE TABLE c (id int PRIMARY KEY, v text, n numeric(10,2))")
    cursor = conn.cursor()
    with cursor.copy("COPY c (id, v, n) FROM STDIN") as writer:
        for row in [(1, "a\tb", decimal.Decimal("1.50")), (2, None, None), (3, "\\N", decimal.Decimal(3))]:
            writer.write_row(row)
    equal(cursor.rowcount, 3, "rows of COPY")
    with cursor.copy("COPY (SELECT * FROM c ORDER BY id) TO STDOUT") as reader:
        rows = list(reader.rows())
    equal(rows, [("1", "a\tb", "1.50"), ("2", None, None), ("3", "\\N", "3.00")], "COPY there and back")
    with cursor.copy("COPY c TO STDOUT WITH (FORMAT csv, HEADER)") as reader:
        text = b"".join(bytes(piece) for piece in reader).decode()
    equal(text.splitlines()[0], "id,v,n", "the header of csv")
    try:
        with cursor.copy("COPY c FROM STDIN") as writer:
            writer.write("9\tx\tnot a number\n")
        raise AssertionError("a bad row was copied")
    except psycopg.errors.InvalidTextRepresentation:
        pass
    equal(conn.execute("SELECT count(*) FROM c").fetchone(), (3,), "a failed COPY leaves nothing")


def transactions_and_errors(port):
    with connect(port) as conn:
        equal(conn.info.transaction_status.name, "IDLE", "before the first statement")
        conn.execute("SELECT 1")
        equal(conn.info.transaction_status.name, "INTRANS", "inside a transaction")
        try:
            conn.execute("SELECT nope FROM p")
            raise AssertionError("a column that does not exist was read")
        except psycopg.errors.UndefinedColumn as error:
            equal(error.sqlstate, "42703", "the state")
            equal(error.diag.message_primary, 'column "nope" does not exist', "the message")
            equal(error.diag.statement_position, "8", "the place")
        equal(conn.info.transaction_status.name, "INERROR", "after an error")
        try:
            conn.execute("SELECT 1")
            raise AssertionError("a failed transaction went on")
        except psycopg.errors.InFailedSqlTransaction:
            conn.rollback()
        with conn.transaction():
            equal(conn.execute("SELECT 1").fetchone(), (1,), "a block of its own")
            try:
                with conn.transaction():
                    conn.execute("SELECT 1 / 0")
                raise AssertionError("division by zero")
            except psycopg.errors.DivisionByZero:
                pass
            equal(conn.execute("SELECT 2").fetchone(), (2,), "after ROLLBACK TO SAVEPOINT")
    cases = [
        ("SELECT * FROM nowhere", psycopg.errors.UndefinedTable),
        ("SELEC", psycopg.errors.SyntaxError),
        ("SELECT nofunc(1)", psycopg.errors.UndefinedFunction),
        ("SELECT 'x'::int", psycopg.errors.InvalidTextRepresentation),
        ("CREATE TABLE p (a int)", psycopg.errors.DuplicateTable),
        ("INSERT INTO p VALUES (NULL, 'x')", psycopg.errors.NotNullViolation),
        ("CREATE MATERIALIZED VIEW v AS SELECT random() AS r FROM p", psycopg.errors.FeatureNotSupported),
    ]
    with connect(port, autocommit=True) as conn:
        for sql, expected in cases:
            try:
                conn.execute(sql)
                raise AssertionError(f"no error: {sql}")
            except expected:
                pass


def notices(conn):
    seen = []
    conn.add_notice_handler(lambda diagnostic: seen.append(diagnostic.message_primary))
    conn.execute("CREATE MATERIALIZED VIEW ordered AS SELECT id FROM p ORDER BY id")
    expected = "ORDER BY of a materialized view is ignored: its rows have no order"
    assert expected in seen, f"notices: {seen}"


def main():
    port = int(sys.argv[1])
    with connect(port, autocommit=True) as conn:
        types_in_both_formats(conn)
        prepared_statements(conn)
        server_side_cursors(port)
        copy(conn)
        transactions_and_errors(port)
        notices(conn)
    print("all is as it should be")


main()
