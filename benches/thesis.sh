#!/usr/bin/env bash
# The tables and figures of the thesis and the papers that Horus follows, on this machine and beside theirs: measured here
# where the machine can, predicted by the model where it cannot (many GPUs), and left out with the reason where neither can.
#
#   benches/thesis.sh [-n] [-b BIN] [-o OUT] [PART...]
#
# BIN: folder with built binaries (`scripts/gpu.sh build BIN`; with MPI=1 for several GPUs); OUT (default: target/thesis)
# gets README.md, plots (with matplotlib) and the raw results in OUT/raw. A result that is there is not measured again: call
# it again after an interruption, or when BUDGET seconds (default 540) were too few. -n prints the commands only.
# `python3 benches/thesis/page.py OUT` draws again anywhere.
#
# Parts, all in this order if none is named:
#   machine     profile of this machine, which later predictions use
#   ranks       Figures 2.8 to 2.15, Table 2.2: detectors on 1 to 20 GPUs and CPUs, predicted
#   user        Table 2.2: picture file to picture file, CPU and GPU, 1 to 16 MP (SIZES, RUNS)
#   modes       Figures 2.8 to 2.12: naive, lazy, fused on the GPUs that are here
#   fields      Figures 4.10, 5.9, 5.10: parts of an ocean model by copying strategy
#   cores       Figure 4.11: the same on numbers of CPU cores
#   copies      Figures 5.5, 5.6: copies by size and number of bands
#   strategies  Figure 5.11, Section 5.6.6: programs by copying strategy, predicted and measured
#   jacobi      paper 002, Figure 11
#   hirlam      paper 003, Tables V to VII: launch shapes of weather dynamics
#   shapes      Figures 3.3 to 3.11, 3.14 to 3.16: filters by block and tiling, and unrolled
#   tune        Table 3.1: search for the fastest launch shapes
#   filters     Figures 3.12, 3.13, 3.17: filters of all sizes, direct and by FFT
set -uo pipefail
cd "$(dirname "$0")/.."
dry="" bin="" out=target/thesis
while getopts nb:o: option; do
  case $option in
    n) dry=yes ;;
    b) bin=$OPTARG ;;
    o) out=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
all=(machine ranks user modes fields cores copies strategies jacobi hirlam shapes tune filters)
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=("${all[@]}")
for part in "${parts[@]}"; do
  [[ " ${all[*]} " == *" $part "* ]] || { echo "no part $part" >&2; exit 2; }
done
if [ -z "$bin" ]; then
  bin=target/gpu-bin
  [ -n "$dry" ] || scripts/gpu.sh build "$bin" || exit 1
fi
bin=$(realpath -m "$bin") out=$(realpath -m "$out") budget=${BUDGET:-540} cores=$(nproc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out/raw"
export HORUS_CACHE=${HORUS_CACHE:-$work/cache}
unset HORUS_DEVICE HORUS_MODE HORUS_GPU_MEMORY HORUS_HOST_MEMORY HORUS_THREADS HORUS_TRANSFER HORUS_STEPS HORUS_TUNING

gpus=$(nvidia-smi -L 2>/dev/null | grep -c GPU)
[ "$gpus" -gt 0 ] && device=cuda || device=cpu
[ -z "$dry" ] || gpus=${GPUS:-1} device=${DEVICE:-cuda}
name=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
cpu=$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)
where="${name:-no GPU}; $cores threads of ${cpu:-$(uname -m)}"
if [ -z "$dry" ]; then
  if [ -f "$out/raw/where.tsv" ] && [ "$(sed -n 's/^machine\t//p' "$out/raw/where.tsv")" != "$where" ]; then
    echo "$out holds results of another machine ($(sed -n 's/^machine\t//p' "$out/raw/where.tsv")); name another folder" >&2
    exit 1
  fi
  commit=${COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown) (of the scripts)}
  printf 'machine\t%s\ndate\t%s\ncommit\t%s\ndevice\t%s\n' "$where" "$(date -u +%F)" "$commit" "$device" >"$out/raw/where.tsv"
