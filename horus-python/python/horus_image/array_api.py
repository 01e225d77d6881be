"""Images by the Python array API standard, version 2024.12: the namespace of ``image.__array_namespace__()``.

Functions that Horus has are recorded. Others evaluate their images, NumPy computes the result, and it is an image again: their texts say
so. So it is with functions of NumPy on images (``numpy.where``, ``numpy.median``), but what NumPy computes of these is an array.

Images have at least one pixel, up to three axes, and no integers of 64 bits or complex numbers: whole numbers of Python, positions and
counts are ``int32``. Integers saturate; only `astype` wraps them around. Images are not written to, and masks do not index them. The device
of an image is its session. ``docs/python.md`` has all that differs from the standard.

>>> from horus_image import array_api as xp
>>> image = xp.reshape(xp.arange(6, dtype=xp.float32), (2, 3))
>>> xp.mean(xp.where(image > 2, image, 0), axis=0)
<horus_image.Image 3 float32>
>>> xp.unique_counts(xp.asarray([3, 1, 3])).counts.compute()
array([1, 2], dtype=int32)
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _horus
from ._axes import (
    broadcast_arrays,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    take,
    take_along_axis,
    tile,
    unstack,
    where,
)
from ._creation import (
    __array_namespace_info__,
    arange,
    asarray,
    astype,
    can_cast,
    empty,
    empty_like,
    eye,
    finfo,
    from_dlpack,
    full,
    full_like,
    iinfo,
    image_in,
    isdtype,
    linspace,
    meshgrid,
    ones,
    ones_like,
    promoted,
    result_type,
    tril,
    triu,
    type_of,
    zeros,
    zeros_like,
)
from ._dtype import NATIVE
from ._image import Image
from ._numpy import computed
from ._operators import Operators
from ._statistics import (
    all,
    any,
    argmax,
    argmin,
    clip,
    count_nonzero,
    cumulative_sum,
    diff,
    matmul,
    max,
    mean,
    min,
    std,
    sum,
    var,
    vecdot,
)
from ._ufuncs import UFUNCS

__all__ = [
    "UniqueAll",
    "UniqueCounts",
    "UniqueInverse",
    "VERSIONS",
    "__array_api_version__",
    "__array_namespace_info__",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "broadcast_arrays",
    "broadcast_to",
    "can_cast",
    "ceil",
    "clip",
    "concat",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "divide",
    "e",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "expand_dims",
    "expm1",
    "eye",
    "finfo",
    "flip",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "from_dlpack",
    "full",
    "full_like",
    "greater",
    "greater_equal",
    "hypot",
    "iinfo",
    "imag",
    "inf",
    "int16",
    "int32",
    "int8",
    "isdtype",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "linspace",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "prod",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "searchsorted",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sort",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "tril",
    "triu",
    "trunc",
    "uint16",
    "uint32",
    "uint8",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "where",
    "zeros",
    "zeros_like",
]

VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12")
"""Versions of the standard that `Image.__array_namespace__` takes."""

__array_api_version__: Final = VERSIONS[-1]

e: Final = math.e
inf: Final = math.inf
nan: Final = math.nan
newaxis: Final = None
pi: Final = math.pi

bool = NATIVE["bool"]
int8 = NATIVE["i8"]
int16 = NATIVE["i16"]
int32 = NATIVE["i32"]
uint8 = NATIVE["u8"]
uint16 = NATIVE["u16"]
uint32 = NATIVE["u32"]
float32 = NATIVE["f32"]
float64 = NATIVE["f64"]


def _unary(name: str, ufunc: np.ufunc) -> Callable[[Image], Image]:
    record = UFUNCS[ufunc]

    def function(x: Image, /) -> Image:
        found: Image = record(image_in(name, x))
        return found

    return _named(function, name, ufunc)  # type: ignore[no-any-return]


def _binary(name: str, ufunc: np.ufunc) -> Callable[[Any, Any], Image]:
    record = UFUNCS[ufunc]

    def function(x1: Any, x2: Any, /) -> Image:
        for x in (x1, x2):
            if not isinstance(x, (Operators, int, float)):
                image_in(name, x)
        found: Image = record(x1, x2)
        return found

    return _named(function, name, ufunc)  # type: ignore[no-any-return]


def _named(function: Any, name: str, ufunc: np.ufunc) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``numpy.{ufunc.__name__}`` of images, or of one and a number: recorded."
    return function


abs = _unary("abs", np.absolute)
acos = _unary("acos", np.arccos)
acosh = _unary("acosh", np.arccosh)
add = _binary("add", np.add)
asin = _unary("asin", np.arcsin)
asinh = _unary("asinh", np.arcsinh)
atan = _unary("atan", np.arctan)
atan2 = _binary("atan2", np.arctan2)
atanh = _unary("atanh", np.arctanh)
bitwise_and = _binary("bitwise_and", np.bitwise_and)
bitwise_invert = _unary("bitwise_invert", np.invert)
bitwise_left_shift = _binary("bitwise_left_shift", np.left_shift)
bitwise_or = _binary("bitwise_or", np.bitwise_or)
bitwise_right_shift = _binary("bitwise_right_shift", np.right_shift)
bitwise_xor = _binary("bitwise_xor", np.bitwise_xor)
ceil = _unary("ceil", np.ceil)
conj = _unary("conj", np.conjugate)
copysign = _binary("copysign", np.copysign)
cos = _unary("cos", np.cos)
cosh = _unary("cosh", np.cosh)
divide = _binary("divide", np.divide)
equal = _binary("equal", np.equal)
exp = _unary("exp", np.exp)
expm1 = _unary("expm1", np.expm1)
floor = _unary("floor", np.floor)
floor_divide = _binary("floor_divide", np.floor_divide)
greater = _binary("greater", np.greater)
greater_equal = _binary("greater_equal", np.greater_equal)
hypot = _binary("hypot", np.hypot)
isfinite = _unary("isfinite", np.isfinite)
isinf = _unary("isinf", np.isinf)
isnan = _unary("isnan", np.isnan)
less = _binary("less", np.less)
less_equal = _binary("less_equal", np.less_equal)
log = _unary("log", np.log)
log10 = _unary("log10", np.log10)
log1p = _unary("log1p", np.log1p)
log2 = _unary("log2", np.log2)
logaddexp = _binary("logaddexp", np.logaddexp)
logical_and = _binary("logical_and", np.logical_and)
logical_not = _unary("logical_not", np.logical_not)
logical_or = _binary("logical_or", np.logical_or)
logical_xor = _binary("logical_xor", np.logical_xor)
maximum = _binary("maximum", np.maximum)
minimum = _binary("minimum", np.minimum)
multiply = _binary("multiply", np.multiply)
negative = _unary("negative", np.negative)
not_equal = _binary("not_equal", np.not_equal)
positive = _unary("positive", np.positive)
pow = _binary("pow", np.power)
reciprocal = _unary("reciprocal", np.reciprocal)
remainder = _binary("remainder", np.remainder)
sign = _unary("sign", np.sign)
signbit = _unary("signbit", np.signbit)
sin = _unary("sin", np.sin)
sinh = _unary("sinh", np.sinh)
sqrt = _unary("sqrt", np.sqrt)
square = _unary("square", np.square)
subtract = _binary("subtract", np.subtract)
tan = _unary("tan", np.tan)
tanh = _unary("tanh", np.tanh)
trunc = _unary("trunc", np.trunc)


def round(x: Image, /) -> Image:
    """The nearest whole numbers, of two the even one: recorded."""
    image = image_in("round", x)
    return image._with(_horus.unary("round", image._core)) if image.dtype.kind == "f" else image


def real(x: Image, /) -> Image:
    """The image: its pixels are real."""
    return image_in("real", x)


def imag(x: Image, /) -> Image:
    """Zeros: pixels are real."""
    return zeros_like(image_in("imag", x))


# What NumPy computes.


def _accumulating(name: str, x: Image, dtype: npt.DTypeLike | None) -> tuple[Image, np.dtype[Any]]:
    image = image_in(name, x)
    kinds = {"b": int32, "i": int32, "u": uint32}
    return image, kinds.get(image.dtype.kind, image.dtype) if dtype is None else type_of(name, dtype)


def prod(
    x: Image, /, *, axis: int | tuple[int, ...] | None = None, dtype: npt.DTypeLike | None = None, keepdims: builtins.bool = False
) -> Image:
    """The products along axes, by default all, of `sum`'s types: computed by NumPy, so that integers wrap around."""
    image, wanted = _accumulating("prod", x, dtype)
    found: Image = computed("prod", np.prod, image, axis=axis, dtype=wanted, keepdims=keepdims)
    return found


