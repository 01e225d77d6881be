"""Linear filters with the rules of ``scipy.ndimage``."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import _horus
from ._colours import by_pixels
from ._complex import by_parts
from ._dtype import NATIVE, cast
from ._kept import kept
from ._public import LINEAR, public
from ._tolerance import tolerance
from ._truncated import box_sum, line_sum, summed
from ._values import (
    Value,
    axes_of,
    axis_of,
    check_origin,
    core_axis,
    correlated,
    edge,
    exact_in,
    filtered,
    for_each,
    limits,
    number,
    one_mode,
    placed,
    plane_window,
    precision,
    widened,
)
from .typing import ArrayLike, Border, Borders, Ints, Output, Pixels

DType = np.dtype[Any]
_INVALID_ORIGIN: Final = (
    "Invalid origin; origin must satisfy -(len(weights) // 2) <= origin <= (len(weights)-1) // 2"
)


def _check_weights(origin: int, size: int) -> None:
    if not -(size // 2) <= origin <= (size - 1) // 2:
        raise ValueError(_INVALID_ORIGIN)


def along(
    value: Value,
    taps: tuple[float, ...],
    axis: int,
    dtype: DType,
    mode: Any,
    cval: float,
    origin: int = 0,
) -> Value:
    """The correlation along an axis, in the type that the result of the pass is stored in."""
    anchor, border = len(taps) // 2 + origin, edge(mode)
    code = precision(value, taps, dtype, border, cval)
    if code is None:
        return summed(value, line_sum(taps, anchor, core_axis(axis, value.ndim)), dtype, border, cval)
    core = correlated(value, taps, anchor, axis, border, cval, code)
    return value.like(cast(core, NATIVE["f64"], dtype), dtype)


Line = tuple[int, tuple[float, ...], Any]
"""Axis, taps and border mode of a correlation along an axis."""


def in_turn(value: Value, lines: Sequence[Line], dtype: DType, cval: float) -> Value:
    """Correlations along some axes, one after the other, each stored in the type of the result. Whole numbers are so but once, at the end:
    it makes no difference, modulo a range, if no sum was rounded."""
    gain = math.prod(sum(map(abs, taps)) for _, taps, _ in lines)
    codes = {exact_in(value, gain, edge(mode), cval) for _, _, mode in lines}
    whole = dtype.kind in "iu" and all(tap.is_integer() for _, taps, _ in lines for tap in taps)
    if len(lines) < 2 or not whole or None in codes:
        for axis, taps, mode in lines:
            value = along(value, taps, axis, dtype, mode, cval)
        return value
    code = "f64" if "f64" in codes else "f32"
    free = cval == 0.0 or all(edge(mode) != "constant" for _, _, mode in lines)
    for axis, taps, mode in sorted(lines, key=lambda line: -line[0]) if free else lines:
        value = value.like(correlated(value, taps, len(taps) // 2, axis, edge(mode), cval, code), NATIVE["f64"])
    return value.like(cast(value.core, NATIVE["f64"], dtype), dtype)


def passes(axes: Sequence[int], dtype: DType, modes: Sequence[Any], cval: float) -> list[int]:
    """Places of axes in the order of their passes: rows before columns, which is one kernel, where the order makes no difference but in
    rounding, of `float32`. Integers are cut between passes, and constants beyond edges are not filtered: there the order is SciPy's."""
    free = dtype == NATIVE["f32"] and (cval == 0.0 or not any(str(mode).endswith("constant") for mode in modes))
    return sorted(range(len(axes)), key=lambda i: -axes[i]) if free else list(range(len(axes)))


def _real(weights: npt.ArrayLike, name: str) -> np.ndarray[Any, Any]:
    array = np.asarray(weights)
    if array.dtype.kind == "c":
        raise TypeError(f"{name}: Complex type not supported")
    return np.asarray(array, dtype=np.float64)


@public("ndimage", rust="correlate", opencv="cv.sepFilter2D", accel=LINEAR)
@kept
@by_parts
@by_pixels(axis=True)
def correlate1d(
    input: ArrayLike,
    weights: npt.ArrayLike,
    axis: int = -1,
    output: Output = None,
    mode: Border = "reflect",
    cval: float = 0.0,
    origin: int = 0,
) -> Pixels:
    """Correlate along an axis (``scipy.ndimage.correlate1d``).

    Examples
    --------
    >>> from horus_image.ndimage import correlate1d
    >>> correlate1d([2, 8, 0, 4, 1, 9, 9, 0], weights=[1, 3])
    array([ 8, 26,  8, 12,  7, 28, 36,  9])
    """
    return _correlated("correlate1d", input, weights, axis, output, mode, cval, origin)


