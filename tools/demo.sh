#!/usr/bin/env bash
# The main job, shown: 200,000 orders in PostgreSQL, changes of them in Kafka, one source, one view; then the
# server is killed and started again, and the view is right.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly SEGUE="$1"
readonly TESTKIT="${SEGUE%/*}/segue-testkit"
work=$(mktemp -d)
readonly work
readonly ROWS=200000

cleanup() {
    [ -n "${segue_pid:-}" ] && kill "$segue_pid" 2>/dev/null || true
    exec 3>&- || true
    [ -n "${services_pid:-}" ] && wait "$services_pid" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
wait_until() { for _ in $(seq 600); do "$@" && return; sleep 0.1; done; echo "waited in vain: $*" >&2; exit 1; }
ready() { grep -q '^segue is ready' "$work/segue.out"; }
segue() { psql -X -q -h 127.0.0.1 -p "$port" "$@"; }

start_segue() {
    : >"$work/segue.out"
    "$SEGUE" serve --listen "127.0.0.1:${port:-0}" --data-dir "$work/data" >"$work/segue.out" 2>"$work/segue.log" &
    segue_pid=$!
    wait_until ready
    port=$(sed -n 's/.* -p //p' "$work/segue.out")
}

say "starting PostgreSQL, Kafka and Segue"
mkfifo "$work/stdin"
"$TESTKIT" services "$work/env" <"$work/stdin" >"$work/services.log" 2>&1 &
services_pid=$!
exec 3>"$work/stdin"
wait_until test -s "$work/env"
# shellcheck disable=SC1091
source "$work/env"
start_segue

say "$ROWS orders in PostgreSQL; a Kafka topic with changes of them"
psql -X -q "$POSTGRES" <<SQL
CREATE TABLE orders (order_id bigint PRIMARY KEY, customer bigint, amount numeric(12,2));
INSERT INTO orders SELECT i, i % 1000, (i % 500) + 0.25 FROM generate_series(1, $ROWS) i;
SQL
"$TESTKIT" "$KAFKA" topic shop.orders 1
changes() { # the first 1000 orders double, the next 1000 go, 1000 new ones come
    for i in $(seq 1 1000); do
        printf '{"order_id":%d}\t{"order_id":%d,"customer":%d,"amount":%d.50}\n' "$i" "$i" $((i % 1000)) $(((i % 500) * 2))
        printf '{"order_id":%d}\t\n' $((i + 1000))
        printf '{"order_id":%d}\t{"order_id":%d,"customer":7,"amount":1.00}\n' $((i + ROWS)) $((i + ROWS))
    done
}
changes | "$TESTKIT" "$KAFKA" produce shop.orders

say "one source with two stages, one view"
cat >"$work/demo.sql" <<SQL
CREATE SOURCE orders (order_id BIGINT, customer BIGINT, amount NUMERIC(12,2), PRIMARY KEY (order_id))
WITH STAGES (
    history WITH (connector = 'postgres', url = '$POSTGRES',
                  query = 'SELECT order_id, customer, amount FROM orders'),
    live    WITH (connector = 'kafka', properties.bootstrap.server = '$KAFKA', topic = 'shop.orders')
            FORMAT UPSERT ENCODE JSON
            START AT OFFSETS '{"0": 0}'
);
CREATE MATERIALIZED VIEW sales AS
SELECT customer, COUNT(*) AS orders, SUM(amount) AS amount FROM orders GROUP BY customer;
SQL
cat "$work/demo.sql"
segue -f "$work/demo.sql"

result() { segue -c "SELECT sum(orders) AS orders, sum(amount) AS amount, count(*) AS customers FROM sales"; }
say "the view, as soon as CREATE has returned: $ROWS orders, of which 1,000 were changed, 1,000 deleted, and 1,000 new"
result

say "kill -9, while another 1,000 new orders arrive"
kill -9 "$segue_pid"
wait "$segue_pid" 2>/dev/null || true
for i in $(seq 1 1000); do
    printf '{"order_id":%d}\t{"order_id":%d,"customer":8,"amount":2.00}\n' $((i + 900000)) $((i + 900000))
done | "$TESTKIT" "$KAFKA" produce shop.orders
start_segue
caught_up() { [ "$(segue -At -c 'SELECT sum(orders) FROM sales')" = "$((ROWS + 1000))" ]; }
wait_until caught_up
result

say "the stages, as the source knows them"
segue -c "SELECT stage, connector, phase, continuity, rows FROM segue.stages ORDER BY stage"
