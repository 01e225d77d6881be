"""Operators and functions of NumPy on lazy images."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from . import _horus
from ._dtype import CODES, LARGEST, NATIVE, STORED

if TYPE_CHECKING:
    from ._image import Image
    from ._session import Session
    from .typing import ArrayLike


class Operators:
    """The record of an image, its array-like properties, and the operators of Python; `Image` adds the rest."""

    __slots__ = ("_channels", "_core", "_ndim", "_session")

    _core: _horus.Image
    _session: Session
    _ndim: int
    _channels: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, as NumPy orders them; with channels last, if there are any."""
        depth, height, width, channels = self._core.shape
        spatial = (depth, height, width)[3 - self._ndim :]
        return (*spatial, channels) if self._channels else spatial

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._ndim + self._channels

    @property
    def size(self) -> int:
        """Number of values."""
        depth, height, width, channels = self._core.shape
        return depth * height * width * channels

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a pixel."""
        return NATIVE[self._core.dtype]

    @property
    def channels(self) -> bool:
        """The last axis is that of channels, which filters treat separately."""
        return self._channels

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """The functions of NumPy that Horus has are recorded."""
        record = _UFUNCS.get(ufunc)
        out = kwargs.pop("out", None)
        if method != "__call__" or kwargs or record is None:
            return NotImplemented
        if out is not None and not all(isinstance(array, np.ndarray) for array in out):
            return NotImplemented
        first = next(value for value in inputs if isinstance(value, Operators))
        operands = [_operand(value, first) for value in inputs]
        image = record(*operands)
        if out is None:
            return image
        (array,) = out
        np.copyto(array, image.compute(), casting="same_kind")
        return array

    def __hash__(self) -> int:
        raise TypeError("images are compared pixel by pixel, and have no hash")

    def __neg__(self) -> Image:
        return self._with(_horus.unary("neg", self._numeric("-")))

    def __pos__(self) -> Image:
        return self._with(self._core)

    def __abs__(self) -> Image:
        return self._with(_horus.unary("abs", self._numeric("abs")))

    def __invert__(self) -> Image:
        return self._with(_horus.invert(self._core))

    def __add__(self, other: ArrayLike) -> Image:
        return _binary("add", self, other)

    def __radd__(self, other: ArrayLike) -> Image:
        return _binary("add", other, self)

    def __sub__(self, other: ArrayLike) -> Image:
        return _binary("sub", self, other)

    def __rsub__(self, other: ArrayLike) -> Image:
        return _binary("sub", other, self)

    def __mul__(self, other: ArrayLike) -> Image:
        return _binary("mul", self, other)

    def __rmul__(self, other: ArrayLike) -> Image:
        return _binary("mul", other, self)

    def __truediv__(self, other: ArrayLike) -> Image:
        return _binary("div", self, other)

    def __rtruediv__(self, other: ArrayLike) -> Image:
        return _binary("div", other, self)

    def __pow__(self, other: ArrayLike) -> Image:
        return _binary("pow", self, other)

    def __rpow__(self, other: ArrayLike) -> Image:
        return _binary("pow", other, self)

    def __matmul__(self, other: ArrayLike) -> Image:
        return _product(self, other)

    def __rmatmul__(self, other: ArrayLike) -> Image:
        return _product(other, self)

    def __lt__(self, other: ArrayLike) -> Image:
        return _compared("lt", self, other)

    def __le__(self, other: ArrayLike) -> Image:
        return _compared("le", self, other)

    def __gt__(self, other: ArrayLike) -> Image:
        return _compared("gt", self, other)

    def __ge__(self, other: ArrayLike) -> Image:
        return _compared("ge", self, other)

    def __eq__(self, other: object) -> Image:  # type: ignore[override]
        return _compared("eq", self, other)

    def __ne__(self, other: object) -> Image:  # type: ignore[override]
        return _compared("ne", self, other)

    def __and__(self, other: ArrayLike) -> Image:
        return _logic("and", self, other)

    def __rand__(self, other: ArrayLike) -> Image:
        return _logic("and", self, other)

    def __or__(self, other: ArrayLike) -> Image:
        return _logic("or", self, other)

    def __ror__(self, other: ArrayLike) -> Image:
        return _logic("or", self, other)

    def __xor__(self, other: ArrayLike) -> Image:
        return _logic("xor", self, other)

    def __rxor__(self, other: ArrayLike) -> Image:
        return _logic("xor", self, other)

    def _with(self, core: _horus.Image) -> Image:
        """Another image of the same session and axes."""
        return _made(type(self), core, self._session, self._ndim, self._channels)

    def _numeric(self, name: str) -> _horus.Image:
        if self._core.dtype == "bool":
            raise TypeError(f"{name}: the image is a mask; masks combine by & | ^ ~, and astype makes numbers of them")
        return self._core

    def _numbers(self) -> _horus.Image:
        return _horus.convert(self._core, "u8") if self._core.dtype == "bool" else self._core


def _made(kind: Any, core: _horus.Image, session: Session, ndim: int, channels: bool, has_line: bool = False) -> Image:
    """An image of recorded operations, which are told their line of the user's program unless they have one."""
    image: Image = object.__new__(kind)
    image._core = core
    image._session = session
    image._ndim = ndim
    image._channels = channels
    if not has_line:
        _tell_line(core)
    return image


