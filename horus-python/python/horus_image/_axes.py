"""Functions of the array API that move pixels and axes, and choose pixels: recorded."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _horus
from ._along import transposed
from ._creation import asarray, image_in, promoted
from ._image import Image
from ._image import where as chosen
from ._moves import AXES, axis_in, checked_shape, from_start, gathered, joined, plain, positions, reshaped, rolled, several, spread, taken


def broadcast_to(x: Image, /, shape: tuple[int, ...]) -> Image:
    """The image with extents of 1 repeated, and axes added before the first."""
    return spread(image_in("broadcast_to", x), checked_shape("broadcast_to", shape))


def broadcast_arrays(*arrays: Image) -> list[Image]:
    """Images in the shape that they broadcast to."""
    images = [image_in("broadcast_arrays", x) for x in arrays]
    shape = np.broadcast_shapes(*(image.shape for image in images))
    return [spread(image, shape) for image in images]


def concat(arrays: Sequence[Image], /, *, axis: int | None = 0) -> Image:
    """Images one after the other along an axis, in the type of all; without an axis in C order.

    Examples
    --------
    >>> from horus_image import array_api as xp
    >>> xp.concat([xp.zeros((1, 2)), xp.ones((1, 2))]).compute()
    array([[0., 0.],
           [1., 1.]])
    """
    images = promoted("concat", arrays)
    if axis is None:
        return joined([reshape(image, (-1,)) for image in images], 0)
    if not images[0].ndim:
        raise ValueError("concat: images without axes are not joined; stack them")
    return joined(images, axis_in("concat", axis, images[0].ndim))


def stack(arrays: Sequence[Image], /, *, axis: int = 0) -> Image:
    """Images of one shape along a new axis, in the type of all."""
    images = promoted("stack", arrays)
    if any(image.shape != images[0].shape for image in images):
        raise ValueError("stack: the images differ in shape")
    at = axis_in("stack", axis, images[0].ndim + 1)
    return joined([expand_dims(image, at) for image in images], at)


def unstack(x: Image, /, *, axis: int = 0) -> tuple[Image, ...]:
    """The parts of an image along an axis, without it."""
    image = image_in("unstack", x)
    before = (slice(None),) * axis_in("unstack", axis, image.ndim)
    return tuple(image[before + (k,)] for k in range(image.shape[len(before)]))


def expand_dims(x: Image, /, axis: int = 0) -> Image:
    """The image with a further axis of 1."""
    image = image_in("expand_dims", x)
    at = axis_in("expand_dims", axis, image.ndim + 1)
    return reshaped(image, checked_shape("expand_dims", (*image.shape[:at], 1, *image.shape[at:])))


def squeeze(x: Image, /, axis: int | tuple[int, ...]) -> Image:
    """The image without axes of 1."""
    image = image_in("squeeze", x)
    axes = several(axis)
    gone = {axis_in("squeeze", one, image.ndim) for one in axes}
    if any(image.shape[at] != 1 for at in gone):
        raise ValueError(f"squeeze: axes {axes} of an image of shape {image.shape} are not all of 1")
    return reshaped(image, [extent for at, extent in enumerate(image.shape) if at not in gone]) if gone else image


def reshape(x: Image, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Image:
    """The pixels in C order in another shape; an extent of -1 follows from the others.

    Raises
    ------
    ValueError
        If the shape has another number of pixels, and with ``copy=False``: pixels are moved.

    Examples
    --------
    >>> from horus_image import array_api as xp
    >>> xp.reshape(xp.arange(6), (2, -1)).compute()
    array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    image = image_in("reshape", x)
    given = list(several(shape))
    rest = math.prod(extent for extent in given if extent != -1)
    if given.count(-1) == 1 and rest > 0 and image.size % rest == 0:
        given[given.index(-1)] = image.size // rest
    found = checked_shape("reshape", given) if min(given, default=1) > 0 else ()
    if math.prod(given) != image.size or len(found) != len(given):
        raise ValueError(f"reshape: an image of shape {image.shape} has no shape {tuple(given)}")
    if found == image.shape:
        return image
    if copy is False:
        raise ValueError("reshape: pixels are moved, which takes a copy")
    return reshaped(image, found)


def permute_dims(x: Image, /, axes: tuple[int, ...]) -> Image:
    """The image with its axes in another order; see `Image.transpose`."""
    return transposed(image_in("permute_dims", x), axes)


def matrix_transpose(x: Image, /) -> Image:
    """Each matrix, of the last two axes, transposed."""
    return image_in("matrix_transpose", x).mT


