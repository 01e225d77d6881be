#!/usr/bin/env bash
# Series of pictures, PGM to PNG, against the bound of their parts, each measured alone (ms per picture). Ratios are of the
# bound to what was measured; 1 is all that can be had. "all cores" is what a picture takes of the host, decoded and encoded,
# when all cores do only that: the last ratio counts on it, the other on one core's time divided by their number.
#
#   benches/series.sh [OUT.md]
#   SIZES="1024:64 4096:8"   sizes and numbers of pictures
#   DEVICE=auto  THREADS=N   BIN=DIR (binaries; built if not given)  WORK=DIR (for pictures; a temporary folder if not given)
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-/dev/stdout}
if [ -z "${BIN:-}" ]; then
  cargo build --release --quiet -p horus-tools --bin horus-series-bench
  BIN=target/release
fi
work=${WORK:-$(mktemp -d)}
[ -n "${WORK:-}" ] || trap 'rm -rf "$work"' EXIT
{
  for scales in one all; do
    [ "$scales" = one ] && echo "One orientation and one scale:" || echo "ConvRot, 12 orientations, 9 scales:"
    echo
    echo "| device | size | pictures | decode | encode | all cores | plan | upload | kernels | download | bound | series | ratio | of all cores |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for size in ${SIZES:-1024:64 4096:8}; do
      mkdir -p "$work/$size"
      options=(--size "${size%:*}" --count "${size#*:}" --device "${DEVICE:-auto}" --work "$work/$size")
      [ -n "${THREADS:-}" ] && options+=(--threads "$THREADS")
      [ "$scales" = one ] && options+=(--one)
      "$BIN/horus-series-bench" "${options[@]}"
    done
    echo
  done
} > "$out"
