"""A plugin of pytest that runs SciPy's own tests against Horus: each function of `scipy.ndimage` that Horus has is replaced by Horus's.

    python -m pytest -p scipy_suite --pyargs scipy.ndimage.tests --suite-report report.json

It is told which functions each test called; tests that call none of ours say nothing of Horus.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import scipy.ndimage
from scipy._lib._array_api import xp_capabilities_table

from horus_image import ndimage

_called: set[str] = set()
_report: dict[str, dict[str, Any]] = {}


def _noted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def noted(*args: Any, **kwargs: Any) -> Any:
        _called.add(name)
        return function(*args, **kwargs)

    return noted


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--suite-report", default=None, help="where to write what came of each test")


def pytest_configure(config: pytest.Config) -> None:
    # Before the modules of tests are imported, which make lists of functions.
    for name in ndimage.__all__:
        ours = _noted(name, getattr(ndimage, name))
        # What SciPy's tests know of each function: arrays of which libraries it takes.
        xp_capabilities_table[ours] = xp_capabilities_table[getattr(scipy.ndimage, name)]
        setattr(scipy.ndimage, name, ours)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    _called.clear()
    try:
        return (yield)
    except NotImplementedError as error:
        # Told apart from wrong results.
        raise AssertionError(f"NotImplementedError: {error}") from None
    finally:
        _report.setdefault(item.nodeid, {})["functions"] = sorted(_called)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" and not report.failed:
        return
    entry = _report.setdefault(report.nodeid, {"functions": []})
    entry["outcome"] = report.outcome
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        entry["reason"] = crash.message.strip() if crash is not None else str(report.longrepr)[-400:]


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--suite-report")
    if path:
        Path(path).write_text(json.dumps(_report, indent=1))
