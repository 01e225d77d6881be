#!/usr/bin/env bash
# Everything that needs a GPU: correctness, errors, speed. Needs a driver and NVRTC; no Rust if there are built binaries.
#
#   scripts/gpu.sh build BIN             builds the binaries (release) into the folder BIN, on any machine with Rust;
#                                        with MPI=1 for mpirun, too (needs what the README lists for it)
#   scripts/gpu.sh [-b BIN] [-o OUT] [STAGE...]
#
# Stages, in this order if none is named (roughly how long on a fast host):
#   kernels   horus-cuda-check: every kernel against the host's evaluation            1-3 min
#   numbers   functions of every f32, and a corpus of programs, against kept hashes    2-3 min
#   session   conformance through planner and executor, random programs               2-5 min
#   apps      three detectors x three modes, CPU and GPU outputs compared by bytes     1 min
#   memory    too little GPU memory: spilling, regions; far too little: a clear error  1 min
#   driver    no GPU, no compiler, no such GPU: clear errors and fallback              seconds
#   sanitize  compute-sanitizer memcheck and racecheck (SANITIZER, SANITIZE=filters)   3-6 min
#   bench     kernels by CUDA events (ROWS=filter), operations through the session; with PEERS=DIR peers_gpu.py too
#   modes     naive, lazy, fused x detectors x 1024, 4096, with copies (SIZES, RUNS)   2-5 min
#   ranks     detectors under mpirun on 1, 2, 4 GPUs: same bytes, then times (SIZES, RUNS, BUDGET); not by default
#   scaling   naive, lazy, fused under mpirun on 1, 2, 4 GPUs (GPUS, SIZES, RUNS, BUDGET), as a table and plots of
#             all OUT/scaling-N.json, those of earlier runs too; 3-10 min, not by default
#   strategies copying strategies, predicted beside measured, as a table and plots (OP, SIZES, RUNS, BUDGET); not by default
#   process   picture file to picture file, CPU and GPU, cold and warm, with a breakdown (INPUT=picture, COLD_SIZES)
#   user      picture file to picture file beside its floors, at several sizes (SIZES, RUNS; OLD=binaries to compare)
#
# Writes OUT/STAGE.log and OUT/results.md (default OUT: target/gpu), prints a table at the end, exits with 1 if a stage
# failed. HORUS_NVRTC says where libnvrtc is, if the system does not.
set -uo pipefail
cd "$(dirname "$0")/.."
programs=(horus convrot conv2d convuv jacobi perona_malik pop hirlam horus-bench horus-loop-bench horus-field-bench horus-strategies horus-cuda-bench ${MPI:+horus-fabric-bench})

build() {
  local bin=$1 test
  cargo build --release --workspace --bins --example horus-cuda-check ${MPI:+--features horus-apps/mpi,horus-models/mpi,horus-tools/mpi,horus-mpi/mpi} || return 1
  test=$(cargo test --release -p horus-cuda --test gpu --no-run --message-format=json |
    sed -n 's/.*"name":"gpu".*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
  [ -n "$test" ] || { echo "the conformance test was not built" >&2; return 1; }
  mkdir -p "$bin"
  (cd "${CARGO_TARGET_DIR:-target}/release" && cp "${programs[@]}" horus-series-bench horus-copy-bench examples/horus-cuda-check horus-machine horus-tune "$bin/") && cp "$test" "$bin/gpu-conformance"
}

if [ "${1:-}" = build ]; then
  build "$(realpath -m "${2:?a folder}")"
  exit
fi
bin="" out=target/gpu
while getopts b:o: option; do
  case $option in
    b) bin=$OPTARG ;;
    o) out=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=(kernels numbers session apps memory driver sanitize bench modes process)
if [ -z "$bin" ]; then
  bin=$(realpath -m target/gpu-bin)
  build "$bin" || exit 1
fi
bin=$(realpath "$bin")
mkdir -p "$out"
out=$(realpath "$out")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HORUS_CACHE=${HORUS_CACHE:-$work/cubin}
unset HORUS_DEVICE HORUS_MODE HORUS_GPU_MEMORY HORUS_HOST_MEMORY HORUS_THREADS

# Runs a command that must fail with status 1 and one line that has all words; the rest of the output is shown if not.
refused() {
  local words=$1 message word
  shift
  message=$("$@" 2>&1 >/dev/null)
  local status=$?
  if [ $status -ne 1 ]; then
    echo "should fail: $* (status $status) $message"
    return 1
  fi
  IFS='|' read -ra list <<<"$words"
  for word in "${list[@]}"; do
    case $message in
      *"$word"*) ;;
      *) echo "does not say '$word': $message"; return 1 ;;
    esac
  done
  echo "refused as it should be: $message"
}

