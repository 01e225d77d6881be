"""Features of each pixel at several scales, with the rules of scikit-image 0.26."""

from __future__ import annotations

import itertools
import math

import numpy as np

from . import _eigen
from ._conversions import _stacked
from ._edges import sobel
from ._floats import Given, gaussian, image_of
from ._foreign import of_any_library
from ._image import Image, get_all
from ._public import public
from ._tensors import gradient
from .typing import ArrayLike, Float, Pixels


@public(
    "feature", module="skimage.feature._basic_features", rust="`gauss` `sobel`", differs="of volumes, images are arrays: a result of four axes"
)
@of_any_library
def multiscale_basic_features(
    image: ArrayLike,
    intensity: bool = True,
    edges: bool = True,
    texture: bool = True,
    sigma_min: Float = 0.5,
    sigma_max: Float = 16,
    num_sigma: int | None = None,
    workers: int | None = None,
    *,
    channel_axis: int | None = None,
) -> Pixels:
    """Brightness, gradient and curvatures of the smoothed image, at several scales (``skimage.feature.multiscale_basic_features``).

    Parameters
    ----------
    image : array_like or Image
        A plane, or a volume that is an array; integers become floats from 0 to 1, or -1 to 1.
    intensity, edges, texture : bool, optional
        The smoothed image; its gradient, as of `horus_image.filters.sobel`; the eigenvalues of its Hessian.
    sigma_min, sigma_max : float, optional
        The smallest and the largest sigma of the Gaussians.
    num_sigma : int, optional
        How many there are; by default each is about twice the one before.
    workers : int, optional
        Ignored: sessions have threads.
    channel_axis : int, optional
        The axis of an array that is that of channels, whose features follow each other. A lazy image knows its own.

    Returns
    -------
    ndarray or Image of float32
        The last axis is that of features.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.feature import multiscale_basic_features
    >>> multiscale_basic_features(np.eye(20), sigma_max=2).shape
    (20, 20, 12)
    """
    given = Given("multiscale_basic_features", image, (2, 3), channel_axis)
    if not (intensity or edges or texture):
        raise ValueError("At least one of `intensity`, `edges` or `textures` must be True for features to be computed.")
    if given.array is None and given.value.ndim == 3:
        raise NotImplementedError("multiscale_basic_features: of a volume that is an image, a result of four axes; compute it, and give the array")
    if num_sigma is None:
        num_sigma = int(math.log2(sigma_max) - math.log2(sigma_min) + 1)
    pixels = given.unit(np.dtype(np.float32))
    channels = [pixels.channel(k) for k in range(pixels._core.shape[3])] if given.value.channels else [pixels]
    found: list[Image] = []
    for channel in channels:
        for sigma in np.logspace(math.log2(sigma_min), math.log2(sigma_max), num=num_sigma, base=2):
            smooth = gaussian(channel, float(sigma))
            found += [smooth] if intensity else []
            found += [image_of(sobel(smooth))] if edges else []
            found += _curvatures(smooth) if texture else []
    if given.array is None:
        return given.back(_stacked(found))
    return np.stack(get_all(*found), axis=-1)


def _curvatures(image: Image) -> list[Image]:
    """The eigenvalues of the Hessian by differences of neighbours."""
    slopes = [gradient(image, axis) for axis in range(image.ndim)]
    elements = [gradient(slopes[a], b) for a, b in itertools.combinations_with_replacement(range(image.ndim), 2)]
    return _eigen._of_two(elements) if len(elements) == 3 else _eigen._of_three(elements)
