#!/usr/bin/env bash
# Checks what would be published: makes the archive of every crate, unpacks them side by side, and compiles them and a user's
# program against each other, so that nothing comes from this repository but what is inside them. Minutes less than
# `cargo package --workspace`, which compiles every dependency anew for each of them; both find a missing file.
#
#   scripts/packages.sh           checks; leaves the archives in target/package
#   scripts/packages.sh --test    also runs the unit tests and examples of the documentation inside the archives (minutes)
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
most=$((900 << 10)) # bytes of an archive

# Uncommitted files are packaged as they are. Tests and goldens are left out on purpose, which Cargo warns of.
rm -f "$target"/package/*.crate
said=$(cargo package --workspace --exclude horus-python --exclude horus-testing --exclude horus-models --exclude horus-tools --exclude xtask --allow-dirty --no-verify 2>&1) || { echo "$said" >&2; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
crates=(horus-base horus-plan horus-host horus-cpu horus-files horus-core horus-cuda-kernels horus-cuda horus-mpi horus-image horus-apps horus-partition horus-zarr)

work=$target/package/unpacked
rm -rf "$work"
mkdir -p "$work/user/src"
for crate in "${crates[@]}"; do
  archive=$target/package/$crate-$version.crate
  # Current time stamps: those in an archive are of 2006, and Cargo would reuse the previous build.
  tar -xzmf "$archive" -C "$work"
  size=$(stat -c %s "$archive")
  files=$(find "$work/$crate-$version" -type f | wc -l)
  echo "$crate $version: $files files, $((size >> 10)) KiB"
  [ "$size" -le $most ] || { echo "$crate: larger than $((most >> 10)) KiB: what is in it that does not belong?" >&2; exit 1; }
  for file in README.md LICENSE-MIT LICENSE-APACHE src/lib.rs; do
    [ -s "$work/$crate-$version/$file" ] || { echo "$crate: no $file in the archive" >&2; exit 1; }
  done
  if find "$work/$crate-$version" -type l | grep .; then echo "$crate: links in the archive" >&2; exit 1; fi
done

# Cargo.toml of a workspace around them: the archives in place of the registry, and this repository's profile, so that the
# dependencies that the tests have compiled are used again.
{
  echo '[workspace]'
  echo 'resolver = "3"'
  printf 'members = ["user"%s]\n' "$(printf ', "%s"' "${crates[@]/%/-$version}")"
  echo '[patch.crates-io]'
  for crate in "${crates[@]}"; do echo "$crate = { path = \"$crate-$version\" }"; done
  sed -n '/^\[profile\.dev\]/,$p' Cargo.toml | grep -v horus-testing
} >"$work/Cargo.toml"
cp Cargo.lock "$work/"
cat >"$work/user/Cargo.toml" <<TOML
[package]
name = "user"
version = "0.0.0"
edition = "2024"
publish = false

[dependencies]
horus-image = "$version"
TOML
cp examples/lines.rs "$work/user/src/main.rs"

cd "$work"
export CARGO_TARGET_DIR=$target
cargo check --workspace --quiet
if command -v mpicc >/dev/null; then
  cargo check -p horus-apps --features mpi --quiet
else
  echo "no MPI here: horus-mpi was compiled without its feature \`mpi\`"
fi
if [ "${1:-}" = --test ]; then
  # Pictures of the repository that examples open.
  cp -r "$root/assets" .
  cargo test --workspace --exclude user --quiet
fi
echo "the archives compile, and a program against them"
