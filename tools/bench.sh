#!/usr/bin/env bash
# Builds for release and runs every bench, or those named; `--help` tells the rest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Both in one build: the same features, so nothing is compiled twice.
cargo build --quiet --release -p segue -p segue-bench
exec "${CARGO_TARGET_DIR:-$PWD/target}/release/segue-bench" "$@"
