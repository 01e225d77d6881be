"""SciPy's own tests, from the installed wheel, run against Horus."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
FLOORS: dict[str, list[int]] = json.loads((HERE / "scipy_rates.json").read_text())
"""Of each function, how many of SciPy's tests that call it pass, and how many there are. docs/python.md says why the others do not."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    path = tmp_path_factory.mktemp("scipy") / "report.json"
    modules = ["filters", "morphology", "interpolation", "measurements", "splines", "datatypes", "fourier"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "scipy_suite", "-p", "no:cacheprovider", "--tb=short"]
    command += ["--pyargs", *(f"scipy.ndimage.tests.test_{module}" for module in modules), "--suite-report", str(path)]
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    ran = subprocess.run(command, cwd=path.parent, env=environment, capture_output=True, text=True, check=False)
    assert path.exists(), ran.stdout[-4000:] + ran.stderr[-4000:]
    found: dict[str, dict[str, Any]] = json.loads(path.read_text())
    return found


def rates(report: dict[str, dict[str, Any]]) -> dict[str, list[int]]:
    """Of each function, tests that pass and tests that call it."""
    found: dict[str, list[int]] = {}
    for test in report.values():
        if test.get("outcome") not in ("passed", "failed"):
            continue
        for name in test["functions"]:
            count = found.setdefault(name, [0, 0])
            count[0] += test["outcome"] == "passed"
            count[1] += 1
    return dict(sorted(found.items()))


def test_as_many_of_scipys_tests_pass_as_did(report: dict[str, dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    found = rates(report)
    ours = [test for test in report.values() if test.get("outcome") in ("passed", "failed") and test["functions"]]
    passed = sum(test["outcome"] == "passed" for test in ours)
    with capsys.disabled():
        print(f"\nSciPy's tests of functions that Horus has: {passed} of {len(ours)} pass ({100 * passed / len(ours):.1f} %)")
        for name, (good, all_) in found.items():
            print(f"  {name:32} {good:4} of {all_:4}")
    worse = {name: (found.get(name), floor) for name, floor in FLOORS.items() if found.get(name, [0, 0])[0] < floor[0]}
    assert not worse, f"fewer than before (now, before): {worse}"
    assert set(found) == set(FLOORS), "functions that the table lacks, or has in vain"
