#!/usr/bin/env bash
# Runs every fuzz target in turn, each for the time given (default 10m).
set -euo pipefail
duration=${1:-10m}

grep -rlE --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do
  grep -oE '^func Fuzz[A-Za-z0-9_]*' "$file" | sed 's/^func //' | while read -r target; do
    echo "== $target in $(dirname "$file") for $duration"
    go test -C "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$duration" . </dev/null
  done
done
