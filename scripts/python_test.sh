#!/usr/bin/env bash
# Tests the Python package as users have it: builds the wheel, installs it into an environment with nothing else of this repository, and runs
# the tests, SciPy's own among them, the examples of the documentation, and the checks of types.
#
#   scripts/python_test.sh                a wheel of the profile of `cargo test`, whose compiled crates it uses again
#   scripts/python_test.sh --release      the wheel that is published
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
profile=dev
[ "${1:-}" != --release ] || profile=release

wheels=$target/wheels-$profile
rm -rf "$wheels"
scripts/wheel.sh --profile "$profile" "$wheels"
size=$(stat -c %s "$wheels"/*.whl)
echo "$(basename "$wheels"/*.whl): $((size >> 10)) KiB"
[ "$profile" = dev ] || [ "$size" -le $((20 << 20)) ] || { echo "the wheel is larger than 20 MiB" >&2; exit 1; }

venv=$target/python-test
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r horus-python/tests/requirements.txt
"$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheels"/*.whl

# In another folder, so that `import horus_image` finds the installed package.
here=$PWD/horus-python
work=$target/python-work
mkdir -p "$work"
cd "$work"
export HORUS_DEVICE=cpu
"$venv/bin/python" -m pytest -q -c "$here/pyproject.toml" --rootdir "$here" -p no:cacheprovider "$here/tests"
"$venv/bin/python" -m pytest -q -p no:cacheprovider --doctest-modules --pyargs horus_image
"$venv/bin/python" -m mypy --config-file "$here/pyproject.toml" -p horus_image
"$venv/bin/python" -m mypy --config-file "$here/pyproject.toml" "$here"/examples/*.py
"$venv/bin/python" -m mypy.stubtest --mypy-config-file "$here/pyproject.toml" horus_image.{_horus,color,exposure,feature,filters,measure,metrics,morphology,ndimage,raster,restoration,segmentation,transform,util}
for example in "$here"/examples/*.py; do "$venv/bin/python" "$example" >/dev/null; done