fi
status=0

# Runs a command for at most what is left of the budget, and for 150 s: no single one may take the time of all others.
limited() {
  local left=$((budget - SECONDS)) code=124
  if [ -n "$dry" ]; then echo "$*" >&3; return; fi
  [ $left -lt 150 ] || left=150
  if [ $left -gt 2 ]; then timeout $left "$@"; code=$?; fi
  [ $code -ne 124 ] || echo "not done within $((left > 2 ? left : 0)) s (BUDGET=$budget)" >&2
  return $code
}

# `raw NAME COMMAND...`: its output, or the file that it writes in place of the argument @, as OUT/raw/NAME.
raw() {
  local name=$1 file=$out/raw/$1 begin=$SECONDS
  shift
  local -a how=(limited)
  ! declare -F "$1" >/dev/null || how=()
  if [ -n "$dry" ]; then "${how[@]}" "${@/#@/$name}" >/dev/null; return; fi
  [ ! -s "$file" ] || return 0
  if [[ " $* " == *" @ "* ]]; then
    "${how[@]}" "${@/#@/$file.part}" >"$work/log" 2>&1
  else
    "${how[@]}" "$@" >"$file.part" 2>"$work/log"
  fi
  if [ $? -eq 0 ] && [ -s "$file.part" ]; then
    mv "$file.part" "$file" && rm -f "$file.why" && echo "$name: $((SECONDS - begin)) s"
  else
    rm -f "$file.part"
    { tail -n 1 "$work/log" | grep . || echo failed; } | tee "$file.why" | sed "s/^/$name: /" >&2
    status=1
    return 1
  fi
}

# Notes for the page that a part needs a GPU.
without_gpu() {
  [ $device = cpu ] || return 1
  [ -n "$dry" ] || echo "needs a GPU" >"$out/raw/$1.why"
  echo "$1: left out, it needs a GPU" >&2
}

machine() {
  raw machine.json "$bin/horus-machine" --device $device --out @
}

picture() {
  [ -f "$work/$1.pgm" ] || limited env -u HORUS_PROFILE "$bin/horus" assets/vessels.png "$work/$1.pgm" luminance resize "$1" "$1" --device cpu >/dev/null
}

# A row: program, size, machine, ranks, mode, predicted ms.
predicted() {
  local said
  said=$("$bin/$1" "$work/$2.pgm" "$work/none.png" --dry-run-ranks "$4" --machine "$3" --mode "$5") || return 255
  sed -n "s/^predicted \([0-9.]*\) ms.*/$1\t$2\t$3\t$4\t$5\t\1/p" <<<"$said"
}

all_predicted() {
  local size job
  for size in 1024 2048 2896 4096; do picture $size || return 1; done
  printf '%s\n' {convrot,convuv,conv2d}\ 4096\ h200x1-ib\ {1,2,4,8,12,16,20}\ {naive,lazy,fused} \
    {convuv,conv2d}\ 1024\ {h200x1-ib\ {1,2,4},h200x2-ib\ {2,4,8}}\ {naive,lazy,fused} \
    {convuv,conv2d}\ {1024,2048,2896}\ h200x1-ib\ {1,2,4,8,12,16,20}\ fused \
    conv2d\ 4096\ cpu16x1-ib\ {1,2,4,8,16,20}\ fused | sort -u >"$work/jobs"
  if [ -n "$dry" ]; then sed 's/^/dry run of ranks: /' "$work/jobs" >&3; return; fi
  xargs -P "$cores" -L 1 bash -c 'predicted "$@"' _ <"$work/jobs"
}

ranks() {
  export -f predicted
  export bin work
  raw ranks.tsv all_predicted
}

