"""What a Python program does with asyncpg: arrays of every type (whose codecs it asks the catalog for), parameters,
cursors in a transaction, a pool.

Called with the port of the server; the first thing that is not as it should be ends it with a traceback.
"""

import asyncio
import datetime as dt
import decimal
import sys
import uuid

import asyncpg

UTC = dt.timezone.utc
# Type, value; each comes back as it was sent, alone and in an array.
VALUES = [
    ("boolean", True),
    ("smallint", -32768),
    ("integer", 2147483647),
    ("bigint", -9223372036854775808),
    ("real", 1.5),
    ("double precision", 0.1),
    ("numeric(12,2)", decimal.Decimal("1234567890.12")),
    ("text", "ä€😀'\"\\"),
    ("bytea", b"\x00\xff\\"),
    ("date", dt.date(2024, 2, 29)),
    ("time", dt.time(23, 59, 59, 999999)),
    ("timestamp", dt.datetime(1969, 12, 31, 23, 59, 59, 1)),
    ("timestamptz", dt.datetime(2024, 2, 29, 12, 0, tzinfo=UTC)),
    ("interval", dt.timedelta(days=3, hours=4, microseconds=5)),
    ("uuid", uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
    ("jsonb", '{"a": [1, null]}'),
]


def same(got, wanted, what):
    assert got == wanted, f"{what}: {got!r} is not {wanted!r}"


async def types(connection):
    for number, (ty, value) in enumerate(VALUES):
        await connection.execute(f"CREATE TABLE t{number} (k int PRIMARY KEY, v {ty}, l {ty}[])")
        insert = f"INSERT INTO t{number} VALUES ($1, $2, $3)"
        await connection.execute(insert, 1, value, [value, None])
        await connection.execute(insert, 2, None, [])
        rows = await connection.fetch(f"SELECT v, l FROM t{number} ORDER BY k")
        same([tuple(row) for row in rows], [(value, [value, None]), (None, [])], ty)
    same(await connection.fetchval("SELECT array_agg(k ORDER BY k) FROM t0"), [1, 2], "array_agg")
    row = await connection.fetchval("SELECT ROW(1::int, 'a'::text)")
    same(tuple(row), (1, "a"), "a record")


async def cursors(connection):
    async with connection.transaction(readonly=True):
        got = [row[0] async for row in connection.cursor("SELECT x FROM generate_series(1, 120) AS t(x)")]
    same(got, list(range(1, 121)), "a cursor")


async def errors(connection):
    try:
        await connection.fetch("SELECT nope FROM t0")
    except asyncpg.UndefinedColumnError as error:
        same(error.sqlstate, "42703", "a column that is not there")
    else:
        raise AssertionError("a column that is not there is no error")


async def main(port):
    connect = {"host": "127.0.0.1", "port": port, "user": "test", "database": "test"}
    connection = await asyncpg.connect(**connect)
    await types(connection)
    await cursors(connection)
    await errors(connection)
    await connection.close()
    async with asyncpg.create_pool(**connect, min_size=2, max_size=2) as pool:
        same(await pool.fetchval("SELECT count(*) FROM t0"), 2, "through a pool")
        same(await pool.fetchval("SELECT l FROM t2 WHERE k = 1"), [2147483647, None], "through a pool")
    print("all is as it should be")


asyncio.run(main(int(sys.argv[1])))
