#!/usr/bin/env bash
# The whole test suite: formatting, lints, documentation, tests. Runs on a fresh Debian or Ubuntu machine with Rust and
# git, and installs what is missing (a C linker, if even that is not there).
#
#   scripts/test.sh          everything
#   scripts/test.sh lint     formatting, lints and documentation only
set -euo pipefail
cd "$(dirname "$0")/.."

# Requirements of the tests beyond Rust: a C linker, a C++ compiler (runs the GPU kernels on the host), MPI and libclang (its
# bindings are generated), and the run-time compiler of CUDA, from PyPI.
missing=()
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v "${CXX:-g++}" >/dev/null || missing+=(g++)
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3 python3-venv)
command -v mpicc >/dev/null && command -v mpirun >/dev/null || missing+=(libopenmpi-dev openmpi-bin)
[ -n "${LIBCLANG_PATH:-}" ] || ldconfig -p | grep -Eq 'libclang(-[0-9.]+)?\.so' || missing+=(libclang-dev)
if [ ${#missing[@]} -gt 0 ]; then
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi
if [ -z "${HORUS_NVRTC:-}" ]; then
  venv=$(realpath -m "${CARGO_TARGET_DIR:-target}")/nvrtc
  [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check 'nvidia-cuda-nvrtc==13.0.*'
  HORUS_NVRTC=$(dirname "$(find "$venv" -name 'libnvrtc.so.*' | head -n 1)")
  export HORUS_NVRTC
fi

# Tests inspect plans for the assumed machine, not for a measured profile of this one.
export HORUS_PROFILE=default
# They compute on all ranks, also what is predicted to take less time on fewer.
export HORUS_RANKS=all

# Everything is compiled once: incremental compilation and line tables only take time.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=false

# Runs a command under a heading, and prints its duration.
step() {
  local begin=$SECONDS status=0
  printf '\n== %s\n' "$*"
  "$@" || status=$?
  printf '== %d s\n' $((SECONDS - begin))
  return $status
}

step cargo fmt --all --check
# With every feature, and with the tests that scripts/gpu.sh runs on a GPU; always the same, so that crates are compiled once.
features=(--workspace --features "horus-image/image,horus-apps/mpi,horus-models/mpi,horus-tools/mpi,horus-mpi/mpi,horus-apps/remote")
step cargo clippy "${features[@]}" --all-targets --quiet -- -D warnings
step cargo clippy "${features[@]}" --test gpu --test hip --quiet -- -D warnings
# Windows and macOS, on which nothing was run, and with macOS the kernels of aarch64, which scripts/aarch64.sh runs: if their
# standard libraries can be had. C code is not compiled.
if timeout 120 rustup target add x86_64-pc-windows-gnu aarch64-apple-darwin 2>/dev/null; then
  step env RUSTFLAGS='-D warnings' {CC,AR}_{x86_64_pc_windows_gnu,aarch64_apple_darwin}=true \
    cargo check --target x86_64-pc-windows-gnu --target aarch64-apple-darwin -p horus-apps --quiet
else
  echo "Rust for Windows and macOS cannot be had here: nothing was compiled for them"
fi
# Licences and sources of the dependencies, and known advisories if the database is reachable.
if command -v cargo-deny >/dev/null; then
  step cargo deny check licenses bans sources
  if cargo deny fetch db; then
    step cargo deny --offline check advisories
  else
    echo "the database of advisories cannot be had here: they were not checked"
  fi
fi
RUSTDOCFLAGS="-D warnings" step cargo doc "${features[@]}" --no-deps --quiet

[ "${1:-}" != lint ] || exit 0

# Tests in Rust, some of them under mpirun with 1 to 5 ranks. Many have one thread or wait: what has one thread, too, runs beside
# them, once everything is compiled, and is printed when it is over.
beside() {
  step scripts/python_test.sh
  # The programs that the tests run, on several hosts; reports if this machine or this user cannot run them.
  step scripts/hosts.sh "${CARGO_TARGET_DIR:-target}/debug"
}
step cargo test "${features[@]}" --no-run --quiet
step scripts/book.sh --check
log=$(mktemp) rust=$(mktemp)
beside >"$log" 2>&1 &
other=$!
trap 'kill $other 2>/dev/null || true; rm -f "$log" "$rust"' EXIT
tests=0
step cargo test "${features[@]}" --no-fail-fast 2>&1 | tee "$rust" || tests=$?
beside=0
wait $other || beside=$?
cat "$log"
# The reasons of failures once more, at the end, where they are looked for.
if [ $tests != 0 ]; then
  printf '\n== failures\n'
  sed -n '/^failures:$/,/^test result:/p; /^error: /,/^$/p' "$rust"
fi
exit $((tests | beside))
