"""Indexing of images by slices and whole numbers."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _horus
from ._along import permuted
from ._foreign import on_host
from ._moves import checked_shape, is_number, picked, reshaped

if TYPE_CHECKING:
    from ._image import Image


def indexed(image: Image, key: Any) -> Image:
    """The crop that a key names."""
    from ._image import made

    given = list(key) if isinstance(key, tuple) else [key]
    if any(part is None for part in given):
        return _with_axes(image, given)
    if any(_is_integers(part) for part in given):
        return _picked(image, given)
    keys = _expanded(given, image.ndim)
    core, channels = image._core, image._channels
    if channels:
        last = keys.pop()
        if isinstance(last, slice):
            chosen = range(core.shape[3])[last]
            if not chosen:
                raise ValueError(f"the index {key!r} leaves no channels, and images have at least one")
            if chosen != range(core.shape[3]):
                core = _horus.stack([_horus.channel(core, k) for k in chosen], True)
        else:
            core, channels = _horus.channel(core, _place(last, image.shape[-1])), False
    first = 3 - image._ndim
    extents = list(core.shape[:3])
    start, flipped, steps, gone = [0, 0, 0], [False] * 3, [1, 1, 1], []
    for i, part in enumerate(keys):
        axis = first + i
        if isinstance(part, slice):
            start[axis], extents[axis], steps[axis], flipped[axis] = _range(part, extents[axis])
        else:
            start[axis], extents[axis] = _place(part, extents[axis]), 1
            gone.append(axis)
    if 0 in extents:
        raise ValueError(f"the index {key!r} leaves no pixels, and images have at least one")
    core = _horus.crop(core, (start[0], start[1], start[2]), (extents[0], extents[1], extents[2]))
    if any(flipped):
        core = _horus.flip(core, *flipped)
    if steps != [1, 1, 1]:
        core = _horus.step(core, (steps[0], steps[1], steps[2]))
        extents = list(core.shape[:3])
    left = [axis for axis in range(first, 3) if axis not in gone]
    # The last axes remain: a column becomes a row.
    core = permuted(core, image, [*(axis for axis in range(3) if axis not in left), *left])
    return made(core, image._session, len(left), channels)


def _with_axes(image: Image, keys: list[Any]) -> Image:
    """The part that a key names, with an axis of 1 for each None."""
    rest = [part for part in keys if part is not None]
    found = indexed(image, tuple(rest))
    left, shape = list(found.shape), []
    for part in keys:
        if part is None:
            shape.append(1)
        elif part is Ellipsis:
            count = image.ndim - len(rest) + 1
            shape, left = shape + left[:count], left[count:]
        elif isinstance(part, slice):
            shape.append(left.pop(0))
    return reshaped(found, checked_shape("index", shape + left))


def _is_integers(part: Any) -> bool:
    """Returns true for an array, or an image, of several whole numbers."""
    return getattr(part, "ndim", 0) > 0 and getattr(getattr(part, "dtype", None), "kind", "") in ("i", "u")


def _picked(image: Image, keys: list[Any]) -> Image:
    """Single pixels, by positions along each axis."""
    from ._image import Image as Kind
    from ._image import asarray

    if len(keys) != image.ndim or not all(_is_integers(part) or (is_number(part) and not isinstance(part, bool)) for part in keys):
        raise IndexError(f"arrays of positions index pixels along each of the {image.ndim} axes, with whole numbers for the others")
    numbers = []
    for axis, part in enumerate(keys):
        extent = image.shape[axis]
        if not isinstance(part, Kind):
            places = on_host(part)
            if ((places < -extent) | (places >= extent)).any():
                raise IndexError(f"an index is out of bounds for an axis of {extent} pixels")
            # A narrow type does not hold the extent.
            part = asarray((places.astype(np.int64) % extent).astype(np.int32), session=image._session)
        numbers.append(part)
    return picked(image, numbers)


def _expanded(keys: list[Any], ndim: int) -> list[Any]:
    keys = list(keys)
    if sum(part is Ellipsis for part in keys) > 1:
        raise IndexError("an index has one ellipsis at most")
    at = next((i for i, part in enumerate(keys) if part is Ellipsis), None)
    if at is not None:
        keys[at : at + 1] = [slice(None)] * (ndim - len(keys) + 1)
    if len(keys) > ndim:
        raise IndexError(f"{len(keys)} indices for an image of {ndim} axes")
    for part in keys:
        if isinstance(part, bool) or getattr(part, "dtype", None) == bool:
            raise IndexError(
                "a mask selects pixels of which nobody knows the number before they are computed: use hi.where(mask, image, 0), "
                "labels, or image.compute()[mask]"
            )
        if not isinstance(part, slice) and not hasattr(part, "__index__"):
            raise IndexError(f"images are indexed by slices and whole numbers, not by {type(part).__name__}")
    return keys + [slice(None)] * (ndim - len(keys))


def _place(part: Any, extent: int) -> int:
    at = operator.index(part)
    if not -extent <= at < extent:
        raise IndexError(f"index {at} is out of bounds for an axis of {extent} pixels")
    return at % extent


def _range(part: slice, extent: int) -> tuple[int, int, int, bool]:
    """First pixel of a range, how far it reaches, the step inside, and whether it is reversed before."""
    places = range(*part.indices(extent))
    if not places:
        return 0, 0, 1, False
    low, high = min(places[0], places[-1]), max(places[0], places[-1])
    return low, high - low + 1, abs(places.step) if len(places) > 1 else 1, places.step < 0
