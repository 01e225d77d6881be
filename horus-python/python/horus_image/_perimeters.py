"""Boundaries and holes of masks, counted by the pixels around each corner, with the rules of scikit-image 0.26."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, Final

import numpy as np

from . import _horus
from ._binary import _truths, binary_erosion, generate_binary_structure
from ._dtype import NATIVE
from ._foreign import of_any_library
from ._image import Array, Image, made
from ._linear import convolve, correlate
from ._public import public
from ._splines import padded
from ._values import enter
from .typing import ArrayLike

_ROOT: Final = math.sqrt(2.0)
_SIDES: Final = {
    2: (0, 2, 0, 0, 0, 2, 0, 0, 2, 4, 0, 0, 2, 4, 0, 0),
    4: (
        *(0, 1 + 1 / _ROOT, 1 / _ROOT, 2 / _ROOT, 0, 1 + 1 / _ROOT, 0, 1 / _ROOT, 1, 2, 1 / _ROOT, 1 / _ROOT, 1, 2, 0, 0),
    ),
}
"""By the number of directions: quarters of pi that each 2x2 pixels add to Crofton's perimeter."""


def _mask(name: str, image: Any, axes: tuple[int, ...], above_0: bool = False) -> Image:
    """The pixels that are not 0, or that are above it."""
    if not above_0:
        image = _truths(image)
    value, given = enter(image, name)
    if value is None:
        raise ValueError(f"{name}: an image without pixels")
    if value.channels or value.ndim not in axes:
        raise NotImplementedError(f"{name} of an image of shape {np.shape(given)}: it has {' or '.join(map(str, axes))} axes")
    core = _horus.compare("gt", value.numbers(), 0.0) if above_0 else value.cast(NATIVE["bool"]).core
    return made(core, value.session, value.ndim)


def _counts(numbers: Any) -> Array:
    """How many pixels of 8 bits have each number."""
    return _horus.histogram(numbers._core, 256, -0.5, 255.5).astype(np.int64)


def _corners(mask: Image, weights: Array) -> Array:
    """How many corners there are of each number, which is the sum of the weights of the pixels around one that are in the mask."""
    value, _ = enter(mask.astype(np.uint8), "corners")
    assert value is not None, "a lazy image has pixels"
    around = padded(value, 1, "constant", 0.0)
    return _counts(correlate(made(around.core, mask.session, mask.ndim), weights, mode="constant"))


@functools.cache
def _characteristic(ndim: int) -> Array:
    """What the pixels around a corner add to the Euler characteristic of their union, times 2^ndim: cells that meet there, of each dimension
    by turns added and subtracted, divided by the number of corners that they have."""
    places = list(itertools.product((0, 1), repeat=ndim))
    found = np.zeros(1 << len(places), np.int64)
    for number in range(len(found)):
        pixels = np.array([place for k, place in enumerate(places) if number >> k & 1]).reshape(-1, ndim)
        for count in range(ndim + 1):
            # A cell is given by the sides that it lies on along some axes.
            for axes in itertools.combinations(range(ndim), count):
                found[number] += (-1) ** count * (1 << ndim - count) * len(np.unique(pixels[:, axes], axis=0))
    return found


@public("measure", module="skimage.measure._regionprops_utils")
@of_any_library
def euler_number(image: ArrayLike, connectivity: int | None = None) -> int:
    """Objects less holes; in volumes also less tunnels, and cavities are added (``skimage.measure.euler_number``).

    Parameters
    ----------
    image : array_like or Image
        A mask of a plane or a volume: pixels above 0. It is computed at the call.
    connectivity : int, optional
        1 if pixels that share a side are of one object, else all that touch, which is the default. In volumes 2 is not there.

    Examples
    --------
    >>> from horus_image.measure import euler_number
    >>> euler_number([[1, 1, 1], [1, 0, 1], [1, 1, 1]])
    0
    """
    mask = _mask("euler_number", image, (2, 3), above_0=True)
    ndim = mask.ndim
    if ndim == 3 and connectivity == 2:
        raise NotImplementedError("For 3D images, Euler number is implemented for connectivities 1 and 3 only")
    share = _characteristic(ndim)
    if connectivity == 1:
        # What is joined by sides is beside a background that is joined by all.
        share = share[::-1] * (1 if ndim == 3 else -1)
    numbers = (1 << np.arange(1 << ndim)).reshape((2,) * ndim)
    return int(share @ _corners(mask, numbers)[: len(share)]) >> ndim


@public("measure", module="skimage.measure._regionprops_utils", opencv="cv.arcLength", differs="pixels that are not 0 are those of a mask")
@of_any_library
def perimeter(image: ArrayLike, neighborhood: int = 4) -> float:
    """The length of a line through the centres of the outermost pixels (``skimage.measure.perimeter``).

    Parameters
    ----------
    image : array_like or Image
        A mask of a plane. It is computed at the call.
    neighborhood : {4, 8}, optional
        Outermost are pixels that share a side with the background, or touch it.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.measure import perimeter
    >>> perimeter(np.pad(np.ones((5, 4)), 1))
    14.0
    """
    mask = _mask("perimeter", image, (2,))
    inner = binary_erosion(mask, generate_binary_structure(2, 1 if neighborhood == 4 else 2))
    border: Any = (mask & ~inner).astype(np.uint8)
    counts = _counts(convolve(border, np.array([[10, 2, 10], [2, 1, 2], [10, 2, 10]]), mode="constant"))
    # The number tells how a pixel is joined to the next ones.
    straight, diagonal, bent = (int(counts[list(numbers)].sum()) for numbers in ((5, 7, 15, 17, 25, 27), (21, 33), (13, 23)))
    return straight + diagonal * _ROOT + bent * (1.0 + _ROOT) / 2.0


@public("measure", module="skimage.measure._regionprops_utils", opencv="cv.arcLength")
@of_any_library
def perimeter_crofton(image: ArrayLike, directions: int = 4) -> float:
    """The perimeter by Crofton's formula: crossings of lines in several directions (``skimage.measure.perimeter_crofton``).

    Parameters
    ----------
    image : array_like or Image
        A mask of a plane: pixels above 0. It is computed at the call.
    directions : {4, 2}, optional
        With the diagonals, or without.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.measure import perimeter_crofton
    >>> round(perimeter_crofton(np.ones((5, 4))), 3)
    15.954
    """
    mask = _mask("perimeter_crofton", image, (2,), above_0=True)
    counts = _corners(mask, np.array([[8, 2], [4, 1]]))
    return float(np.array(_SIDES[2 if directions == 2 else 4]) @ counts[:16]) * math.pi / 4.0