same() {
  if cmp "$1" "$2"; then echo "same bytes: $3"; else echo "DIFFERENT: $3"; return 1; fi
}

# A noisy picture of the size given.
picture() {
  python3 - "$1" "$2" <<'PY'
import random, sys
n, path = int(sys.argv[1]), sys.argv[2]
noise = random.Random(7).randbytes(n)
row = lambda y: bytes((noise[(x * 7 + y * 13) % n] >> 2) + ((x * y // 97 + x) & 127) for x in range(n))
period = [row(y) for y in range(97)]
with open(path, "wb") as f:
    f.write(b"P5\n%d %d\n255\n" % (n, n))
    f.writelines(period[y % 97] for y in range(n))
PY
}

# The run-time compiler works on one kernel at a time in a process: several share the cases.
kernels() {
  local parts
  parts=$(nproc)
  seq 0 $((parts - 1)) | xargs -P "$parts" -I{} "$bin/horus-cuda-check" --part "{}/$parts"
}

numbers() {
  "$bin/horus-cuda-check" --numbers
}

# Each test gets a process, for the same reason.
session() {
  local names
  names=$("$bin/gpu-conformance" --list | sed -n 's/: test$//p')
  [ -n "$names" ] || return 1
  echo "$names" | BIN=$bin xargs -P "$(nproc)" -I{} sh -c \
    'o=$("$BIN/gpu-conformance" --exact {} 2>&1) && echo "ok {}: ${o##*finished in }" || { echo "$o"; echo "FAILED {}"; exit 1; }'
}

apps() {
  local failed=0 app mode input
  for input in assets/vessels.png assets/small.png; do
    for app in convrot conv2d convuv; do
      "$bin/$app" $input "$work/cpu.npy" --quiet --device cpu || failed=1
      for mode in naive lazy fused; do
        rm -f "$work/gpu.npy"
        "$bin/$app" $input "$work/gpu.npy" --quiet --device cuda --mode $mode || failed=1
        same "$work/cpu.npy" "$work/gpu.npy" "$app $mode $input" || failed=1
      done
      "$bin/$app" $input "$work/gpu.npy" --device cuda
    done
  done
  return $failed
}

memory() {
  local failed=0 app mode
  picture 1024 "$work/1024.pgm"
  local run=("$work/1024.pgm" "$work/gpu.npy" --theta-step 45)
  for app in convrot conv2d convuv; do
    "$bin/$app" "$work/1024.pgm" "$work/cpu.npy" --theta-step 45 --quiet --device cpu || failed=1
    for mode in lazy fused; do
      for room in 64M 22M 3M; do # images of 4 MiB
        rm -f "$work/gpu.npy"
        HORUS_GPU_MEMORY=$room "$bin/$app" "${run[@]}" --device cuda --mode $mode --explain >"$work/plan" || failed=1
        echo "$app $mode with $room: $(grep -c -i evict "$work/plan") images left the GPU to make room; $(grep -A 1 '^regions:' "$work/plan" | grep -v -e regions: -e -- | sort -u | head -n 1)"
        same "$work/cpu.npy" "$work/gpu.npy" "$app $mode with $room" || failed=1
      done
    done
  done
  # All of a picture for any pixel: not computed by regions.
  run=("$work/1024.pgm" "$work/gpu.npy" gt 100 distance --device cuda)
  HORUS_GPU_MEMORY=2M refused "out of memory|bytes needed|HORUS_GPU_MEMORY" "$bin/horus" "${run[@]}" || failed=1
  HORUS_GPU_MEMORY=64M HORUS_HOST_MEMORY=1M refused "out of memory|HORUS_HOST_MEMORY" "$bin/horus" "${run[@]}" || failed=1
  HORUS_GPU_MEMORY=lots refused "HORUS_GPU_MEMORY=lots" "$bin/horus" "${run[@]}" || failed=1
  return $failed
}

driver() {
  local failed=0 run=("$bin/convrot" assets/small.png "$work/out.npy" --theta-step 90)
  CUDA_VISIBLE_DEVICES="" refused "no CUDA device|shows no GPU" "${run[@]}" --device cuda || failed=1
  refused "GPU 99 requested" "${run[@]}" --device cuda:99 || failed=1
  HORUS_DEVICE=cuda:99 refused "GPU 99 requested" "${run[@]}" || failed=1
  HORUS_NVRTC=/nonexistent refused "NVRTC|pip install nvidia-cuda-nvrtc|HORUS_NVRTC" "${run[@]}" --device cuda || failed=1
  # Small work is not worth a GPU's start, much work is.
  "${run[@]}" -v 2>&1 | grep "computing on CPU.*predicted" || { echo "auto does not take the CPU for a small picture"; failed=1; }
  picture 3072 "$work/3072.pgm"
  local much=("$bin/convrot" "$work/3072.pgm" "$work/out.npy" -v)
  HORUS_NVRTC=/nonexistent HORUS_CACHE=off "${much[@]}" 2>&1 | grep "computing on CPU.*NVRTC" || { echo "no fallback without NVRTC"; failed=1; }
  CUDA_VISIBLE_DEVICES="" "${much[@]}" 2>&1 | grep "computing on CPU.*shows no GPU" || { echo "no fallback without a GPU"; failed=1; }
  "${much[@]}" 2>&1 | grep "computing on .*GPU 0.*predicted" || { echo "auto does not take the GPU"; failed=1; }
  HORUS_CACHE=/proc/nowhere "${run[@]}" --device cuda --quiet || { echo "a cache that cannot be written stops a run"; failed=1; }
  return $failed
}

sanitize() {
  local tool sanitizer=${SANITIZER:-$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)}
  [ -n "$sanitizer" ] || { echo "compute-sanitizer was not found (SANITIZER)"; return 1; }
  local subset=${SANITIZE:-correlate 17x17 f32,correlate 5x5 constant,correlate 260x5 f32,separable 19 wrap,separable 75 f64,sparse,median Three,mixed,convrot,conv2d,row_,fold_,histogram,transpose,rotate Bilinear,pixel chain,strip,separable 19 wrap of a chain f32,correlate 17x17 of a chain f32}
  # Compiled outside the sanitizer, which is slow.
  "$bin/horus-cuda-check" "$subset" || return 1
  for tool in memcheck racecheck; do
    echo "== $tool"
    timeout "${SANITIZE_SECONDS:-240}" "$sanitizer" --tool $tool --error-exitcode 9 "$bin/horus-cuda-check" "$subset" || return 1
  done
}

bench() {
  local failed=0
  "$bin/horus-cuda-bench" "${ROWS:-}" || failed=1
  "$bin/horus-bench" --device cuda --size 4096 --op sep19,sep43,conv7,conv17,conv43,rot30,pixel,sum,minmax,convrot,convuv,conv2d \
    --budget 6 --json "$out/bench.json" || failed=1
  if [ -n "${PEERS:-}" ]; then
    "${PEERS_PYTHON:-python3}" "$PEERS/peers_gpu.py" --json "$out/peers.json" || failed=1
  fi
  return $failed
}

modes() {
  "$bin/horus-bench" --device cuda --op convrot,conv2d,convuv --size "${SIZES:-1024,4096}" --mode naive,lazy,fused \
    --from-host --runs "${RUNS:-5}" --budget "${BUDGET:-15}" --json "$out/modes.json" --markdown "$out/modes.md" || return 1
  cat "$out/modes.md"
}

# Those of 1, 2, 4 (or of GPUS) for which there are enough GPUs.
numbers_of_gpus() {
  local n there
  there=$(nvidia-smi -L | wc -l)
  for n in ${GPUS:-1 2 4}; do
    [ "$n" -gt "$there" ] || echo "$n"
  done
}

# Runs a command on a number of ranks, with a time limit in seconds. NVLink's multicast stays off: it serves NCCL's reductions,
# which Horus does not use, and its failures affect other users of the host.
on_ranks() {
  NCCL_NVLS_ENABLE=0 timeout "$2" mpirun --allow-run-as-root --bind-to none -n "$1" "${@:3}"
}

# Runs a command with a way between GPUs: nccl, host, or overlap (nccl, and always computing while halos travel).
via() {
  case $1 in
    overlap) HORUS_FABRIC=nccl HORUS_OVERLAP=always "${@:2}" ;;
    *) HORUS_FABRIC=$1 HORUS_OVERLAP=auto "${@:2}" ;;
  esac
}

