#!/usr/bin/env bash
# Makes the package of machine code that ships with a release: scripts/kernels.sh [OUT [ARCHITECTURES]]. Needs NVRTC
# (HORUS_NVRTC if the system does not find it) of the oldest CUDA major version whose drivers are to run it, and no GPU.
#
#   scripts/kernels.sh horus-kernels.bin 80,90,100,120
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-target/horus-kernels.bin}
archs=${2:-80,90,100,120}
# The user's settings do not affect the kernels.
for variable in $(compgen -e HORUS_); do
  [ "$variable" = HORUS_NVRTC ] || unset "$variable"
done
export HORUS_TUNING=/nonexistent/tuning.json
cargo run --release -p horus-tools --bin horus-kernels -- "$out" --arch "$archs"
