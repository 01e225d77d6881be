"""Filters for lines by the eigenvalues of the Hessian, with the rules of scikit-image 0.26."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from ._floats import Given, applied, extreme, gaussian, zeros_like
from ._image import Image, maximum, where


def hessian(image: Image, sigma: float, mode: str, cval: float) -> tuple[Image, Image, Image]:
    """The second derivatives along rows twice, rows and columns, columns twice: of each, two first derivatives of Gaussians of
    ``sigma / sqrt(2)``, as ``skimage.feature.hessian_matrix(use_gaussian_derivatives=True)`` takes them."""
    truncate = 8.0 if sigma > 1 else 100.0
    along_rows, along_columns = (1, 0), (0, 1)

    def slope(of: Image, order: tuple[int, int]) -> Image:
        return gaussian(of, sigma / math.sqrt(2.0), order, mode, cval, truncate)

    down, right = slope(image, along_rows), slope(image, along_columns)
    return slope(down, along_rows), slope(down, along_columns), slope(right, along_columns)


def eigenvalues(image: Image, sigma: float, mode: str, cval: float) -> tuple[Image, Image]:
    """The larger and the smaller eigenvalue of the Hessian."""
    rr, rc, cc = hessian(image, sigma, mode, cval)
    mean, half = (rr + cc) * 0.5, (rr - cc) * 0.5
    spread = applied("sqrt", rc * rc + half * half)
    return mean + spread, mean - spread


def _entered(name: str, image: Any, black_ridges: bool) -> tuple[Given, Image]:
    given = Given(name, image, (2, 3))
    given.gray()
    if given.value.ndim == 3:
        raise NotImplementedError(f"{name} of a volume: eigenvalues of 3x3 matrices; the filter is of rows and columns")
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


def frangi(
    image: Any,
    sigmas: Iterable[float] = range(1, 10, 2),
    scale_range: Any = None,
    scale_step: Any = None,
    alpha: float = 0.5,
    beta: float = 0.5,
    gamma: float | None = None,
    black_ridges: bool = True,
    mode: str = "reflect",
    cval: float = 0,
) -> Any:
    """How much each pixel looks like part of a vessel (``skimage.filters.frangi``).

    Parameters
    ----------
    image : array_like or Image
        Of rows and columns.
    sigmas : iterable of float, optional
        Scales of the Gaussians, in pixels.
    scale_range, scale_step : None
        Deprecated in scikit-image, and not taken: give `sigmas`.
    alpha : float, optional
        Of volumes only, which are not supported; it has no effect.
    beta : float, optional
        How much a pixel may look like part of a blob.
    gamma : float, optional
        From which norm of the Hessian on there is structure; by default half the largest norm at the *first* scale.
    black_ridges : bool, optional
        Dark vessels, else bright ones.
    mode, cval : optional
        What lies beyond the edges, as in `horus_image.ndimage`.

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
    given, floats = _entered("frangi", image, black_ridges)
    result = zeros_like(floats)
    limit: Any = gamma
    for sigma in _scales(sigmas):
        larger, smaller = eigenvalues(floats, sigma, mode, cval)
        first = abs(larger) > abs(smaller)
        major, minor = where(first, larger, smaller), where(first, smaller, larger)
        blob = abs(minor) / maximum(major, 1e-10)
        norm = applied("sqrt", minor * minor + major * major)
        if limit is None:
            limit = _measure(norm, floats) * 0.5
        line = applied("exp", (blob * blob) * (-0.5 / beta**2))
        result = maximum(result, line * (1.0 - applied("exp", -(norm * norm) / (limit * limit * 2.0))))
    return given.back(result)


def sato(
    image: Any, sigmas: Iterable[float] = range(1, 10, 2), black_ridges: bool = True, mode: str = "reflect", cval: float = 0
) -> Any:
    """How much each pixel looks like part of a tube (``skimage.filters.sato``): the larger eigenvalue of the Hessian times
    ``sigma**2`` where it is positive, the largest of all scales. Arguments are those of `frangi`.

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
        larger, _ = eigenvalues(floats, sigma, mode, cval)
        result = maximum(result, maximum(larger, 0.0) * sigma**2)
    return given.back(result)


def meijering(
    image: Any,
    sigmas: Iterable[float] = range(1, 10, 2),
    alpha: float | None = None,
    black_ridges: bool = True,
    mode: str = "reflect",
    cval: float = 0,
) -> Any:
    """How much each pixel looks like part of a neurite (``skimage.filters.meijering``): the eigenvalues of the Hessian mixed by `alpha`
    (1/3 by default), divided by the largest response at each scale. Other arguments are those of `frangi`.

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
    mixed = 1.0 / 3.0 if alpha is None else float(alpha)
    result = zeros_like(floats)
    for sigma in _scales(sigmas):
        larger, smaller = eigenvalues(floats, sigma, mode, cval)
        one, other = larger + smaller * mixed, smaller + larger * mixed
        flat = maximum(where(abs(one) >= abs(other), one, other), 0.0)
        result = maximum(result, flat / _measure(flat, floats))
    return given.back(result)
