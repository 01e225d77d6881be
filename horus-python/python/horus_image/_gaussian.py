"""Derivatives: Gaussians, Laplacians, gradients, with the rules of ``scipy.ndimage``."""

from __future__ import annotations

import functools
import math
import numbers
import operator
from typing import Any, Final

import numpy as np

from . import _horus
from ._colours import by_pixels
from ._complex import by_parts
from ._dtype import NATIVE, cast
from ._kept import kept
from ._linear import along, passes
from ._public import LINEAR, SUMS, Terms, public
from ._values import (
    Value,
    axes_of,
    axis_of,
    check_reach,
    combined,
    correlated,
    edge,
    exact_in,
    filtered,
    for_each,
    number,
    placed,
)
from .typing import ArrayLike, Border, Borders, Float, Ints, Output, Pixels, Scales

DType = np.dtype[Any]
_HIGHEST: Final = 100
"""Derivatives of a Gaussian; the coefficients of higher ones are beyond what floats hold."""


@functools.lru_cache(maxsize=256)
def gaussian_taps(sigma: float, order: int, radius: int) -> tuple[float, ...]:
    """SciPy's taps of a derivative of a Gaussian, in the order of a correlation."""
    x = np.arange(-radius, radius + 1, dtype=np.float64)
    variance = sigma * sigma
    bell = np.exp(-0.5 / variance * x**2)
    bell /= bell.sum()
    # The derivative is a polynomial times the bell: each differentiation takes q to q' - x q / sigma^2.
    q = np.zeros(order + 1)
    q[0] = 1.0
    exponents = np.arange(order + 1)
    step = np.diag(exponents[1:], 1) + np.diag(np.ones(order) / -variance, -1)
    for _ in range(order):
        q = step.dot(q)
    taps: list[float] = ((x[:, None] ** exponents).dot(q) * bell)[::-1].tolist()
    return tuple(taps)


def in_pixels(value: Value, sigma: Any, axis: int) -> Any:
    """A sigma in pixels of an axis: that of a length with a unit, such as ``"2.5um"``, from the size of the image's pixels."""
    if not isinstance(sigma, str):
        return sigma
    length = _horus.length(sigma)
    if length is None:
        raise ValueError(f"sigma is {sigma!r}; a length is a number with a unit: nm, um, mm, cm, m or in")
    size = value.core.pixel_size()
    side = None if size is None else size[3 - value.ndim :][axis]
    if side is None:
        raise ValueError(
            f"sigma is {sigma!r}, but the image has no pixel size along axis {axis}: files give one, or with_pixel_size of a lazy image"
        )
    return length / side


def _gaussian_along(
    value: Value, sigma: Any, axis: int, order: Any, dtype: DType, mode: Any, cval: float, truncate: float, radius: Any
) -> Value:
    scale = float(in_pixels(value, sigma, axis))
    if not (scale >= 0.0 and math.isfinite(scale)):
        raise ValueError(f"sigma is {scale}; it must be finite and not negative")
    order = operator.index(order)
    if order < 0:
        raise ValueError("order must be non-negative")
    reach = int(truncate * scale + 0.5) if radius is None else radius
    if not isinstance(reach, numbers.Integral) or reach < 0:
        raise ValueError("Radius must be a nonnegative integer.")
    check_reach(reach)
    if order > _HIGHEST:
        raise ValueError(f"order is {order}; the highest derivative is {_HIGHEST}")
    if scale == 0.0:
        return value.cast(dtype)
    return along(value, gaussian_taps(scale, order, int(reach)), axis, dtype, mode, cval)


@public("ndimage", rust="separable", opencv="cv.sepFilter2D", accel=Terms("summed positive finite", SUMS))
@kept
@by_parts
@by_pixels(axis=True)
def gaussian_filter1d(
    input: ArrayLike,
    sigma: Float | str,
    axis: int = -1,
    order: int = 0,
    output: Output = None,
    mode: Border = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
) -> Pixels:
    """Smooth along an axis, or take a derivative of what is smooth (``scipy.ndimage.gaussian_filter1d``).

    Examples
    --------
    >>> from horus_image.ndimage import gaussian_filter1d
    >>> gaussian_filter1d([1.0, 2.0, 3.0, 4.0, 5.0], 1).round(4)
    array([1.427 , 2.0678, 3.    , 3.9322, 4.573 ])
    """

    def record(value: Value, dtype: DType) -> Value:
        at = axis_of(axis, value.ndim)
        return _gaussian_along(value, sigma, at, order, dtype, mode, number(cval), truncate, radius)

    return filtered("gaussian_filter1d", input, output, record)