def cumulative_prod(x: Image, /, *, axis: int | None = None, dtype: npt.DTypeLike | None = None, include_initial: builtins.bool = False) -> Image:
    """The running products along an axis, which an image of one axis need not name: computed by NumPy, so that integers wrap around."""
    image, wanted = _accumulating("cumulative_prod", x, dtype)
    if axis is None and image.ndim != 1:
        raise ValueError(f"cumulative_prod: the image has {image.ndim} axes; name one")
    along = 0 if axis is None else axis
    found: Image = computed("cumulative_prod", np.cumprod, image, axis=along, dtype=wanted)
    if not include_initial:
        return found
    shape = list(found.shape)
    shape[along] = 1
    return concat([ones(tuple(shape), dtype=wanted, device=found.device), found], axis=along)


def nextafter(x1: Any, x2: Any, /) -> Image:
    """The floats after those of `x1`, towards those of `x2`, one of which may be a number: computed by NumPy."""
    first = x1 if isinstance(x1, Image) else image_in("nextafter", x2)
    a, b = (asarray(x, dtype=first.dtype, device=first.device) if isinstance(x, (int, float)) else x for x in (x1, x2))
    a, b = promoted("nextafter", (a, b))
    found: Image = computed("nextafter", np.nextafter, a, b)
    return found


