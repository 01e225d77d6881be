#!/usr/bin/env bash
# The CPU benchmark: Horus, the machine's copy speed and, if there is a folder with the peers' script, other libraries, in
# turn on the same machine. Prints ratios; above 1 Horus is faster.
#
#   benches/run.sh [OUT.md]
#   PEERS=DIR         folder with peers_cpu.py (its interpreter: PEERS_PYTHON; the machine's limits: PEERS_HW)
#   SIZES="1024 4096" THREADS="1 2" OPS=sep19,... DETECTORS="convrot,convuv,conv2d" BUDGET=8
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-/dev/stdout}
ops=${OPS:-copy,sep19,sep43,conv7,conv17,conv43,rot30,pixel,sum,minmax}
detectors=${DETECTORS-convrot,convuv,conv2d}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cargo build --release --quiet -p horus-tools
for size in ${SIZES:-1024 4096}; do
  for threads in ${THREADS:-1 $(nproc)}; do
    all=$ops${detectors:+,$detectors}
    tag=$size-$threads
    target/release/horus-bench --op "$all" --size "$size" --threads "$threads" --budget "${BUDGET:-8}" \
      --json "$work/horus-$tag.json" >&2
    if [ -n "${PEERS:-}" ]; then
      "${PEERS_PYTHON:-python3}" "$PEERS/peers_cpu.py" --op "${all#copy,}" --size "$size" --threads "$threads" \
        --budget "${BUDGET:-8}" --peer "${PEER_LIST:-opencv,halide,halide-shared,numpy}" ${PEERS_HW:+--hw "$PEERS_HW"} \
        --json "$work/peers-$tag.json" >&2 || echo "peers failed at size $size, $threads threads" >&2
      # Again, so that a drift of the machine shows.
      target/release/horus-bench --op "$all" --size "$size" --threads "$threads" --budget "${BUDGET:-8}" \
        --json "$work/horus-again-$tag.json" >&2
    fi
  done
done
python3 benches/table.py "$work"/*.json > "$out"