def smoothed(
    value: Value,
    sigma: Any,
    order: Any,
    dtype: DType,
    mode: Any,
    cval: float,
    truncate: float = 4.0,
    radius: Any = None,
    axes: Any = None,
) -> Value:
    """Gaussian filters along some axes, from the first to the last; what lies between is stored in the type of the result."""
    at = axes_of(axes, value.ndim)
    count = len(at)
    orders, sigmas, modes, radii = (for_each(given, count) for given in (order, sigma, mode, radius))
    sigmas = [in_pixels(value, one, axis) for one, axis in zip(sigmas, at, strict=True)]
    for i in passes(at, dtype, modes, cval):
        if sigmas[i] > 1e-15 or not sigmas[i] >= 0.0:
            value = _gaussian_along(value, sigmas[i], at[i], orders[i], dtype, modes[i], cval, truncate, radii[i])
    return value.cast(dtype)


@public("ndimage", rust="gauss", opencv="cv.GaussianBlur", accel=LINEAR)
@kept
@by_parts
@by_pixels("sigma")
def gaussian_filter(
    input: ArrayLike,
    sigma: Scales,
    order: Ints = 0,
    output: Output = None,
    mode: Borders = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    radius: Ints | None = None,
    axes: Ints | None = None,
) -> Pixels:
    """Smooth, or take derivatives of what is smooth (``scipy.ndimage.gaussian_filter``).

    Of a lazy image with a `pixel_size`, sigmas may be lengths with a unit, here and in the other Gaussian filters of this module.

    Examples
    --------
    >>> import numpy as np
    >>> import horus_image as hi
    >>> from horus_image.ndimage import gaussian_filter
    >>> gaussian_filter(np.arange(50, step=2).reshape((5, 5)), sigma=1)[0]
    array([ 4,  6,  8,  9, 11])
    >>> image = hi.asarray(np.eye(5)).with_pixel_size((0.5, 0.25))
    >>> np.array_equal(gaussian_filter(image, "500nm"), gaussian_filter(np.eye(5), (1, 2)))
    True
    """
    return filtered(
        "gaussian_filter",
        input,
        output,
        lambda value, dtype: smoothed(value, sigma, order, dtype, mode, number(cval), truncate, radius, axes),
    )


_CROSS: Final = _horus.Filter([1.0, 1.0, -4.0, 1.0, 1.0], 0, 0, [(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)])
"""The sum of second differences of a plane."""


def _added(a: Value, b: Value) -> Value:
    """The sum, as NumPy adds in place: integers wrap around."""
    if a.dtype.kind == "f":
        return a.like(_horus.binary("add", a.core, b.core))
    return combined("add", a, b, a.dtype)


def _squared(value: Value) -> Value:
    if value.dtype.kind == "f":
        return value.like(_horus.unary("square", value.core))
    core = value.floats()
    if value.dtype.kind in "iu" and value.dtype.itemsize == 4:
        # A product of 32 bits, modulo 2^32, of halves whose products floats hold.
        core = _horus.unary("abs", core)
        high = _horus.unary("floor", _horus.binary("mul", core, 2.0**-16))
        low = _horus.binary("sub", core, _horus.binary("mul", high, 2.0**16))
        cross = _horus.binary("mul", _horus.binary("mul", high, low), 2.0)
        over = _horus.binary("mul", _horus.unary("floor", _horus.binary("mul", cross, 2.0**-16)), 2.0**16)
        upper = _horus.binary("mul", _horus.binary("sub", cross, over), 2.0**16)
        core = _horus.binary("add", upper, _horus.unary("square", low))
    else:
        core = _horus.unary("square", core)
    return value.like(cast(core, NATIVE["f64"], value.dtype))


