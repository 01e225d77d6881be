"""Filters for lines by the eigenvalues of the Hessian, with the rules of scikit-image 0.26."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from ._eigen import by_magnitude, eigenvalues, of_largest_magnitude, total
from ._floats import Given, applied, extreme, zeros_like
from ._foreign import of_any_library
from ._image import Image, where
from ._operators import larger
from ._public import PIXELS, Terms, public
from .typing import ArrayLike, Border, Pixels


def _entered(name: str, image: Any, black_ridges: bool) -> tuple[Given, Image]:
    given = Given(name, image, (2, 3))
    given.gray()
    floats = given.floats()
    return given, floats if black_ridges else -floats


_ROUNDING: Final = {"f32": 2.0**-20, "f64": 2.0**-48}
"""Responses up to this times the brightest pixel are roundings, and no measure of what is in an image."""


def _measure(response: Image, image: Image) -> Image:
    """The largest response as one pixel, or 1 where all responses are roundings: what the others are compared with."""
    largest = extreme(response, "max")
    noise = extreme(abs(image), "max") * _ROUNDING[image._core.dtype]
    return where(largest > noise, largest, 1.0)


def _scales(sigmas: Iterable[float]) -> list[float]:
    scales = [float(sigma) for sigma in sigmas]
    for scale in scales:
        if not (scale > 0.0 and math.isfinite(scale)):
            raise ValueError(f"sigma is {scale}; it must be positive and finite")
    return scales


@public(
    "filters", module="skimage.filters.ridges", rust="examples/frangi.rs",
    differs="the example balances scales by `sigma^2`, scikit-image does not", accel=Terms(f"ridges_in_float64 {PIXELS}", (0.0, 1e-4))
)
@of_any_library
def frangi(
    image: ArrayLike,
    sigmas: Iterable[float] = range(1, 10, 2),
    scale_range: object = None,
    scale_step: object = None,
    alpha: float = 0.5,
    beta: float = 0.5,
    gamma: float | None = None,
    black_ridges: bool = True,
    mode: Border = "reflect",
    cval: float = 0,
) -> Pixels:
    """The vesselness of each pixel (``skimage.filters.frangi``).

    Parameters
    ----------
    image : array_like or Image
        Of rows and columns, or a volume.
    sigmas : iterable of float, optional
        Scales of the Gaussians, in pixels.
    scale_range, scale_step : None
        Deprecated in scikit-image, and not taken: give `sigmas`.
    alpha : float, optional
        Tolerance for plates, in volumes.
    beta : float, optional
        Tolerance for blobs.
    gamma : float, optional
        Norm of the Hessian above which there is structure; by default half the largest norm at the *first* scale.
    black_ridges : bool, optional
        Dark vessels, else bright ones.
    mode, cval : optional
        Border mode, as in `horus_image.ndimage`.

    Returns
    -------
    ndarray or Image
        The largest response of all scales, from 0 to 1, of the type of floats of the input.

    Notes
    -----
    Results are those of scikit-image 0.26, which rewrote the filter (its issue 6436). It does not multiply the Hessian by ``sigma**2``,
    and takes `gamma` from the first scale: the smallest scale is favoured, and results depend on the order of `sigmas` (its issue 7711).
    Scales are balanced if each is filtered by itself and the largest response is taken, as each then has a `gamma` of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.filters import frangi
    >>> image = np.ones((9, 9))
    >>> image[4] = 0.0
    >>> frangi(image, sigmas=[1])[3:6, 4].round(2).tolist()
    [0.02, 0.86, 0.02]
    """
    if scale_range is not None or scale_step is not None:
        raise NotImplementedError("frangi: scale_range and scale_step are deprecated in scikit-image; give sigmas")
    if not (alpha and beta):
        raise ValueError(f"frangi: alpha is {alpha} and beta {beta}; neither may be 0")
    given, floats = _entered("frangi", image, black_ridges)
    result = zeros_like(floats)
    limit: Any = gamma
    for sigma in _scales(sigmas):
        minor, *major = by_magnitude(eigenvalues(floats, sigma, mode, cval))
        norm = applied("sqrt", total([value * value for value in (minor, *major)]))
        major = [larger(value, 1e-10) for value in major]
        if limit is None:
            limit = _measure(norm, floats) * 0.5
        blob = abs(minor) / (major[0] if len(major) == 1 else applied("sqrt", major[0] * major[1]))
        line = applied("exp", (blob * blob) * (-0.5 / beta**2))
        if len(major) == 2:
            plate = major[0] / major[1]
            line = line * (1.0 - applied("exp", (plate * plate) * (-0.5 / alpha**2)))
        result = larger(result, line * (1.0 - applied("exp", -(norm * norm) / (limit * limit * 2.0))))
    return given.back(result)


@public("filters", module="skimage.filters.ridges", accel=Terms(f"ridges {PIXELS}", (2e-5, 1e-10)))
@of_any_library
def sato(
    image: ArrayLike, sigmas: Iterable[float] = range(1, 10, 2), black_ridges: bool = True, mode: Border = "reflect", cval: float = 0
) -> Pixels:
    """The tubeness of each pixel (``skimage.filters.sato``): the larger eigenvalue of the Hessian times
    ``sigma**2`` where it is positive (of volumes, the root of the product of the two larger), the largest of all scales. Arguments are those of `frangi`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.filters import sato
    >>> image = np.ones((9, 9))
    >>> image[4] = 0.0
    >>> sato(image, sigmas=[1])[3:6, 4].round(2).tolist()
    [0.03, 0.35, 0.03]
    """
    given, floats = _entered("sato", image, black_ridges)
    result = zeros_like(floats)
    for sigma in _scales(sigmas):
        first, *rest = (larger(value, 0.0) for value in eigenvalues(floats, sigma, mode, cval)[:-1])
        tube = applied("sqrt", first * rest[0]) if rest else first
        result = larger(result, tube * sigma**2)
    return given.back(result)


@public("filters", module="skimage.filters.ridges", accel=Terms(f"ridges {PIXELS}", (2e-5, 1e-10)))
@of_any_library
def meijering(
    image: ArrayLike,
    sigmas: Iterable[float] = range(1, 10, 2),
    alpha: float | None = None,
    black_ridges: bool = True,
    mode: Border = "reflect",
    cval: float = 0,
) -> Pixels:
    """The neuriteness of each pixel (``skimage.filters.meijering``): the eigenvalues of the Hessian mixed by `alpha`
    (by default 1/3, of volumes 1/4), divided by the largest response at each scale. Other arguments are those of `frangi`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.filters import meijering
    >>> image = np.ones((9, 9))
    >>> image[4] = 0.0
    >>> meijering(image, sigmas=[1])[3:6, 4].round(2).tolist()
    [0.1, 1.0, 0.1]
    """
    given, floats = _entered("meijering", image, black_ridges)
    mixed = 1.0 / (floats.ndim + 1) if alpha is None else float(alpha)
    result = zeros_like(floats)
    for sigma in _scales(sigmas):
        values = eigenvalues(floats, sigma, mode, cval)
        turns = [values[i:] + values[:i] for i in range(len(values))]
        flat = larger(of_largest_magnitude([own + total(others) * mixed for own, *others in turns]), 0.0)
        result = larger(result, flat / _measure(flat, floats))
    return given.back(result)
