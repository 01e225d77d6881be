"""Footprints, as scikit-image 0.26 makes them: arrays, for all functions that take one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._image import Array
from ._public import public

_listed = public("morphology", module="skimage.morphology.footprints", rust="Footprint", opencv="cv.getStructuringElement", differs="no `decomposition`")


def _undivided(name: str, decomposition: Any) -> None:
    if decomposition is not None:
        raise NotImplementedError(f"{name}: decomposition={decomposition!r}; windows take a whole footprint, and no longer for it")


def _checked(radius: Any) -> Any:
    if not radius >= 0:
        raise ValueError(f"a footprint with a radius of {radius}; it is at least 0")
    return radius


def _within(radius: Any, ndim: int) -> list[Array]:
    """The distances from the centre along each axis."""
    side = np.linspace(-_checked(radius), radius, int(2 * radius + 1))
    return list(np.meshgrid(*[side] * ndim, indexing="ij", sparse=True))


@_listed
def disk(radius: float, dtype: npt.DTypeLike = np.uint8, *, strict_radius: bool = True, decomposition: str | None = None) -> Array:
    """The pixels of a plane up to a distance (``skimage.morphology.disk``), half a pixel more without `strict_radius`.

    Examples
    --------
    >>> from horus_image.morphology import disk
    >>> disk(1)
    array([[0, 1, 0],
           [1, 1, 1],
           [0, 1, 0]], dtype=uint8)
    """
    _undivided("disk", decomposition)
    y, x = np.ogrid[-_checked(radius) : radius + 1, -radius : radius + 1]
    return np.asarray(x**2 + y**2 <= (radius + (0 if strict_radius else 0.5)) ** 2, dtype)


@_listed
def ball(radius: float, dtype: npt.DTypeLike = np.uint8, *, strict_radius: bool = True, decomposition: str | None = None) -> Array:
    """The pixels of a volume up to a distance (``skimage.morphology.ball``), half a pixel more without `strict_radius`.

    Examples
    --------
    >>> from horus_image.morphology import ball
    >>> int(ball(2).sum())
    33
    """
    _undivided("ball", decomposition)
    z, y, x = _within(radius, 3)
    return np.asarray(z**2 + y**2 + x**2 <= (radius + (0 if strict_radius else 0.5)) ** 2, dtype)


@_listed
def diamond(radius: int, dtype: npt.DTypeLike = np.uint8, *, decomposition: str | None = None) -> Array:
    """The pixels of a plane up to so many steps along axes (``skimage.morphology.diamond``).

    Examples
    --------
    >>> from horus_image.morphology import diamond
    >>> int(diamond(2).sum())
    13
    """
    _undivided("diamond", decomposition)
    y, x = _within(radius, 2)
    return np.asarray(abs(x) + abs(y) <= radius, dtype)


@_listed
def octahedron(radius: float, dtype: npt.DTypeLike = np.uint8, *, decomposition: str | None = None) -> Array:
    """The pixels of a volume up to so many steps along axes (``skimage.morphology.octahedron``).

    Examples
    --------
    >>> from horus_image.morphology import octahedron
    >>> int(octahedron(1).sum())
    7
    """
    _undivided("octahedron", decomposition)
    z, y, x = _within(radius, 3)
    return np.asarray(abs(z) + abs(y) + abs(x) <= radius, dtype)


@_listed
def footprint_rectangle(shape: Iterable[int], *, dtype: npt.DTypeLike = np.uint8, decomposition: str | None = None) -> Array:
    """A rectangle or a box (``skimage.morphology.footprint_rectangle``).

    Examples
    --------
    >>> from horus_image.morphology import footprint_rectangle
    >>> footprint_rectangle((1, 3))
    array([[1, 1, 1]], dtype=uint8)
    """
    _undivided("footprint_rectangle", decomposition)
    return np.ones(tuple(shape), dtype)


_arrays = public("morphology", module="skimage.morphology.footprints", rust="Footprint")


@_arrays
def mirror_footprint(footprint: npt.ArrayLike) -> Array:
    """A footprint turned about its centre (``skimage.morphology.mirror_footprint``).

    Examples
    --------
    >>> from horus_image.morphology import mirror_footprint
    >>> mirror_footprint([[0, 1, 1]])
    array([[1, 1, 0]])
    """
    array = np.asarray(footprint)
    return array[(slice(None, None, -1),) * array.ndim]


@_arrays
def pad_footprint(footprint: npt.ArrayLike, *, pad_end: bool = True) -> Array:
    """A footprint of odd sides: those of an even number have one zero more, at the end or at the beginning (``skimage.morphology.pad_footprint``).

    Examples
    --------
    >>> from horus_image.morphology import pad_footprint
    >>> pad_footprint([[1, 1]])
    array([[1, 1, 0]])
    """
    array = np.asarray(footprint)
    more = (0, 1) if pad_end else (1, 0)
    return np.pad(array, [more if side % 2 == 0 else (0, 0) for side in array.shape])


def parts_of(footprint: Any) -> Sequence[tuple[Array, int]]:
    """The footprints that are applied one after the other, each so many times: of an array itself, once."""
    if not isinstance(footprint, Sequence) or not all(isinstance(part, Sequence) and len(part) == 2 and np.ndim(part[0]) for part in footprint):
        return [(np.asarray(footprint), 1)]
    return [(np.asarray(part), int(times)) for part, times in footprint]
