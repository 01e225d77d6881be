"""How far two images lie over each other, with the rules of scikit-image 0.26."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _horus
from ._dtype import NATIVE
from ._edges import _mask
from ._floats import Given
from ._foreign import of_any_library
from ._image import Image, get_all, where
from ._public import public
from .typing import ArrayLike

_DIFFERS = "sums of squares and products of integers do not overflow"


def _pixels(name: str, image: Any, mask: Any) -> tuple[Image, Image | None]:
    """An image in `float64`, and the mask of the pixels that count."""
    given = Given(name, image, (1, 2, 3))
    given.gray()
    pixels = given.image.astype(np.float64)
    return pixels, None if mask is None else _mask(mask, pixels)


def _beside(name: str, image: Any, like: Image, within: Image | None, truths: bool = False) -> Image:
    """Another image of the same shape; 0 where it does not count."""
    if truths:
        found = _mask(image, like).astype(np.float64)
    else:
        given = Given(name, image, (1, 2, 3))
        given.gray()
        found = given.image.astype(np.float64)
        if found.shape != like.shape:
            raise ValueError(f"{name}: images of shapes {like.shape} and {found.shape}")
    return found if within is None else where(within, found, 0.0)


def _sums(*images: Image) -> list[float]:
    return [float(one.ravel()[0]) for one in get_all(*(image.sum(keepdims=True) for image in images))]


def _least(name: str, what: str, *images: Image) -> None:
    """Refuses numbers below 0."""
    for image, one in zip(get_all(*(image.min(keepdims=True) for image in images)), what.split(), strict=True):
        if image.ravel()[0] < 0:
            raise ValueError(f"{one} contains negative values")


@public("measure", module="skimage.measure._colocalization")
@of_any_library
def manders_coloc_coeff(image0: ArrayLike, image1_mask: ArrayLike, mask: ArrayLike | None = None) -> float:
    """The share of the brightness of an image that lies within a mask (``skimage.measure.manders_coloc_coeff``).

    Parameters
    ----------
    image0 : array_like or Image
        Not below 0. It is computed at the call.
    image1_mask : array_like or Image of bool
        Of its shape.
    mask : array_like or Image of bool, optional
        The pixels that count; all by default.

    Returns
    -------
    float
        0 if there is no brightness.

    Examples
    --------
    >>> from horus_image.measure import manders_coloc_coeff
    >>> manders_coloc_coeff([1, 2, 5], [False, True, True])
    0.875
    """
    pixels, within = _pixels("manders_coloc_coeff", image0, mask)
    pixels = pixels if within is None else where(within, pixels, 0.0)
    _least("manders_coloc_coeff", "image", pixels)
    inner, total = _sums(pixels * _beside("manders_coloc_coeff", image1_mask, pixels, None, truths=True), pixels)
    return inner / total if total else 0.0


@public("measure", module="skimage.measure._colocalization", differs=_DIFFERS)
@of_any_library
def manders_overlap_coeff(image0: ArrayLike, image1: ArrayLike, mask: ArrayLike | None = None) -> float:
    """The sum of products over the root of both sums of squares (``skimage.measure.manders_overlap_coeff``), 1 of images that are alike but for
    a factor.

    Parameters
    ----------
    image0, image1 : array_like or Image
        Of one shape, not below 0. They are computed at the call.
    mask : array_like or Image of bool, optional
        The pixels that count; all by default.

    Examples
    --------
    >>> from horus_image.measure import manders_overlap_coeff
    >>> manders_overlap_coeff([3.0, 4.0], [4.0, 3.0])
    0.96
    """
    name = "manders_overlap_coeff"
    first, within = _pixels(name, image0, mask)
    first, second = first if within is None else where(within, first, 0.0), _beside(name, image1, first, within)
    _least(name, "image0 image1", first, second)
    across, one, other = _sums(first * second, first * first, second * second)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(across) / (one * other) ** 0.5)


@public("measure", module="skimage.measure._colocalization")
@of_any_library
def intersection_coeff(image0_mask: ArrayLike, image1_mask: ArrayLike, mask: ArrayLike | None = None) -> float:
    """The share of a mask that lies within another (``skimage.measure.intersection_coeff``).

    Parameters
    ----------
    image0_mask, image1_mask : array_like or Image of bool
        Of one shape. They are computed at the call.
    mask : array_like or Image of bool, optional
        The pixels that count; all by default.

    Returns
    -------
    float
        0 if the first is empty.

    Examples
    --------
    >>> from horus_image.measure import intersection_coeff
    >>> intersection_coeff([True, True, False, True], [False, True, True, True]).__round__(3)
    0.667
    """
    name = "intersection_coeff"
    first, within = _pixels(name, image0_mask, mask)
    first = first if within is None else where(within, first, 0.0)
    both, one = _sums(first * _beside(name, image1_mask, first, None, truths=True), first)
    return both / one if one else 0.0