def _correlated(
    name: str, input: Any, weights: npt.ArrayLike, axis: int, output: Any, mode: Any, cval: Any, origin: int
) -> Pixels:
    taps = _real(weights, name)
    if taps.ndim != 1 or taps.shape[0] < 1:
        raise RuntimeError("no filter weights given")

    def record(value: Value, dtype: DType) -> Value:
        at = axis_of(axis, value.ndim)
        _check_weights(origin, len(taps))
        return along(value, tuple(taps.tolist()), at, dtype, mode, number(cval), origin)

    return filtered(name, input, output, record)


@public("ndimage", rust="convolve", opencv="cv.sepFilter2D", accel=LINEAR)
@kept
@by_parts
@by_pixels(axis=True)
def convolve1d(
    input: ArrayLike,
    weights: npt.ArrayLike,
    axis: int = -1,
    output: Output = None,
    mode: Border = "reflect",
    cval: float = 0.0,
    origin: int = 0,
) -> Pixels:
    """Convolve along an axis (``scipy.ndimage.convolve1d``).

    Examples
    --------
    >>> from horus_image.ndimage import convolve1d
    >>> convolve1d([2, 8, 0, 4, 1, 9, 9, 0], weights=[1, 3])
    array([14, 24,  4, 13, 12, 36, 27,  0])
    """
    taps = np.asarray(weights)
    if taps.ndim != 1:
        raise RuntimeError("no filter weights given")
    taps = taps[::-1]
    turned = -origin - (1 - len(taps) % 2)
    return _correlated("convolve1d", input, taps, axis, output, mode, cval, turned)


@public("ndimage", rust="correlate", opencv="cv.filter2D", accel=LINEAR)
@kept
@by_parts
@by_pixels("weights")
def correlate(
    input: ArrayLike,
    weights: npt.ArrayLike,
    output: Output = None,
    mode: Border = "reflect",
    cval: float = 0.0,
    origin: Ints = 0,
    *,
    axes: Ints | None = None,
) -> Pixels:
    """Correlate with weights of as many axes as the input, or `axes`, has (``scipy.ndimage.correlate``).

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.ndimage import correlate
    >>> correlate(np.eye(3), [[0, 1, 0], [1, 1, 1], [0, 1, 0]])
    array([[3., 2., 0.],
           [2., 1., 2.],
           [0., 2., 3.]])
    """
    return _weighted("correlate", input, weights, output, mode, cval, origin, axes, turned=False)


@public("ndimage", rust="convolve", opencv="cv.filter2D", accel=LINEAR)
@kept
@by_parts
@by_pixels("weights")
def convolve(
    input: ArrayLike,
    weights: npt.ArrayLike,
    output: Output = None,
    mode: Border = "reflect",
    cval: float = 0.0,
    origin: Ints = 0,
    *,
    axes: Ints | None = None,
) -> Pixels:
    """Convolve with weights of as many axes as the input, or `axes`, has (``scipy.ndimage.convolve``).

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.ndimage import convolve
    >>> convolve(np.array([[0, 0, 0], [0, 1, 0], [0, 0, 0]]), [[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    array([[1, 2, 3],
           [4, 5, 6],
           [7, 8, 9]])
    """
    return _weighted("convolve", input, weights, output, mode, cval, origin, axes, turned=True)


