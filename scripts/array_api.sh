#!/usr/bin/env bash
# Runs array-api-tests, the suite of the Python array API standard, on horus_image.array_api. It is fetched from GitHub; skipped tests are in
# horus-python/tests/array_api/skips.txt.
#
#   scripts/array_api.sh                  with the environment of scripts/python_test.sh, whose wheel it tests
#   scripts/array_api.sh --max-examples 200 [WORDS OF PYTEST...]
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
python=${PYTHON:-$target/python-test/bin/python}
suite=$target/array-api-tests
commit=55fcc60179efa2680ddd6cd926ddf17b83530e2b

[ -d "$suite/.git" ] || git clone --quiet "${SUITE:-https://github.com/data-apis/array-api-tests}" "$suite"
git -C "$suite" checkout --quiet "$commit"
[ -d "$suite/array-api/spec" ] || git -C "$suite" submodule --quiet update --init
"$python" -m pip install --quiet --disable-pip-version-check --target "$suite-packages" --upgrade --no-deps ndindex pytest-json-report pytest-metadata

plugin=$PWD/horus-python/tests/array_api
cd "$suite"
export HORUS_DEVICE=${HORUS_DEVICE:-cpu}
export ARRAY_API_TESTS_MODULE=horus_image.array_api
export ARRAY_API_TESTS_SKIP_DTYPES=int64,uint64,complex64,complex128
export ARRAY_API_TESTS_MAX_ARRAY_SIZE=256
PYTHONPATH=$plugin:$suite:$suite-packages${PYTHONPATH:+:$PYTHONPATH} exec "$python" -m pytest -q -p plugin -p no:cacheprovider -W ignore --max-examples 20 array_api_tests "$@"