def moveaxis(x: Image, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Image:
    """The image with some axes at other places, and the others in their order."""
    image = image_in("moveaxis", x)
    sources, places = ([axis_in("moveaxis", axis, image.ndim) for axis in several(one)] for one in (source, destination))
    if len(set(sources)) != len(sources) or len(set(places)) != len(places) or len(sources) != len(places):
        raise ValueError(f"moveaxis: axes {source} do not go to {destination}: as many different axes are needed")
    order = [axis for axis in range(image.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return transposed(image, order)


def flip(x: Image, /, *, axis: int | tuple[int, ...] | None = None) -> Image:
    """The image in reverse along axes, by default all."""
    image = image_in("flip", x)
    turned = {axis_in("flip", one, image.ndim) for one in (range(image.ndim) if axis is None else several(axis))}
    return image[tuple(slice(None, None, -1 if at in turned else 1) for at in range(image.ndim))]


def roll(x: Image, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Image:
    """The image turned round along axes by numbers of pixels, by default as one line in C order.

    Examples
    --------
    >>> from horus_image import array_api as xp
    >>> xp.roll(xp.arange(4), 1).compute()
    array([3, 0, 1, 2], dtype=int32)
    """
    image = image_in("roll", x)
    if axis is None:
        return reshaped(rolled(reshaped(image, (image.size,)), sum(several(shift)), 0), image.shape)
    axes, shifts = several(axis), several(shift)
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    if len(axes) != len(shifts):
        raise ValueError(f"roll: {len(shifts)} shifts for {len(axes)} axes")
    for by, one in zip(shifts, axes, strict=True):
        image = rolled(image, by, axis_in("roll", one, image.ndim))
    return image


def _places(image: Image, numbers: np.ndarray[Any, Any]) -> _horus.Image:
    """Positions as a row."""
    return asarray(numbers.astype(np.float64), device=image._session)._core


def repeat(x: Image, repeats: int | Image, /, *, axis: int | None = None) -> Image:
    """Each part along an axis so many times; without an axis each pixel, in C order. An image of numbers of times is evaluated."""
    image = image_in("repeat", x)
    image, at = (reshape(image, (-1,)), 0) if axis is None else (image, axis_in("repeat", axis, image.ndim))
    times = np.asarray(repeats)
    if times.size and times.min() < 0:
        raise ValueError("repeat: repeats are not negative")
    places = np.repeat(np.arange(image.shape[at]), times)
    if not places.size:
        raise ValueError("repeat: the result has no pixels, and images have at least one")
    return taken(image, _places(image, places), places.size, at)


def tile(x: Image, repetitions: tuple[int, ...], /) -> Image:
    """The image repeated along its axes, so many times."""
    image = image_in("tile", x)
    count = max(len(repetitions), image.ndim)
    times = (*(1,) * (count - len(repetitions)), *map(operator.index, repetitions))
    shape = (*(1,) * (count - image.ndim), *image.shape)
    checked_shape("tile", [extent * by for extent, by in zip(shape, times, strict=True)])
    image = reshaped(image, shape) if shape != image.shape else image
    for axis, (extent, by) in enumerate(zip(shape, times, strict=True)):
        if by > 1:
            image = taken(image, _places(image, np.arange(extent * by) % extent), extent * by, axis)
    return image


def take(x: Image, indices: Image, /, *, axis: int | None = None) -> Image:
    """The parts at some positions along an axis, which an image of one axis need not name: negative ones count from the end, and what is
    beyond the ends is the first or the last."""
    image, numbers = plain(image_in("take", x)), image_in("take", indices)
    if axis is None and image.ndim != 1:
        raise ValueError(f"take: the image has {image.ndim} axes; name one")
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise TypeError(f"take: indices are integers of one axis, not {numbers.dtype} of {numbers.ndim}")
    at = axis_in("take", 0 if axis is None else axis, image.ndim)
    return taken(image, from_start(numbers, image.shape[at]), numbers.size, at)


def take_along_axis(x: Image, indices: Image, /, *, axis: int = -1) -> Image:
    """The pixels at the positions along an axis that an image of indices has, other axes alike; indices as for `take`."""
    image, numbers = plain(image_in("take_along_axis", x)), plain(image_in("take_along_axis", indices))
    at = axis_in("take_along_axis", axis, image.ndim)
    if numbers.ndim != image.ndim or numbers.dtype.kind not in "iu":
        raise TypeError(f"take_along_axis: indices are integers of {image.ndim} axes, not {numbers.dtype} of {numbers.ndim}")
    alike = np.broadcast_shapes(*((*one.shape[:at], 1, *one.shape[at + 1 :]) for one in (image, numbers)))
    image = spread(image, (*alike[:at], image.shape[at], *alike[at + 1 :]))
    numbers = spread(numbers, (*alike[:at], numbers.shape[at], *alike[at + 1 :]))
    places = [positions(image, numbers.shape, k) for k in range(AXES)]
    places[at + AXES - image.ndim] = from_start(numbers, image.shape[at])
    return gathered(image, numbers.shape, places)


def where(condition: Image, x1: Any, x2: Any, /) -> Image:
    """The pixels of `x1` where the condition, a mask, holds, else those of `x2`; each an image or a number."""
    return chosen(image_in("where", condition), x1, x2)
