#!/usr/bin/env bash
# Says whether this commit may be released: runs what is too long for scripts/test.sh as well, and ends with "yes" or "no".
#
#   scripts/release.sh [--without STEP]... [STEP...]     the steps below in this order, or only those named
#
#   tree        nothing is uncommitted, CHANGELOG.md has a dated head with the version of Cargo.toml
#   tests       scripts/test.sh with HORUS_CASES=1000: whole sweeps, of which it runs a part, and as many cases of each random test
#   packages    scripts/packages.sh: the archives of the crates compile, and a program against them
#   numbers     every function of every f32 on every instruction set, and the corpus, against the hashes that are kept (16 cores: minutes)
#   programs    HORUS_CASES random programs (default: 1,000,000, an hour) against the reference, by each pass of the optimiser
#               alone, and a thousandth on each of 1 to 5 ranks of MPI (on a GPU: HORUS_CASES=20000 scripts/gpu.sh session)
#   fuzz        broken files, HORUS_FUZZ_SECONDS (default: 3600) for each decoder, and as long broken chains, profiles, tables, packages and caches
#   faults      scripts/faults.py: ranks under mpirun that are killed, stopped or slow, full disks, directories that vanish
#   miri        buffers of the host and ranks as threads under Miri (a nightly toolchain)
#   sanitizers  tests of the core and its kernels under AddressSanitizer, those with many threads under ThreadSanitizer (the same toolchain)
#   memory      benches/memory.sh: the largest memory of programs under a limit
#   licences    cargo deny: licences, sources, and advisories, whose database must be reachable
#   interfaces  the least version of Rust that Cargo.toml names compiles it; docs/api lists the public interface; cargo semver-checks
#               against the newest tag
#   speed       benches/gate.py against the newest tag, with rows of Python if GATE_PYTHON is an interpreter for them
#   wheels      the wheel, built twice in folders of different names: equal bytes, no path of this machine, its parts and their licences
#   files       scripts/odd_files.py: valid but unusual files, read by that wheel and by other libraries (from PyPI)
#   hours       benches/hours.py: the memory of a day of frames in a series, and of calls of that wheel from 8 threads, is flat
#   artefacts   what is published, a list of parts of each crate, and SHA256SUMS, signed if git has a key (user.signingkey)
#
# A step that cannot run here, as a tool is missing, is a "no". `--without STEP` leaves one out, and the summary says so. Logs of the
# steps are in the folder `release-logs` of the target folder.
set -uo pipefail
cd "$(dirname "$0")/.."
all=(tree tests packages numbers programs fuzz faults miri sanitizers memory licences interfaces speed wheels files hours artefacts)
logs=$(realpath -m "${CARGO_TARGET_DIR:-target}")/release-logs

# The reason for which a step failed, for the summary: without one its log is named.
no() { echo "no: $*"; return 1; }
needs() { command -v "$1" >/dev/null || no "$1 is not installed ($2)"; }

version() { sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1; }