# Wall seconds of RUNS processes after one that is not counted, which compiles.
user_rows() {
  local app i from
  picture "$2" || return 1
  for app in convrot convuv conv2d; do
    local -a run=("$bin/$app" "$work/$2.pgm" "$work/out.png" --device "$1" --quiet)
    [ "$1" != cpu ] || run=(env -u HORUS_PROFILE "${run[@]}") # it may be of a GPU
    limited "${run[@]}" >/dev/null || return 1
    for ((i = 0; i < ${RUNS:-3}; i++)); do
      from=$EPOCHREALTIME
      limited "${run[@]}" >/dev/null || return 1
      awk "BEGIN { printf \"$app\t$2\t$1\t%.4f\n\", $EPOCHREALTIME - $from }"
    done
  done
}

user() {
  local size
  for size in ${SIZES:-1024 2048 $([ $device = cpu ] || echo 2896 4096)}; do
    [ $device = cpu ] || raw "user-cuda-$size.tsv" user_rows cuda "$size"
    raw "user-cpu-$size.tsv" user_rows cpu "$size"
  done
  without_gpu user || true
}

modes() {
  without_gpu modes && return
  local n
  local -a bench=("$bin/horus-bench" --device cuda --threads "$cores" --op convrot,convuv,conv2d --size 1024,4096
    --mode naive,lazy,fused --from-host fresh --runs 3)
  raw modes-1.json "${bench[@]}" --budget 3 --json @
  for n in 2 4 8; do
    [ "$n" -gt "$gpus" ] || raw modes-$n.json env NCCL_NVLS_ENABLE=0 mpirun --allow-run-as-root --bind-to none -n $n "${bench[@]}" --budget 1 --json @
  done
}

# As in the thesis, one band for each of 42 levels.
fields() {
  without_gpu fields && return
  local size how
  for size in 42x229x304 42x1024x1024; do
    for how in explicit streams:42 implicit hybrid:42 auto; do
      raw "fields-$size-${how%:*}.json" env HORUS_TRANSFER=$how "$bin/horus-field-bench" --device cuda --op state,density,mixing \
        --size $size --from-host pixels --runs 3 --json @
    done
  done
}

cores() {
  local n
  for n in 1 2 4 8 12 16; do
    [ $n -gt "$cores" ] || raw cores-$n.json env -u HORUS_PROFILE "$bin/horus-field-bench" --device cpu --threads $n --op state,mixing \
      --size 42x229x304 --runs 3 --json @
  done
}

copies() {
  without_gpu copies && return
  local n
  raw copies.txt "$bin/horus-copy-bench" --device cuda --size 16 --threads 1 --chunk 4
  for n in 1 2 4 8 16 32 64; do
    raw bands-$n.json env HORUS_TRANSFER=streams:$n "$bin/horus-field-bench" --device cuda --op copy --size 2x1024x1024 \
      --from-host pixels --runs 15 --json @
  done
}

strategies() {
  without_gpu strategies && return
  raw strategies.tsv "$bin/horus-strategies" --op all --size 4096 --runs 9 --budget 0.15 --tsv @
}

jacobi() {
  local size=4096 how
  local -a steps=(100 1100)
  [ $device = cuda ] || size=1024 steps=(20 120)
  local -a bench=("$bin/horus-loop-bench" --device $device --op jacobi,jacobi-f64 --size $size --budget 2)
  raw jacobi-naive.json "${bench[@]}" --mode naive --steps 4 --steps 24 --json @
  raw jacobi-lazy.json "${bench[@]}" --mode lazy --steps ${steps[0]} --steps ${steps[1]} --json @
  raw jacobi-one.json env HORUS_STEPS=1 "${bench[@]}" --steps ${steps[0]} --steps ${steps[1]} --json @
  raw jacobi-fused.json "${bench[@]}" --steps ${steps[0]} --steps ${steps[1]} --json @
}