def _weighted(
    name: str, input: Any, weights: npt.ArrayLike, output: Any, mode: Any, cval: Any, origin: Any, axes: Any, turned: bool
) -> Pixels:
    given = _real(weights, name)

    def record(value: Value, dtype: DType) -> Value:
        at = axes_of(axes, value.ndim)
        taps, origins = widened(given, at, value.ndim, "weights"), placed(origin, at, value.ndim, 0)
        if 0 in taps.shape:
            raise RuntimeError("filter weights array has incorrect shape.")
        around = taps[(slice(None, None, -1),) * taps.ndim] if turned else taps
        if turned:
            origins = [-at - (1 - size % 2) for at, size in zip(origins, taps.shape, strict=True)]
        for at, size in zip(origins, taps.shape, strict=True):
            if not -(size // 2) <= at <= (size - 1) // 2:
                raise ValueError(
                    "Invalid origin; origin must satisfy -(weights.shape[k] // 2) <= origin[k] <= (weights.shape[k]-1) // 2"
                )
        border, constant = one_mode(mode, ""), number(cval)
        if value.ndim == 0:
            return value.like(cast(_horus.binary("mul", value.floats(), float(taps)), NATIVE["f64"], dtype), dtype)
        code = precision(value, taps.ravel().tolist(), dtype, border, constant)
        if code is None and tolerance() is None:
            return summed(value, box_sum(around, origins), dtype, border, constant)
        core = dense(value.floats(code or "f64"), around, origins, border, constant)
        return value.like(cast(core, NATIVE["f64"], dtype), dtype)

    return filtered(name, input, output, record)


def dense(core: _horus.Image, taps: np.ndarray[Any, Any], origins: list[int], mode: str, cval: float) -> _horus.Image:
    """The correlation of floats with weights of all axes; of a volume, the sum of those with the parts for each level."""
    parts = taps.reshape((1,) * (3 - taps.ndim) + taps.shape)
    z, y, x = [0] * (3 - len(origins)) + list(origins)
    depth, height, width = parts.shape
    taken = []
    for level, part in enumerate(parts):
        if depth > 1 and not part.any():
            continue
        if y == 0 and x == 0:
            window = _horus.Filter(part.ravel().tolist(), height, width)
        else:
            rows, columns = height // 2 + y, width // 2 + x
            places = [(i // width - rows, i % width - columns, tap) for i, tap in enumerate(part.ravel().tolist())]
            window = plane_window(tuple(places))
        taken.append((window, level - (depth // 2 + z)))
    return _horus.correlate(core, taken, mode, cval, tolerance()) if taken else _horus.binary("mul", core, 0.0)


def _edges(
    name: str, input: Any, axis: int, output: Any, mode: Any, cval: Any, across: tuple[float, ...]
) -> Pixels:
    def record(value: Value, dtype: DType) -> Value:
        at = axis_of(axis, value.ndim)
        modes, constant = for_each(mode, value.ndim), number(cval)
        axes = [at, *(i for i in range(value.ndim) if i != at)]
        order = [axes[i] for i in passes(axes, dtype, modes, constant)]
        lines = [(i, (-1.0, 0.0, 1.0) if i == at else across, modes[i]) for i in order]
        return in_turn(value, lines, dtype, constant)

    return filtered(name, input, output, record)


@public("ndimage", rust="sobel", opencv="cv.Sobel", accel=LINEAR)
@kept
@by_parts
def sobel(input: ArrayLike, axis: int = -1, output: Output = None, mode: Borders = "reflect", cval: float = 0.0) -> Pixels:
    """Sobel's differences along an axis (``scipy.ndimage.sobel``)."""
    return _edges("sobel", input, axis, output, mode, cval, (1.0, 2.0, 1.0))


@public("ndimage", rust="separable", opencv="cv.sepFilter2D", accel=LINEAR)
@kept
@by_parts
def prewitt(input: ArrayLike, axis: int = -1, output: Output = None, mode: Borders = "reflect", cval: float = 0.0) -> Pixels:
    """Prewitt's differences along an axis (``scipy.ndimage.prewitt``)."""
    return _edges("prewitt", input, axis, output, mode, cval, (1.0, 1.0, 1.0))


SMALL: Final = 41
"""Pixels along an axis up to which a mean is a linear filter, which is computed together with what it reads and what reads it."""


def _box(
    value: Value,
    size: tuple[int, int],
    anchor: tuple[int, int],
    dtype: DType,
    mode: str,
    cval: float,
) -> Value:
    """The mean over rows and columns: of `float32` in this type, else in `float64`."""
    core = value.floats("f32" if value.core.dtype == "f32" and dtype == NATIVE["f32"] else "f64")
    found = _horus.box_mean(core, size, anchor, mode, cval)
    return value.like(cast(found, NATIVE["f64"], dtype), dtype)


SINGLE: Final = {1: 1 << 16, 2: 511}
"""Integers of so many bytes of which so many have a mean that `float32` rounds to no whole number above it: the mean is a part of their
number below that, and half of the distance between two numbers of `float32` is less."""


def _is_whole(value: Value, size: int, dtype: DType, mode: str, cval: float) -> bool:
    """Returns true if means of integers in `float32` have the integer parts of SciPy's, in `float64`."""
    kinds = value.dtype.kind in "iu" and dtype.kind in "iu"
    if not kinds or size > SINGLE.get(value.dtype.itemsize, 0):
        return False
    if mode != "constant":
        return True
    low, high = limits(value.dtype)
    return low <= cval <= high and cval.is_integer()


def _mean_along(value: Value, size: int, axis: int, dtype: DType, mode: Any, cval: float, origin: Any) -> Value:
    """The mean of `size` pixels along an axis: of integers, exact before it is cut to the type of the result."""
    at = check_origin(size, origin)
    beside = core_axis(axis, value.ndim)
    extent, anchor = ((size, 1), (size // 2 + at, 0)) if beside == 1 else ((1, size), (0, size // 2 + at))
    if size > SMALL and beside > 0:
        if not _is_whole(value, size, dtype, edge(mode), cval):
            return _box(value, extent, anchor, dtype, edge(mode), cval)
        found = _horus.box_mean(value.core, extent, anchor, edge(mode), cval)
        return value.like(cast(found, NATIVE["f32"], dtype), dtype)
    if value.core.dtype == "f32" and dtype == NATIVE["f32"]:
        return along(value, (1.0 / size,) * size, axis, dtype, mode, cval, at)
    # The quotient of a sum below 2^24 is rounded to a whole number by neither type, unless it is one.
    whole = exact_in(value, float(size), edge(mode), cval) if dtype.kind in "iu" else None
    core = correlated(value, (1.0,) * size, size // 2 + at, axis, edge(mode), cval, whole or "f64")
    return value.like(cast(_quotient(value, core, size, whole, mode, cval), NATIVE["f64"], dtype), dtype)


def _quotient(value: Value, total: _horus.Image, size: int, whole: str | None, mode: Any, cval: float) -> _horus.Image:
    """A number whose whole part is that of `total` divided by `size`."""
    positive = value.dtype.kind in "ub" and (edge(mode) != "constant" or cval >= 0.0)
    if positive and whole == "f32" and exact_in(value, 4.0 * size, edge(mode), cval) == "f32":
        # The sum and a half, divided, is half a step of quotients away from whole numbers at least: more than the roundings, by two bits.
        return _horus.binary("mul", _horus.binary("add", total, 0.5), 1.0 / size)
    return _horus.binary("div", total, float(size))


@public("ndimage", rust="separable", opencv="cv.blur", accel=LINEAR)
@kept
@by_parts
@by_pixels(axis=True)
def uniform_filter1d(
    input: ArrayLike,
    size: int,
    axis: int = -1,
    output: Output = None,
    mode: Border = "reflect",
    cval: float = 0.0,
    origin: int = 0,
) -> Pixels:
    """The mean of some pixels along an axis (``scipy.ndimage.uniform_filter1d``).

    Examples
    --------
    >>> from horus_image.ndimage import uniform_filter1d
    >>> uniform_filter1d([2, 8, 0, 4, 1, 9, 9, 0], size=3)
    array([4, 3, 4, 1, 4, 6, 6, 3])
    """
    extent = operator.index(size)
    if extent < 1:
        raise RuntimeError("incorrect filter size")

    def record(value: Value, dtype: DType) -> Value:
        return _mean_along(value, extent, axis_of(axis, value.ndim), dtype, mode, number(cval), origin)

    return filtered("uniform_filter1d", input, output, record)


@public("ndimage", rust="box_mean", opencv="cv.blur", accel=LINEAR)
@kept
@by_parts
@by_pixels("size")
def uniform_filter(
    input: ArrayLike,
    size: Ints = 3,
    output: Output = None,
    mode: Borders = "reflect",
    cval: float = 0.0,
    origin: Ints = 0,
    axes: Ints | None = None,
) -> Pixels:
    """The mean of a rectangle of pixels (``scipy.ndimage.uniform_filter``)."""

    def record(value: Value, dtype: DType) -> Value:
        at = axes_of(axes, value.ndim)
        sizes, origins, modes = (for_each(given, len(at)) for given in (size, origin, mode))
        constant, both = number(cval), []
        if dtype.kind == "f" and max(sizes, default=0) > SMALL:
            # Rows and columns at once: nothing is cut between passes.
            beside = sorted((i for i in range(len(at)) if core_axis(at[i], value.ndim) > 0), key=lambda i: at[i])
            alike = len({edge(modes[i]) for i in beside}) == 1
            if len(beside) == 2 and alike and min(sizes[i] for i in beside) > 1:
                anchors = [int(sizes[i]) // 2 + check_origin(int(sizes[i]), origins[i]) for i in beside]
                extent = (int(sizes[beside[0]]), int(sizes[beside[1]]))
                value = _box(value, extent, (anchors[0], anchors[1]), dtype, edge(modes[beside[0]]), constant)
                both = beside
        for i in passes(at, dtype, modes, constant):
            if sizes[i] > 1 and i not in both:
                value = _mean_along(value, int(sizes[i]), at[i], dtype, modes[i], constant, origins[i])
        return value.cast(dtype)

    return filtered("uniform_filter", input, output, record)
