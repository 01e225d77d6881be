"""Images whose pixels are those of others, in other places or axes: recorded, as functions of the array API move them."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _horus
from ._along import _SINGLE, permuted, transposed
from ._dtype import STORED
from ._operators import _made

if TYPE_CHECKING:
    from ._image import Image

AXES = 3
"""Axes that images have, not counting channels."""

Extents = tuple[int, int, int]


def is_number(value: Any) -> bool:
    """Returns true for a whole number, also as an array or image without axes: any array has an attribute ``__index__``."""
    kind = getattr(getattr(value, "dtype", None), "kind", "i")
    return hasattr(value, "__index__") and kind in ("i", "u") and not getattr(value, "ndim", 0)


def several(numbers: Any) -> tuple[int, ...]:
    """Whole numbers, of one or a sequence of them."""
    return (operator.index(numbers),) if is_number(numbers) else tuple(map(operator.index, numbers))


def checked_shape(name: str, shape: int | Iterable[int]) -> tuple[int, ...]:
    """The extents of an image without channels, from a number or a sequence of them."""
    found = several(shape)
    if len(found) > AXES:
        raise NotImplementedError(f"{name}: {len(found)} axes requested; images have up to {AXES}")
    if any(extent < 1 for extent in found):
        raise ValueError(f"{name}: shape {found} requested; images have at least one pixel")
    return found


def axis_in(name: str, axis: Any, ndim: int) -> int:
    """An axis counted from the first."""
    at = operator.index(axis)
    if not -ndim <= at < ndim:
        raise np.exceptions.AxisError(at, ndim, name)
    return at % ndim


def whole(shape: Sequence[int]) -> Extents:
    """Levels, rows and columns of a shape."""
    depth, height, width = (*(1,) * (AXES - len(shape)), *shape)
    return depth, height, width


def counted(image: Image) -> _horus.Image:
    """The record, a mask as 0 and 1: masks are not sampled."""
    return _horus.convert(image._core, "u8") if image._core.dtype == "bool" else image._core


def moved(image: Image, core: _horus.Image, ndim: int, channels: bool = False) -> Image:
    """An image of a record that `counted` began, a mask again if it was one."""
    core = _horus.convert(core, "bool") if image._core.dtype == "bool" else core
    return _made(type(image), core, image._session, ndim, channels)


def plain(image: Image) -> Image:
    """The same pixels and shape, with channels as an axis like others."""
    if not image._channels:
        return image
    if image._ndim == AXES:
        raise NotImplementedError("channels of a volume stay the last axis; images have up to three axes beside")
    core = image._core
    # Channels become levels, and these the columns.
    planes = _horus.stack([_horus.channel(core, k) for k in range(core.shape[3])], False)
    return reshaped(transposed(_made(type(image), planes, image._session, AXES, False), (1, 2, 0)), image.shape)


def positions(image: Image, shape: Sequence[int], axis: int) -> _horus.Image:
    """The position along one of levels, rows and columns of each pixel of an image of this shape."""
    return _horus.index(image._session._core, whole(shape), axis)


def gathered(image: Image, shape: Sequence[int], places: Sequence[_horus.Image]) -> Image:
    """The pixels in these levels, rows and columns, in an image of another shape; channels stay."""
    if max(*whole(shape), *image._core.shape[:3]) <= _SINGLE:
        places = [_horus.convert(place, "f32") for place in places]
    return moved(image, _horus.remap(counted(image), places, 0, "nearest", 0.0), len(shape), image._channels)


def from_start(numbers: Image, extent: int) -> _horus.Image:
    """Positions along an axis, of which negative ones count from its end."""
    wide = _horus.convert(numbers._core, "f64")
    if numbers.dtype.kind != "i":
        return wide
    return _horus.select(_horus.compare("lt", wide, 0.0), _horus.binary("add", wide, float(extent)), wide)


def picked(image: Image, numbers: Sequence[Image]) -> Image:
    """The pixels at positions along each axis, in the shape that these broadcast to; beyond the ends, those at the ends."""
    image = plain(image)
    shape = checked_shape("index", np.broadcast_shapes(*(one.shape for one in numbers)))
    places = [_horus.binary("mul", positions(image, shape, k), 0.0) for k in range(AXES)]
    for axis, one in enumerate(numbers):
        number = axis + AXES - image._ndim
        places[number] = _horus.binary("add", places[number], from_start(plain(one), image.shape[axis]))
    return gathered(image, shape, places)


def taken(image: Image, indices: _horus.Image, count: int, axis: int) -> Image:
    """The pixels at `count` positions along an axis; the indices are a row."""
    image = plain(image)
    shape = (*image.shape[:axis], count, *image.shape[axis + 1 :])
    number = axis + AXES - image._ndim
    places = [positions(image, shape, k) for k in range(AXES)]
    order = {0: [2, 0, 1], 1: [0, 2, 1], 2: [0, 1, 2]}[number]
    along = permuted(indices, image, order)
    places[number] = _horus.binary("add", _horus.binary("mul", places[number], 0.0), _horus.convert(along, "f64"))
    return gathered(image, shape, places)


def reshaped(image: Image, shape: Sequence[int]) -> Image:
    """The pixels in C order as an image of another shape, of as many pixels."""
    image = plain(image)
    old, new = whole(image.shape), whole(shape)
    if old == new:
        return _made(type(image), image._core, image._session, len(shape), False)
    if [extent for extent in old if extent > 1] == [extent for extent in new if extent > 1]:
        long, short = [k for k in range(AXES) if old[k] > 1], [k for k in range(AXES) if old[k] == 1]
        order = [(long if extent > 1 else short).pop(0) for extent in new]
        return _made(type(image), permuted(image._core, image, order), image._session, len(shape), False)
    # The number of each pixel, and the place that the old shape has it in: whole numbers below 2^53.
    levels, rows, columns = (positions(image, shape, k) for k in range(AXES))
    number = _horus.binary("add", _horus.binary("mul", levels, float(new[1])), rows)
    number = _horus.binary("add", _horus.binary("mul", number, float(new[2])), columns)
    places = []
    for extent in (old[2], old[1]):
        place = _horus.binary("rem", number, float(extent))
        places.append(place)
        number = _horus.binary("div", _horus.binary("sub", number, place), float(extent))
    return gathered(image, shape, [number, *reversed(places)])


def spread(image: Image, shape: Sequence[int]) -> Image:
    """The image with extents of 1 repeated, to a shape that it broadcasts to."""
    if image.shape == tuple(shape):
        return image
    image = plain(image)
    if np.broadcast_shapes(image.shape, tuple(shape)) != tuple(shape):
        raise ValueError(f"broadcast_to: an image of shape {image.shape} does not broadcast to {tuple(shape)}")
    everywhere = _horus.compare("ge", positions(image, shape, 2), 0.0)
    core = counted(image)
    return moved(image, _horus.select(everywhere, core, core), len(shape))


def joined(images: Sequence[Image], axis: int) -> Image:
    """Images of one type one after the other along an axis; extents along others are equal."""
    first = images[0]
    if any(image._channels != first._channels or image._ndim != first._ndim for image in images):
        images = [plain(image) for image in images]
        first = images[0]
    for image in images:
        if image.ndim != first.ndim or any(k != axis and image.shape[k] != first.shape[k] for k in range(first.ndim)):
            raise ValueError(f"concat: images of shapes {first.shape} and {image.shape} are not joined along axis {axis}")
    cores = [counted(image) for image in images]
    number = axis + AXES - first._ndim
    if number in (0, AXES):
        core = _horus.stack(cores, number == AXES)
    else:
        core, start = cores[0], first.shape[axis]
        more = sum(image.shape[axis] for image in images[1:])
        core = _horus.pad(core, (0, more if number == 1 else 0), (0, more if number == 2 else 0), "constant", 0.0)
        for image, part in zip(images[1:], cores[1:], strict=True):
            core = _horus.paste(core, part, start if number == 1 else 0, start if number == 2 else 0)
            start += image.shape[axis]
    return moved(first, core, first._ndim, first._channels)


def rolled(image: Image, shift: int, axis: int) -> Image:
    """The image turned round along an axis: what leaves it at one end comes in at the other."""
    extent = image.shape[axis]
    by = shift % extent
    if not by:
        return image
    if image._channels and axis == image._ndim:
        return joined([image[..., extent - by :], image[..., : extent - by]], axis)
    steps = [0, 0, 0]
    steps[axis + AXES - image._ndim] = by
    core = _horus.shift(counted(image), (steps[0], steps[1], steps[2]), "wrap", 0.0)
    return moved(image, core, image._ndim, image._channels)


def filled(session: Any, name: str, shape: int | Iterable[int], dtype: np.dtype[Any], value: float) -> Image:
    """An image of one number."""
    from ._image import made

    extents = checked_shape(name, shape)
    code = STORED[dtype]
    core = _horus.Image.filled(session._core, "u8" if code == "bool" else code, whole(extents), float(value))
    return made(_horus.convert(core, "bool") if code == "bool" else core, session, len(extents))
