#!/usr/bin/env bash
# Horus on aarch64 Linux, on a machine without one: builds for it, runs the conformance tests, the goldens and functions of 2^24
# numbers under qemu-user, and compares bits with this machine: of every case of the conformance tests, and of the programs' files.
# Installs what is missing on Debian and Ubuntu (a cross linker, qemu), and Rust's target.
#
#   scripts/aarch64.sh [FILTER...]     FILTER: tests of the conformance suite (default: ops:: programs::)
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
filters=("$@")
[ ${#filters[@]} -gt 0 ] || filters=(ops:: programs::)

missing=()
command -v aarch64-linux-gnu-gcc >/dev/null || missing+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
command -v qemu-aarch64 >/dev/null || missing+=(qemu-user)
if [ ${#missing[@]} -gt 0 ]; then
  sudo=$([ "$(id -u)" = 0 ] || echo sudo)
  $sudo apt-get update -qq
  DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi
rustup target list --installed | grep -qx $target || rustup target add $target
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
for name in $(env | sed -n 's/^\(HORUS_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
step() { printf '\n== %s\n' "$*"; "$@"; }

step cargo test --target $target -p horus-core --test goldens
HORUS_CASES=$((1 << 24)) step cargo test --target $target -p horus-core --test numbers
HORUS_DIGESTS=$work/aarch64 step cargo test --target $target -p horus-core --test conformance -- "${filters[@]}"
HORUS_DIGESTS=$work/here step cargo test -p horus-core --test conformance -- "${filters[@]}"
for machine in here aarch64; do sort "$work/$machine" >"$work/$machine.sorted"; done
cases=$(wc -l <"$work/here.sorted")
[ "$cases" -gt 0 ] || { echo "no test with such a name writes digests" >&2; exit 1; }
diff "$work/here.sorted" "$work/aarch64.sorted" | head -n 20 || true
cmp "$work/here.sorted" "$work/aarch64.sorted"

# Whole programs, from file to file.
step cargo build -p horus-apps --no-default-features --bins
step cargo build --target $target -p horus-apps --no-default-features --bins
bin=$(realpath "${CARGO_TARGET_DIR:-target}")
files=0
same() {
  "$bin/debug/$1" "${@:2}" "$work/here.npy" --quiet --device cpu
  $CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER "$bin/$target/debug/$1" "${@:2}" "$work/there.npy" --quiet --device cpu
  cmp "$work/here.npy" "$work/there.npy"
  files=$((files + 1))
}
for program in convrot conv2d convuv; do same $program assets/small.png; done
printf '\nthe same bits: %s cases of the conformance tests, %s files of programs\n' "$cases" "$files"
