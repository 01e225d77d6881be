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
        from ._ufuncs import called

        return called(self, ufunc, method, inputs, kwargs)

    def __hash__(self) -> int:
        raise TypeError("images are compared pixel by pixel, and have no hash")

    def __neg__(self) -> Image:
        return self._with(_horus.unary("neg", self._numeric("-")))

    def __pos__(self) -> Image:
        return self._with(self._core)

    def __abs__(self) -> Image:
        return self._with(_horus.unary("abs", self._numeric("abs")))

    def __invert__(self) -> Image:
        if self._core.dtype == "bool":
            return self._with(_horus.invert(self._core))
        dtype = _with_bits("~", self.dtype)
        return self._with(_horus.binary("bitwise_xor", self._core, float(np.iinfo(dtype).max if dtype.kind == "u" else -1)))

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

    def __floordiv__(self, other: ArrayLike) -> Image:
        return _floor_divided(self, other)

    def __rfloordiv__(self, other: ArrayLike) -> Image:
        return _floor_divided(other, self)

    def __mod__(self, other: ArrayLike) -> Image:
        return _remainder(self, other)

    def __rmod__(self, other: ArrayLike) -> Image:
        return _remainder(other, self)

    def __divmod__(self, other: ArrayLike) -> tuple[Image, Image]:
        return _floor_divided(self, other), _remainder(self, other)

    def __rdivmod__(self, other: ArrayLike) -> tuple[Image, Image]:
        return _floor_divided(other, self), _remainder(other, self)

    def __lshift__(self, other: ArrayLike) -> Image:
        return _bits("left_shift", self, other)

    def __rlshift__(self, other: ArrayLike) -> Image:
        return _bits("left_shift", other, self)

    def __rshift__(self, other: ArrayLike) -> Image:
        return _bits("right_shift", self, other)

    def __rrshift__(self, other: ArrayLike) -> Image:
        return _bits("right_shift", other, self)

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
        return _bits("bitwise_and", self, other)

    def __rand__(self, other: ArrayLike) -> Image:
        return _bits("bitwise_and", other, self)

    def __or__(self, other: ArrayLike) -> Image:
        return _bits("bitwise_or", self, other)

    def __ror__(self, other: ArrayLike) -> Image:
        return _bits("bitwise_or", other, self)

    def __xor__(self, other: ArrayLike) -> Image:
        return _bits("bitwise_xor", self, other)

    def __rxor__(self, other: ArrayLike) -> Image:
        return _bits("bitwise_xor", other, self)

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


_SIGNS: Final = {f"r{name}": name for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")}
"""Methods of the right operand, by the names of their operators."""
_PACKAGE: Final = __name__.rpartition(".")[0]
_MOST_LINES: Final = 4096
_lines: dict[tuple[int, int, int], tuple[CodeType, CodeType, _horus.SourceLine]] = {}
"""Lines of the places from which operations were recorded last; looking one up takes as long as all before it are many."""


def _tell_line(core: _horus.Image) -> None:
    """Sets the user's source line on an image, and the function that it calls: errors occur when it is computed, at another line."""
    called = sys._getframe(1)
    frame: FrameType | None = called.f_back
    while frame is not None and frame.f_globals.get("__package__") == _PACKAGE:
        # Decorators have names of their own.
        if not frame.f_code.co_freevars:
            called = frame
        frame = frame.f_back
    if frame is None:
        return
    code, function = frame.f_code, called.f_code
    place = (id(code), frame.f_lasti, id(function))
    known = _lines.get(place)
    if known is None or known[0] is not code or known[1] is not function:
        if len(_lines) >= _MOST_LINES:
            _lines.clear()
        name = function.co_name.strip("_")
        known = _lines[place] = (code, function, _horus.SourceLine(code.co_filename, frame.f_lineno or 0, _SIGNS.get(name, name)))
    core.recorded_at(known[2])


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
    from ._foreign import DeviceArray, on_host, read_beside
    from ._image import asarray

    array = read_beside(value, beside._session)
    if isinstance(array, DeviceArray) and array.ndim == 0:
        array = on_host(value)
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


_RANGES: Final = {code: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) for code, dtype in NATIVE.items() if dtype.kind in "iu"}
"""The least and the greatest number of each integer type."""


