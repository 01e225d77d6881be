"""Reductions, searches and products of the array API: recorded, so that what they yield is an image, of no axes if none is left."""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _horus
from ._along import along, numbers_of
from ._creation import FLOAT, INTEGER, astype, image_in, promoted, type_of, zeros
from ._dtype import NATIVE, truth
from ._image import Image
from ._moves import AXES, axis_in, joined, plain, positions, reshaped, several
from ._operators import _as, _binary

Axes: TypeAlias = int | tuple[int, ...] | None


def _axes(image: Image, axis: Axes) -> tuple[int, ...]:
    """The axes that are meant, all by default."""
    if axis is None:
        return tuple(range(image.ndim))
    return several(axis)


def _reduced(image: Image, name: str, axis: Axes, keepdims: bool) -> Image:
    axes = _axes(image, axis)
    if axes:
        return along(image, name, axes, keepdims)
    # Nothing is reduced; sums and means are floats.
    return image if name in ("min", "max") else image._with(_horus.convert(image._numbers(), "f64"))


def _accumulated(name: str, image: Image, dtype: npt.DTypeLike | None) -> tuple[Image, np.dtype[Any]]:
    """What is added up, and the type of the sums: by default ``int32`` or ``uint32`` of integers, and else the image's."""
    if dtype is None:
        wanted = {"b": INTEGER, "i": INTEGER, "u": NATIVE["u32"]}.get(image.dtype.kind, image.dtype)
    else:
        wanted = type_of(name, dtype)
    return (astype(image, wanted) if image.dtype.kind == "f" and wanted.kind in "iu" else image), wanted


def sum(x: Image, /, *, axis: Axes = None, dtype: npt.DTypeLike | None = None, keepdims: bool = False) -> Image:
    """The sums along axes, by default all: added in ``float64``, then of the image's type, ``int32`` or ``uint32``, which saturate.

    Examples
    --------
    >>> from horus_image import array_api as xp
    >>> xp.sum(xp.asarray([[1, 2], [3, 4]]), axis=0).compute()
    array([4, 6], dtype=int32)
    """
    image, wanted = _accumulated("sum", image_in("sum", x), dtype)
    return _as(_reduced(image, "sum", axis, keepdims), wanted)  # type: ignore[no-any-return]


def mean(x: Image, /, *, axis: Axes = None, keepdims: bool = False) -> Image:
    """The means along axes, by default all; of integers in ``float64``."""
    image = image_in("mean", x)
    return _as(_reduced(image, "mean", axis, keepdims), image.dtype if image.dtype.kind == "f" else FLOAT)  # type: ignore[no-any-return]


