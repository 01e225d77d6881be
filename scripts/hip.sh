#!/usr/bin/env bash
# Compiles the generated kernels for a GPU of AMD (gfx1100) by clang, with `kernels/hip.h` in place of NVRTC's built-ins. No GPU,
# driver or ROCm is needed; nothing is run. Installs clang on Debian and Ubuntu.
#
#   scripts/hip.sh              a part of the cases
#   HORUS_CASES=1 scripts/hip.sh          all
#   HORUS_CASE="median" scripts/hip.sh    those with this in their names
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${HORUS_CLANG:-}" ]; then
  if ! command -v clang++-19 >/dev/null || ! command -v ld.lld-19 >/dev/null; then
    sudo=$([ "$(id -u)" = 0 ] || echo sudo)
    $sudo apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends clang-19 lld-19
  fi
  export HORUS_CLANG=clang++-19
fi
cargo test -p horus-cuda --test hip -- --nocapture
