"""Splines of order 2 to 5: their coefficients, and samples of them."""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np

from . import _horus
from ._complex import by_parts
from ._dtype import NATIVE, cast
from ._values import MODES, Value, axis_of, correlated, edge, filtered

DType = np.dtype[Any]

_POLES: Final[dict[int, tuple[float, ...]]] = {
    0: (),
    1: (),
    2: (math.sqrt(8.0) - 3.0,),
    3: (math.sqrt(3.0) - 2.0,),
    4: (
        math.sqrt(664.0 - math.sqrt(438976.0)) + math.sqrt(304.0) - 19.0,
        math.sqrt(664.0 + math.sqrt(438976.0)) - math.sqrt(304.0) - 19.0,
    ),
    5: (
        math.sqrt(67.5 - math.sqrt(4436.25)) + math.sqrt(26.25) - 6.5,
        math.sqrt(67.5 + math.sqrt(4436.25)) - math.sqrt(26.25) - 6.5,
    ),
}
"""The poles of the prefilters of B-splines (Unser, 1999)."""

PAD: Final = 12
"""Pixels by which SciPy extends an image before the prefilter, where that does not extend it the same way."""


def spline_order(order: Any, least: int = 0) -> int:
    if not least <= order <= 5:
        raise RuntimeError("spline order not supported")
    return int(order)


@functools.lru_cache(maxsize=8)
def _prefilter(pole: float) -> tuple[float, ...]:
    """A prefilter's response to a single pixel, as far as it is not below 2^-60 of its peak."""
    reach = math.ceil(-60.0 * math.log(2.0) / math.log(-pole))
    gain = (1.0 - pole) / (1.0 + pole)
    return tuple(gain * pole ** abs(k) for k in range(-reach, reach + 1))


def spline_mode(mode: Any) -> str:
    """How the prefilter extends an image in this mode."""
    edge(mode)
    if mode == "grid-wrap":
        return "wrap"
    return "reflect" if mode in ("reflect", "grid-mirror", "nearest") else "mirror"


