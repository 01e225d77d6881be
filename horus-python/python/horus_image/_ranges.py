"""Images in the range of another type, with the rules of scikit-image 0.26."""

from __future__ import annotations

import functools
import itertools
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _horus
from ._comparison import _pair
from ._dtype import NATIVE, cast
from ._floats import Given, float_type
from ._foreign import of_any_library, read
from ._image import Array, Image, asarray, where
from ._intensity import _of_each, limits
from ._public import Terms, public
from .typing import ArrayLike, Pixels

DType = np.dtype[Any]
_types = functools.partial(public, "util", module="skimage.util.dtype", rust="`to_unit` `convert`", opencv="Mat.convertTo")


def _given(name: str, image: Any) -> Given:
    """An image, or an array, whose last of four axes is that of channels."""
    given = image if isinstance(image, Image) else read(image)
    return Given(name, given, (1, 2, 3), -1 if given.ndim == 4 and not isinstance(given, Image) else None)


def _converted(name: str, image: Any, dtype: DType, force_copy: bool) -> Pixels:
    """An image in a type, of the range of which it has as much as of its own."""
    given = _given(name, image)
    own = given.dtype
    if own == dtype:
        return (given.array.copy() if force_copy else given.array) if given.array is not None else given.back(given.image)
    if dtype.kind == "f":
        wide = own.kind in "iu" and own.itemsize > 4
        found = given.unit(NATIVE["f64"] if wide else dtype)
        return given.back(found if found.dtype == dtype else found.astype(dtype))
    if dtype.kind == "b":
        return given.back(given.image > limits(own)[1] / 2)
    low, high = limits(dtype)
    if own.kind == "b":
        return given.back(where(given.image, dtype.type(high), dtype.type(0)))
    if own.kind == "f":
        return _of_floats(given, dtype, low, high)
    if own.itemsize > 2:
        raise NotImplementedError(f"{name}: integers of {own} into {dtype}; img_as_float first")
    narrows = own.itemsize > dtype.itemsize
    most = _horus.min_max(given.image._core)[1] if narrows or own.itemsize == dtype.itemsize else 0.0
    return _of_each(given, lambda numbers: _of_integers(name, numbers, dtype, int(most)), dtype)


def _of_floats(given: Given, dtype: DType, low: float, high: float) -> Pixels:
    """Floats from -1 to 1, rounded to integers."""
    least, most = _horus.min_max(given.image._core)
    if least < -1.0 or most > 1.0:
        raise ValueError("Images of type float must be between -1 and 1.")
    # In float32 where it holds all numbers of the type.
    pixels = given.floats()
    scaled = pixels * high if dtype.kind == "u" else pixels * ((high - low) / 2.0) - 0.5
    rounded = scaled._with(_horus.unary("round", scaled._core)).clip(low, high)
    return given.back(rounded._with(cast(rounded._core, rounded.dtype, dtype)))


def _of_integers(name: str, numbers: Array, dtype: DType, most: int) -> Array:
    """Integers of the range of a type in that of another."""
    own, signed = numbers.dtype, dtype.kind == "i"
    bits = 8 * own.itemsize - (own.kind == "i")
    wide = numbers.astype(np.int64)
    if own.kind == signed * "i" == "i" and own.itemsize < dtype.itemsize:
        # From the least number on, which stays the least.
        return _scaled(name, wide - int(limits(own)[0]), 8 * own.itemsize, 8 * dtype.itemsize, most) + int(limits(dtype)[0])
    found = _scaled(name, wide, bits, 8 * dtype.itemsize - signed, most)
    return found if signed else np.maximum(found, 0)