tree() {
  local version changed
  changed=$(git status --porcelain) || return 1
  [ -z "$changed" ] || { echo "$changed"; no "files are not committed"; return 1; }
  version=$(version)
  grep -m 1 '^## ' CHANGELOG.md | grep -Eq "^## \[$version\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" || no "the head of CHANGELOG.md is not [$version] with a date"
}
tests() { HORUS_CASES=1000 scripts/test.sh; }
packages() { scripts/packages.sh; }
numbers() { HORUS_CASES=4294967295 cargo test --release -p horus-core --test numbers -- --nocapture; }
programs() {
  local cases=${HORUS_CASES:-1000000}
  HORUS_CASES=$cases cargo test --release -p horus-core --test conformance -- random hostile &&
    HORUS_CASES=$((cases / 1000)) cargo test --release -p horus-mpi --features mpi -- random_programs
}
fuzz() {
  local seconds=${HORUS_FUZZ_SECONDS:-3600}
  HORUS_FUZZ_SECONDS=$seconds cargo test --release -p horus-core --test files fuzz &&
    cargo build --release -p horus-apps -p horus-tools --bin horus --bin horus-machine &&
    scripts/broken_settings.py "${CARGO_TARGET_DIR:-target}/release/horus" --seconds "$seconds" --processes 2
}
faults() {
  cargo build --release -p horus-apps --features mpi --bin horus && scripts/faults.py "${CARGO_TARGET_DIR:-target}/release/horus"
}
miri() {
  cargo +nightly miri --version || { no "no Miri (rustup toolchain install nightly --component miri,rust-src)"; return 1; }
  # Tests of a pool of threads did not end in minutes. Miri ends where memory cannot be had, instead of returning an error.
  MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance" \
    cargo +nightly miri test -p horus-host --lib -- host::buffer comm:: --skip too_much_memory
}
sanitizers() {
  local host
  cargo +nightly --version || { no "no nightly toolchain (rustup toolchain install nightly --component rust-src)"; return 1; }
  host=$(rustc -vV | sed -n 's/^host: //p')
  # With a target, programs that run while it is compiled are not instrumented. Tests ask for more memory than there can be; those that
  # measure it are left out, as the sanitizer keeps what is freed.
  ASAN_OPTIONS=allocator_may_return_null=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/address \
    cargo +nightly test --target "$host" -p horus-host -p horus-files -p horus-cpu -p horus-core -p horus-zarr --lib --tests -- \
    --skip memory_is_bounded --skip programs_in_memory_take_no_more --skip a_picture_larger_than_memory || return 1
  # The standard library is instrumented, too: else what its locks and channels order would be taken for races.
  TSAN_OPTIONS=allocator_may_return_null=1 RUSTFLAGS=-Zsanitizer=thread CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/thread \
    cargo +nightly test -Zbuild-std --target "$host" -p horus-host -p horus-core --lib --test it --test arrays --test in_flight --test lanes --test mapped --test overlap --test threads
}
memory() { benches/memory.sh; }
licences() {
  needs cargo-deny "cargo install cargo-deny" && cargo deny check
}
newest_tag() { git describe --tags --abbrev=0 2>/dev/null || { no "there is no tag to compare with" >&2; return 1; }; }
# Lists the names that a program can use: impls of the compiler and results of operators are left out.
api() {
  local crate
  mkdir -p "$logs/api"
  for crate in horus-image horus-core horus-base; do
    cargo public-api -p "$crate" -sss | grep -v '^pub type .*::Output = ' >"$logs/api/$crate.txt" || return 1
  done
}
interfaces() {
  local tag least
  least=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  rustup toolchain install "$least" --profile minimal || return 1
  CARGO_TARGET_DIR=$logs/least cargo "+$least" check --workspace --exclude horus-zarr --exclude horus-python --quiet || { no "it does not compile with Rust $least"; return 1; }
  needs cargo-public-api "cargo install cargo-public-api, and a nightly toolchain" && api || return 1
  diff -r docs/api "$logs/api" || { no "docs/api is not the public interface: cp $logs/api/* docs/api"; return 1; }
  needs cargo-semver-checks "cargo install cargo-semver-checks" && tag=$(newest_tag) || return 1
  cargo semver-checks --workspace --baseline-rev "$tag"
}
speed() {
  local tag
  tag=$(newest_tag) && benches/gate.py "$tag" HEAD --python "${GATE_PYTHON:-}"
}
wheels() {
  local copy status
  for copy in one another; do
    rm -rf "$logs/$copy" "$logs/wheel-$copy"
    git worktree prune && git worktree add --quiet --detach "$logs/$copy" HEAD || return 1
    (cd "$logs/$copy" && env -u CARGO_TARGET_DIR scripts/wheel.sh "$logs/wheel-$copy")
    status=$?
    git worktree remove --force "$logs/$copy"
    [ $status = 0 ] || return 1
  done
  (cd "$logs" && sha256sum wheel-one/*.whl wheel-another/*.whl)
  cmp "$logs"/wheel-one/*.whl "$logs"/wheel-another/*.whl || { no "two builds of the wheel have other bytes"; return 1; }
  rm -rf "$logs/wheel" && python3 -m zipfile -e "$logs"/wheel-one/*.whl "$logs/wheel" || return 1
  if grep -rlF -e "$logs" -e "$PWD/" -e "${CARGO_HOME:-$HOME/.cargo}" -e "$(rustc --print sysroot)" "$logs/wheel"; then
    no "paths of this machine are in the wheel"
    return 1
  fi
  ls "$logs"/wheel/*.dist-info/sboms/*.json || { no "no list of parts in the wheel"; return 1; }
  grep -m 1 "^std's " "$logs"/wheel/*.dist-info/licenses/THIRD-PARTY.txt || no "licences of the standard library are not in the wheel"
}
files() {
  local python=$logs/files-python
  ls "$logs"/wheel-one/*.whl >/dev/null || { no "no wheel: the step wheels makes it"; return 1; }
  python3 -m venv --clear "$python" &&
    "$python/bin/pip" install --quiet "$logs"/wheel-one/*.whl pillow tifffile imagecodecs rasterio zarr OpenEXR &&
    "$python/bin/python" scripts/odd_files.py
}
hours() {
  local python=$logs/hours-python
  ls "$logs"/wheel-one/*.whl >/dev/null || { no "no wheel: the step wheels makes it"; return 1; }
  python3 -m venv --clear "$python" && "$python/bin/pip" install --quiet "$logs"/wheel-one/*.whl &&
    cargo build --release -p horus-apps --bin horus &&
    HORUS_DEVICE=cpu "$python/bin/python" benches/hours.py --horus "${CARGO_TARGET_DIR:-target}/release/horus"
}
artefacts() {
  local out=$logs/artefacts archive crate key
  ls "$logs"/wheel-one/*.whl "$logs"/../package/*.crate >/dev/null || { no "nothing to publish: the steps packages and wheels make it"; return 1; }
  rm -rf "$out" && mkdir "$out" && cp "$logs"/wheel-one/*.whl "$logs"/../package/*.crate "$out" || return 1
  # With all features on all platforms, in the versions that were tested. The wheel has its own list.
  for archive in "$out"/*.crate; do
    crate=$(basename "$archive" "-$(version).crate")
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) scripts/parts.py "$crate" --all-features --target all >"$out/$crate.cdx.json" || return 1
  done
  (cd "$out" && sha256sum -- *.whl *.crate *.json | tee SHA256SUMS) || return 1
  if key=$(git config user.signingkey); then
    gpg --batch --yes --local-user "$key" --armor --detach-sign "$out/SHA256SUMS" && gpg --verify "$out/SHA256SUMS.asc" "$out/SHA256SUMS"
  else
    echo "SHA256SUMS is not signed: git config user.signingkey names no key"
  fi
  # Attestations bind an archive to a builder by an identity that a service confirms: registries make them when a job publishes.
}

known() { case " ${all[*]} " in *" $1 "*) ;; *) echo "no step $1; there are: ${all[*]}" >&2; exit 2 ;; esac; }
without=() steps=()
while [ $# -gt 0 ]; do
  case $1 in
    --without) known "${2:?a step}"; without+=("$2"); shift ;;
    -*) sed -n '2,/^set/s/^# \?//p' "$0" >&2; exit 2 ;;
    *) known "$1"; steps+=("$1") ;;
  esac
  shift
done
mkdir -p "$logs"
summary="" verdict=yes
for step in "${all[@]}"; do
  if [ ${#steps[@]} -gt 0 ] && [[ " ${steps[*]} " != *" $step "* ]]; then
    summary+=$(printf '%-11s not asked for' "$step")$'\n' verdict=${verdict/yes/part}
    continue
  fi
  if [[ " ${without[*]-} " == *" $step "* ]]; then
    summary+=$(printf '%-11s left out (--without)' "$step")$'\n' verdict=${verdict/yes/part}
    continue
  fi
  printf '\n== %s\n' "$step"
  from=$SECONDS
  if "$step" 2>&1 | tee "$logs/$step.log"; then
    told=yes
  else
    told=$(grep '^no: ' "$logs/$step.log" | tail -n 1) verdict=no
    told=${told:-no: see $logs/$step.log}
  fi
  summary+=$(printf '%-11s %6d s  %s' "$step" $((SECONDS - from)) "$told")$'\n'
done
printf '\n%s of %s\n%s' "$(git rev-parse --short HEAD)" "$(git log -1 --format=%cs)" "$summary"
case $verdict in
  yes) echo "yes" ;;
  part) echo "yes, but for the steps that did not run" ;;
  no) echo "no"; exit 1 ;;
esac
