"""Filters of Fourier transforms with the rules of ``scipy.ndimage``: products with the transform of a kernel.

Transforms are complex and images are not: the host multiplies, and arrays come back.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final

import numpy as np

from ._foreign import of_any_library, on_host
from ._public import public
from ._values import axis_of, for_each
from .typing import Array, ArrayLike, Floats, Output

_COMPLEX: Final = ("F", "D")
_NUMBERS: Final = ("F", "D", "f", "d")
"""Types of results, the default last."""

_LEAST: Final = -50.0
"""The logarithm of the smallest factor; SciPy's smaller ones are 0, which an infinite number shows."""


def _transform(name: str, input: Any, output: Any, types: tuple[str, ...]) -> tuple[Array, Array]:
    """A transform, and the array for its product with that of a kernel."""
    pixels = on_host(input)
    if pixels.dtype.char not in "?bBhHiIlLqQfdFD":
        raise RuntimeError(f"{name}: {pixels.dtype} type not supported")
    if isinstance(output, np.ndarray):
        result = output
    else:
        result = np.empty(pixels.shape, output or (pixels.dtype if pixels.dtype.char in types else types[-1]))
    if result.dtype.char not in types or (pixels.dtype.kind == "c" and result.dtype.kind != "c"):
        raise RuntimeError(f"{name}: {pixels.dtype} into {result.dtype}; output type not supported")
    if result.shape != pixels.shape:
        raise RuntimeError("output shape not correct")
    return pixels, result


