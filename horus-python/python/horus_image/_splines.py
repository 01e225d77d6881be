"""Splines of order 2 to 5: their coefficients, and samples of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from . import _horus
from ._complex import by_parts
from ._dtype import NATIVE, cast
from ._kept import kept
from ._public import SUMS, Terms, public
from ._values import MODES, Value, axis_of, core_axis, edge, filtered
from .typing import ArrayLike, Border, Output, Pixels

DType = np.dtype[Any]

PAD: Final = 12
"""Pixels by which SciPy extends an image before the prefilter, where that does not extend it the same way."""


def spline_order(order: Any, least: int = 0) -> int:
    degree = operator.index(order)
    if not least <= degree <= 5:
        raise RuntimeError("spline order not supported")
    return degree


def spline_mode(mode: Any) -> str:
    """Border mode of the prefilter for this mode."""
    edge(mode)
    if mode == "grid-wrap":
        return "wrap"
    return "reflect" if mode in ("reflect", "grid-mirror", "nearest") else "mirror"


def coefficients(value: Value, order: int, axes: tuple[int, ...], mode: str) -> Value:
    """The coefficients of the spline through the pixels, in `float64`."""
    along = [core_axis(axis, value.ndim) for axis in axes]
    return value.like(_horus.spline_coefficients(value.floats(), order, along, mode), NATIVE["f64"])


@public("ndimage", rust="spline_coefficients", accel=Terms("floats interpolated finite", SUMS))
@kept
@by_parts
def spline_filter1d(
    input: ArrayLike, order: int = 3, axis: int = -1, output: Output = np.float64, mode: Border = "mirror"
) -> Pixels:
    """The coefficients of splines along an axis (``scipy.ndimage.spline_filter1d``): a filter of finite length, below 2^-60 of its peak
    beyond."""
    degree = spline_order(order)

    def record(value: Value, dtype: DType) -> Value:
        if degree < 2:
            return value.cast(dtype)
        at = axis_of(axis, value.ndim)
        found = coefficients(value, degree, (at,), spline_mode(mode))
        return found.like(cast(found.core, NATIVE["f64"], dtype), dtype)

    return filtered("spline_filter1d", input, output, record)


@public("ndimage", rust="spline_coefficients", accel=Terms("floats interpolated finite", SUMS))
@kept
@by_parts
def spline_filter(input: ArrayLike, order: int = 3, output: Output = np.float64, mode: Border = "mirror") -> Pixels:
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
        value = padded(value, pad, mode, cval, levels=0 in axes)
    return coefficients(value, order, axes, spline_mode(mode)).core, pad


def padded(value: Value, pad: int | Sequence[int], mode: str, cval: float, levels: bool = True) -> Value:
    """So many pixels more on each side of each axis, that of the levels of a volume too, or not."""
    z, y, x = [0] * (3 - value.ndim) + ([pad] * value.ndim if isinstance(pad, int) else list(pad))
    core = _horus.pad(value.core, (y, y), (x, x), MODES[mode], cval)
    depth, height, width, _ = core.shape
    if z and levels:
        depth += 2 * z
        at = [_horus.index(value.session._core, (depth, height, width), axis) for axis in range(3)]
        core = _horus.remap(core, [_horus.binary("sub", at[0], float(z)), *at[1:]], 0, MODES[mode], cval)
    return Value(core, value.dtype, (depth, height, width)[3 - value.ndim :], value.session, value.channels)
