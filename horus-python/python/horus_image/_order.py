"""Filters that order pixels: smallest, largest, a rank; and grey morphology, with the rules of ``scipy.ndimage``."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import _horus
from ._colours import FEW, by_pixels
from ._dtype import NATIVE, cast
from ._image import Array
from ._kept import kept, refuse
from ._public import ORDERS, Terms, public
from ._values import (
    Value,
    axes_of,
    axis_of,
    check_origin,
    check_pixels,
    core_axis,
    edge,
    filtered,
    for_each,
    held,
    line_window,
    number,
    offsets_of,
    one_mode,
    placed,
    plane_window,
    widened,
)
from .typing import ArrayLike, Border, Borders, Ints, Output, Pixels

DType = np.dtype[Any]
MOST_BESIDE: Final = 16
"""Rows and columns of rectangles that are one window."""

_MEDIANS: Final = ((1, 3, 3), (1, 5, 5), (3, 3, 3))
"""Levels, rows and columns of windows whose medians are operations of their own."""


def _both(size: Any, footprint: Any) -> None:
    if size is not None and footprint is not None:
        refuse()
        warnings.warn("ignoring size because footprint is set", UserWarning, stacklevel=5)


def extreme_along(value: Value, size: int, axis: int, mode: Any, cval: float, origin: Any, which: str) -> Value:
    """The smallest or largest of some pixels along an axis."""
    at = size // 2 + check_origin(size, origin)
    border, along, core = edge(mode), core_axis(axis, value.ndim), value.numbers()
    if border == "constant" and held(value, cval) != cval:
        value = value.like(value.floats(), NATIVE["f64"])  # the type of the pixels does not hold the constant
        core = value.core
    if along > 0:
        return value.like(_again(value, _horus.extreme(core, line_window(size, at, along), "pixel", which, border, cval)))
    found = None
    for step in range(-at, size - at):
        level = _horus.shift(core, (-step, 0, 0), border, cval) if step else core
        found = level if found is None else _horus.binary(which, found, level)
    return value.like(_again(value, _without_nan(found if found is not None else core, which)))


def _without_nan(core: _horus.Image, which: str) -> _horus.Image:
    """An extreme of pixels that were taken as they are: of nothing but NaN it is infinite, as under other windows."""
    if core.dtype not in ("f32", "f64"):
        return core
    return _horus.binary(which, core, np.inf if which == "min" else -np.inf)


def _again(value: Value, core: _horus.Image) -> _horus.Image:
    """Converts a result computed from a mask's numbers back to a mask."""
    return _horus.convert(core, "bool") if value.core.dtype == "bool" else core


def _is_rectangle(value: Value, plane: list[tuple[int, Any, Any, Any]], cval: float) -> bool:
    """Returns true if rows and columns are one window."""
    near = all(int(size) < MOST_BESIDE and not origin for _, size, origin, _ in plane)
    borders = {edge(mode) for _, _, _, mode in plane}
    return near and len(borders) == 1 and (borders != {"constant"} or held(value, cval) == cval)


