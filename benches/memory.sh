#!/usr/bin/env bash
# HORUS_HOST_MEMORY as a promise: prints a table of programs, limits, the largest resident memory of their processes and how they ended.
# It is at most the limit and 64 MiB more than that of a program that does nothing, or the program ends with an error, one over files
# before it reads pixels; else this exits with 1. Builds optimised programs: some minutes the first time.
set -euo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
printf '| program | limit | largest | end |\n| --- | --- | --- | --- |\n'
for test in "horus-apps --test large programs_take" "horus-core --test out_of_core programs_in_memory"; do
  # shellcheck disable=SC2086 # words
  HORUS_CASES=1 cargo test --quiet --release -p $test -- --nocapture >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
  grep '^| ' "$log"
done