def _axes(pixels: Array, n: int, axis: int, values: Any) -> list[tuple[Array, int, float]]:
    """Of each axis its frequencies, shaped to multiply the array, its length before the transform, and a parameter of the kernel."""
    real, ndim = axis_of(axis, pixels.ndim), pixels.ndim
    if n == 0:
        raise ValueError("n is the length of an axis before its transform, not 0")
    found = []
    for at, (extent, value) in enumerate(zip(pixels.shape, for_each(values, ndim), strict=True)):
        halved = at == real and n > 0
        waves = np.arange(extent) if halved else np.fft.ifftshift(np.arange(extent) - extent // 2)
        found.append((waves.reshape((-1,) + (1,) * (ndim - at - 1)).astype(np.float64), n if halved else max(extent, 1), float(value)))
    return found


def _multiplied(pixels: Array, result: Array, factors: list[Array]) -> Array:
    factor = functools.reduce(np.multiply, factors)
    if pixels.dtype.kind == "c" and factor.dtype.kind == "f":
        for part, into in ((pixels.real, result.real), (pixels.imag, result.imag)):
            np.multiply(part, factor, out=into, casting="unsafe")
    else:
        result[...] = pixels * factor
    return result


@public("ndimage")
@of_any_library
def fourier_gaussian(input: ArrayLike, sigma: Floats, n: int = -1, axis: int = -1, output: Output = None) -> Array:
    """The product of a Fourier transform with that of a Gaussian (``scipy.ndimage.fourier_gaussian``).

    Parameters
    ----------
    input : array
        The transform: of complex numbers, or of real ones along an axis.
    sigma : float or sequence
        The standard deviation of the Gaussian in pixels, or one for each axis.
    n : int, optional
        The length of `axis` before a transform of real numbers; below 0 the transform is one of complex numbers.
    axis : int, optional
        The axis of the transform of real numbers.
    output : array or type, optional
        Where the product goes: numbers of ``float32``, ``float64``, ``complex64`` or ``complex128``.

    Raises
    ------
    RuntimeError
        If `output` has another type or shape, or real numbers for complex ones.
    ValueError
        If `n` is 0, or `axis` is none of the array's.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image import ndimage
    >>> spectrum = np.fft.fft([0.0, 0.0, 1.0, 0.0, 0.0])
    >>> np.fft.ifft(ndimage.fourier_gaussian(spectrum, 1.0)).real.round(2)
    array([0.06, 0.24, 0.4 , 0.24, 0.06])
    """
    pixels, result = _transform("fourier_gaussian", input, output, _NUMBERS)
    axes = _axes(pixels, n, axis, sigma)
    powers = [-2.0 * (math.pi * spread / length * waves) ** 2 for waves, length, spread in axes]
    return _multiplied(pixels, result, [np.where(power >= _LEAST, np.exp(power), 0.0) for power in powers])


@public("ndimage")
@of_any_library
def fourier_uniform(input: ArrayLike, size: Floats, n: int = -1, axis: int = -1, output: Output = None) -> Array:
    """The product of a Fourier transform with that of a box of `size` pixels (``scipy.ndimage.fourier_uniform``), as `fourier_gaussian`.

    Examples
    --------
    >>> from horus_image.ndimage import fourier_uniform
    >>> fourier_uniform([1.0, 1.0, 1.0, 1.0], 4).round(2) + 0.0
    array([1., 0., 0., 0.])
    """
    pixels, result = _transform("fourier_uniform", input, output, _NUMBERS)
    axes = _axes(pixels, n, axis, size)
    return _multiplied(pixels, result, [np.where(waves == 0, 1.0, np.sinc(side / length * waves) * (side > 0)) for waves, length, side in axes])


@public("ndimage")
@of_any_library
def fourier_ellipsoid(input: ArrayLike, size: Floats, n: int = -1, axis: int = -1, output: Output = None) -> Array:
    """The product of a Fourier transform with that of a line, an ellipse or an ellipsoid (``scipy.ndimage.fourier_ellipsoid``), as
    `fourier_gaussian`.

    Raises
    ------
    NotImplementedError
        If the array has more than three axes.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.ndimage import fourier_ellipsoid
    >>> fourier_ellipsoid(np.ones((3, 3)), 2).round(3)
    array([[1.   , 0.543, 0.543],
           [0.543, 0.238, 0.238],
           [0.543, 0.238, 0.238]])
    """
    pixels, result = _transform("fourier_ellipsoid", input, output, _NUMBERS)
    if pixels.ndim > 3:
        raise NotImplementedError("fourier_ellipsoid: an array of more than three axes")
    if not pixels.size:
        return result
    axes = _axes(pixels, n, axis, size)
    places = [np.abs(waves).astype(np.intp).ravel() for waves, _, _ in axes]
    # Frequencies of both signs are alike.
    waves = np.ix_(*(np.arange(there.max() + 1.0) for there in places))
    far = np.sqrt(sum((math.pi * side / length * along) ** 2 for along, (_, length, side) in zip(waves, axes, strict=True)))
    return _multiplied(pixels, result, [_ball(far, pixels.ndim)[np.ix_(*places)]])


def _ball(far: Array, ndim: int) -> Array:
    """The transform of a ball of one pixel's radius at distances from frequency 0, divided by its volume: 1 there."""
    if ndim == 1:
        return np.sinc(far / math.pi)
    if ndim == 3:
        there = np.where(far > 0, far, 1.0)
        return np.where(far > 0, 3.0 * (np.sin(there) - there * np.cos(there)) / there**3, 1.0)
    # `2 J1(x) / x` as Poisson's integral, the mean of `2 cos(x cos t) sin(t)^2`: more equal steps around the circle than x are exact.
    steps = int(0.3 * far.max()) + 15
    total = np.zeros(far.shape)
    for angle in (np.arange(steps) + 0.5) * (math.pi / 2 / steps):
        total += np.cos(far * math.cos(angle)) * math.sin(angle) ** 2
    return total * (2.0 / steps)


@public("ndimage")
@of_any_library
def fourier_shift(input: ArrayLike, shift: Floats, n: int = -1, axis: int = -1, output: Output = None) -> Array:
    """The product of a Fourier transform with that of a shift by pixels (``scipy.ndimage.fourier_shift``), as `fourier_gaussian`; complex.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image import ndimage
    >>> np.fft.ifft(ndimage.fourier_shift(np.fft.fft([1.0, 2.0, 3.0]), 1)).real.round(6)
    array([3., 1., 2.])
    """
    pixels, result = _transform("fourier_shift", input, output, _COMPLEX)
    axes = _axes(pixels, n, axis, shift)
    return _multiplied(pixels, result, [np.exp(-2j * math.pi * by / length * waves) for waves, length, by in axes])