def _scaled(name: str, numbers: Array, bits: int, into: int, most: int) -> Array:
    """Numbers of so many bits as those of others; cut to fewer, unless all fit."""
    if bits > into and most < 1 << into:
        warnings.warn(f"{name}: downcasting without scaling, because the largest number, {most}, has no more than {into} bits", stacklevel=6)
        return numbers
    if bits >= into:
        return numbers // (1 << bits - into)
    more = -(-into // bits) * bits
    return numbers * (((1 << more) - 1) // ((1 << bits) - 1)) // (1 << more - into)


@_types()
@of_any_library
def img_as_float(image: ArrayLike, force_copy: bool = False) -> Pixels:
    """Integers as floats from 0 to 1, or -1 to 1, in ``float64``; floats as they are (``skimage.util.img_as_float``).

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.util import img_as_float
    >>> img_as_float(np.array([0, 51, 255], np.uint8))
    array([0. , 0.2, 1. ])
    """
    given = image if isinstance(image, Image) else read(image)
    kind = float_type(given.dtype) if given.dtype.kind == "f" else NATIVE["f64"]
    return _converted("img_as_float", given, kind, force_copy)


@_types()
@of_any_library
def img_as_float32(image: ArrayLike, force_copy: bool = False) -> Pixels:
    """`img_as_float` in ``float32`` (``skimage.util.img_as_float32``)."""
    return _converted("img_as_float32", image, NATIVE["f32"], force_copy)


@_types()
@of_any_library
def img_as_float64(image: ArrayLike, force_copy: bool = False) -> Pixels:
    """`img_as_float` in ``float64`` (``skimage.util.img_as_float64``)."""
    return _converted("img_as_float64", image, NATIVE["f64"], force_copy)


_integers = functools.partial(_types, differs="of integers of 8 and 16 bits, floats and masks")


@_integers()
@of_any_library
def img_as_ubyte(image: ArrayLike, force_copy: bool = False) -> Pixels:
    """The image in ``uint8``, from 0 to 255 (``skimage.util.img_as_ubyte``).

    Parameters
    ----------
    image : array_like or Image
        Floats from -1 to 1, which are rounded, of which negative ones become 0; masks; integers, of which the highest bits stay, unless all
        numbers have as few bits, which warns. The largest number is computed at the call.
    force_copy : bool, optional
        Copy an array that is in the type already.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.util import img_as_ubyte
    >>> img_as_ubyte(np.array([-1.0, 0.0, 0.5, 1.0])), img_as_ubyte(np.array([256, 65535], np.uint16))
    (array([  0,   0, 128, 255], dtype=uint8), array([  1, 255], dtype=uint8))
    """
    return _converted("img_as_ubyte", image, NATIVE["u8"], force_copy)


@_integers()
@of_any_library
def img_as_uint(image: ArrayLike, force_copy: bool = False) -> Pixels:
    """The image in ``uint16``, from 0 to 65535 (``skimage.util.img_as_uint``). Arguments are those of `img_as_ubyte`."""
    return _converted("img_as_uint", image, NATIVE["u16"], force_copy)


@_integers()
@of_any_library
def img_as_int(image: ArrayLike, force_copy: bool = False) -> Pixels:
    """The image in ``int16``, from -32768 to 32767 (``skimage.util.img_as_int``). Arguments are those of `img_as_ubyte`."""
    return _converted("img_as_int", image, NATIVE["i16"], force_copy)


@_types()
@of_any_library
def img_as_bool(image: ArrayLike, force_copy: bool = False) -> Pixels:
    """A mask of what is above half the largest number of the type, 1 of floats (``skimage.util.img_as_bool``)."""
    return _converted("img_as_bool", image, NATIVE["bool"], force_copy)


@public("util", module="skimage.util._invert", rust="`!`", opencv="cv.bitwise_not", accel=Terms("finite"))
@of_any_library
def invert(image: ArrayLike, signed_float: bool = False) -> Pixels:
    """Bright pixels dark, and dark ones bright (``skimage.util.invert``).

    Parameters
    ----------
    image : array_like or Image
        Masks are inverted, unsigned integers subtracted from the largest, signed ones from -1, floats from 1. Pixels keep their type.
    signed_float : bool, optional
        Change the sign of floats instead.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.util import invert
    >>> invert(np.array([0, 100, 255], np.uint8))
    array([255, 155,   0], dtype=uint8)
    """
    array = image if isinstance(image, Image) else read(image)
    if isinstance(array, np.ndarray) and array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        return np.asarray(~array)  # of more bits than images have
    given = _given("invert", array)
    pixels = given.image
    if given.dtype.kind in "iub":
        return given.back(~pixels)
    return given.back(-pixels if signed_float else 1.0 - pixels)


@public("util", module="skimage.util.compare", rust="`absdiff`", opencv="cv.absdiff")
@of_any_library
def compare_images(image0: ArrayLike, image1: ArrayLike, *, method: str = "diff", n_tiles: Sequence[int] = (8, 8)) -> Pixels:
    """Two images in one (``skimage.util.compare_images``).

    Parameters
    ----------
    image0, image1 : array_like or Image
        Of one shape; integers become floats from 0 to 1, or -1 to 1.
    method : {'diff', 'blend', 'checkerboard'}, optional
        Their absolute difference, their mean, or squares of both by turns.
    n_tiles : pair of int, optional
        Squares down and across.

    Examples
    --------
    >>> from horus_image.util import compare_images
    >>> compare_images([[0.0, 1.0]], [[0.5, 0.5]], method="blend")
    array([[0.25, 0.75]])
    """
    given, other = _pair("compare_images", image0, image1)
    first, second = given.unit(), other.unit()
    if method == "diff":
        found = abs(second - first)
    elif method == "blend":
        found = 0.5 * (second + first)
    elif method == "checkerboard":
        if given.value.ndim != 2:
            raise ValueError("Images must be 2-dimensional to be compared with the checkerboard method.")
        found = where(_squares(given, n_tiles), first, second)
    else:
        raise ValueError('Wrong value for `method`. Must be either "diff", "blend" or "checkerboard".')
    return given.back(found, other.image)


def _squares(given: Given, n_tiles: Sequence[int]) -> Image:
    """A mask of every other square, and of none of what is left at the ends."""
    mask = np.zeros(given.value.shape, bool)
    down, across = (int(extent / operator.index(count)) for extent, count in zip(given.value.shape, n_tiles, strict=True))
    for i, j in itertools.product(range(n_tiles[0]), range(n_tiles[1])):
        if (i + j) % 2 == 0:
            mask[i * down : (i + 1) * down, j * across : (j + 1) * across] = True
    return asarray(mask, session=given.value.session)
