"""Images in polar coordinates, and swirled, with the rules of scikit-image 0.26: positions are formulas of rows and columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._floats import Given, image_of
from ._foreign import of_any_library
from ._image import Image, made
from ._moves import positions
from ._public import public
from ._resizing import border_of, clipped, order_of, whole
from ._sampling import map_coordinates
from ._values import shape_of
from .typing import ArrayLike, Float, Ints, Pixels


def _given(name: str, image: Any, channel_axis: int | None) -> Given:
    return Given(name, image, (2,), channel_axis)


def _places(given: Given, shape: Sequence[int]) -> tuple[Any, Any]:
    """The rows and the columns of an image of a shape."""
    rows, columns = (made(positions(given.image, shape, axis), given.value.session, 2) for axis in (1, 2))
    return rows.astype(np.float64), columns.astype(np.float64)


def _sampled(given: Given, places: Sequence[Image], order: int | None, mode: str, cval: Float, clip: bool, preserve_range: bool) -> Pixels:
    """The image at rows and columns, by SciPy's splines, limited to its range."""
    degree, fill = order_of(given.name, order, given.dtype), float(cval)
    pixels = given.image if not degree else given.floats() if preserve_range else given.unit()
    border = border_of(given.name, mode)
    pixels = pixels.astype(np.uint8) if pixels.dtype.kind == "b" else pixels
    found = image_of(map_coordinates(pixels, list(places), None, degree, border, fill, degree > 1))
    found = clipped(pixels, found, mode, fill) if clip and degree else found
    found = found.astype(bool) if given.dtype.kind == "b" and not degree else found
    return whole(given, degree, given.back(found, moved=True))


@public("transform", module="skimage.transform._warps", rust="remap", opencv="cv.warpPolar")
@of_any_library
def warp_polar(
    image: ArrayLike,
    center: Sequence[Float] | None = None,
    *,
    radius: Float | None = None,
    output_shape: Ints | None = None,
    scaling: str = "linear",
    channel_axis: int | None = None,
    order: int | None = None,
    mode: str = "constant",
    cval: Float = 0.0,
    clip: bool = True,
    preserve_range: bool = False,
) -> Pixels:
    """The image around a centre, a row for each angle and a column for each distance (``skimage.transform.warp_polar``).

    Parameters
    ----------
    image : array_like or Image
        Of rows and columns. Integers become floats from 0 to 1, or -1 to 1, unless `preserve_range` is true.
    center : pair of float, optional
        Row and column; by default the middle.
    radius : float, optional
        The distance of the last column; by default that of the corners.
    output_shape : pair of int, optional
        Angles and distances; by default 360, and one for each pixel of the radius.
    scaling : {'linear', 'log'}, optional
        Distances, or their logarithms, are equally far apart.
    channel_axis : int, optional
        The axis of an array that is that of channels. A lazy image knows its own.
    order, mode, cval, clip, preserve_range : optional
        As of `resize`.

    Returns
    -------
    ndarray or Image

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.transform import warp_polar
    >>> ring = np.hypot(*np.ogrid[-20:21, -20:21])
    >>> warp_polar(ring, output_shape=(4, 5), radius=20, order=1).round(1)[0]
    array([ 0.,  4.,  8., 12., 16.])
    """
    given = _given("warp_polar", image, channel_axis)
    shape = given.value.shape
    middle = [extent / 2 - 0.5 for extent in shape] if center is None else [float(one) for one in center]
    most = math.hypot(*(extent / 2 for extent in shape)) if radius is None else float(radius)
    height, width = (360, math.ceil(most)) if output_shape is None else (int(one) for one in output_shape)  # type: ignore[union-attr]
    if scaling not in ("linear", "log"):
        raise ValueError("Scaling value must be in {'linear', 'log'}")
    rows, columns = _places(given, (height, width))
    angle = rows * (2.0 * math.pi / height)
    distance = columns * (most / width) if scaling == "linear" else np.exp(columns * (math.log(most) / width))
    at = [distance * np.sin(angle) + middle[0], distance * np.cos(angle) + middle[1]]
    return _sampled(given, at, order, mode, cval, clip, preserve_range)


@public("transform", module="skimage.transform._warps", rust="remap", opencv="cv.remap")
@of_any_library
def swirl(
    image: ArrayLike,
    center: Sequence[Float] | None = None,
    strength: Float = 1,
    radius: Float = 100,
    rotation: Float = 0,
    output_shape: Ints | None = None,
    order: int | None = None,
    mode: str = "reflect",
    cval: Float = 0,
    clip: bool = True,
    preserve_range: bool = False,
) -> Pixels:
    """The image turned about a centre, the more the nearer (``skimage.transform.swirl``).

    Parameters
    ----------
    image : array_like or Image
        Of rows and columns, and of channels as the last axis. Integers become floats from 0 to 1, or -1 to 1, unless `preserve_range` is true.
    center : pair of float, optional
        Column and row; by default the middle.
    strength : float, optional
        The turn at the centre, in radians.
    radius : float, optional
        The distance at which it is about a thousandth of that.
    rotation : float, optional
        A turn of all pixels, in radians.
    output_shape : pair of int, optional
        Rows and columns of the result; by default those of the image.
    order, mode, cval, clip, preserve_range : optional
        As of `resize`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.transform import swirl
    >>> lines = np.tile(np.arange(9.0), (9, 1))
    >>> swirl(lines, strength=0, preserve_range=True)[4].round(3)
    array([0., 1., 2., 3., 4., 5., 6., 7., 8.])
    """
    shape = shape_of(image)
    given = _given("swirl", image, -1 if len(shape) == 3 else None)
    height, width = given.value.shape if output_shape is None else (int(one) for one in output_shape)  # type: ignore[union-attr]
    x, y = [given.value.shape[1] / 2, given.value.shape[0] / 2] if center is None else (float(one) for one in center)
    rows, columns = _places(given, (height, width))
    down, right = rows - y, columns - x
    distance = np.sqrt(right * right + down * down)
    angle = np.exp(distance * (-5.0 / (float(radius) * math.log(2.0)))) * float(strength) + np.arctan2(down, right) + float(rotation)
    return _sampled(given, [distance * np.sin(angle) + y, distance * np.cos(angle) + x], order, mode, cval, clip, preserve_range)