_PACKAGE: Final = __name__.rpartition(".")[0]
_MOST_LINES: Final = 4096
_lines: dict[tuple[int, int], tuple[CodeType, int]] = {}
"""Lines of the places from which operations were recorded last; looking one up takes as long as all before it are many."""


def _tell_line(core: _horus.Image) -> None:
    """Sets the user's source line on an image: errors occur when it is computed, at another line."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__package__") == _PACKAGE:
        frame = frame.f_back
    if frame is None:
        return
    code = frame.f_code
    place = (id(code), frame.f_lasti)
    known = _lines.get(place)
    if known is None or known[0] is not code:
        if len(_lines) >= _MOST_LINES:
            _lines.clear()
        known = _lines[place] = (code, frame.f_lineno or 0)
    core.recorded_at(code.co_filename, known[1])


def _operand(value: Any, beside: Operators) -> Any:
    """An operand: a number or an image, made of an array if need be."""
    if isinstance(value, (np.int64, np.uint64)):
        # Images have no integers of 64 bits: such a number is as one of Python's.
        return int(value)
    if isinstance(value, Operators):
        # As of arrays, the last axis of both is that of channels.
        if beside._channels and not value._channels and value.shape == beside.shape[-1:]:
            core = _horus.stack([_horus.crop(value._core, (0, 0, k), (1, 1, 1)) for k in range(value.size)], True)
            return _made(type(beside), core, beside._session, 2, True)
        return value
    if isinstance(value, (bool, int, float, np.generic)):
        return value
    from ._foreign import DeviceArray, read
    from ._image import asarray

    array = read(value)
    if not isinstance(array, DeviceArray):
        if array.ndim == 0:
            number = array[()]
            return int(number) if isinstance(number, (np.int64, np.uint64)) else number
        if isinstance(value, (list, tuple)) and array.dtype.kind in "if":
            array = _in_type_of(array, beside)
        if beside._channels and array.ndim == 1 and array.shape[0] in (1, beside.shape[-1]):
            # The last axis of both is that of channels.
            return asarray(array.reshape(1, 1, -1), channels=True, session=beside._session)

    return asarray(array, channels=beside._channels and array.ndim == 3, session=beside._session)


def _in_type_of(array: np.ndarray[Any, Any], beside: Operators) -> np.ndarray[Any, Any]:
    """Numbers of Python in the type that each of them would have beside the image."""
    dtype = np.result_type(beside.dtype, array.dtype.type(0).item())
    if dtype == np.int64:
        dtype = np.dtype(np.int32)  # beside a mask
    if array.dtype.kind == "i" and dtype.kind in "iu" and ((array < np.iinfo(dtype).min) | (array > np.iinfo(dtype).max)).any():
        raise OverflowError(f"numbers from {array.min()} to {array.max()} are out of the range of {dtype}")
    return array.astype(dtype)


def _core(value: Any) -> Any:
    return value._core if isinstance(value, Operators) else float(value)


def _is_plain(value: Any) -> bool:
    """Returns true for numbers of Python that take the type of the floats that they meet."""
    return type(value) is float or (type(value) is int and -LARGEST <= value <= LARGEST)


def _met(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Both operands, images among them in the type of both; one is an image."""
    first = a if isinstance(a, Operators) else b
    if not isinstance(first, Operators):
        raise TypeError(f"{name}: one of both must be a horus_image.Image")
    if first._core.dtype in ("f32", "f64") and _is_plain(b if first is a else a):
        return a, b
    a, b = _operand(a, first), _operand(b, first)
    if isinstance(b, (Operators, np.generic)) and isinstance(a, (Operators, np.generic)) and a.dtype == b.dtype:
        return a, b
    kinds: list[Any] = [value.dtype if isinstance(value, Operators) else value for value in (a, b)]
    dtype: np.dtype[Any] = np.result_type(*kinds)
    if dtype not in CODES:
        raise TypeError(f"{name}: images have no pixels of type {dtype}, NumPy's type of both; use astype")
    return _as(a, dtype), _as(b, dtype)