ranks() {
  local app n fabric failed=0
  for app in convrot conv2d convuv; do
    "$bin/$app" assets/vessels.png "$work/cpu.npy" --quiet --device cpu || failed=1
    for n in $(numbers_of_gpus); do
      for fabric in nccl overlap host; do
        [ "$n$fabric" = 1nccl ] || [ $n -gt 1 ] || continue
        rm -f "$work/gpu.npy"
        via $fabric on_ranks "$n" 60 "$bin/$app" assets/vessels.png "$work/gpu.npy" --device cuda || failed=1
        same "$work/cpu.npy" "$work/gpu.npy" "$app on $n GPUs, $fabric" || failed=1
      done
    done
  done
  for n in $(numbers_of_gpus); do
    for fabric in nccl overlap; do
      [ "$n$fabric" = 1nccl ] || [ $n -gt 1 ] || continue
      via $fabric on_ranks "$n" 120 "$bin/horus-bench" --device cuda --op convrot,conv2d,convuv,gauss10 \
        --size "${SIZES:-8192,16384}" --runs "${RUNS:-5}" --budget "${BUDGET:-8}" --json "$out/ranks-$n-$fabric.json" || failed=1
    done
    [ "$n" = 1 ] || on_ranks "$n" 60 "$bin/horus-fabric-bench" || failed=1
  done
  return $failed
}

