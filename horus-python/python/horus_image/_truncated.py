"""Linear filters whose results are integers, to SciPy's last bit.

SciPy adds products in C's ``double``, each product and each sum rounded, and cuts the sum: where it is a whole number but for roundings, the
order of the terms decides what becomes of it. So the terms are SciPy's, in its order, and nothing is fused.
"""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

import numpy as np

from . import _horus
from ._dtype import NATIVE, cast, stored
from ._values import Value, limits

_EPSILON: Final = float(np.finfo(np.float64).eps)

Place = tuple[int, int, int]
"""Levels, rows and columns from the pixel."""


class Sum(NamedTuple):
    """Taps with their places, in the order of the sum. With a sign, a tap after the first multiplies the sum (1) or the difference (-1) of
    the pixels at two places."""

    sign: int
    taps: tuple[float, ...]
    places: tuple[Place, ...]


@functools.lru_cache(maxsize=512)
def line_sum(taps: tuple[float, ...], anchor: int, axis: int) -> Sum:
    """The sum of ``NI_Correlate1D`` along the levels (0), the rows (1) or the columns (2), whose tap `anchor` falls on the pixel."""
    half, size = len(taps) // 2, len(taps)
    pairs = [(taps[i], taps[-1 - i]) for i in range(half)]
    sign = 0
    if size % 2 and all(abs(a - b) <= _EPSILON for a, b in pairs):
        sign = 1
    elif size % 2 and all(abs(a + b) <= _EPSILON for a, b in pairs):
        sign = -1
    if sign:
        # The middle, then pairs from the outermost on, each with the tap before the middle.
        order = [half, *(i for k in range(half) for i in (k, size - 1 - k))]
        weights = [taps[i] if i <= half else taps[size - 1 - i] for i in order]
    else:
        order = [size - 1, *range(size - 1)]
        weights = [taps[i] for i in order]
    offset = [0, 0, 0]
    places = []
    for i in order:
        offset[axis] = i - anchor
        places.append((offset[0], offset[1], offset[2]))
    return Sum(sign, tuple(weights), tuple(places))


def box_sum(taps: np.ndarray[Any, Any], origins: list[int]) -> Sum:
    """The sum of ``NI_Correlate``: no taps of 0, or as good as 0."""
    lead = 3 - taps.ndim
    anchors = [size // 2 + origin for size, origin in zip(taps.shape, origins, strict=True)]
    weights, places = [], []
    for place in np.argwhere(np.abs(taps) > _EPSILON).tolist():
        by = [0] * lead + [at - anchor for at, anchor in zip(place, anchors, strict=True)]
        weights.append(float(taps[tuple(place)]))
        places.append((by[0], by[1], by[2]))
    return Sum(0, tuple(weights) or (0.0,), tuple(places) or ((0, 0, 0),))


@functools.lru_cache(maxsize=512)
def _window(total: Sum) -> _horus.Filter:
    return _horus.Filter(list(total.taps), 0, 0, [(y, x) for _, y, x in total.places])


def _has(code: str, border: str, cval: float) -> bool:
    """Returns true if a stored type has the constant beyond edges."""
    kind = NATIVE[code]
    if border != "constant" or kind.kind == "f":
        return True
    low, high = limits(kind)
    return float(cval).is_integer() and low <= cval <= high


def _own_type(source: str, dtype: np.dtype[Any], border: str, cval: float) -> str:
    """A stored type of integers that has all pixels, results and the constant beyond edges, or `f64`."""
    result = "u8" if dtype.kind == "b" else stored(dtype)
    held = NATIVE[result].kind in "iu" and np.can_cast(NATIVE[source], NATIVE[result], "safe") and _has(result, border, cval)
    return result if held else "f64"


def _as(core: _horus.Image, code: str) -> _horus.Image:
    return core if core.dtype == code else _horus.convert(core, code)


def summed(value: Value, total: Sum, dtype: np.dtype[Any], border: str, cval: float) -> Value:
    """The sum around each pixel, cut to the type of the result, which is one of integers or truth values."""
    core = value.numbers()
    code = _own_type(core.dtype, dtype, border, cval)
    levels = [z for z, _, _ in total.places]
    found = _horus.truncated(_as(core, code), _window(total), levels, total.sign, border, cval)
    if found.dtype == "f64":
        return value.like(cast(found, NATIVE["f64"], dtype), dtype)
    return value.like(_as(found, "bool") if dtype.kind == "b" else found, dtype)
