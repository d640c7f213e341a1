#!/bin/sh
# examples/generate answers from a model file, by configuration alone; errors name the place.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tests/support/tinymodel "$dir/letters.gguf"
cat >"$dir/kopi.yaml" <<EOF
plugin_dirs: [$(pwd)/.libs]
backend: {name: cpu, fallback: none}
models:
  - path: letters.gguf
    sampling: {temperature: 0}
EOF

out=$(examples/generate "$dir/kopi.yaml" r 2>"$dir/err") || { cat "$dir/err"; exit 1; }
[ "$out" = stuvwxyz ] || { echo "answer: '$out'"; exit 1; }
grep -q '^\[cpu, .* 1 + 9 tokens' "$dir/err" || { cat "$dir/err"; exit 1; }

sed 's/temperature: 0/temprature: 0/' "$dir/kopi.yaml" >"$dir/bad.yaml"
if examples/generate "$dir/bad.yaml" r 2>"$dir/err"; then echo "a bad file was taken"; exit 1; fi
grep -q 'bad.yaml:5:.*temprature.*temperature' "$dir/err" || { cat "$dir/err"; exit 1; }
