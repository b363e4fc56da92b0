#!/usr/bin/env bash
# Makes a Python environment with the database drivers of the client tests in $SEGUE_SERVICES_DIR (default:
# ~/.cache/segue). Runs again for nothing: the folder appears whole or not at all, also when two runs meet.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${SEGUE_SERVICES_DIR:-$HOME/.cache/segue}
# Another list of packages is another environment.
target=$home/python-$(sha256sum "$here/requirements.txt" | cut -c1-12)

link() { ln -sfnT "$target" "$home/python"; }

if [ -x "$target/bin/python" ]; then
    link
    exit 0
fi

mkdir -p "$home"
exec 9>"$home/.python.lock"
flock 9
# An environment knows its own path, so it is made in place and its interpreter appears last.
if [ ! -x "$target/bin/python" ]; then
    rm -rf "$target"
    python3 -m venv "$target"
    mv "$target/bin/python" "$target/bin/python.unfinished"
    "$target/bin/python.unfinished" -m pip install --quiet --disable-pip-version-check \
        --requirement "$here/requirements.txt"
    mv "$target/bin/python.unfinished" "$target/bin/python"
fi
link