# A table of launch shapes for all kernels over f32: threads in x and y, rows and columns of pixels per thread, multiply-adds
# unrolled at most.
shape_table() {
  local rows file=$work/shapes-$1x$2-$3x$4-$5.json
  local shape="\"bx\":$1,\"by\":$2,\"rows\":$3,\"cols\":$4,\"group\":1,\"unroll\":$5,\"chunk\":16,\"span\":8,\"blocks\":0"
  rows=$(printf '{"arch":90,"kind":"%s","size":%s,"filters":%s,"bytes":4,'"$shape}," $(echo {pointwise,gather,near,sparse,dense}\ {0..43}\ {0..2}))
  echo "[${rows%,}]" >"$file"
  echo "$file"
}

hirlam() {
  without_gpu hirlam && return
  local shape bx by rows
  raw hirlam-chosen.txt "$bin/hirlam" --device cuda --runs 9
  for shape in {64x1,16x4,32x2,16x8,32x4,64x2,128x1,32x8,64x4,128x2,256x1,64x8,128x4,256x2,512x1}-1 64x1-{2,4,8,16}; do
    IFS=x- read -r bx by rows <<<"$shape"
    raw "hirlam-$shape.txt" env HORUS_TUNING="$(shape_table "$bx" "$by" "$rows" 1 3000)" "$bin/hirlam" --device cuda --runs 9
  done
}

sweep() {
  raw "$1" env HORUS_TUNING="${3:-}" "$bin/horus-bench" --device $device --threads "$cores" --op sweep --size "$pixels" --sides "$2" --runs 3 --json @
}

# Compiles filters beforehand, in several processes: "SIDES TABLE" each.
compiled() {
  local job pids=()
  [ $# -gt 0 ] || return 0
  for job in "$@"; do
    limited env HORUS_TUNING="${job#* }" "$bin/horus-bench" --device cuda --op sweep --size "$pixels" --sides "${job% *}" --runs 1 >/dev/null 2>&1 &
    pids+=($!)
  done
  wait "${pids[@]}"
}

filters() {
  local pixels=4096 a=1,3,5,7,9 b=11,13,15,17,19,21 c=23,25,27,29,31,33 d=35,37,39,41,43
  if [ $device = cpu ]; then
    pixels=1024
    sweep filters.json 1,3,5,9,17,25,33,43
    return
  fi
  [ -s "$out/raw/filters.json" ] || compiled "$a,$b " "$a,$c " "$a,$d " "$b,$c " "$b,$d " "$c,$d "
  sweep filters.json $a,$b,$c,$d
}

shapes() {
  without_gpu shapes && return
  local pixels=4096 sides=5,9,17,31,43 shape jobs=() bx by rows columns unroll
  local -A tables=()
  for shape in 16x16-1x{1,2,4,8}-0 32x32-1x{1,2,4}-0 16x16-1x4-3000; do
    IFS=x- read -r bx by rows columns unroll <<<"$shape"
    tables[$shape]=$(shape_table "$bx" "$by" "$rows" "$columns" "$unroll")
    [ -s "$out/raw/shapes-$shape.json" ] || jobs+=("$sides ${tables[$shape]}")
  done
  compiled "${jobs[@]}"
  for shape in "${!tables[@]}"; do sweep "shapes-$shape.json" $sides "${tables[$shape]}"; done
  sweep shapes-chosen.json $sides
}

tuned() {
  limited "$bin/horus-tune" "$1" --seconds 3 --output "$work/$1.json" && { [ -n "$dry" ] || cat "$work/$1.json"; }
}

tune() {
  without_gpu tune && return
  raw tune-separable.txt tuned separable
  raw tune-correlate.txt tuned correlate
}

exec 3> >(awk '!seen[$0]++')
for part in "${parts[@]}"; do
  [ ! -s "$out/raw/machine.json" ] || export HORUS_PROFILE=$out/raw/machine.json
  [ -z "$dry" ] || echo "== $part" >&3
  "$part"
done
[ -n "$dry" ] || python3 benches/thesis/page.py "$out" || status=1
exit $status
