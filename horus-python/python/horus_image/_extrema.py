"""Regional extremes, and regions that are flooded from a pixel, with the rules of scikit-image 0.26."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import _horus
from ._binary import _Step, generate_binary_structure
from ._components import one_channel
from ._dtype import NATIVE
from ._floats import Given, extreme
from ._foreign import of_any_library, read
from ._image import Array, Image, maximum, minimum, where
from ._order import extreme_under
from ._public import Terms, public
from ._reconstruction import around, reconstruction
from ._values import Value, leave, limits
from .typing import ArrayLike, Float, Maxima, Pixels

_BOOL: Final = NATIVE["bool"]
_NEAR: Final = "footprints are of 3x3x3 pixels and symmetric"


def _structure(ndim: int, footprint: Any, connectivity: Any) -> Array:
    """The neighbours of a pixel: a footprint, or along how many axes they differ at most."""
    return generate_binary_structure(ndim, ndim if connectivity is None else connectivity) if footprint is None else np.asarray(footprint, bool)


def _border(value: Value) -> _horus.Image:
    """A mask of the outermost pixels."""
    ends = []
    for axis, extent in enumerate(value.shape):
        at = value.positions(axis)
        ends += [_horus.compare("eq", at, 0.0), _horus.compare("eq", at, float(extent - 1))]
    return functools.reduce(lambda a, b: _horus.logic("or", a, b), ends)


def _regional(name: str, image: Any, footprint: Any, connectivity: Any, indices: bool, borders: bool, which: str) -> Pixels | tuple[Array, ...]:
    """Where equal pixels that touch have no neighbour beyond them: those are not reached from one that has, by pixels that are as far out."""
    given = image if isinstance(image, Image) else read(image)
    value = one_channel(name, given)
    if value is None:
        nothing = np.zeros(np.shape(given), bool)
        return np.nonzero(nothing) if indices else nothing
    found = value.like(_horus.compare("ne", value.numbers(), value.numbers()), _BOOL)
    if not borders and min(value.shape) < 3:
        warnings.warn("maxima can't exist for an image with any dimension smaller 3 if borders aren't allowed", stacklevel=4)
    else:
        structure = _structure(value.ndim, footprint, connectivity)
        neighbours = around(name, value.ndim, structure, None)
        numbers = value.like(value.numbers(), NATIVE["u8"] if value.dtype.kind == "b" else value.dtype)
        low, high = (-np.inf, np.inf) if numbers.core.dtype in ("f32", "f64") else limits(numbers.dtype)
        offsets = [(k // 9 - 1, k // 3 % 3 - 1, k % 3 - 1) for k, there in enumerate(neighbours) if there]
        beyond = "gt" if which == "max" else "lt"
        # Beyond the edges nothing is further out.
        outer = extreme_under(numbers, offsets, "constant", float(low if which == "max" else high), which).core if offsets else numbers.core
        starts = _horus.compare(beyond, outer, numbers.core)
        starts = starts if borders else _horus.logic("or", starts, _border(value))
        least = _horus.extreme_value(numbers.core, "min" if which == "max" else "max")
        seed = _horus.select(starts, numbers.core, least)
        reached = _horus.reconstruct(seed, numbers.core, neighbours, which == "min")
        found = value.like(_horus.compare(beyond, numbers.core, reached), _BOOL)
    if not indices:
        return leave(found, None, given, name)
    return np.nonzero(found.core.to_array(list(value.shape)))


_listed = functools.partial(public, "morphology", module="skimage.morphology.extrema")


@_listed(rust="local_maxima", differs=_NEAR, accel=Terms("finite"))
@of_any_library
def local_maxima(
    image: ArrayLike, footprint: npt.ArrayLike | None = None, connectivity: int | None = None, indices: bool = False, allow_borders: bool = True
) -> Maxima:
    """The equal pixels that touch and have only smaller ones around (``skimage.morphology.local_maxima``): plateaus count as a whole.

    Parameters
    ----------
    image : array_like or Image
        Without channels. An image of one number has no maxima.
    footprint : array_like, optional
        The neighbours of a pixel: symmetric, of the 3x3x.. pixels around its centre.
    connectivity : int, optional
        Instead: along how many axes they differ at most; by default all that touch it.
    indices : bool, optional
        Return positions along each axis, which computes the image, in place of a mask.
    allow_borders : bool, optional
        Those that touch the border count, too.

    Returns
    -------
    ndarray or Image of bool, or tuple of ndarray

    Examples
    --------
    >>> from horus_image.morphology import local_maxima
    >>> local_maxima([[1, 3, 3, 2, 5]]).astype(int)
    array([[0, 1, 1, 0, 1]])
    """
    return _regional("local_maxima", image, footprint, connectivity, indices, allow_borders, "max")


@_listed(rust="local_maxima", differs=_NEAR, accel=Terms("finite"))
@of_any_library
def local_minima(
    image: ArrayLike, footprint: npt.ArrayLike | None = None, connectivity: int | None = None, indices: bool = False, allow_borders: bool = True
) -> Maxima:
    """The equal pixels that touch and have only larger ones around (``skimage.morphology.local_minima``). Arguments are those of `local_maxima`.

    Examples
    --------
    >>> from horus_image.morphology import local_minima
    >>> local_minima([[4, 3, 3, 5, 1]]).astype(int)
    array([[0, 1, 1, 0, 1]])
    """
    return _regional("local_minima", image, footprint, connectivity, indices, allow_borders, "min")


def _of_depth(name: str, image: Any, h: Any, footprint: Any, upward: bool) -> Pixels:
    given = Given(name, image, (1, 2, 3))
    given.gray()
    if h == 0:
        raise ValueError(f"h = 0 is ambiguous, use local_{name[2:]}() instead?")
    pixels = given.image if given.dtype.kind != "b" else given.image.astype(np.uint8)
    whole = given.dtype.kind in "iub"
    if whole and h % 1 != 0:
        warnings.warn("possible precision loss converting image to floating point. To silence this warning, ensure image and h have same data type.", stacklevel=3)
        pixels, whole = pixels.astype(np.float64), False
    if whole:
        low, high = limits(given.dtype)
        if h > high - low:
            raise ValueError(f"{name}: h is {h}, more than the range of {given.dtype}")
        # In the type of all differences, limited to the range of the pixels.
        wide = pixels.astype(np.float64)
        moved = maximum(wide - float(h), float(low)) if upward else minimum(wide + float(h), float(high))
        start = moved.astype(pixels.dtype)
    else:
        slack = abs(pixels) * (2.0 * float(np.finfo(pixels.dtype).resolution))
        start = pixels - float(h) - slack if upward else pixels + float(h) + slack
    rest = reconstruction(start, pixels, "dilation" if upward else "erosion", footprint)
    assert isinstance(rest, Image), "of images"
    rise = pixels - rest if upward else rest - pixels
    # A rise above the whole range is none.
    deep = (rise >= float(h)) & (extreme(pixels, "max").astype(np.float64) - extreme(pixels, "min").astype(np.float64) >= float(h))
    return given.back(deep.astype(np.uint8))


@_listed(rust="reconstruct", differs=_NEAR)
@of_any_library
def h_maxima(image: ArrayLike, h: Float, footprint: npt.ArrayLike | None = None) -> Pixels:
    """1 at maxima from which every way up to a higher pixel goes down by at least `h`, else 0 (``skimage.morphology.h_maxima``).

    Parameters
    ----------
    image : array_like or Image
        Without channels.
    h : number
        The least depth, above 0. A fraction makes floats of integers, and warns.
    footprint : array_like, optional
        The neighbours of a pixel, as for `reconstruction`.

    Returns
    -------
    ndarray or Image of uint8

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.morphology import h_maxima
    >>> h_maxima(np.array([[1, 5, 4, 6, 0, 3]], np.uint8), 2)
    array([[0, 0, 0, 1, 0, 1]], dtype=uint8)
    """
    return _of_depth("h_maxima", image, h, footprint, True)


@_listed(rust="reconstruct", differs=_NEAR)
@of_any_library
def h_minima(image: ArrayLike, h: Float, footprint: npt.ArrayLike | None = None) -> Pixels:
    """1 at minima from which every way down to a lower pixel goes up by at least `h`, else 0 (``skimage.morphology.h_minima``). Arguments are those
    of `h_maxima`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.morphology import h_minima
    >>> h_minima(np.array([[5, 1, 2, 0, 6, 3]], np.uint8), 2)
    array([[0, 0, 0, 1, 0, 1]], dtype=uint8)
    """
    return _of_depth("h_minima", image, h, footprint, False)


def _flooded(given: Given, seed_point: Any, footprint: Any, connectivity: Any, tolerance: Any) -> Image:
    """The pixels like the one at a position that are connected to it."""
    given.gray()
    value, pixels = given.value, given.image
    place = [seed_point] if np.ndim(seed_point) == 0 else list(seed_point)
    if len(place) != value.ndim:
        raise ValueError(f"{given.name}: a position of {len(place)} numbers in an image of {value.ndim} axes")
    at = [operator.index(one) for one in place]
    for one, extent in zip(at, value.shape, strict=True):
        if not -extent <= one < extent:
            raise IndexError(f"{given.name}: position {tuple(at)} in an image of shape {value.shape}")
    if pixels.dtype.kind == "b":
        pixels = pixels.astype(np.uint8)
    like = pixels[tuple(at)]
    if tolerance is None:
        within = pixels == like
    else:
        middle, most = like.astype(np.float64), abs(float(tolerance))
        low, high = (one.astype(pixels.dtype) if pixels.dtype.kind == "f" else one for one in (middle - most, middle + most))
        within = (pixels >= low) & (pixels <= high)
    seeds = [_horus.compare("eq", value.positions(axis), float(one % value.shape[axis])) for axis, one in enumerate(at)]
    start = value.like(functools.reduce(lambda a, b: _horus.logic("and", a, b), seeds), _BOOL)
    step = _Step(value.ndim, _structure(value.ndim, footprint, connectivity), value.like(within._core, _BOOL), 0, 0, dilates=True)
    return given.image._with(step.repeat(start, -1).core)


_flooding = functools.partial(public, module="skimage.morphology._flood_fill", rust="`label`, `reconstruct`", opencv="cv.floodFill")


@_flooding("segmentation")
@_flooding("morphology")
@of_any_library
def flood(
    image: ArrayLike,
    seed_point: int | Sequence[int],
    *,
    footprint: npt.ArrayLike | None = None,
    connectivity: int | None = None,
    tolerance: Float | None = None,
) -> Pixels:
    """A mask of the pixels that are connected to one by pixels like it (``skimage.morphology.flood``).

    Parameters
    ----------
    image : array_like or Image
        Without channels.
    seed_point : int or sequence of int
        A position along each axis; negative ones count from the end.
    footprint : array_like, optional
        The neighbours of a pixel.
    connectivity : int, optional
        Instead: along how many axes they differ at most; by default all that touch it.
    tolerance : number, optional
        By how much pixels may differ from the first; by default they are equal.

    Returns
    -------
    ndarray or Image of bool

    Examples
    --------
    >>> from horus_image.morphology import flood
    >>> flood([[1, 1, 2, 9, 1]], (0, 0), tolerance=1).astype(int)
    array([[1, 1, 1, 0, 0]])
    """
    given = Given("flood", image, (1, 2, 3))
    return given.back(_flooded(given, seed_point, footprint, connectivity, tolerance))


@_flooding("segmentation")
@_flooding("morphology")
@of_any_library
def flood_fill(
    image: ArrayLike,
    seed_point: int | Sequence[int],
    new_value: Float,
    *,
    footprint: npt.ArrayLike | None = None,
    connectivity: int | None = None,
    tolerance: Float | None = None,
    in_place: bool = False,
) -> Pixels:
    """The image with a value in place of the pixels of `flood` (``skimage.morphology.flood_fill``).

    Parameters
    ----------
    image : array_like or Image
        Without channels. Pixels keep their type.
    seed_point, footprint, connectivity, tolerance
        As of `flood`.
    new_value : number
        Of the type of the pixels.
    in_place : bool, optional
        Write to the array, which is also returned; lazy images are not written to.

    Examples
    --------
    >>> from horus_image.morphology import flood_fill
    >>> flood_fill([[1, 1, 2, 9, 1]], (0, 0), 5)
    array([[5, 5, 2, 9, 1]])
    """
    given = Given("flood_fill", image, (1, 2, 3))
    mask = _flooded(given, seed_point, footprint, connectivity, tolerance)
    if given.array is None:
        if in_place:
            raise TypeError("flood_fill: a lazy image is not written to; take the result")
        return given.back(where(mask, given.dtype.type(new_value), given.image))
    pixels = given.array if in_place else given.array.copy()
    pixels[np.asarray(given.back(mask))] = new_value
    return pixels