def coefficients(value: Value, order: int, axes: tuple[int, ...], mode: str) -> Value:
    """The coefficients of the spline through the pixels, in `float64`."""
    value = value.like(value.floats(), NATIVE["f64"])
    for axis in axes:
        if value.shape[axis] == 1:
            continue  # as in SciPy, a line of one pixel stays
        for pole in _POLES[order]:
            taps = _prefilter(pole)
            value = value.like(correlated(value, taps, len(taps) // 2, axis, mode, 0.0, single=False))
    return value


@by_parts
def spline_filter1d(
    input: Any, order: int = 3, axis: int = -1, output: Any = np.float64, mode: str = "mirror"
) -> Any:
    """The coefficients of splines along an axis (``scipy.ndimage.spline_filter1d``): a filter of finite length, below 2^-60 of its peak
    beyond."""
    degree = spline_order(order)

    def record(value: Value, dtype: DType) -> Value:
        at = axis_of(axis, value.ndim)
        found = coefficients(value, degree, (at,), spline_mode(mode))
        return found.like(cast(found.core, NATIVE["f64"], dtype), dtype)

    return filtered("spline_filter1d", input, output, record)


@by_parts
def spline_filter(input: Any, order: int = 3, output: Any = np.float64, mode: str = "mirror") -> Any:
    """The coefficients of the spline through the pixels (``scipy.ndimage.spline_filter``).

    Examples
    --------
    >>> from horus_image.ndimage import spline_filter
    >>> spline_filter([0.0, 0.0, 1.0, 0.0, 0.0]).round(3)
    array([ 0.25, -0.5 ,  1.75, -0.5 ,  0.25])
    """
    degree = spline_order(order, least=2)

    def record(value: Value, dtype: DType) -> Value:
        border = spline_mode(mode)
        for axis in range(value.ndim):
            found = coefficients(value, degree, (axis,), border)
            value = found.like(cast(found.core, NATIVE["f64"], dtype), dtype)
        return value.cast(dtype)

    return filtered("spline_filter", input, output, record)


def weights(order: int, fraction: float) -> tuple[int, list[float]]:
    """The first pixel, from the one at or before a position, and the weights of a B-spline there."""
    if order == 0:
        return (1 if fraction >= 0.5 else 0), [1.0]
    if order % 2:
        first, t = -(order // 2), fraction
    else:
        near = 1 if fraction >= 0.5 else 0
        first, t = near - order // 2, fraction - near

    def spline(x: float) -> float:
        # The centred B-spline of the order: a sum of truncated powers.
        half = (order + 1) / 2.0
        terms = ((-1) ** k * math.comb(order + 1, k) * max(x + half - k, 0.0) ** order for k in range(order + 2))
        return math.fsum(terms) / math.factorial(order)

    origin = 0.0 if order % 2 else float(first + order // 2)
    at = t if order % 2 else t + origin
    return first, [spline(at - (first + k)) for k in range(order + 1)]


def prefiltered(
    value: Value, order: int, axes: tuple[int, ...], mode: str, cval: float
) -> tuple[_horus.Image, int]:
    """The coefficients of a spline, and by how many pixels they begin before the image: as in SciPy, which extends it where the prefilter
    cannot."""
    pad = PAD if mode in ("nearest", "grid-constant") else 0
    if pad:
        rows = (pad, pad) if value.ndim > 1 else (0, 0)
        core = _horus.pad(value.core, rows, (pad, pad), MODES[mode], cval)
        depth, height, width, _ = core.shape
        value = Value(core, value.dtype, (depth, height, width)[3 - value.ndim :], value.session, value.channels)
    return coefficients(value, order, axes, spline_mode(mode)).core, pad


@functools.lru_cache(maxsize=8)
def _pieces(order: int) -> tuple[tuple[float, ...], ...]:
    """Of each pixel under a B-spline the weight, as a polynomial (the highest power first) of how far the position is from the pixel at or
    before it (odd orders) or nearest to it (even ones)."""
    half, first = (order + 1) / 2.0, -(order // 2)
    inside = 0.5 if order % 2 else 0.0
    found = []
    for k in range(order + 1):
        piece = np.zeros(order + 1)
        for j in range(order + 2):
            start = half - first - k - j
            if start + inside > 0.0:
                piece += (-1) ** j * math.comb(order + 1, j) * np.poly(np.full(order, -start))
        found.append(tuple((piece / math.factorial(order)).tolist()))
    return tuple(found)


def splined(
    value: Value,
    core: _horus.Image,
    entries: list[float],
    size: tuple[int, int],
    order: int,
    mode: str,
    cval: float,
) -> _horus.Image:
    """A spline sampled by an affine map: of each pixel under it the nearest sample of a map that is moved by whole pixels, weighed by
    polynomials of the part of a pixel that is left. Entries are those that Horus holds, multiples of 2^-32, so that both agree."""
    xx, xy, x0, yx, yy, y0 = (round(entry * 2.0**32) / 2.0**32 for entry in entries)
    depth = core.shape[0]
    place = [_horus.index(value.session._core, (1, *size), axis) for axis in (1, 2)]
    first, lower = -(order // 2), 0.5 if order % 2 else 0.0
    plain = core.shape[1] == 1 and size[0] == 1 and (yx, yy, y0) == (0.0, 1.0, 0.0)
    rows: list[Any] = [1.0] if plain else _weighed(_position(place, yx, yy, y0), order)
    columns = _weighed(_position(place, xx, xy, x0), order)
    assert depth >= 1
    total = None
    for j, row in enumerate(rows):
        line = None
        for k, column in enumerate(columns):
            down = y0 if plain else y0 + first + j - lower
            at = [xx, xy, x0 + first + k - lower, yx, yy, down]
            part = _horus.binary("mul", _horus.affine(core, at, size, "nearest", mode, cval), column)
            line = part if line is None else _horus.binary("add", line, part)
        assert line is not None
        line = line if isinstance(row, float) else _horus.binary("mul", line, row)
        total = line if total is None else _horus.binary("add", total, line)
    assert total is not None
    return total


def _position(place: list[_horus.Image], across: float, down: float, offset: float) -> _horus.Image:
    """Where pixels of the result come from, along an axis."""
    at = _horus.binary("add", _horus.binary("mul", place[1], across), _horus.binary("mul", place[0], down))
    return _horus.binary("add", at, offset)


def _weighed(at: _horus.Image, order: int) -> list[_horus.Image]:
    """The weights of the pixels under a B-spline at positions."""
    whole = _horus.unary("floor", at if order % 2 else _horus.binary("add", at, 0.5))
    part = _horus.binary("sub", at, whole)
    found = []
    for piece in _pieces(order):
        weight = _horus.binary("add", _horus.binary("mul", part, piece[0]), piece[1])
        for factor in piece[2:]:
            weight = _horus.binary("add", _horus.binary("mul", weight, part), factor)
        found.append(weight)
    return found
