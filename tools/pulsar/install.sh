#!/usr/bin/env bash
# Fetches the jars of Apache Pulsar through Maven into $SEGUE_SERVICES_DIR (default: ~/.cache/segue).
# Runs again for nothing: the folder appears whole or not at all, also when two runs meet.
set -euo pipefail

version=3.0.7
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${SEGUE_SERVICES_DIR:-$HOME/.cache/segue}
target=$home/pulsar-$version

if [ -d "$target/libs" ]; then
    exit 0
fi
for tool in javac mvn; do
    command -v "$tool" >/dev/null || { echo "pulsar needs $tool (a JDK, 17 or later, and Maven)" >&2; exit 1; }
done

mkdir -p "$home"
scratch=$(mktemp -d "$home/.pulsar-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$scratch/pulsar/libs"
# Another run may have won; its folder is as good as ours.
mv -T "$scratch/pulsar" "$target" 2>/dev/null || [ -d "$target/libs" ]
