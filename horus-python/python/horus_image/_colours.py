"""Arrays of colours: functions that do nothing along a short last axis of an array are those of an image, or a volume, whose pixels have
several samples.

``gaussian_filter(rgb, (2, 2, 0))``, sizes ``(k, k, 1)``, a footprint of one level or ``axes=(0, 1)`` compute each channel by itself, which takes
a fraction of the time of a filter of a volume whose rows have three pixels. What is computed is the same.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from ._foreign import DeviceArray, read
from ._image import Image

_Function = TypeVar("_Function", bound=Callable[..., Any])

MOST: Final = 64
"""Samples of a pixel: a longer axis is one of columns."""

FEW: Final = 8
"""Samples of a pixel for ranks and rotations: of more, a volume, or its levels, take less time."""

_EACH: Final = {"mode": None, "origin": 0, "origin1": 0, "origin2": 0, "order": None, "radius": None}
"""Parameters that may have a value for each axis, and which one is needed along an axis where nothing is done."""


class Colours:
    """An array whose last axis are the samples of its pixels."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray[Any, Any] | DeviceArray) -> None:
        self.array = array


class _Along(Exception):
    """Something is done along the last axis, or the arguments are for the function to refuse."""


def of_pixels(input: Any, most: int = MOST) -> bool:
    """Returns true for an array whose last axis may be that of channels: of three axes, or four on the host, which are no volume otherwise."""
    if not isinstance(input, (np.ndarray, DeviceArray)) or 0 in input.shape:
        return False
    if input.ndim == 4:
        return isinstance(input, np.ndarray) and input.shape[3] <= MOST
    return input.ndim == 3 and input.shape[2] <= most


def by_pixels(*deciding: str, axis: bool = False, most: int = MOST) -> Callable[[_Function], _Function]:
    """A function that does nothing along an axis where its parameters of these names say so, or which `axes` leaves out; or, with `axis`, along
    all but one. An element (`structure`, `structure1`) that is left out is one of all axes."""

    def decorated(function: _Function) -> _Function:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def called(input: Any, *args: Any, **kwargs: Any) -> Any:
            if not isinstance(input, Image):
                input = read(input)
                if of_pixels(input, most):
                    try:
                        given = signature.bind(input, *args, **kwargs).arguments
                        more = given.pop("kwargs", {})
                        reduced = _of_pixels({**given, **more}, deciding, axis, input.ndim)
                    except (TypeError, ValueError, _Along):
                        return function(input, *args, **kwargs)
                    reduced.pop("input")
                    return function(Colours(input), **reduced)
            return function(input, *args, **kwargs)

        return called  # type: ignore[return-value]

    return decorated


def _of_pixels(given: dict[str, Any], deciding: Sequence[str], axis: bool, ndim: int) -> dict[str, Any]:
    """The arguments for levels, rows and columns alone."""
    if axis:
        line = operator.index(given.get("axis", -1))
        if not -ndim <= line < ndim or line % ndim == ndim - 1:
            raise _Along
        return {**given, "axis": line % ndim}
    axes = given.get("axes")
    if axes is not None:
        at = tuple(operator.index(one) for one in (axes if np.iterable(axes) else (axes,)))
        if not all(-ndim <= one < ndim for one in at) or len({one % ndim for one in at}) < len(at):
            raise _Along
        axes = tuple(one % ndim for one in at)
        if ndim - 1 not in axes:
            return {**given, "axes": axes}
        if list(axes) != sorted(axes):
            raise _Along
    count = ndim if axes is None else len(axes)
    told = [name for name in deciding if given.get(name) is not None]
    if not told or ("structure1" in deciding and "structure1" not in told):
        raise _Along
    if not given.get("prefilter", True) and given.get("order", 3) > 1:
        raise _Along  # splines through other numbers than the samples
    reduced = dict(given)
    for name in deciding:
        value = given.get(name)
        if value is not None:
            reduced[name] = _without_last(value, name, count)
    for name, idle in _EACH.items():
        value = given.get(name)
        if value is not None and not isinstance(value, str) and np.iterable(value):
            parts = list(value)
            if len(parts) != count or idle not in (None, parts[-1]):
                raise _Along
            reduced[name] = tuple(parts[:-1])
        elif idle is not None and value not in (None, idle):
            raise _Along
    if axes is not None:
        reduced["axes"] = axes[:-1]
    return reduced


def _without_last(value: Any, name: str, count: int) -> Any:
    """A parameter without what it says of the last axis, where it says that nothing is done."""
    if name in ("weights", "footprint", "structure", "structure1", "structure2"):
        array = np.asarray(value)
        if array.ndim != count or array.shape[-1] != 1 or array.dtype.hasobject:
            raise _Along
        return array[..., 0]
    if isinstance(value, str) or not np.iterable(value):
        raise _Along
    parts = list(value)
    if len(parts) != count or isinstance(parts[-1], str):
        raise _Along
    last = float(parts[-1])
    nothing = 0.0 <= last <= 1e-15 if name == "sigma" else last == (0.0 if name == "shift" else 1.0)
    if not nothing:
        raise _Along
    return tuple(parts[:-1])