def _as(value: Any, dtype: np.dtype[Any]) -> Any:
    """An image in a type; a number as it is."""
    if not isinstance(value, Operators) or value.dtype == dtype:
        return value
    return value._with(_horus.convert(value._core, STORED[dtype]))


def _like(core: _horus.Image, a: Any, b: Any) -> Image:
    """An image of a record of two operands, with the axes of the larger."""
    if not isinstance(b, Operators):
        return a._with(core)  # type: ignore[no-any-return]
    if not isinstance(a, Operators):
        return b._with(core)
    images = (a, b)
    largest = max(images, key=lambda image: image.ndim)
    channels = any(image._channels for image in images)
    return _made(type(largest), core, largest._session, max(image._ndim for image in images), channels)


def _counts(value: Any) -> bool:
    """Returns true for an image of numbers."""
    return isinstance(value, Operators) and value._core.dtype != "bool"


def _binary(name: str, a: Any, b: Any) -> Image:
    if not _counts(a) and not _counts(b):
        raise TypeError(f"{name}: masks combine by & | ^ ~; astype makes numbers of them")
    a, b = _met(name, a, b)
    first = a if isinstance(a, Operators) else b
    if name in ("div", "atan2", "hypot") and first.dtype.kind in "iub":
        a, b = _as(a, NATIVE["f64"]), _as(b, NATIVE["f64"])
    if isinstance(a, Operators):
        return _like(_horus.binary(name, a._core, _core(b)), a, b)
    return _like(_horus.binary_of_number(name, float(a), b._core), a, b)


def _product(a: Any, b: Any) -> Image:
    a, b = _met("matmul", a, b)
    if not isinstance(a, Operators) or not isinstance(b, Operators) or not len(a.shape) == len(b.shape) == 2:
        raise ValueError("matmul: matrices have two axes")
    return a._with(_horus.matmul(a._core, b._core))


_TURNED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def _compared(name: str, a: Any, b: Any) -> Image:
    a, b = _met(name, a, b)
    if not isinstance(a, Operators):
        a, b, name = b, a, _TURNED[name]
    if a.dtype.kind == "b":
        a, b = _as(a, NATIVE["u8"]), _as(b, NATIVE["u8"])
    return _like(_horus.compare(name, a._core, _core(b)), a, b)


