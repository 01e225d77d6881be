"""A plugin of pytest for array-api-tests: examples are of images, and tests of `skips.txt` are skipped.

Shapes have one to three axes, or none, and at least one pixel. An example that needs another is rejected, which Hypothesis counts as not
drawn. The suite takes the widest complex type at its start, of which images have none.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis.extra import array_api

AXES = 3
NEVER = ("images have up to three", "images have up to 3", "images have at least one")
"""What errors say of shapes that images do not have."""


def _held(strategy: Callable[..., Any]) -> Callable[..., Any]:
    """A strategy, of shapes that images have."""

    @functools.wraps(strategy)
    def limited(*args: Any, **kwargs: Any) -> Any:
        kwargs["min_side"] = max(1, kwargs.get("min_side") or 1)
        if kwargs.get("max_side") is not None:
            kwargs["max_side"] = max(kwargs["min_side"], kwargs["max_side"])
        kwargs["max_dims"] = min(AXES, kwargs.get("max_dims") or AXES)
        return strategy(*args, **kwargs)

    return limited


_made = array_api.make_strategies_namespace


def _namespace(*args: Any, **kwargs: Any) -> Any:
    found = _made(*args, **kwargs)
    for name in ("array_shapes", "broadcastable_shapes", "mutually_broadcastable_shapes"):
        setattr(found, name, _held(getattr(found, name)))
    return found


array_api.make_strategies_namespace = _namespace

_draw = array_api.ArrayStrategy.do_draw


def _drawn(strategy: Any, data: Any) -> Any:
    if len(strategy.shape) > AXES or not math.prod(strategy.shape):
        hypothesis.reject()
    return _draw(strategy, data)


array_api.ArrayStrategy.do_draw = _drawn


def _load_types() -> None:
    """Imports the suite's module of types, whose `max` has a default."""
    name = "array_api_tests.dtype_helpers"
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    module.max = functools.partial(max, default=(None,))  # type: ignore[attr-defined]
    spec.loader.exec_module(module)
    del module.max


_load_types()


SKIPS = Path(__file__).with_name("skips.txt")


def skips() -> list[tuple[str, str]]:
    """Patterns of tests, and why each is skipped: the comment before it."""
    found, reason = [], ""
    for line in SKIPS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            reason = line.removeprefix("#").strip()
        elif line:
            found.append((line, reason))
    return found


def pytest_configure(config: pytest.Config) -> None:
    # Many examples are of other shapes.
    profile = hypothesis.settings(deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
    hypothesis.settings.register_profile("array-api-tests", profile, max_examples=config.getoption("--hypothesis-max-examples"))
    hypothesis.settings.load_profile("array-api-tests")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rows = [(re.compile(re.escape(pattern).replace(r"\*", ".*")), reason) for pattern, reason in skips()]
    used = set()
    for item in items:
        handle = getattr(getattr(item, "obj", None), "hypothesis", None)
        if handle is not None:
            handle.inner_test = _rejecting(handle.inner_test)
        for pattern, reason in rows:
            if pattern.fullmatch(item.nodeid.partition("/")[2]):
                used.add(pattern)
                item.add_marker(pytest.mark.skip(reason=reason))
    unused = [pattern.pattern for pattern, _ in rows if pattern not in used]
    if unused and len(items) > 1000:
        raise pytest.UsageError(f"{SKIPS} names tests that there are not: {unused}")


def _rejecting(test: Callable[..., Any]) -> Callable[..., Any]:
    if hasattr(test, "rejecting"):
        return test

    @functools.wraps(test)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return test(*args, **kwargs)
        except (ValueError, NotImplementedError) as error:
            if any(text in str(error) for text in NEVER):
                hypothesis.reject()
            raise

    wrapped.rejecting = True  # type: ignore[attr-defined]
    return wrapped
