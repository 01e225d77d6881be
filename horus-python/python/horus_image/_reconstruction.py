"""Reconstruction, with the rules of scikit-image 0.26."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import _horus
from ._binary import neighbours_of
from ._floats import Given, float_type
from ._foreign import of_any_library
from ._image import Image, made
from ._public import PIXELS, Terms, public
from .typing import ArrayLike, Ints, Pixels


def around(name: str, ndim: int, footprint: Any, offset: Any) -> list[bool]:
    """The neighbours of a pixel by a footprint, of the 27 pixels around it."""
    element = np.ones([3] * ndim, bool) if footprint is None else np.asarray(footprint).astype(bool)
    if element.ndim != ndim:
        raise ValueError(f"{name}: a footprint of {element.ndim} axes for images of {ndim}")
    if offset is None:
        if not all(size % 2 == 1 for size in element.shape):
            raise ValueError("Footprint dimensions must all be odd")
        centre = [size // 2 for size in element.shape]
    else:
        centre = [int(at) for at in np.ravel(offset)]
        if len(centre) != ndim:
            raise ValueError("Offset and footprint ndims must be equal.")
        if not all(0 <= at < size for at, size in zip(centre, element.shape, strict=True)):
            raise ValueError("Offset must be included inside footprint")
    places = (np.argwhere(element) - centre).tolist()
    offsets = [tuple([0] * (3 - ndim) + place) for place in places if any(place)]
    found = neighbours_of((z, y, x) for z, y, x in offsets)
    if found is None:
        raise NotImplementedError(
            f"{name}: a footprint that is not symmetric, or has pixels further away than the neighbours of its centre"
        )
    return found


def _in_one_type(seed: Given, mask: Given) -> tuple[Image, Image]:
    """Both as they are if they are of one type, else in the type of floats of the result."""
    if seed.dtype == mask.dtype and mask.dtype.kind != "b":
        return seed.image, mask.image
    floats = float_type(mask.dtype)
    seed_floats, mask_floats = (given.image.astype(floats) for given in (seed, mask))
    return seed_floats, mask_floats


@public("morphology", module="skimage.morphology.grayreconstruct", rust="reconstruct", differs="footprints are of 3x3x3 pixels and symmetric")
@public(
    "filters", module="skimage.morphology.grayreconstruct", rust="reconstruct", differs="footprints are of 3x3x3 pixels and symmetric",
    accel=Terms(PIXELS)
)
@of_any_library
def reconstruction(
    seed: ArrayLike, mask: ArrayLike, method: str = "dilation", footprint: npt.ArrayLike | None = None, offset: Ints | None = None
) -> Pixels:
    """A seed that grows within a mask, from neighbour to neighbour, until nothing changes (``skimage.morphology.reconstruction``).

    Parameters
    ----------
    seed : array_like or Image
        The initial image: below the mask, or for erosion above it. For arrays a seed beyond the mask is an error, as in scikit-image; for lazy
        images, whose values are not read, it is clipped to the mask.
    mask : array_like or Image
        The bound of its growth, in the seed's shape.
    method : {'dilation', 'erosion'}, optional
        Large numbers spread below the mask, or small ones above it.
    footprint : array_like, optional
        The neighbours of a pixel; by default all that touch it. It is symmetric, and of the 3x3x.. pixels around its centre
        (`horus_image.ndimage.generate_binary_structure`); anything else raises `NotImplementedError`.
    offset : array_like, optional
        The centre of the footprint, by default the middle.

    Returns
    -------
    ndarray or Image
        ``float32`` of a mask of ``float32``, else ``float64``. A NaN is the lowest number, by erosion the highest.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.filters import reconstruction
    >>> mask = np.array([1, 5, 3, 0, 4, 6, 4])
    >>> mask - reconstruction(mask - 2, mask)
    array([0., 2., 0., 0., 0., 2., 0.])
    """
    if method not in ("dilation", "erosion"):
        raise ValueError(f"Reconstruction method can be one of 'erosion' or 'dilation'. Got '{method}'.")
    given, within = (Given("reconstruction", image, (1, 2, 3)) for image in (seed, mask))
    for one in (given, within):
        one.gray()
    if given.image.shape != within.image.shape:
        raise ValueError(f"reconstruction: a seed of shape {given.image.shape} for a mask of shape {within.image.shape}")
    neighbours = around("reconstruction", within.value.ndim, footprint, offset)
    if given.array is not None and within.array is not None:
        beyond = given.array > within.array if method == "dilation" else given.array < within.array
        if np.any(beyond):
            side = "less" if method == "dilation" else "greater"
            raise ValueError(f"Intensity of seed image must be {side} than that of the mask image for reconstruction by {method}.")
    start, limit = _in_one_type(given, within)
    core = _horus.reconstruct(start._core, limit._core, neighbours, method == "erosion")
    found = made(core, within.value.session, within.value.ndim).astype(float_type(within.dtype))
    return (within if within.array is None else given).back(found, seed, mask)
