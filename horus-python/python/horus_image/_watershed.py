"""Watersheds, as scikit-image computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import _horus
from ._binary import generate_binary_structure
from ._dtype import NATIVE, is_native, ready, truth
from ._floats import Given
from ._foreign import of_any_library, on_host
from ._image import Array, Image, made
from ._public import public
from ._reconstruction import around
from ._values import shape_of
from .typing import ArrayLike, Ints, Pixels


@public("segmentation", rust="watershed", opencv="cv.watershed", differs="markers are given; no `compactness` or `watershed_line`")
@of_any_library
def watershed(
    image: ArrayLike,
    markers: ArrayLike | None = None,
    connectivity: npt.ArrayLike = 1,
    offset: Ints | None = None,
    mask: ArrayLike | None = None,
    compactness: float = 0,
    watershed_line: bool = False,
) -> Pixels:
    """Divides an image among markers by flooding it from them, the lowest pixels first (``skimage.segmentation.watershed``).

    The result is scikit-image's, also on plateaus. The flood is sequential, and computed on the host.

    Parameters
    ----------
    image : array_like or Image
        Numbers, of one to three axes.
    markers : array_like or Image
        Integers of 32 bits, in the shape of the image: labels of the pixels from which it is flooded, elsewhere 0. Markers that
        scikit-image would choose (none, or a number of them) raise `NotImplementedError`.
    connectivity : int or array_like, optional
        The neighbours of a pixel: along how many axes they differ at most, or a footprint that is symmetric and of the 3x3x.. pixels
        around its centre.
    offset : array_like, optional
        The centre of the footprint, by default the middle.
    mask : array_like or Image, optional
        The pixels that are flooded; others get 0.
    compactness, watershed_line
        Anything but their defaults raises `NotImplementedError`.

    Returns
    -------
    ndarray or Image
        Labels, of the markers' type; of an image, with markers in an array, ``int32`` if they have a type that images do not have.

    Examples
    --------
    >>> from horus_image.segmentation import watershed
    >>> watershed([[0, 3, 1, 3, 0]], [[1, 0, 0, 0, 2]], mask=[[1, 1, 1, 0, 1]])
    array([[1, 1, 1, 0, 2]])
    """
    if compactness != 0 or watershed_line:
        raise NotImplementedError("watershed: compact watersheds and lines between them")
    if markers is None or not shape_of(markers):
        raise NotImplementedError("watershed: markers are an array or an image of labels")
    shape = shape_of(image)
    _same("markers", shape_of(markers), shape)
    if mask is not None:
        _same("mask", shape_of(mask), shape)
    if 0 in shape:
        return np.array(on_host(markers))
    given = Given("watershed", image, (1, 2, 3))
    given.gray()
    footprint = connectivity if np.ndim(connectivity) else generate_binary_structure(len(shape), int(np.asarray(connectivity)))
    neighbours = around("watershed", len(shape), footprint, offset)
    seeds, dtype = _labels(markers)
    within = None if mask is None else _beside(given, mask, "bool")
    core = _horus.watershed(given.value.numbers(), _beside(given, seeds, "i32"), neighbours, within)
    found = given.back(made(core, given.value.session, given.value.ndim), markers, mask)
    if isinstance(found, np.ndarray):
        return np.asarray(found, dtype)
    return found.astype(dtype) if is_native(dtype) else found


def _same(what: str, shape: tuple[int, ...], of: tuple[int, ...]) -> None:
    if shape != of:
        raise ValueError(f"`{what}` (shape {shape}) must have same shape as `image` (shape {of})")


def _labels(markers: Any) -> tuple[Array | Image, np.dtype[Any]]:
    """Markers that 32 bits hold, and their own type."""
    labels = markers if isinstance(markers, Image) else on_host(markers)
    if labels.dtype.kind not in "iub":
        raise TypeError(f"watershed: markers are integers, not {labels.dtype}")
    if isinstance(labels, np.ndarray) and labels.dtype.itemsize >= 4:
        bounds = np.iinfo(np.int32)
        if labels.min() < bounds.min or labels.max() > bounds.max:
            raise NotImplementedError("watershed: markers that 32 bits do not hold")
    return labels, labels.dtype


def _beside(given: Given, pixels: Any, code: str) -> _horus.Image:
    """An image in the session of a given one, in a type of images."""
    if isinstance(pixels, Image):
        core = pixels._core
        return truth(core) if code == "bool" else core if core.dtype == code else _horus.convert(core, code)
    array = ready(on_host(pixels).astype(NATIVE[code], copy=False))
    return _horus.Image.of_array(given.value.session._core, array, code, False)