def _met(name: str, a: Any, b: Any, wide: bool = False) -> tuple[Any, Any]:
    """Both operands, images among them in the type of both; one is an image. With `wide` integers of 64 bits are `float64`, which holds
    those of 32 bits: the result is of another type."""
    first = a if isinstance(a, Operators) else b
    if not isinstance(first, Operators):
        raise TypeError(f"{name}: one of both must be a horus_image.Image")
    number, code = b if first is a else a, first._core.dtype
    if code in ("f32", "f64") and _is_plain(number):
        return a, b
    # As `numpy.result_type` says, which takes longer than to record an operation.
    if type(number) is int and code in _RANGES:
        least, most = _RANGES[code]
        if least <= number <= most:
            return a, b
    if isinstance(number, np.generic) and CODES.get(number.dtype) == code:
        return a, b
    if isinstance(number, Operators) and number._core.dtype == code and number._channels == first._channels:
        return a, b
    a, b = _operand(a, first), _operand(b, first)
    if isinstance(b, (Operators, np.generic)) and isinstance(a, (Operators, np.generic)) and a.dtype == b.dtype:
        return a, b
    kinds: list[Any] = [value.dtype if isinstance(value, Operators) else value for value in (a, b)]
    dtype: np.dtype[Any] = np.result_type(*kinds)
    if wide and dtype.kind in "iu" and dtype not in CODES:
        dtype = NATIVE["f64"]
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
    if a._ndim == b._ndim and a._channels == b._channels:
        return a._with(core)
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
    floats = name in ("div", "atan2", "hypot")
    a, b = _met(name, a, b, floats)
    first = a if isinstance(a, Operators) else b
    if floats and first.dtype.kind in "iub":
        a, b = _as(a, NATIVE["f64"]), _as(b, NATIVE["f64"])
    if isinstance(a, Operators):
        return _like(_horus.binary(name, a._core, _core(b)), a, b)
    return _like(_horus.binary_of_number(name, float(a), b._core), a, b)


def smaller(a: Any, b: Any) -> Image:
    """The smaller of both, ignoring NaN."""
    return _binary("min", a, b)


def larger(a: Any, b: Any) -> Image:
    """The larger of both, ignoring NaN."""
    return _binary("max", a, b)


def _product(a: Any, b: Any) -> Image:
    a, b = _met("matmul", a, b)
    if not isinstance(a, Operators) or not isinstance(b, Operators) or not len(a.shape) == len(b.shape) == 2:
        raise ValueError("matmul: matrices have two axes")
    return a._with(_horus.matmul(a._core, b._core))


_TURNED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def _compared(name: str, a: Any, b: Any) -> Image:
    a, b = _met(name, a, b, wide=True)
    if not isinstance(a, Operators):
        a, b, name = b, a, _TURNED[name]
    if a.dtype.kind == "b":
        a, b = _as(a, NATIVE["u8"]), _as(b, NATIVE["u8"])
    return _like(_horus.compare(name, a._core, _core(b)), a, b)