def var(x: Image, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Image:
    """The variances along axes, by default all: over the number of pixels less `correction`. If none is left, they are
    infinite, or NaN where all pixels are equal."""
    image = image_in("var", x)
    wide = _as(image, FLOAT)
    axes = _axes(image, axis)
    count = math.prod(image._core.shape[number] for number in numbers_of(image, axes, "var"))
    apart = wide - _reduced(wide, "mean", axes, True)
    left = count - correction
    found = _reduced(apart * apart, "sum", axes, keepdims) * (1.0 / left if left > 0 else math.inf)
    return _as(found, image.dtype if image.dtype.kind == "f" else FLOAT)  # type: ignore[no-any-return]


def std(x: Image, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Image:
    """The standard deviations along axes, the roots of `var`."""
    image = image_in("std", x)
    found = var(_as(image, FLOAT), axis=axis, correction=correction, keepdims=keepdims)
    root = found._with(_horus.unary("sqrt", found._core))
    return _as(root, image.dtype if image.dtype.kind == "f" else FLOAT)  # type: ignore[no-any-return]


def _is_nan(image: Image) -> Image:
    return image._with(_horus.compare("ne", image._core, image._core))


def _extreme(name: str, x: Image, axis: Axes, keepdims: bool) -> Image:
    image = image_in(name, x)
    found = _reduced(image, name, axis, keepdims)
    if image.dtype.kind != "f" or not _axes(image, axis):
        return found
    unknown = _reduced(_is_nan(image), "max", axis, keepdims)
    return found._with(_horus.select(unknown._core, math.nan, found._core))


def max(x: Image, /, *, axis: Axes = None, keepdims: bool = False) -> Image:
    """The largest along axes, by default all: NaN if one is, unlike `Image.max`.

    Examples
    --------
    >>> from horus_image import array_api as xp
    >>> xp.max(xp.asarray([[1.0, xp.nan], [3.0, 4.0]]), axis=1).compute()
    array([nan,  4.])
    """
    return _extreme("max", x, axis, keepdims)


def min(x: Image, /, *, axis: Axes = None, keepdims: bool = False) -> Image:
    """The smallest along axes, by default all: NaN if one is, unlike `Image.min`."""
    return _extreme("min", x, axis, keepdims)


def any(x: Image, /, *, axis: Axes = None, keepdims: bool = False) -> Image:
    """True along axes, by default all, where a pixel is not 0."""
    image = image_in("any", x)
    return _reduced(image._with(truth(image._core)), "max", axis, keepdims)


def all(x: Image, /, *, axis: Axes = None, keepdims: bool = False) -> Image:
    """True along axes, by default all, where no pixel is 0."""
    image = image_in("all", x)
    return _reduced(image._with(truth(image._core)), "min", axis, keepdims)


def count_nonzero(x: Image, /, *, axis: Axes = None, keepdims: bool = False) -> Image:
    """The number of pixels along axes, by default all, that are not 0, as ``int32``."""
    image = image_in("count_nonzero", x)
    return _as(_reduced(image._with(truth(image._core)), "sum", axis, keepdims), INTEGER)  # type: ignore[no-any-return]


def _place_of(name: str, x: Image, axis: int | None, keepdims: bool) -> Image:
    """The first position of an extreme, or of NaN."""
    image = plain(image_in(name, x))
    if axis is None:
        axes, count = tuple(range(image.ndim)), image.size
    else:
        axes = (axis_in(name, axis, image.ndim),)
        count = image.shape[axes[0]]
    if count > np.iinfo(INTEGER).max:
        raise ValueError(f"{name}: {count} pixels have no positions of {INTEGER}")
    extreme = _extreme("max" if name == "argmax" else "min", image, axes, True)
    core, found = image._numbers(), extreme._numbers()
    there = _horus.compare("eq", core, found)
    if image.dtype.kind == "f":
        there = _horus.logic("or", there, _horus.compare("ne", core, core))
    # Of each pixel the position that is asked for.
    if axis is None:
        rows, columns = image._core.shape[1:3]
        number = positions(image, image.shape, 2)
        for k, stride in ((1, columns), (0, rows * columns)):
            number = _horus.binary("add", number, _horus.binary("mul", positions(image, image.shape, k), float(stride)))
    else:
        number = positions(image, image.shape, axes[0] + AXES - image.ndim)
    places = image._with(_horus.select(there, number, float(count)))
    return _as(_reduced(places, "min", axes, keepdims), INTEGER)  # type: ignore[no-any-return]


def argmax(x: Image, /, *, axis: int | None = None, keepdims: bool = False) -> Image:
    """The position of the first of the largest along an axis, by default in C order of all pixels, as ``int32``; of NaN if there is one."""
    return _place_of("argmax", x, axis, keepdims)


def argmin(x: Image, /, *, axis: int | None = None, keepdims: bool = False) -> Image:
    """The position of the first of the smallest, as `argmax`."""
    return _place_of("argmin", x, axis, keepdims)


def cumulative_sum(
    x: Image, /, *, axis: int | None = None, dtype: npt.DTypeLike | None = None, include_initial: bool = False
) -> Image:
    """The running sums along an axis, which an image of one axis need not name: added in ``float64``, of `sum`'s types.

    Examples
    --------
    >>> from horus_image import array_api as xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True).compute()
    array([0, 1, 3, 6], dtype=int32)
    """
    image, wanted = _accumulated("cumulative_sum", image_in("cumulative_sum", x), dtype)
    if axis is None and image.ndim != 1:
        raise ValueError(f"cumulative_sum: the image has {image.ndim} axes; name one")
    along_axis = axis_in("cumulative_sum", 0 if axis is None else axis, image.ndim)
    found: Image = _as(image.cumsum(along_axis), wanted)
    if not include_initial:
        return found
    found = plain(found)
    first = zeros((*found.shape[:along_axis], 1, *found.shape[along_axis + 1 :]), dtype=wanted, device=found._session)
    return joined([first, found], along_axis)


def diff(x: Image, /, *, axis: int = -1, n: int = 1, prepend: Image | None = None, append: Image | None = None) -> Image:
    """The differences of neighbours along an axis, `n` times, saturated; of masks where they differ."""
    image = image_in("diff", x)
    at = axis_in("diff", axis, image.ndim)
    if n < 0:
        raise ValueError(f"diff: n is {n}; it is not negative")
    ends = [end for end in (prepend, image, append) if end is not None]
    image = joined(promoted("diff", ends), at) if len(ends) > 1 else image
    before = (slice(None),) * at
    for _ in range(operator.index(n)):
        later, earlier = (image[before + (part,)] for part in (slice(1, None), slice(None, -1)))
        image = later ^ earlier if image.dtype.kind == "b" else later - earlier
    return image


def _limits_integers(limit: Any) -> bool:
    """Returns true for limits that integers have, among them infinities."""
    if isinstance(limit, (builtins.bool, int, float, np.floating)):
        return math.isinf(limit) or float(limit).is_integer()
    return builtins.bool(np.dtype(getattr(limit, "dtype", np.float64)).kind != "f")


def clip(x: Image, /, min: Any = None, max: Any = None) -> Image:
    """Pixels below `min` as that, and above `max` as that, in the image's type; each a number, an image, or none.

    Raises
    ------
    NotImplementedError
        For images of integers, if a limit is a fraction or an image of floats.
    """
    image = image_in("clip", x)
    for limit, name in ((min, "maximum"), (max, "minimum")):
        if limit is None:
            continue
        if image.dtype.kind in "iu" and not _limits_integers(limit):
            raise NotImplementedError("clip: limits of integers are whole numbers; astype makes floats of the image")
        if isinstance(limit, (builtins.bool, int, float)):
            image = image._with(_horus.binary(name, image._numeric("clip"), float(limit)))
        else:
            image = _as(_binary(name, image, limit), x.dtype)
    return image


def matmul(x1: Image, x2: Image, /) -> Image:
    """The product of two matrices, or vectors: of floats recorded, its terms added in order; of integers in ``float64``, saturated.

    Stacks of matrices are computed by NumPy.
    """
    a, b = promoted("matmul", (x1, x2))
    if a.dtype.kind == "b":
        raise TypeError("matmul: masks are no numbers; astype makes numbers of them")
    if not a.ndim or not b.ndim:
        raise ValueError("matmul: an image without axes is no matrix")
    if a.ndim > 2 or b.ndim > 2:
        from ._numpy import computed

        found: Image = computed("matmul", np.matmul, a, b)
        return found
    dtype = a.dtype
    left, right = (image if dtype.kind == "f" else _as(image, FLOAT) for image in (plain(a), plain(b)))
    left = left if left.ndim == 2 else reshaped(left, (1, left.size))
    right = right if right.ndim == 2 else reshaped(right, (right.size, 1))
    if left.shape[1] != right.shape[0]:
        raise ValueError(f"matmul: shapes {a.shape} and {b.shape} do not match")
    product = _as(left._with(_horus.matmul(left._core, right._core)), dtype)
    shape = (*a.shape[: a.ndim - 1], *b.shape[b.ndim - 1 :][: b.ndim - 1])
    return reshaped(product, shape)


def vecdot(x1: Image, x2: Image, /, *, axis: int = -1) -> Image:
    """The sums of products along an axis."""
    a, b = promoted("vecdot", (x1, x2))
    extents = [image.shape[axis_in("vecdot", axis, image.ndim)] for image in (a, b)]
    if extents[0] != extents[1]:
        raise ValueError(f"vecdot: axis {axis} has {extents[0]} and {extents[1]} pixels")
    dtype = a.dtype
    return _as(_reduced(_as(a, FLOAT) * _as(b, FLOAT), "sum", axis, False), dtype)  # type: ignore[no-any-return]
