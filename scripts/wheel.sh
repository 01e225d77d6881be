#!/usr/bin/env bash
# Builds the Python package: scripts/wheel.sh DIR leaves the wheel in DIR.
#
# It runs on any x86-64 (vector instructions are chosen when a program runs) with glibc 2.28 (Debian 10, RHEL 8, Ubuntu 18.10) and Python 3.10 or
# newer, and loads the driver of a GPU, if there is one, when a program asks for it.
#
# The published wheel has the same bytes in any folder and home: its times are those of the commit (or SOURCE_DATE_EPOCH), its paths those of
# the repository and of the registry. It has a list of its parts (`sboms/`, CycloneDX).
#
#   --arch aarch64     for 64-bit ARM instead; after `rustup target add aarch64-unknown-linux-gnu`
#   --profile dev      as `cargo test` builds, for tests on this machine: slow kernels, a short build
set -euo pipefail
cd "$(dirname "$0")/.."
profile=release arch=x86_64
while [[ "${1:-}" = --* ]]; do
  case $1 in
    --profile) profile=$2 ;;
    --arch) arch=$2 ;;
    *) sed -n '2,/^set/s/^# \?//p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done
out=$(realpath -m "${1:?the folder of the wheel}")
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")

venv=$target/maturin
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
packages=('maturin>=1.9,<2')
how=(--interpreter "$venv/bin/python")
if [ "$profile" = release ]; then
  # Zig's linker and headers of an old glibc, on any host.
  packages+=('ziglang==0.15.*' 'wheel>=0.45,<1')
  how=(--zig --compatibility manylinux_2_28 --target "$arch-unknown-linux-gnu" --interpreter python3.10)
  export PATH=$venv/bin:$PATH
  export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
  export RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src=registry ${RUSTFLAGS:-}"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
"$venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
# One wheel serves all versions of Python: the interpreter only names it.
"$venv/bin/maturin" build --quiet --profile "$profile" --manifest-path horus-python/Cargo.toml --out "${work:-$out}" "${how[@]}"

if [ "$profile" = release ]; then
  # Maturin's list has the folder of this repository in its names, and a random number.
  wheel unpack --dest "$work/wheel" "$work"/*.whl >/dev/null
  sed -i -e "s|file://$PWD|file://|g" -e '/"serialNumber": /d' "$work"/wheel/*/*.dist-info/sboms/*.json
  mkdir -p "$out"
  wheel pack --dest-dir "$out" "$work"/wheel/* >/dev/null
fi