@public("ndimage", rust="laplace", opencv="cv.Laplacian", accel=LINEAR)
@kept
@by_parts
@by_pixels()
def laplace(input: ArrayLike, output: Output = None, mode: Borders = "reflect", cval: float = 0.0, *, axes: Ints | None = None) -> Pixels:
    """The sum of second differences (``scipy.ndimage.laplace``).

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.ndimage import laplace
    >>> laplace(np.array([0.0, 1.0, 4.0, 9.0, 16.0]))
    array([ 1.,  2.,  2.,  2., -7.])
    """

    def record(value: Value, dtype: DType) -> Value:
        at, constant, taps = axes_of(axes, value.ndim), number(cval), (1.0, -2.0, 1.0)
        modes = for_each(mode, len(at))
        alike = value.ndim == len(at) == 2 and edge(modes[0]) == edge(modes[1])
        if alike and value.core.dtype == "f32" and dtype == NATIVE["f32"]:
            return value.like(_horus.correlate(value.core, [(_CROSS, 0)], edge(modes[0]), constant, None))
        codes = {exact_in(value, 4.0 * value.ndim, edge(one), constant) for one in modes}
        if dtype.kind in "iu" and at and None not in codes:
            # Whole numbers, and cut once, at the end: no sum is rounded.
            code = "f64" if "f64" in codes else "f32"
            if alike:
                found = _horus.correlate(value.floats(code), [(_CROSS, 0)], edge(modes[0]), constant, None)
                return value.like(cast(found, NATIVE["f64"], dtype), dtype)
            cores = [correlated(value, taps, 1, i, edge(one), constant, code) for i, one in zip(at, modes, strict=True)]
            return value.like(cast(functools.reduce(functools.partial(_horus.binary, "add"), cores), NATIVE["f64"], dtype), dtype)
        parts = [along(value, taps, i, dtype, one, constant) for i, one in zip(at, modes, strict=True)]
        return functools.reduce(_added, parts) if parts else value.cast(dtype)

    return filtered("laplace", input, output, record)


@public("ndimage", rust="gauss_derivative", accel=LINEAR)
@kept
@by_parts
@by_pixels()
def gaussian_laplace(
    input: ArrayLike, sigma: Scales, output: Output = None, mode: Borders = "reflect", cval: float = 0.0, *, axes: Ints | None = None, **kwargs: Any
) -> Pixels:
    """The sum of second derivatives of what is smooth (``scipy.ndimage.gaussian_laplace``); along some axes, of what is smooth along these."""

    def record(value: Value, dtype: DType) -> Value:
        at = axes_of(axes, value.ndim)
        parts = _derivatives(value, placed(sigma, at, value.ndim, 0.0), 2, dtype, mode, number(cval), at, kwargs)
        return functools.reduce(_added, parts) if parts else value.cast(dtype)

    return filtered("gaussian_laplace", input, output, record)


# Squares of integers wrap around, and roots of what is negative warn.
@public("ndimage", rust="gauss_derivative", accel=Terms("floats several_axes finite", SUMS))
@kept
def gaussian_gradient_magnitude(
    input: ArrayLike, sigma: Scales, output: Output = None, mode: Borders = "reflect", cval: float = 0.0, *, axes: Ints | None = None, **kwargs: Any
) -> Pixels:
    """The length of the gradient of what is smooth (``scipy.ndimage.gaussian_gradient_magnitude``); along some axes, of what is smooth along
    all, as in SciPy 1.17."""

    def record(value: Value, dtype: DType) -> Value:
        at = axes_of(axes, value.ndim)
        parts = [_squared(part) for part in _derivatives(value, sigma, 1, dtype, mode, number(cval), at, kwargs)]
        if not parts:
            return value.cast(dtype)
        total = functools.reduce(_added, parts)
        if dtype.kind == "f":
            return total.like(_horus.unary("sqrt", total.core))
        return total.like(cast(_horus.unary("sqrt", total.floats()), NATIVE["f64"], dtype))

    return filtered("gaussian_gradient_magnitude", input, output, record)


def _derivatives(
    value: Value, sigma: Any, order: int, dtype: DType, mode: Any, cval: float, axes: tuple[int, ...], more: dict[str, Any]
) -> list[Value]:
    """The derivatives along some axes of what is smooth along all, each with the border mode of its axis."""
    modes = for_each(mode, len(axes))
    unit = [[order if j == i else 0 for j in range(value.ndim)] for i in axes]
    return [smoothed(value, sigma, orders, dtype, one, cval, **more) for orders, one in zip(unit, modes, strict=True)]