# A naive run on several GPUs takes tens of seconds: every operation scatters and gathers its images.
scaling() {
  local n failed=0
  for n in $(numbers_of_gpus); do
    rm -f "$out/scaling-$n.json"
    on_ranks "$n" 600 "$bin/horus-bench" --device cuda --op convrot,conv2d,convuv --size "${SIZES:-1024,4096}" \
      --mode naive,lazy,fused --from-host --runs "${RUNS:-5}" --budget "${BUDGET:-8}" --json "$out/scaling-$n.json" ||
      { echo "no result of $n ranks: failed, or cut off after 600 s"; failed=1; continue; }
    # Binaries without MPI would run that many copies instead.
    grep -q "\"ranks\":$n," "$out/scaling-$n.json" || { echo "these binaries run as one rank (build them with MPI=1)"; return 1; }
  done
  python3 benches/plot.py scaling "$out/scaling" "$out"/scaling-*.json && cat "$out/scaling.md" || failed=1
  return $failed
}

# Explicit, streams, implicit, hybrid and the choice between them, from page-locked memory to page-locked memory.
strategies() {
  "$bin/horus-strategies" --op "${OP:-all}" --size "${SIZES:-1024,4096}" --runs "${RUNS:-31}" --budget "${BUDGET:-1}" \
    --markdown "$out/strategies.md" --tsv "$out/strategies.tsv" &&
    python3 benches/plot.py strategies "$out/strategies" "$out/strategies.tsv"
}

# One process: wall seconds and the program's own account, the median of three by wall time.
timed() {
  local i
  for i in 1 2 3; do
    local from=$EPOCHREALTIME
    "$@" -v >"$work/summary" 2>"$work/log" || { cat "$work/log"; return 1; }
    echo "$(awk "BEGIN { printf \"%.3f\", $EPOCHREALTIME - $from }") s; $(grep '^ms:' "$work/summary")"
  done | sort -n | sed -n 2p
}

# Cold: nothing compiled, and neither of the caches. NVRTC 13 has one of its own (~/.nv), beside the driver's.
cold() {
  local i
  for i in 1 2 3; do
    rm -rf "$work/cold"
    local from=$EPOCHREALTIME
    CUDA_CACHE_DISABLE=1 HORUS_CACHE=$work/cold "$@" -v >"$work/summary" 2>"$work/log" || { cat "$work/log"; return 1; }
    echo "$(awk "BEGIN { printf \"%.3f\", $EPOCHREALTIME - $from }") s; $(grep '^ms:' "$work/summary")"
  done | sort -n | sed -n 2p
}

process() {
  local app size failed=0 input=${INPUT:-$work/4096.pgm}
  [ -n "${INPUT:-}" ] || picture 4096 "$input"
  printf '| | | wall; breakdown |\n| --- | --- | --- |\n'
  for app in convrot conv2d convuv; do
    [ -n "${SKIP_CPU:-}" ] || [ $app != convrot ] ||
      echo "| $app | CPU | $(timed "$bin/$app" "$input" "$work/out.png" --device cpu) |"
    for size in ${COLD_SIZES:-256 1024 4096}; do
      [ -f "$work/$size.pgm" ] || picture "$size" "$work/$size.pgm"
      echo "| $app | GPU, $size, nothing compiled | $(cold "$bin/$app" "$work/$size.pgm" "$work/out.png" --device cuda) |"
    done
    HORUS_CACHE=$work/warm-$app "$bin/$app" "$input" "$work/out.png" --device cuda --quiet || failed=1 # compiles
    echo "| $app | GPU | $(HORUS_CACHE=$work/warm-$app timed "$bin/$app" "$input" "$work/out.png" --device cuda) |"
  done
  # Kernel by kernel.
  rm -rf "$work/cold"
  CUDA_CACHE_DISABLE=1 HORUS_CACHE=$work/cold "$bin/conv2d" "$input" "$work/out.png" --device cuda -vv 2>&1 | grep -E "compiled|kernels made|^ms:"
  HORUS_CACHE=$work/warm-convrot "$bin/convrot" "$input" "$work/out.png" --device cuda -vv 2>&1 | grep -E "DEBUG|^ms:"
  return $failed
}

