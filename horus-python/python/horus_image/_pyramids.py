"""Pyramids of ever smaller images, with the rules of scikit-image 0.26."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

from ._floats import Given, gaussian, image_of
from ._image import Image
from ._public import public
from ._resizing import pyramid_reduce, resize
from .typing import ArrayLike, Float, Pixels

_listed = functools.partial(public, "transform", module="skimage.transform.pyramids", rust="pyramid_down", opencv="cv.buildPyramid")


def _entered(name: str, image: ArrayLike, downscale: Float, preserve_range: bool, channel_axis: int | None) -> tuple[Given, Image]:
    if downscale <= 1:
        raise ValueError("scale factor must be greater than 1")
    given = Given(name, image, (1, 2, 3), channel_axis)
    return given, given.floats() if preserve_range else given.unit()


@_listed()
def pyramid_gaussian(
    image: ArrayLike,
    max_layer: int = -1,
    downscale: Float = 2,
    sigma: Float | None = None,
    order: int = 1,
    mode: str = "reflect",
    cval: Float = 0,
    preserve_range: bool = False,
    *,
    channel_axis: int | None = None,
) -> Iterator[Pixels]:
    """The image, and what `pyramid_reduce` makes of it again and again (``skimage.transform.pyramid_gaussian``).

    Parameters
    ----------
    image : array_like or Image
        Integers become floats from 0 to 1, or -1 to 1, unless `preserve_range` is true.
    max_layer : int, optional
        Images after the first; by default all until the size no longer changes.
    downscale, sigma, order, mode, cval, preserve_range, channel_axis
        As of `pyramid_reduce`.

    Yields
    ------
    ndarray or Image

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.transform import pyramid_gaussian
    >>> [layer.shape for layer in pyramid_gaussian(np.eye(20), 2)]
    [(20, 20), (10, 10), (5, 5)]
    """
    given, layer = _entered("pyramid_gaussian", image, downscale, preserve_range, channel_axis)
    yield given.back(layer)
    count = 0
    while count != max_layer:
        count += 1
        smaller = image_of(pyramid_reduce(layer, downscale, sigma, order, mode, cval, True))
        if smaller.shape == layer.shape:
            break
        layer = smaller
        yield given.back(layer, moved=True)


@_listed(rust="`a - a.pyramid_down().pyramid_up(h, w)`")
def pyramid_laplacian(
    image: ArrayLike,
    max_layer: int = -1,
    downscale: Float = 2,
    sigma: Float | None = None,
    order: int = 1,
    mode: str = "reflect",
    cval: Float = 0,
    preserve_range: bool = False,
    *,
    channel_axis: int | None = None,
) -> Iterator[Pixels]:
    """The details that smoothing removes at each size (``skimage.transform.pyramid_laplacian``). Arguments are those of `pyramid_gaussian`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.transform import pyramid_laplacian
    >>> [layer.shape for layer in pyramid_laplacian(np.eye(20), 2)]
    [(20, 20), (10, 10), (5, 5)]
    """
    given, layer = _entered("pyramid_laplacian", image, downscale, preserve_range, channel_axis)
    width = 2 * downscale / 6.0 if sigma is None else sigma
    layers = math.ceil(math.log(max(given.value.shape), downscale)) if max_layer == -1 else max_layer
    for count in range(layers + 1):
        smooth = gaussian(layer, width, 0, mode, float(cval))
        yield given.back(layer - smooth, moved=count > 0)
        extents = [math.ceil(extent / float(downscale)) for extent in layer.shape[: given.value.ndim]]
        layer = image_of(resize(smooth, (*extents, *layer.shape[given.value.ndim :]), order, mode, cval, True, True, False))