@functools.lru_cache(maxsize=256)
def _by_columns(height: int, width: int) -> _horus.Filter:
    """The window of a rectangle, column by column: of equal floats, SciPy keeps the first in this order."""
    places = [(y - height // 2, x - width // 2) for x in range(width) for y in range(height)]
    return _horus.Filter([0.0] * len(places), 0, 0, places)


def _rectangle(value: Value, size: dict[int, int], mode: str, cval: float, which: str) -> Value:
    """The smallest or largest pixel of a rectangle of rows (1) and columns (2)."""
    window = _by_columns(size[1], size[2]) if value.dtype.kind == "f" else _horus.Filter([0.0] * (size[1] * size[2]), size[1], size[2])
    return value.like(_again(value, _horus.extreme(value.numbers(), window, "pixel", which, mode, cval)))


def extreme_under(value: Value, offsets: list[tuple[int, int, int]], mode: str, cval: float, which: str) -> Value:
    """The smallest or largest of the pixels at some offsets."""
    return value.like(_again(value, _under(value.numbers(), offsets, None, mode, cval, which)))


def _under(
    core: _horus.Image,
    offsets: list[tuple[int, int, int]],
    weights: Sequence[float] | None,
    mode: str,
    cval: float,
    which: str,
) -> _horus.Image:
    """The extreme over offsets; weights, if there are any, are added (largest) or subtracted (smallest) before."""
    combine = "pixel" if weights is None else "add" if which == "max" else "sub"
    levels: dict[int, list[tuple[int, int, float]]] = {}
    for i, (z, y, x) in enumerate(offsets):
        levels.setdefault(z, []).append((y, x, 0.0 if weights is None else weights[i]))
    found, bare = None, False
    for z, places in levels.items():
        there = _horus.shift(core, (-z, 0, 0), mode, cval) if z else core
        alone = combine == "pixel" and places == [(0, 0, 0.0)]
        if not alone:
            there = _horus.extreme(there, plane_window(tuple(places)), combine, which, mode, cval)
        found = there if found is None else _horus.binary(which, found, there)
        bare = bare or alone
    if found is None:
        raise ValueError("All-zero footprint is not supported.")
    return _without_nan(found, which) if bare else found


def extremes(
    value: Value,
    dtype: DType,
    size: Any,
    footprint: Any,
    structure: Any,
    mode: Any,
    cval: float,
    origin: Any,
    which: str,
    axes: Any = None,
) -> Value:
    """The smallest or largest of the pixels under a footprint, of which a structure is subtracted or to which it is added."""
    at = axes_of(axes, value.ndim)
    if structure is None:
        shape = size
        if footprint is None:
            if size is None:
                raise RuntimeError("no footprint provided")
        else:
            footprint = np.asarray(footprint, dtype=bool)
            if not footprint.any():
                raise ValueError("All-zero footprint is not supported.")
            shape = footprint.shape if footprint.all() else None
        if shape is not None:
            sizes = for_each(shape, len(at)) if footprint is None else extents_on(shape, at)
            each = list(zip(at, sizes, *(for_each(given, len(at)) for given in (origin, mode)), strict=True))
            plane = [one for one in each if one[1] > 1 and core_axis(one[0], value.ndim) > 0]
            if len(plane) == 2 and value.dtype == dtype and _is_rectangle(value, plane, cval):
                value = _rectangle(value, {core_axis(axis, value.ndim): int(size) for axis, size, _, _ in plane}, edge(plane[0][3]), cval, which)
                each = [one for one in each if one not in plane]
            for axis, one_size, one_origin, one in each:
                if one_size > 1:
                    value = extreme_along(value, int(one_size), axis, one, cval, one_origin, which).stored(dtype)
            if all(int(one[1]) <= 1 for one in each):
                value = value.like(_without_nan(value.core, which))
            return value.cast(dtype)
    else:
        structure = np.asarray(structure, dtype=np.float64)
        footprint = np.ones(structure.shape, bool) if footprint is None else np.asarray(footprint, dtype=bool)
        if footprint.shape != structure.shape:
            raise RuntimeError("footprint and structure must have the same shape")
    if structure is not None and structure.ndim != len(at):
        raise RuntimeError("structure array has incorrect shape")
    footprint, origins = _on_axes(footprint, origin, at, value.ndim)
    structure = structure if structure is None else widened(structure, at, value.ndim, "structure")
    border, cval = one_mode(mode, " for non-separable footprints"), held(value, cval)
    offsets = offsets_of(footprint, origins)
    if structure is None:
        return extreme_under(value, offsets, border, cval, which).stored(dtype)
    core = _under(value.floats(), offsets, structure[footprint].tolist(), border, cval, which)
    return value.like(cast(core, NATIVE["f64"], dtype), dtype)


def extents_on(shape: Any, axes: tuple[int, ...]) -> list[Any]:
    """The extents of an array whose axes are some of an image, in rising order, for each of these as they are given."""
    extents, rising = for_each(shape, len(axes)), sorted(axes)
    return [extents[rising.index(axis)] for axis in axes]


def _on_axes(footprint: Array, origin: Any, axes: tuple[int, ...], ndim: int) -> tuple[Array, list[int]]:
    """A footprint of some axes as one of all, and its origins, checked."""
    footprint, origins = widened(footprint, axes, ndim, "footprint"), placed(origin, axes, ndim, 0)
    if 0 in footprint.shape:
        raise RuntimeError("footprint array has incorrect shape.")
    return footprint, [check_origin(size, at) for size, at in zip(footprint.shape, origins, strict=True)]


def _extreme_filter(
    name: str,
    input: Any,
    size: Any,
    footprint: Any,
    structure: Any,
    output: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    which: str,
    axes: Any = None,
) -> Pixels:
    _both(size, footprint)
    if size is None and footprint is None and structure is None:
        raise RuntimeError("no footprint provided")
    return filtered(
        name,
        input,
        output,
        lambda value, dtype: extremes(
            value, dtype, size, footprint, structure, mode, number(cval), origin, which, axes
        ),
    )


@public("ndimage", rust="erode", opencv="cv.erode", accel=Terms(ORDERS))
@kept
@by_pixels("size", "footprint")
def minimum_filter(
    input: ArrayLike,
    size: Ints | None = None,
    footprint: npt.ArrayLike | None = None,
    output: Output = None,
    mode: Borders = "reflect",
    cval: float = 0.0,
    origin: Ints = 0,
    axes: Ints | None = None,
) -> Pixels:
    """The smallest pixel under a footprint (``scipy.ndimage.minimum_filter``).

    Examples
    --------
    >>> from horus_image.ndimage import minimum_filter
    >>> minimum_filter([2, 8, 0, 4, 1, 9, 9, 0], size=3)
    array([2, 0, 0, 0, 1, 1, 0, 0])
    """
    return _extreme_filter("minimum_filter", input, size, footprint, None, output, mode, cval, origin, "min", axes)


@public("ndimage", rust="dilate", opencv="cv.dilate", accel=Terms(ORDERS))
@kept
@by_pixels("size", "footprint")
def maximum_filter(
    input: ArrayLike,
    size: Ints | None = None,
    footprint: npt.ArrayLike | None = None,
    output: Output = None,
    mode: Borders = "reflect",
    cval: float = 0.0,
    origin: Ints = 0,
    axes: Ints | None = None,
) -> Pixels:
    """The largest pixel under a footprint (``scipy.ndimage.maximum_filter``)."""
    return _extreme_filter("maximum_filter", input, size, footprint, None, output, mode, cval, origin, "max", axes)


def _extreme_1d(
    name: str, input: Any, size: int, axis: int, output: Any, mode: Any, cval: Any, origin: Any, which: str
) -> Pixels:
    def record(value: Value, dtype: DType) -> Value:
        at, extent = axis_of(axis, value.ndim), operator.index(size)
        if extent < 1:
            raise RuntimeError("incorrect filter size")
        return extreme_along(value, extent, at, mode, number(cval), origin, which).stored(dtype)

    return filtered(name, input, output, record)


@public("ndimage", rust="erode", opencv="cv.erode", accel=Terms(ORDERS))
@kept
@by_pixels(axis=True)
def minimum_filter1d(
    input: ArrayLike,
    size: int,
    axis: int = -1,
    output: Output = None,
    mode: Border = "reflect",
    cval: float = 0.0,
    origin: int = 0,
) -> Pixels:
    """The smallest of some pixels along an axis (``scipy.ndimage.minimum_filter1d``)."""
    return _extreme_1d("minimum_filter1d", input, size, axis, output, mode, cval, origin, "min")


@public("ndimage", rust="dilate", opencv="cv.dilate", accel=Terms(ORDERS))
@kept
@by_pixels(axis=True)
def maximum_filter1d(
    input: ArrayLike,
    size: int,
    axis: int = -1,
    output: Output = None,
    mode: Border = "reflect",
    cval: float = 0.0,
    origin: int = 0,
) -> Pixels:
    """The largest of some pixels along an axis (``scipy.ndimage.maximum_filter1d``)."""
    return _extreme_1d("maximum_filter1d", input, size, axis, output, mode, cval, origin, "max")


def _ranked(
    name: str,
    input: Any,
    rank: Any,
    size: Any,
    footprint: Any,
    output: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any,
) -> Pixels:
    """A rank filter; `rank` tells the place in the order from the number of pixels under the footprint."""
    _both(size, footprint)

    def record(value: Value, dtype: DType) -> Value:
        if size is None and footprint is None:
            raise RuntimeError("no footprint or filter size provided")
        at = axes_of(axes, value.ndim)
        if footprint is None:
            extents = [operator.index(one) for one in placed(size, at, value.ndim, 1)]
            check_pixels(extents)
            under = np.ones([extents[axis] for axis in sorted(at)], dtype=bool)
        else:
            under = np.asarray(footprint, dtype=bool)
        border = mode if isinstance(mode, str) else placed(mode, at, value.ndim, "constant")
        under, origins = _on_axes(under, origin, at, value.ndim)
        count = int(under.sum())
        place = rank(count)
        if not 0 <= place < count:
            raise RuntimeError("rank not within filter footprint size")
        constant = number(cval)
        if place in (0, count - 1):
            which = "max" if place else "min"
            if value.dtype.kind != "f":
                return extremes(value, dtype, None, under, None, border, constant, origins, which)
            # Extremes ignore NaN, which sorts last here: the smallest is NaN of nothing but NaN, the largest of any.
            found = extremes(value, value.dtype, None, under, None, border, constant, origins, which).core
            nan = value.like(_horus.convert(_horus.compare("ne", value.core, value.core), "u8"), np.dtype(np.uint8))
            nan = extremes(nan, nan.dtype, None, under, None, border, float(np.isnan(constant)), origins, which)
            value = value.like(_horus.select(_horus.convert(nan.core, "bool"), np.nan, found))
            return value.cast(dtype) if under.size == 1 else value.stored(dtype)
        beyond, constant = one_mode(border, " by non-separable rank filters"), held(value, constant)
        core, window = value.numbers(), (1, 1, *under.shape)[-3:]
        if under.all() and not any(origins) and window in _MEDIANS and place == count // 2:
            found = _horus.median(core, window, beyond, constant)
        else:
            found = _horus.rank(core, offsets_of(under, origins), place, beyond, constant)
        return value.like(_again(value, found)).stored(dtype)

    return filtered(name, input, output, record)


@public("ndimage", rust="rank", accel=Terms(f"ranked {ORDERS}"))
@kept
@by_pixels("size", "footprint", most=FEW)
def rank_filter(
    input: ArrayLike,
    rank: int,
    size: Ints | None = None,
    footprint: npt.ArrayLike | None = None,
    output: Output = None,
    mode: Borders = "reflect",
    cval: float = 0.0,
    origin: Ints = 0,
    axes: Ints | None = None,
) -> Pixels:
    """The pixel in a place of the order under a footprint (``scipy.ndimage.rank_filter``).

    Examples
    --------
    >>> from horus_image.ndimage import rank_filter
    >>> rank_filter([2, 8, 0, 4, 1, 9, 9, 0], rank=1, size=3)
    array([2, 2, 4, 1, 4, 9, 9, 0])
    """
    at = operator.index(rank)
    return _ranked(
        "rank_filter", input, lambda n: at + n if at < 0 else at, size, footprint, output, mode, cval, origin, axes
    )


@public("ndimage", rust="median", opencv="cv.medianBlur", accel=Terms(f"ranked {ORDERS}"))
@kept
@by_pixels("size", "footprint")
def median_filter(
    input: ArrayLike,
    size: Ints | None = None,
    footprint: npt.ArrayLike | None = None,
    output: Output = None,
    mode: Borders = "reflect",
    cval: float = 0.0,
    origin: Ints = 0,
    axes: Ints | None = None,
) -> Pixels:
    """The median under a footprint (``scipy.ndimage.median_filter``)."""
    return _ranked("median_filter", input, lambda n: n // 2, size, footprint, output, mode, cval, origin, axes)


@public("ndimage", rust="rank", accel=Terms(f"ranked {ORDERS}"))
@kept
@by_pixels("size", "footprint", most=FEW)
def percentile_filter(
    input: ArrayLike,
    percentile: float,
    size: Ints | None = None,
    footprint: npt.ArrayLike | None = None,
    output: Output = None,
    mode: Borders = "reflect",
    cval: float = 0.0,
    origin: Ints = 0,
    axes: Ints | None = None,
) -> Pixels:
    """A percentile under a footprint (``scipy.ndimage.percentile_filter``)."""
    share = percentile + 100.0 if percentile < 0.0 else percentile
    if not 0.0 <= share <= 100.0:
        raise RuntimeError("invalid percentile")

    def rank(count: int) -> int:
        return count - 1 if share == 100.0 else int(float(count) * share / 100.0)

    return _ranked("percentile_filter", input, rank, size, footprint, output, mode, cval, origin, axes)
