"""Eigenvalues of the Hessian of each pixel, as scikit-image takes them."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from . import _horus
from ._dtype import NATIVE
from ._floats import applied, gaussian
from ._image import Image, where
from ._operators import larger, smaller


def hessian(image: Image, sigma: float, mode: str, cval: float) -> list[Image]:
    """The second derivatives, those of the matrix's upper triangle row by row: of each, two first derivatives of Gaussians of
    ``sigma / sqrt(2)``, as ``skimage.feature.hessian_matrix(use_gaussian_derivatives=True)`` takes them."""
    truncate = 8.0 if sigma > 1 else 100.0
    count = image.ndim

    def slope(of: Image, axis: int) -> Image:
        order = [int(at == axis) for at in range(count)]
        return gaussian(of, sigma / math.sqrt(2.0), order, mode, cval, truncate)

    slopes = [slope(image, axis) for axis in range(count)]
    return [slope(slopes[a], b) for a, b in itertools.combinations_with_replacement(range(count), 2)]


def eigenvalues(image: Image, sigma: float, mode: str, cval: float) -> list[Image]:
    """The eigenvalues of the Hessian, from the largest to the smallest."""
    elements = hessian(image, sigma, mode, cval)
    return _of_two(elements) if len(elements) == 3 else _of_three(elements)


def _of_two(elements: list[Image]) -> list[Image]:
    rr, rc, cc = elements
    mean, half = (rr + cc) * 0.5, (rr - cc) * 0.5
    spread = applied("sqrt", rc * rc + half * half)
    return [mean + spread, mean - spread]


def _of_three(elements: list[Image]) -> list[Image]:
    """By the trigonometric formula, in `float64`: two eigenvalues that are nearly equal come out to half its digits."""
    dtype = elements[0].dtype
    zz, zy, zx, yy, yx, xx = (element if dtype == NATIVE["f64"] else element.astype(np.float64) for element in elements)
    mean = (zz + yy + xx) * (1.0 / 3.0)
    z, y, x = zz - mean, yy - mean, xx - mean
    beside = zy * zy + zx * zx + yx * yx
    spread = applied("sqrt", (z * z + y * y + x * x + beside * 2.0) * (1.0 / 6.0))
    # Three equal eigenvalues have no angle.
    scale = where(spread > 0.0, spread, 1.0)
    z, y, x, zy, zx, yx = (element / scale for element in (z, y, x, zy, zx, yx))
    half = (z * (y * x - yx * yx) - zy * (zy * x - yx * zx) + zx * (zy * yx - y * zx)) * 0.5
    cosine = smaller(larger(half, -1.0), 1.0)
    sine = applied("sqrt", 1.0 - cosine * cosine)
    angle = sine._with(_horus.binary("atan2", sine._core, cosine._core)) * (1.0 / 3.0)
    largest = mean + spread * applied("cos", angle) * 2.0
    smallest = mean + spread * applied("cos", angle + 2.0 * math.pi / 3.0) * 2.0
    found = [largest, mean * 3.0 - largest - smallest, smallest]
    return found if dtype == NATIVE["f64"] else [value.astype(dtype) for value in found]


def by_magnitude(values: list[Image]) -> list[Image]:
    """Numbers from the smallest magnitude to the largest."""
    found = list(values)
    for last in range(len(found) - 1, 0, -1):
        for i in range(last):
            a, b = found[i], found[i + 1]
            swap = abs(a) > abs(b)
            found[i], found[i + 1] = where(swap, b, a), where(swap, a, b)
    return found


def of_largest_magnitude(values: list[Image]) -> Image:
    """The number of the largest magnitude; the first on a tie."""
    return functools.reduce(lambda a, b: where(abs(a) >= abs(b), a, b), values)


def total(values: list[Image]) -> Image:
    """The sum."""
    return functools.reduce(lambda a, b: a + b, values)