def _logic(name: str, a: Operators, b: Any) -> Image:
    b = _operand(b, a)
    if not isinstance(b, Operators) or a.dtype.kind != "b" or b.dtype.kind != "b":
        raise TypeError("& | ^ combine masks, which comparisons and astype(bool) make")
    return _like(_horus.logic(name, a._core, b._core), a, b)


def _of_one(name: str) -> Callable[[Any], Image]:
    def record(image: Any) -> Image:
        core = image._numeric(name)
        floats = ("sqrt", "exp", "log", "sin", "cos")
        if name in floats and core.dtype not in ("f32", "f64"):
            core = _horus.convert(core, "f64")
        return image._with(_horus.unary(name, core))  # type: ignore[no-any-return]

    return record


def _floating(image: Any) -> Any:
    """The image in a type that holds infinity."""
    return image if image.dtype.kind == "f" else _as(image, NATIVE["f64"])


def _truncated(image: Any) -> Image:
    if image.dtype.kind != "f":
        return +image  # type: ignore[no-any-return]
    core = image._core
    whole = _horus.select(_horus.compare("lt", core, 0.0), _horus.unary("ceil", core), _horus.unary("floor", core))
    return image._with(whole)  # type: ignore[no-any-return]


def _sign(image: Any) -> Image:
    """The sign; of a negative zero, which Horus returns, it is NumPy's, 0."""
    return _of_one("sign")(image) + 0


def _of_two(name: str) -> Callable[[Any, Any], Image]:
    return lambda a, b: _binary(name, a, b)


def _of_masks(name: str) -> Callable[[Any, Any], Image]:
    return lambda a, b: _logic(name, a, b) if isinstance(a, Operators) else _logic(name, b, a)


def _comparison(name: str) -> Callable[[Any, Any], Image]:
    return lambda a, b: _compared(name, a, b)


_UFUNCS: Final[dict[np.ufunc, Callable[..., Image]]] = {
    np.add: _of_two("add"),
    np.subtract: _of_two("sub"),
    np.multiply: _of_two("mul"),
    np.matmul: _product,
    np.true_divide: _of_two("div"),
    np.power: _of_two("pow"),
    np.minimum: _of_two("minimum"),
    np.maximum: _of_two("maximum"),
    np.fmin: _of_two("min"),
    np.fmax: _of_two("max"),
    np.hypot: _of_two("hypot"),
    np.arctan2: _of_two("atan2"),
    np.less: _comparison("lt"),
    np.less_equal: _comparison("le"),
    np.greater: _comparison("gt"),
    np.greater_equal: _comparison("ge"),
    np.equal: _comparison("eq"),
    np.not_equal: _comparison("ne"),
    np.bitwise_and: _of_masks("and"),
    np.bitwise_or: _of_masks("or"),
    np.bitwise_xor: _of_masks("xor"),
    np.logical_and: _of_masks("and"),
    np.logical_or: _of_masks("or"),
    np.logical_xor: _of_masks("xor"),
    np.negative: _of_one("neg"),
    np.positive: lambda image: +image,
    np.absolute: _of_one("abs"),
    np.fabs: _of_one("abs"),
    np.trunc: lambda image: _truncated(image),
    np.isnan: lambda image: _compared("ne", image, image),
    np.isinf: lambda image: _compared("eq", _of_one("abs")(_floating(image)), np.inf),
    np.isfinite: lambda image: _compared("lt", _of_one("abs")(_floating(image)), np.inf),
    np.sqrt: _of_one("sqrt"),
    np.exp: _of_one("exp"),
    np.log: _of_one("log"),
    np.square: _of_one("square"),
    np.sign: _sign,
    np.floor: _of_one("floor"),
    np.ceil: _of_one("ceil"),
    np.rint: _of_one("round"),
    np.sin: _of_one("sin"),
    np.cos: _of_one("cos"),
    np.invert: lambda image: ~image,
    np.logical_not: lambda image: ~image,
}
