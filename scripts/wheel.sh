#!/usr/bin/env bash
# Builds the Python package: scripts/wheel.sh DIR leaves the wheel in DIR.
#
# It runs on any x86-64 (vector instructions are chosen when a program runs) with Python 3.10 or newer, and loads the driver of a GPU, if
# there is one, when a program asks for it. `--profile dev` builds as `cargo test` does, for tests: slow kernels, a short build.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=release
if [ "${1:-}" = --profile ]; then profile=$2; shift 2; fi
out=$(realpath -m "${1:?the folder of the wheel}")
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")

venv=$target/maturin
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
# The interpreter only names the wheel, which is for all of them.
"$venv/bin/maturin" build --quiet --profile "$profile" --manifest-path horus-python/Cargo.toml \
  --interpreter "$venv/bin/python" --out "$out"
