"""Filters made of Gaussians, with the rules of scikit-image 0.26."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ._floats import Given, extreme
from ._floats import gaussian as smoothed
from ._foreign import of_any_library, read
from ._image import Image, where
from ._operators import larger, smaller
from ._public import PIXELS, SUMS, Terms, public
from ._values import axis_of
from .typing import Array, ArrayLike, Border, Floats, Pixels


@public("filters", rust="gauss", opencv="cv.GaussianBlur", differs="one sigma for each axis but that of channels")
@of_any_library
def gaussian(
    image: ArrayLike,
    sigma: Floats = 1.0,
    *,
    mode: Border = "nearest",
    cval: float = 0,
    preserve_range: bool = False,
    truncate: float = 4.0,
    channel_axis: int | None = None,
    out: Array | None = None,
) -> Pixels:
    """The image smoothed by a Gaussian (``skimage.filters.gaussian``).

    Parameters
    ----------
    image : array_like or Image
        Integers become floats from 0 to 1, or -1 to 1, unless `preserve_range` is set.
    sigma : float or sequence of float, optional
        The standard deviation, or one for each axis.
    mode, cval : optional
        Border mode, as in `horus_image.ndimage`.
    preserve_range : bool, optional
        Take the pixels as they are.
    truncate : float, optional
        Cut the Gaussian at so many standard deviations.
    channel_axis : int, optional
        The axis of an array that is that of channels. A lazy image knows its own.
    out : ndarray, optional
        An array for the result, of floats.

    Returns
    -------
    ndarray or Image
        Of ``float32`` if the input is, else of ``float64``.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.filters import gaussian
    >>> gaussian(np.array([[0, 0, 255, 0, 0]], np.uint8), sigma=1).round(2)
    array([[0.05, 0.24, 0.4 , 0.24, 0.05]])
    """
    if channel_axis is not None and isinstance(sigma, Iterable) and not isinstance(image, Image):
        sigma, channel_axis = _of_axes(list(sigma), channel_axis, read(image).ndim)
    given = Given("gaussian", image, (1, 2, 3), channel_axis)
    if any(scale < 0 for scale in (sigma if isinstance(sigma, Iterable) else [sigma])):
        raise ValueError("Sigma values less than zero are not valid")
    if out is not None and (given.array is None or out.dtype.kind != "f" or out.shape != given.array.shape):
        raise ValueError("gaussian: out is an array of floats, for the result of an array of its shape")
    pixels = given.floats() if preserve_range else given.unit()
    found = given.back(smoothed(pixels, sigma, 0, mode, cval, truncate))
    if out is None:
        return found
    out[...] = found
    return out


def _of_axes(sigma: list[Any], channel_axis: int, ndim: int) -> tuple[list[Any], int | None]:
    """Sigmas of rows and columns; as many as an array has axes smooth along channels, too, unless that of channels is 0."""
    if len(sigma) != ndim:
        return sigma, channel_axis
    at = axis_of(channel_axis, ndim)
    return (sigma, None) if sigma[at] else (sigma[:at] + sigma[at + 1 :], channel_axis)


@public("filters", module="skimage.filters._unsharp_mask", rust="examples/unsharp_mask.rs", accel=Terms(f"channels_counted {PIXELS}", SUMS))
@of_any_library
def unsharp_mask(
    image: ArrayLike, radius: Floats = 1.0, amount: float = 1.0, preserve_range: bool = False, *, channel_axis: int | None = None
) -> Pixels:
    """A picture sharpened by its difference from its Gaussian (``skimage.filters.unsharp_mask``).

    Parameters
    ----------
    image : array_like or Image
        Integers become floats from 0 to 1, or -1 to 1, unless `preserve_range` is set.
    radius : float or sequence of float, optional
        The sigma of the Gaussian, or one for each axis.
    amount : float, optional
        By which the details are multiplied before they are added.
    preserve_range : bool, optional
        Take the pixels as they are; else the result is limited to 0 to 1, or -1 to 1 if a pixel is negative.
    channel_axis : int, optional
        The axis of an array that is that of channels. A lazy image knows its own.

    Returns
    -------
    ndarray or Image
        Of ``float32`` if the input is, else of ``float64``.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.filters import unsharp_mask
    >>> array = np.ones(shape=(5, 5), dtype=np.uint8) * 100
    >>> array[2, 2] = 120
    >>> unsharp_mask(array, radius=0.5, amount=2).round(2)[2]
    array([0.39, 0.38, 0.53, 0.38, 0.39])
    """
    given = Given("unsharp_mask", image, (1, 2, 3), channel_axis)
    pixels = given.floats() if preserve_range else given.unit()
    result = pixels + (pixels - smoothed(pixels, radius, mode="reflect")) * float(amount)
    if not preserve_range:
        result = smaller(result, 1.0)
        if given.dtype.kind in "ub":
            result = larger(result, 0.0)
        else:
            result = larger(result, _lowest(pixels))
    return given.back(result)


def _lowest(pixels: Image) -> Image:
    """-1 if a pixel is negative, else 0, as an image of one pixel."""
    smallest = extreme(pixels, "min")
    return where(smallest < 0.0, smallest * 0.0 - 1.0, 0.0)


@public("filters", module="skimage.filters._gaussian", rust="`a.gauss(s) - a.gauss(t)`", accel=Terms(PIXELS, SUMS))
@of_any_library
def difference_of_gaussians(
    image: ArrayLike,
    low_sigma: Floats,
    high_sigma: Floats | None = None,
    *,
    mode: Border = "nearest",
    cval: float = 0,
    channel_axis: int | None = None,
    truncate: float = 4.0,
) -> Pixels:
    """Features of a size between two sigmas (``skimage.filters.difference_of_gaussians``): the image smoothed by the smaller less the image
    smoothed by the larger, 1.6 times the smaller by default. Integers become floats from 0 to 1, or -1 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.filters import difference_of_gaussians
    >>> image = np.zeros((7, 7))
    >>> image[3, 3] = 1.0
    >>> round(float(difference_of_gaussians(image, 1.0)[3, 3]), 3)
    0.097
    """
    given = Given("difference_of_gaussians", image, (1, 2, 3), channel_axis)
    count = given.value.ndim
    low = np.array(low_sigma, dtype=float, ndmin=1)
    high = low * 1.6 if high_sigma is None else np.array(high_sigma, dtype=float, ndmin=1)
    for name, sigmas in (("low_sigma", low), ("high_sigma", high)):
        if len(sigmas) not in (1, count):
            raise ValueError(f"{name} must have length equal to number of spatial dimensions of input")
    low, high = low * np.ones(count), high * np.ones(count)
    if (high < low).any():
        raise ValueError("high_sigma must be equal to or larger than low_sigma for all axes")
    pixels = given.unit()
    smooth = [smoothed(pixels, sigmas.tolist(), 0, mode, cval, truncate) for sigmas in (low, high)]
    return given.back(smooth[0] - smooth[1])
