"""Morphology of numbers, with the rules of ``scipy.ndimage``."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import _horus
from ._colours import by_pixels
from ._kept import kept
from ._order import _both, extents_on, extremes
from ._public import ORDERS, Terms, public
from ._values import Value, axes_of, combined, filtered, for_each, number
from .typing import ArrayLike, Borders, Ints, Output, Pixels

DType = np.dtype[Any]


class _Element:
    """The pixels that are read: a size, a footprint or a structure of some axes, at an origin, with a border mode."""

    def __init__(self, size: Any, footprint: Any, structure: Any, mode: Any, cval: Any, origin: Any, axes: Any) -> None:
        if size is None and footprint is None and structure is None:
            raise ValueError("size, footprint, or structure must be specified")
        self.size = size
        self.footprint = None if footprint is None else np.asarray(footprint)
        self.structure = None if structure is None else np.asarray(structure)
        self.mode, self.cval, self.origin, self.axes = mode, number(cval), origin, axes

    def orders(self, ndim: int) -> bool:
        """Returns true if an erosion or an opening is nowhere above the input, and a dilation or a closing nowhere below it: the element is a
        box centred on its pixel, and the border mode repeats pixels."""
        if self.footprint is not None or self.structure is not None:
            return False
        count = len(axes_of(self.axes, ndim))
        odd = all(operator.index(size) % 2 for size in for_each(self.size, count))
        return odd and not any(for_each(self.origin, count)) and not {"constant", "grid-constant"} & {*for_each(self.mode, count)}

    def erode(self, value: Value, dtype: DType) -> Value:
        """The smallest pixel, a structure subtracted before."""
        return extremes(
            value, dtype, self.size, self.footprint, self.structure, self.mode, self.cval, self.origin, "min", self.axes
        )

    def dilate(self, value: Value, dtype: DType) -> Value:
        """The largest pixel under what is turned by 180 degrees, a structure added before."""

        def turned(array: np.ndarray[Any, Any] | None) -> np.ndarray[Any, Any] | None:
            return None if array is None else array[(slice(None, None, -1),) * array.ndim]

        axes = axes_of(self.axes, value.ndim)
        origins = for_each(self.origin, len(axes))
        shaped = self.footprint if self.footprint is not None else self.structure
        sizes = for_each(self.size, len(axes)) if shaped is None else extents_on(shaped.shape, axes)
        origins = [-at - (1 - size % 2) for at, size in zip(origins, sizes, strict=True)]
        return extremes(
            value, dtype, self.size, turned(self.footprint), turned(self.structure), self.mode, self.cval, origins, "max", axes
        )


_Record = Callable[[_Element, Value, DType], Value]


_ORDERS: Final = Terms(f"no_heights {ORDERS}")
_DIFFERENCES: Final = Terms(f"no_heights {ORDERS} narrow")


def _grey(name: str, doc: str, record: _Record, typed: bool = True, **row: Any) -> Callable[..., Any]:
    """A function of an element, and its row; unless it is `typed`, an `output` that is no array is not heeded, as in SciPy."""

    def function(
        input: ArrayLike,
        size: Ints | None = None,
        footprint: npt.ArrayLike | None = None,
        structure: npt.ArrayLike | None = None,
        output: Output = None,
        mode: Borders = "reflect",
        cval: float = 0.0,
        origin: Ints = 0,
        *,
        axes: Ints | None = None,
    ) -> Pixels:
        _both(size, footprint)
        element = _Element(size, footprint, structure, mode, cval, origin, axes)
        heeded = output if typed or isinstance(output, np.ndarray) else None
        return filtered(name, input, heeded, functools.partial(record, element))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc} (``scipy.ndimage.{name}``)."
    function.__module__ = "horus_image.ndimage"
    return public("ndimage", **row)(kept(by_pixels("size", "footprint", "structure")(function)))


def _combined(kind: str, a: Value, b: Value, dtype: DType) -> Value:
    """The sum ("add") or the difference ("sub"), as NumPy computes it into an array of a type: integers wrap around.

    Raises
    ------
    TypeError
        If the type does not take the result, or of masks that are to be subtracted.
    """
    common = np.result_type(a.dtype, b.dtype)
    if common.kind == "b":
        if kind == "sub":
            raise TypeError("numpy boolean subtract, the `-` operator, is not supported; give an output array of numbers")
        return a.like(_horus.logic("or", a.core, b.core), common).cast(dtype)
    if not np.can_cast(common, dtype, "same_kind"):
        raise TypeError(f"the result of type {common} is not cast to {dtype}: it is of another kind")
    if common.kind == "f":
        return a.like(_horus.binary(kind, a.cast(common).core, b.cast(common).core), common).cast(dtype)
    return combined(kind, a, b, dtype)


def _ordered_difference(e: _Element, a: Value, b: Value, dtype: DType) -> Value:
    """The difference of two results of an element, of which one is above the other if it orders them."""
    if e.orders(a.ndim) and a.dtype == b.dtype == dtype and a.core.dtype in ("u8", "u16", "u32"):
        # Saturated, which is the same where nothing is below 0.
        return a.like(_horus.binary("sub", a.core, b.core))
    return _combined("sub", a, b, dtype)


def _without(e: _Element, a: Value, b: Value, dtype: DType) -> Value:
    """The difference; of masks, where they differ."""
    if a.dtype.kind == b.dtype.kind == "b":
        return a.like(_horus.logic("xor", a.core, b.core))
    return _ordered_difference(e, a, b, dtype)


def _opening(e: _Element, value: Value, dtype: DType) -> Value:
    return e.dilate(e.erode(value, value.dtype), dtype)


def _closing(e: _Element, value: Value, dtype: DType) -> Value:
    return e.erode(e.dilate(value, value.dtype), dtype)


def _gradient(e: _Element, value: Value, dtype: DType) -> Value:
    return _ordered_difference(e, e.dilate(value, value.dtype), e.erode(value, dtype), dtype)


def _laplace(e: _Element, value: Value, dtype: DType) -> Value:
    found = _combined("add", e.dilate(value, value.dtype), e.erode(value, dtype), dtype)
    # Rounded, or around the range of the type, as NumPy does: step by step.
    return _combined("sub", _combined("sub", found, value, dtype), value, dtype)


grey_erosion = _grey(
    "grey_erosion", "The smallest pixel under a structuring element", lambda e, v, t: e.erode(v, t), rust="erode", opencv="cv.erode", accel=_ORDERS
)
grey_dilation = _grey(
    "grey_dilation", "The largest pixel under a structuring element", lambda e, v, t: e.dilate(v, t), rust="dilate", opencv="cv.dilate", accel=_ORDERS
)
grey_opening = _grey("grey_opening", "Erosion, then dilation", _opening, rust="opening", opencv="MORPH_OPEN", accel=_ORDERS)
grey_closing = _grey("grey_closing", "Dilation, then erosion", _closing, rust="closing", opencv="MORPH_CLOSE", accel=_ORDERS)
morphological_gradient = _grey(
    "morphological_gradient", "Dilation minus erosion", _gradient, typed=False,
    rust="morphological_gradient", opencv="MORPH_GRADIENT", accel=_DIFFERENCES,
)
morphological_laplace = _grey("morphological_laplace", "Dilation plus erosion minus twice the input", _laplace, typed=False)
white_tophat = _grey(
    "white_tophat", "What an opening removes", lambda e, v, t: _without(e, v, _opening(e, v, t), t),
    rust="top_hat", opencv="MORPH_TOPHAT", accel=_DIFFERENCES,
)
black_tophat = _grey(
    "black_tophat", "What a closing adds", lambda e, v, t: _without(e, _closing(e, v, t), v, t),
    rust="black_hat", opencv="MORPH_BLACKHAT", accel=_DIFFERENCES,
)
