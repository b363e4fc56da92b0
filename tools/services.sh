#!/usr/bin/env bash
# A PostgreSQL and a Kafka broker to play with: `./x services up` starts both, `./x services down` ends them.
# Their addresses are in .services/env, to be sourced.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly FOLDER=.services
readonly TESTKIT="$CARGO_TARGET_DIR/debug/segue-testkit"

running() { [ -e "$FOLDER/pid" ] && kill -0 "$(cat "$FOLDER/pid")" 2>/dev/null; }

up() {
    if running; then
        echo "services are up already"
    else
        mkdir -p "$FOLDER"
        rm -f "$FOLDER/env" "$FOLDER/stdin"
        mkfifo "$FOLDER/stdin"
        # The servers live as long as somebody holds the pipe open for writing.
        (exec 3<>"$FOLDER/stdin" && exec setsid "$TESTKIT" services "$FOLDER/env.new" <&3 3<&- \
            >"$FOLDER/log" 2>&1) &
        echo $! >"$FOLDER/pid"
        for _ in $(seq 600); do
            [ -s "$FOLDER/env.new" ] && break
            running || { cat "$FOLDER/log" >&2 && exit 1; }
            sleep 0.2
        done
        printf 'export TESTKIT=%s\n' "$TESTKIT" >>"$FOLDER/env.new"
        mv "$FOLDER/env.new" "$FOLDER/env"
    fi
    echo "services are up; their addresses: source .services/env"
}

down() {
    if running; then
        kill "$(cat "$FOLDER/pid")"
        while running; do sleep 0.1; done
    fi
    rm -rf "$FOLDER"
    echo "services are down"
}

case "${1:-}" in
    up) up ;;
    down) down ;;
    *) echo "usage: ./x services up|down" >&2 && exit 2 ;;
esac
