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
    elif left == [1] and core.shape[0] == 1:
        core = _horus.transpose(core)
    elif left and left != list(range(3 - len(left), 3)):
        message = f"{name}: levels cannot become rows; with keepdims=True the shape is {image.shape}"
        raise NotImplementedError(message)
    return _made(type(image), core, image._session, max(len(left), 1), channels)


def cumulative(image: Image, axis: int) -> Image:
    """The running sums along an axis."""
    return image._with(_horus.reduce_along(image._numbers(), "cumsum", numbers_of(image, axis, "cumsum")))