def _with_bits(name: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type, if its numbers have bits."""
    if dtype.kind not in "iu":
        raise TypeError(f"{name} is of integers and masks, not of {dtype}; astype makes integers")
    return dtype


def _check_range(dtype: np.dtype[Any], *values: Any) -> None:
    """Refuses numbers of Python that a type does not hold, as NumPy does."""
    for value in values:
        if dtype.kind in "iu" and type(value) is int and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            raise OverflowError(f"Python integer {value} out of bounds for {dtype}")


def _whole_operands(name: str, a: Any, b: Any) -> tuple[Any, Any, np.dtype[Any]]:
    """Both operands in the type of both, which is one of 8 bits for masks."""
    a, b = _met(name, a, b)
    dtype: np.dtype[Any] = (a if isinstance(a, Operators) else b).dtype
    if dtype.kind == "b":
        dtype = NATIVE["i8"]
        a, b = _as(a, dtype), _as(b, dtype)
    _check_range(dtype, a, b)
    return a, b, dtype


def _bits(name: str, a: Any, b: Any) -> Image:
    """An operation on the bits of integers; of masks a logical one."""
    first = a if isinstance(a, Operators) else b
    a, b = _operand(a, first), _operand(b, first)
    kinds = {("b" if type(value) is bool else value.dtype.kind) if hasattr(value, "dtype") or type(value) is bool else "i" for value in (a, b)}
    if kinds == {"b"} and name.startswith("bitwise_"):
        return _logic(name.removeprefix("bitwise_"), a, b)
    a, b, dtype = _whole_operands(name, a, b)
    _with_bits(name, dtype)
    return _like(_op(name, _core(a), _core(b)), a, b)


def _logic(name: str, a: Any, b: Any) -> Image:
    """An operation on masks, and truth values."""
    first = a if isinstance(a, Operators) else b
    cores = [value._core if isinstance(value, Operators) else _constant(first._core, bool(value)) for value in (a, b)]
    return _like(_horus.logic(name, *cores), a, b)


def _constant(mask: _horus.Image, value: bool) -> _horus.Image:
    nowhere = _horus.logic("xor", mask, mask)
    return _horus.invert(nowhere) if value else nowhere


_Number = Any
"""The record of an image, or a number for all pixels."""


def _op(name: str, a: _Number, b: _Number) -> _horus.Image:
    return _horus.binary_of_number(name, a, b) if isinstance(a, float) else _horus.binary(name, a, b)


def _is_below(value: _Number) -> Any:
    """Where a number is below 0: of one for all pixels a truth value."""
    return value < 0.0 if isinstance(value, float) else _horus.compare("lt", value, 0.0)


def _is_off(rest: _horus.Image, b: _Number) -> _horus.Image:
    """Where what C's division leaves has another sign than the divisor, so that its quotient is above that of NumPy, which rounds down."""
    if isinstance(b, float):
        return _horus.compare("gt" if b < 0.0 else "lt", rest, 0.0)
    signs = _horus.logic("xor", _is_below(rest), _is_below(b))
    return _horus.logic("and", _horus.compare("ne", rest, 0.0), signs)


def _remainder(a: Any, b: Any) -> Image:
    """NumPy's ``a % b``, with the sign of `b`."""
    a, b, dtype = _whole_operands("remainder", a, b)
    left, right = _core(a), _core(b)
    rest = _op("rem", left, right)
    if dtype.kind != "u":
        found = _horus.select(_is_off(rest, right), _op("add", rest, right), rest)
        if dtype.kind == "f":
            # A zero has the sign of the divisor, too.
            zero = _signed_zero(right, rest)
            found = _horus.select(_horus.compare("eq", rest, 0.0), zero, found)
        rest = found
    return _like(rest, a, b)


def _signed_zero(like: _Number, beside: _horus.Image) -> Any:
    below = _is_below(like)
    if isinstance(below, bool):
        return -0.0 if below else 0.0
    return _horus.select(below, -0.0, _horus.unary("abs", beside))


def _floor_divided(a: Any, b: Any) -> Image:
    """NumPy's ``a // b``; of integers 0 for a divisor of 0, and saturated."""
    a, b, dtype = _whole_operands("floor_divide", a, b)
    left, right = _core(a), _core(b)
    if dtype.kind == "u":
        return _like(_op("div", left, right), a, b)
    rest = _op("rem", left, right)
    if dtype.kind == "i":
        found = _op("div", left, right)
        return _like(_horus.select(_is_off(rest, right), _horus.binary("sub", found, 1.0), found), a, b)
    # As NumPy: the multiple of the divisor is divided by it, which is whole but for a rounding.
    ratio = _op("div", left, right)
    whole = _op("div", _op("sub", left, rest), right)
    whole = _horus.select(_is_off(rest, right), _horus.binary("sub", whole, 1.0), whole)
    found = _horus.unary("floor", whole)
    more = _horus.compare("gt", _horus.binary("sub", whole, found), 0.5)
    found = _horus.select(more, _horus.binary("add", found, 1.0), found)
    found = _horus.select(_horus.compare("eq", whole, 0.0), _horus.binary("mul", ratio, 0.0), found)
    if isinstance(right, float):
        return _like(ratio if right == 0.0 else found, a, b)
    return _like(_horus.select(_horus.compare("eq", right, 0.0), ratio, found), a, b)
