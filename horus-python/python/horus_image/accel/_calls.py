"""A replaced function: each call is Horus's where the table serves it, and the original's otherwise."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import time
from typing import Any, Final

import numpy as np

# Functions are in the table once their modules are loaded.
from .. import color, exposure, feature, filters, measure, metrics, morphology, ndimage, restoration, segmentation, transform, util  # noqa: F401
from .._public import FUNCTIONS, Function, Row
from . import _conditions, _opencv, _profile
from ._conditions import ALONE, Array, Call, Condition

ROWS: Final = [row for row in FUNCTIONS if row.accel.unless is not None]
"""The functions that are replaced."""

SMALLEST: Final = 4096
"""Pixels of the smallest image that is served. Of 64x64, the original's fastest functions take as long as a call with its checks, 15 us;
below, they are faster, and the first call of Horus, which plans, is slower in any case."""

_PLAIN: Final = (type(None), bool, int, float, str, type, np.dtype, np.bool_, np.integer, np.floating)
_REFUSALS: Final = (NotImplementedError, TypeError, ValueError, RuntimeError)
"""Exceptions for arguments that Horus refuses; the original refuses many of them, too."""

_TYPES: Final = frozenset("?bBhHiIlLqQfd")
"""Types of arrays that may be served, native ones."""


class Settings:
    """How calls are made, in all threads."""

    verify = False
    profile = False
    smallest: int | None = None
    """Of all functions, if the caller of `install` says so."""


class _Threads(threading.local):
    original = False
    """A reference is computed now: nothing is served."""


_threads = _Threads()
_said: set[str] = set()


def original_only() -> bool:
    """Returns true while this thread computes a reference."""
    return _threads.original


def _argument(value: Any, depth: int = 0) -> str | None:
    """Why an argument is not one that Horus takes as the library does."""
    kind = type(value)
    if isinstance(value, _PLAIN):
        return None
    if kind is np.ndarray:
        return None if value.dtype.char in _TYPES and value.dtype.isnative else f"an array of {value.dtype}"
    if kind in (tuple, list) and depth < 4:
        return next(filter(None, (_argument(one, depth + 1) for one in value)), None)
    return f"an argument of type {kind.__name__}"


class Served:
    """A function of the table, bound to its original."""

    def __init__(self, row: Row, original: Function) -> None:
        self.row, self.original, self.horus = row, original, row.function
        self._unless: list[Condition] = [getattr(_conditions, name) for name in (row.accel.unless or "").split()]
        # Functions of OpenCV are built in, and do not tell their parameters.
        opencv = row.library == "cv2"
        parameters = inspect.signature(row.function if opencv else original).parameters.values()
        places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self._places = [one.name for one in parameters if one.kind in places]
        self._defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
        self._output = _opencv.OUTPUTS.get(row.name, "dst") if opencv else "output"
        self._open = any(one.kind is one.VAR_KEYWORD for one in parameters)
        self._known = {one.name for one in parameters}
        ours = inspect.signature(row.function).parameters.values()
        self._taken = {one.name for one in ours if one.kind is not one.VAR_KEYWORD}
        if any(one.kind is one.VAR_KEYWORD for one in ours):
            # Of a Gaussian; `axes` among them are those of the derivatives.
            self._taken.add("truncate")

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | str:
        """The call, or why it is not served."""
        if len(args) > len(self._places) or not (self._open or kwargs.keys() <= self._known):
            return "arguments that the function does not have"
        given = dict(zip(self._places, args))  # noqa: B905
        if given.keys() & kwargs.keys():
            return "arguments that the function does not have"
        given.update(kwargs)
        image = given.pop(self._places[0], None)
        if self._places[0] == "images":
            if type(image) not in (list, tuple) or len(image) != 1:
                return "other than a list of one image"  # an array is a list of its rows
            image = image[0]
        if type(image) is not np.ndarray:
            return f"an image of type {type(image).__name__}"
        if image.dtype.char not in _TYPES or not image.dtype.isnative:
            return f"an image of {image.dtype}"
        channels = given.get("channel_axis") is not None
        # SciPy's functions take those of another axis where they do nothing along it.
        most = 4 if channels or self.row.module == "scipy.ndimage" else 3
        if not 1 + channels <= image.ndim <= most:
            return f"an image of {image.ndim} axes"
        if image.size < max(SMALLEST * self.row.accel.times if Settings.smallest is None else Settings.smallest, 1):
            return "a small image"
        absent = inspect.Parameter.empty
        given = {
            name: value.item() if type(value) is np.ndarray and value.ndim == 0 else value
            for name, value in given.items()
            if value is not self._defaults.get(name, absent)
        }
        if not given.keys() <= self._taken:
            return f"{', '.join(sorted(given.keys() - self._taken))}, which Horus's function does not have"
        for value in given.values():
            reason = _argument(value)
            if reason is not None:
                return reason
        output = given.get(self._output)
        if type(output) is np.ndarray and not (output.flags.writeable and not np.may_share_memory(image, output)):
            return "an output that is the image, or read only"
        call = Call(image, given, self._defaults)
        for condition in self._unless:
            reason = condition(call)
            if reason is not None:
                return reason
        return call

    def should_run(self, _context: Any, *args: Any, **kwargs: Any) -> bool:
        """Returns true if a call is served, for those that dispatch it."""
        try:
            return not original_only() and not isinstance(self.bound(args, kwargs), str)
        except Exception as error:
            self._failed(error)
            return False

    def made(self, call: Call) -> Any:
        """Horus's result, of the library's type."""
        result = self.horus(call.image, **call.given)
        scalar = self.row.accel.scalar
        return result if scalar is None else scalar(result)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _threads.original:
            return self.original(*args, **kwargs)
        began = time.perf_counter()
        call: Call | str
        try:
            call = _opencv.FASTER if not self.row.accel.on_cpu and _opencv.is_on_cpu() else self.bound(args, kwargs)
            if isinstance(call, Call) and not Settings.verify:
                result = self.made(call)
                _profile.count(self.row.public, None, time.perf_counter() - began)
                return result
        except Exception as error:
            call = self._failed(error)
        if isinstance(call, Call):
            return self._verified(call, args, kwargs)
        reason = call
        try:
            return self._alone(args, kwargs) if reason is ALONE else self.original(*args, **kwargs)
        finally:
            _profile.count(self.row.public, reason, time.perf_counter() - began)

    def _alone(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The original's result, for which nothing is served."""
        _threads.original = True
        try:
            return self.original(*args, **kwargs)
        finally:
            _threads.original = False

    def _failed(self, error: Exception) -> str:
        """The reason for an exception, which is told once unless arguments that nobody takes raise it."""
        reason = f"{type(error).__name__}: {error}"
        if not isinstance(error, _REFUSALS):
            tell(f"{self.row.public}: {reason}; the original is called")
        return reason

    def _verified(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The original's result, with which Horus's is compared."""
        began, reason = time.perf_counter(), None
        into = call.given.get(self._output)
        if type(into) is np.ndarray:
            call.given[self._output] = into.copy()
        expected = self._alone(args, kwargs)
        try:
            found = self.made(call)
            difference = differs(found, expected, call.image, self.row.accel.bounds)
            if difference is None and type(into) is np.ndarray:
                difference = differs(call.given[self._output], into, call.image, self.row.accel.bounds)
            if difference is not None:
                _profile.mismatch(self.row.public, f"{difference}, of {_described(call)}")
        except Exception as error:
            reason = self._failed(error)
        _profile.count(self.row.public, reason, time.perf_counter() - began)
        return expected


def tell(what: str) -> None:
    """Says something on standard error, once."""
    if what not in _said:
        _said.add(what)
        print(f"horus_image.accel: {what}", file=sys.stderr)


def _described(call: Call) -> str:
    with np.printoptions(threshold=8):
        arguments = "".join(f", {name}={value!r}" for name, value in call.given.items())
    return f"{call.image.dtype} {call.image.shape}{arguments}"


def differs(found: Any, expected: Any, image: Array, bounds: tuple[float, float]) -> str | None:
    """How a result differs from the original's by more than a bound."""
    if isinstance(expected, (tuple, list)):
        if type(found) is not type(expected) or len(found) != len(expected):
            return "another sequence"
        return next(filter(None, (differs(a, b, image, bounds) for a, b in zip(found, expected, strict=True))), None)
    if isinstance(expected, dict):
        if not isinstance(found, dict) or list(found) != list(expected):
            return "other columns"
        return next(filter(None, (differs(found[name], value, image, bounds) for name, value in expected.items())), None)
    if type(found) is not type(expected):
        return f"{type(found).__name__} in place of {type(expected).__name__}"
    if not isinstance(expected, (np.ndarray, np.generic, float)):
        return None if found == expected else "another value"
    ours, theirs = np.asarray(found), np.asarray(expected)
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype} {ours.shape} in place of {theirs.dtype} {theirs.shape}"
    if np.array_equal(ours, theirs):
        return None
    if theirs.dtype.kind != "f":
        return f"{np.count_nonzero(ours != theirs)} other numbers"
    single = theirs.dtype.char == "f" or image.dtype.char == "f"
    if not np.array_equal(np.isfinite(ours), np.isfinite(theirs)):
        return "other numbers that are not finite"
    largest = max(float(np.abs(of[np.isfinite(of)].astype(np.float64)).max(initial=0.0)) for of in (theirs, image))
    with np.errstate(invalid="ignore"):
        apart = np.abs(np.where(ours == theirs, 0.0, ours.astype(np.float64) - theirs))
    away = float(apart.max(where=~np.isnan(apart), initial=0.0))
    limit = bounds[0 if single else 1] * largest
    return None if away <= limit else f"by {away:.3g}, above {limit:.3g}"


def replacement(row: Row, original: Function) -> Function:
    """The function that takes the original's place."""
    served = Served(row, original)

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        return served(*args, **kwargs)

    # By these it is found again where it is unpickled.
    function.__module__, function.__qualname__ = row.module, row.name
    function.__horus__ = served  # type: ignore[attr-defined]
    return function


def verifying() -> bool:
    """Returns true if the environment asks for comparisons."""
    return os.environ.get("HORUS_ACCEL") == "verify"
