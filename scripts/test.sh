#!/usr/bin/env bash
# The whole test suite: formatting, lints, documentation, tests. Runs on a fresh Debian or Ubuntu machine with Rust and
# git, and installs what is missing (a C linker, if even that is not there).
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v cc >/dev/null; then
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends gcc libc6-dev
fi

step() { printf '\n== %s\n' "$*"; "$@"; }

step cargo fmt --all --check
step cargo clippy --workspace --all-targets --quiet -- -D warnings
RUSTDOCFLAGS="-D warnings" step cargo doc --workspace --no-deps --quiet
step cargo test --workspace
