#!/bin/sh
# Makes configure from a git checkout.
set -e
cd "$(dirname "$0")"
for t in autoreconf libtoolize pkg-config; do
    command -v $t >/dev/null || { echo "autogen.sh: $t is missing; on Debian: apt-get install autoconf automake libtool pkg-config" >&2; exit 1; }
done
mkdir -p m4 build-aux
exec autoreconf -fi