def nonzero(x: Image, /) -> tuple[Image, ...]:
    """The positions, along each axis, of the pixels that are not 0, of which there is one: computed by NumPy."""
    image = image_in("nonzero", x)
    if not image.ndim:
        raise ValueError("nonzero: an image without axes has no positions")
    found: tuple[Image, ...] = computed("nonzero", np.nonzero, image)
    return found


def searchsorted(x1: Image, x2: Image, /, *, side: Literal["left", "right"] = "left", sorter: Image | None = None) -> Image:
    """The positions at which numbers belong in a sorted image of one axis: computed by NumPy."""
    more = {} if sorter is None else {"sorter": image_in("searchsorted", sorter)}
    found: Image = computed("searchsorted", np.searchsorted, image_in("searchsorted", x1), image_in("searchsorted", x2), side=side, **more)
    return found


def sort(x: Image, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Image:
    """The image in order along an axis, NaN last: computed by NumPy."""
    found: Image = computed("sort", np.sort, image_in("sort", x), axis=axis, kind="stable")
    return flip(found, axis=axis) if descending else found


def argsort(x: Image, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Image:
    """The positions along an axis in the order of their pixels, equal ones as they are: computed by NumPy."""
    image = image_in("argsort", x)
    # Of the image in reverse, so that equal pixels stay in order.
    found: Image = computed("argsort", np.argsort, flip(image, axis=axis) if descending else image, axis=axis, kind="stable")
    return (image.shape[axis] - 1) - flip(found, axis=axis) if descending else found


def tensordot(x1: Image, x2: Image, /, *, axes: Any = 2) -> Image:
    """The sums of products along several axes of both: computed by NumPy."""
    a, b = promoted("tensordot", (x1, x2))
    found: Image = computed("tensordot", np.tensordot, a, b, axes=axes)
    return found


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Image
    indices: Image
    inverse_indices: Image
    counts: Image


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Image
    counts: Image


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Image
    inverse_indices: Image


def unique_all(x: Image, /) -> UniqueAll:
    """The numbers that pixels have, in order, with the first position of each in C order, the number of each pixel, and how many pixels have
    it: computed by NumPy. Each NaN is another number."""
    image = image_in("unique_all", x)
    values, indices, inverse, counts = computed(
        "unique_all", np.unique, image, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    return UniqueAll(values, indices, reshape(inverse, image.shape), counts)


def unique_counts(x: Image, /) -> UniqueCounts:
    """The numbers that pixels have, in order, and how many pixels have each: computed by NumPy."""
    return UniqueCounts(*computed("unique_counts", np.unique, image_in("unique_counts", x), return_counts=True, equal_nan=False))


def unique_inverse(x: Image, /) -> UniqueInverse:
    """The numbers that pixels have, in order, and which of them each pixel has: computed by NumPy."""
    image = image_in("unique_inverse", x)
    values, inverse = computed("unique_inverse", np.unique, image, return_inverse=True, equal_nan=False)
    return UniqueInverse(values, reshape(inverse, image.shape))


def unique_values(x: Image, /) -> Image:
    """The numbers that pixels have, in order: computed by NumPy."""
    found: Image = computed("unique_values", np.unique, image_in("unique_values", x), equal_nan=False)
    return found


