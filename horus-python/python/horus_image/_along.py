"""Reductions of lazy images along axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _horus
from ._operators import _made

if TYPE_CHECKING:
    from ._image import Image

Axes = int | Sequence[int]
CHANNELS = 3
_SINGLE = 1 << 24
"""Pixels along an axis up to which `float32` holds the number of each."""


def numbers_of(image: Image, axis: Axes, name: str) -> list[int]:
    """The axes as the core numbers them: levels, rows, columns, channels."""
    asked = [axis] if hasattr(axis, "__index__") else list(axis)
    numbers = []
    for one in asked:
        at = operator.index(one)
        if not -image.ndim <= at < image.ndim:
            raise np.exceptions.AxisError(at, image.ndim)
        at %= image.ndim
        numbers.append(CHANNELS if image._channels and at == image.ndim - 1 else 3 - image._ndim + at)
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{name}: an axis occurs twice in {axis!r}")
    return sorted(numbers)


def along(image: Image, name: str, axis: Axes, keepdims: bool) -> Image:
    """The ``sum``, ``min``, ``max``, ``mean`` or ``var`` along axes, which go unless they are kept."""
    numbers = numbers_of(image, axis, name)
    count = math.prod(image._core.shape[number] for number in numbers)
    pixels = image._numbers()
    if name in ("mean", "var"):
        kind = "f32" if pixels.dtype == "f32" else "f64"
        mean = _horus.binary("div", _horus.reduce_along(pixels, "sum", numbers), float(count))
        if name == "var":
            apart = _horus.unary("square", _horus.binary("sub", _horus.convert(pixels, "f64"), mean))
            mean = _horus.binary("div", _horus.reduce_along(apart, "sum", numbers), float(count))
        core = _horus.convert(mean, kind)
    else:
        core = _horus.reduce_along(pixels, name, numbers)
    found = _made(type(image), core, image._session, image._ndim, image._channels)
    found = found if keepdims else without(found, numbers, name)
    truths = image._core.dtype == "bool" and name in ("min", "max")
    return found._with(_horus.convert(found._core, "bool")) if truths else found


def without(image: Image, gone: list[int], name: str) -> Image:
    """The image without axes of one pixel."""
    core, channels = image._core, image._channels and CHANNELS not in gone
    left = [number for number in range(3 - image._ndim, 3) if number not in gone]
    if channels and not left:
        # The channels are the pixels of a row.
        places = _horus.index(image._session._core, (1, 1, core.shape[3]), 2)
        row = _horus.channel(core, 0)
        for k in range(1, core.shape[3]):
            row = _horus.select(_horus.compare("eq", places, float(k)), _horus.channel(core, k), row)
        core, channels, left = row, False, [2]
    else:
        core = permuted(core, image, [*(number for number in range(3) if number not in left), *left])
    return _made(type(image), core, image._session, len(left), channels)


def permuted(core: _horus.Image, image: Image, order: Sequence[int]) -> _horus.Image:
    """Levels (0), rows (1) and columns (2) in another order: the first of it are the levels of the result."""
    extents = [core.shape[number] for number in order]
    moved = [number for number in order if core.shape[number] > 1]
    if moved == sorted(moved) and extents == list(core.shape[:3]):
        return core
    if list(order) == [0, 2, 1]:
        return _horus.transpose(core)
    places = [_horus.index(image._session._core, (extents[0], extents[1], extents[2]), order.index(number)) for number in range(3)]
    if max(extents) <= _SINGLE:
        places = [_horus.convert(place, "f32") for place in places]
    numbers = _horus.convert(core, "u8") if core.dtype == "bool" else core
    found = _horus.remap(numbers, places, 0, "nearest", 0.0)
    found = _horus.convert(found, "bool") if core.dtype == "bool" else found
    return _horus.related(found, "transpose", [core], (np.eye(3)[:, order].tolist(), [0.0] * 3))


def transposed(image: Image, axes: Sequence[int]) -> Image:
    """The image with its axes in another order; channels that are not the last are levels, rows or columns like others."""
    order = [operator.index(axis) for axis in axes]
    if any(not -image.ndim <= axis < image.ndim for axis in order):
        raise np.exceptions.AxisError(f"transpose: axes {tuple(order)} of an image of {image.ndim} axes")
    order = [axis % image.ndim for axis in order]
    if sorted(order) != list(range(image.ndim)):
        raise ValueError(f"transpose: axes {tuple(order)} are not each of the {image.ndim} axes once")
    core, channels, ndim = image._core, image._channels, image._ndim
    if channels and order[-1] != ndim:
        if ndim < 2:
            from ._moves import plain

            return transposed(plain(image), axes)
        if ndim != 2:
            raise NotImplementedError("transpose: channels of a volume stay the last axis; images have up to three axes beside")
        # Channels become levels, which are the first axis.
        core = _horus.stack([_horus.channel(core, k) for k in range(core.shape[3])], False)
        order, channels, ndim = [(1, 2, 0)[axis] for axis in order], False, 3
    elif channels:
        order = order[:-1]
    lead = 3 - ndim
    found = permuted(core, image, [*range(lead), *(axis + lead for axis in order)])
    return _made(type(image), found, image._session, ndim, channels)


def cumulative(image: Image, axis: int) -> Image:
    """The running sums along an axis."""
    return image._with(_horus.reduce_along(image._numbers(), "cumsum", numbers_of(image, axis, "cumsum")))
