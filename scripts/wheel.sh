#!/usr/bin/env bash
# Builds the Python package: scripts/wheel.sh DIR leaves the wheel in DIR.
#
# It runs on any x86-64 (vector instructions are chosen when a program runs) with glibc 2.28 (Debian 10, RHEL 8, Ubuntu 18.10) and Python 3.10 or
# newer, and loads the driver of a GPU, if there is one, when a program asks for it.
#
# It has a list of its parts (`sboms/`, CycloneDX) and their licences. The published wheel has the same bytes in any folder and home: its times
# are those of the commit (or SOURCE_DATE_EPOCH), its paths those of the repository and of the registry.
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
packages=('maturin>=1.16,<2')
how=(--interpreter "$venv/bin/python")
built=() zig=()
# The wheel that is tested has the compiled crates of the tests.
[ "$profile" = release ] || how+=(--features tests)
if [ "$profile" = release ]; then
  # Zig's linker and headers of an old glibc, on any host.
  packages+=('ziglang==0.15.*')
  built=(--target "$arch-unknown-linux-gnu")
  how=(--zig --compatibility manylinux_2_28 "${built[@]}" --interpreter python3.10)
  export PATH=$venv/bin:$PATH
  export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
  export RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src=registry ${RUSTFLAGS:-}"
fi
"$venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
[ "$profile" != release ] || zig=(--zig "$(dirname "$("$venv/bin/python" -c 'import ziglang; print(ziglang.__file__)')")")
# Made anew, as it is of Cargo.lock: pyproject.toml takes it from there. Maturin's own list has crates of other programs of the workspace.
trap 'rm -f horus-python/THIRD-PARTY.txt' EXIT
scripts/parts.py horus-python --licences horus-python/THIRD-PARTY.txt "${built[@]}" "${zig[@]}" >"$venv/horus-python.cdx.json"
# One wheel serves all versions of Python: the interpreter only names it.
"$venv/bin/maturin" build --quiet --profile "$profile" --manifest-path horus-python/Cargo.toml --out "$out" "${how[@]}" \
  --sbom-include "$venv/horus-python.cdx.json"