# Time from picture to picture, and its floors: a process that only creates a context, and one that only writes the bytes of
# the result. Warm: kernels are compiled. Binaries of another commit beside these: OLD=folder.
user() {
  local failed=0 size to device name folder out
  local -a with
  for size in ${SIZES:-4096 16384}; do picture "$size" "$work/$size.pgm"; done
  export HORUS_CACHE=$work/warm
  printf '| what | wall (median of %s); breakdown |\n| --- | --- |\n' "${RUNS:-5}"
  plain() { echo "| $1 | $(walls "${@:2}" | sort -n | awk '{ a[NR] = $1 } END { printf "%.3f s", a[int((NR + 1) / 2)] }') |"; }
  plain "a context and exit" "$bin/horus-cuda-bench" --context
  plain "1 GiB written alone" dd if=/dev/zero of="$work/alone" bs=16M count=64 status=none
  rm -f "$work/alone"
  for folder in ${OLD:-} "$bin"; do
    for device in cuda auto cpu; do
      for name in 512.pgm:png 1024.pgm:png 4096.pgm:png 4096.pgm:pgm 16384.pgm:npy; do
        size=${name%%.*} to=${name#*:} out=$work/out.$to
        [ $device$size != cpu16384 ] && [ $device$size != auto16384 ] || continue
        [ -f "$work/$size.pgm" ] || picture "$size" "$work/$size.pgm"
        with=("$folder/convrot" "$work/$size.pgm" "$out" --device $device)
        "${with[@]}" --quiet || failed=1 # compiles
        echo "| $(basename "$folder") convrot $size $device -> $to | $(median "${with[@]}") |"
        rm -f "$out"
      done
    done
  done
  return $failed
}

# Wall seconds of each of RUNS runs.
walls() {
  local i from
  for ((i = 0; i < ${RUNS:-5}; i++)); do
    from=$EPOCHREALTIME
    "$@" >"$work/summary.$i" 2>"$work/log" || { cat "$work/log" >&2; return 1; }
    awk "BEGIN { printf \"%.3f $i\n\", $EPOCHREALTIME - $from }"
  done
}

# The median of the wall seconds, and that run's own account.
median() {
  walls "$@" -v | sort -n | awk '{ a[NR] = $1; b[NR] = $2 } END { m = int((NR + 1) / 2); print a[m], b[m] }' |
    { read -r seconds i; echo "$seconds s; $(grep '^ms:' "$work/summary.$i")"; }
}

printf '# GPU run of %s, commit %s\n\n' "$(date -u +%F)" "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" >"$out/results.md"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sed 's/$/\n/' >>"$out/results.md"
status=0 table=""
for stage in "${stages[@]}"; do
  case $stage in
    kernels | numbers | session | apps | memory | driver | sanitize | bench | modes | ranks | scaling | strategies | process | user) ;;
    *) echo "no stage $stage" >&2; exit 2 ;;
  esac
  printf '\n== %s\n' "$stage"
  from=$SECONDS
  if "$stage" 2>&1 | tee "$out/$stage.log"; then verdict=pass; else verdict=FAIL status=1; fi
  last=$(grep -v '^$' "$out/$stage.log" | tail -n 1 | cut -c 1-120)
  table+="$(printf '%-9s %-5s %5d s  %s' "$stage" $verdict $((SECONDS - from)) "$last")"$'\n'
  { printf '\n## %s: %s in %d s\n\n' "$stage" $verdict $((SECONDS - from))
    case $stage in
      modes | process | user | scaling | strategies) cat "$out/$stage.log" ;;
      *) printf '```\n%s\n```\n' "$(tail -n 60 "$out/$stage.log")" ;;
    esac; } >>"$out/results.md"
done
printf '\n%s' "$table"
exit $status
