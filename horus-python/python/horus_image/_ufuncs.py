"""The functions of NumPy on lazy images: recorded, of operations that Horus has or that make them up.

What is made up of others is computed in ``float64``, of ``float32`` too, and differs from NumPy's results by a few units in the last place of
``float64``. Of integers results that are no whole numbers are ``float64``. What is not here is a `TypeError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NoReturn

import numpy as np

from . import _horus
from ._dtype import NATIVE, truth
from ._foreign import is_writable, write_into
from ._image import Image, where
from ._operators import (
    Operators,
    _as,
    _binary,
    _bits,
    _compared,
    _core,
    _floor_divided,
    _like,
    _logic,
    _met,
    _op,
    _operand,
    _product,
    _remainder,
    _whole_operands,
    _with_bits,
)

_Record = Callable[..., Any]
_F64: Final = NATIVE["f64"]


def called(image: Operators, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a function of NumPy of which an argument is an image."""
    record = UFUNCS.get(ufunc)
    out = kwargs.pop("out", None)
    others = [*inputs, *(out or ())]
    if method != "__call__" or kwargs or record is None:
        if any(_takes_over(value) for value in others):
            return NotImplemented
        _refuse(ufunc, method, kwargs)
    if out is not None and not all(array is None or is_writable(array) for array in out):
        return NotImplemented
    first = next((value for value in inputs if isinstance(value, Operators)), image)
    found = record(*[_operand(value, first) for value in inputs])
    if out is None:
        return found
    results = found if isinstance(found, tuple) else (found,)
    stored = tuple(result if array is None else write_into(array, result) for result, array in zip(results, out, strict=True))
    return stored if isinstance(found, tuple) else stored[0]


def _takes_over(value: Any) -> bool:
    """Returns true for other objects that know functions of NumPy."""
    own = getattr(type(value), "__array_ufunc__", None)
    return not isinstance(value, (Operators, np.ndarray, np.generic)) and own is not None


def _refuse(ufunc: np.ufunc, method: str, kwargs: dict[str, Any]) -> NoReturn:
    name = f"numpy.{ufunc.__name__}"
    if method != "__call__":
        what = f"{name}.{method} of a lazy image: its methods sum, mean, min, max and cumsum are there"
    elif ufunc in UFUNCS:
        what = f"{name} of a lazy image without {', '.join(kwargs)}"
    else:
        what = f"{name} is not among the functions of lazy images"
    raise TypeError(f"{what}; numpy.asarray(image) computes the image, and {name} takes the array")


# Functions of one argument.


def _of_one(name: str) -> _Record:
    """An operation of Horus, in the type of the image."""
    return lambda image: image._with(_horus.unary(name, image._numeric(name)))


def _of_floats(name: str) -> _Record:
    """An operation of Horus, of integers in `float64`."""
    return lambda image: image._with(_horus.unary(name, _floating(name, image)._core))


def _floating(name: str, image: Any) -> Any:
    """The image in a type of floats."""
    image._numeric(name)
    return image if image.dtype.kind == "f" else _as(image, _F64)


def _composed(name: str, function: Callable[[Any], Image]) -> _Record:
    """A function of `float64`, of `float32` rounded to that."""

    def record(image: Any) -> Any:
        found = function(_as(_floating(name, image), _F64))
        return _as(found, image.dtype) if image.dtype.kind == "f" else found

    return record


def _abs(image: Any) -> Any:
    return +image if image.dtype.kind == "b" else abs(image)


def _truncated(image: Any) -> Any:
    if image.dtype.kind != "f":
        return +image
    return image._with(_horus.unary("trunc", image._core))


def _sign(image: Any) -> Any:
    """The sign; of a negative zero, which Horus returns, it is NumPy's, 0."""
    return image._with(_horus.unary("sign", image._numeric("sign"))) + 0


def _is_negative(image: Any) -> Any:
    """Where the sign is negative, of zeros too; that of a NaN is none."""
    if image.dtype.kind != "f":
        return _compared("lt", image, 0)
    zeros = _logic("and", image == 0.0, _compared("lt", 1.0 / image, 0.0))
    return _logic("or", image < 0.0, zeros)


def _scaled(name: str, factor: Callable[[Any], Any]) -> _Record:
    """A multiple, by a number of the type."""

    def record(image: Any) -> Any:
        image = _floating(name, image)
        return image * float(factor(image.dtype.type))

    return record


def _fractions(image: Any) -> tuple[Any, Any]:
    """What follows the point, and what is before it."""
    image = _floating("modf", image)
    whole = _truncated(image)
    rest = where(_compared("eq", abs(image), np.inf), 0.0, image - whole)
    return where(_is_negative(image), -abs(rest), rest), whole


def _bit_count(image: Any) -> Any:
    """The number of bits of the magnitude: of pairs of bits, of four, of eight, of all."""
    if _with_bits("bitwise_count", image.dtype).kind != "u":
        image = _as(abs(_as(image, _F64)), NATIVE["u32"])
    count = _as(image, NATIVE["u32"])
    for width, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        count = (count & mask) + ((count >> width) & mask)
    return _as(count, NATIVE["u8"])


def _exp(x: Any) -> Any:
    return x._with(_horus.unary("exp", x._core))


def _log(x: Any) -> Any:
    return x._with(_horus.unary("log", x._core))


def _sqrt(x: Any) -> Any:
    return x._with(_horus.unary("sqrt", x._core))


def _fma(a: Any, b: Any, c: Any) -> Any:
    """`a * b + c`, rounded once."""
    return a._with(_horus.mul_add(a._core, _core(b), _core(c)))


def _with_sign_of(x: Any, magnitude: Any) -> Any:
    """An odd function, of its values for the magnitudes: a zero keeps its sign."""
    return x._with(_horus.unary("sign", x._core)) * magnitude


def _expm1(x: Any) -> Any:
    # The exponential's rounding is that of a nearby argument, which the logarithm tells.
    u = _exp(x)
    near = where(u - 1.0 == -1.0, -1.0, (u - 1.0) * (x / _log(u)))
    return where(u == 1.0, x, where(u == np.inf, u, near))


def _log1p(x: Any) -> Any:
    u = 1.0 + x
    lost = x - (u - 1.0)
    found = where(abs(lost) > 0.0, _log(u) + lost / u, _log(u))
    return where(x == 0.0, x, found)


_FAR: Final = float.fromhex("0x1.62066151add8bp+10")
"""2043 times the logarithm of 2, and that but for a little."""


def _half_exp(a: Any) -> Any:
    """Half the exponential of large numbers, which overflows later than that."""
    far = _exp(a - _FAR) * 2.0**1021 * 2.0**1021
    return where(a > 709.0, far, _exp(a) * 0.5)


def _sinh(x: Any) -> Any:
    a = abs(x)
    e = _expm1(a)
    return _with_sign_of(x, where(a < 22.0, (e + e / (e + 1.0)) * 0.5, _half_exp(a)))


def _cosh(x: Any) -> Any:
    a = abs(x)
    e = _exp(a)
    return where(a < 22.0, (e + 1.0 / e) * 0.5, _half_exp(a))


def _tanh(x: Any) -> Any:
    a = abs(x)
    e = _expm1(a * 2.0)
    return _with_sign_of(x, where(a > 0.55, 1.0 - 2.0 / (e + 2.0), e / (e + 2.0)))


def _arcsinh(x: Any) -> Any:
    a = abs(x)
    root = _sqrt(a * a + 1.0)
    small, large = _log1p(a + a * a / (root + 1.0)), _log(a * 2.0 + 1.0 / (root + a))
    return _with_sign_of(x, where(a < 2.0, small, where(a < 2.0**26, large, _log(a) + math.log(2.0))))


def _arccosh(x: Any) -> Any:
    t = x - 1.0
    small, large = _log1p(t + _sqrt(t * 2.0 + t * t)), _log(x * 2.0 - 1.0 / (x + _sqrt(x * x - 1.0)))
    found = where(x < 2.0, small, where(x < 2.0**26, large, _log(x) + math.log(2.0)))
    return where(x < 1.0, np.nan, found)


def _arctanh(x: Any) -> Any:
    a = abs(x)
    twice = a * 2.0
    small, large = twice + twice * a / (1.0 - a), 2.0 * (a / (1.0 - a))
    return _with_sign_of(x, _log1p(where(a < 0.5, small, large)) * 0.5)


def _beside(x: Any) -> Any:
    """The other leg of a right triangle whose longest side is 1."""
    return _sqrt((1.0 - x) * (1.0 + x))


def _tan(x: Any) -> Any:
    return x._with(_horus.unary("sin", x._core)) / x._with(_horus.unary("cos", x._core))


def _log_of(base: float) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        found = _log(x) / math.log(base)
        whole = found._with(_horus.unary("round", found._core))
        # Powers of the base have whole logarithms.
        return where(_binary("pow", base, whole) == x, whole, found)

    return function


def _cbrt(x: Any) -> Any:
    tiny = abs(x) < 2.0**-1000
    a = where(tiny, abs(x) * 2.0**54, abs(x))
    y = _binary("pow", a, 1.0 / 3.0)
    # A step of Newton's method, whose difference is exact but for its last bits.
    square = y * y
    error = _fma(square, y, -a) + _fma(y, y, -square) * y
    found = y - error / (square * 3.0)
    found = where(tiny, found * 2.0**-18, found)
    return _with_sign_of(x, where(_logic("or", a == 0.0, a == np.inf), a, found))


# Functions of two arguments.


def _of_two(name: str) -> _Record:
    return lambda a, b: _binary(name, a, b)


def _comparison(name: str) -> _Record:
    return lambda a, b: _compared(name, a, b)


def _extreme(name: str, logic: str) -> _Record:
    """The smaller or the larger; of masks a logical operation."""

    def record(a: Any, b: Any) -> Any:
        masks = all(value.dtype.kind == "b" if hasattr(value, "dtype") else type(value) is bool for value in (a, b))
        return _logic(logic, a, b) if masks else _binary(name, a, b)

    return record


def _truth(value: Any) -> Any:
    """True where pixels, or a number, are not 0."""
    return value._with(truth(value._core)) if isinstance(value, Operators) else bool(value)


def _logical(name: str) -> _Record:
    return lambda a, b: _logic(name, _truth(a), _truth(b))


def _bitwise(name: str) -> _Record:
    return lambda a, b: _bits(name, a, b)


def _modulo(a: Any, b: Any) -> Any:
    """C's remainder, with the sign of the first."""
    a, b, _ = _whole_operands("fmod", a, b)
    return _like(_op("rem", _core(a), _core(b)), a, b)


def _pair(name: str, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Two images of `float64`, and the type of the result; a number is an image of one pixel."""
    a, b = _met(name, a, b, wide=True)
    first = a if isinstance(a, Operators) else b
    if first.dtype.kind == "b":
        raise TypeError(f"{name}: masks combine by & | ^ ~; astype makes numbers of them")

    def wide(value: Any) -> Any:
        if isinstance(value, Operators):
            return _as(value, _F64)
        return first._with(_horus.Image.filled(first._session._core, "f64", (1, 1, 1), float(value)))

    return wide(a), wide(b), first.dtype if first.dtype.kind == "f" else _F64


def _of_pair(name: str, function: Callable[[Any, Any], Any]) -> _Record:
    """A function of `float64`, of `float32` rounded to that."""

    def record(a: Any, b: Any) -> Any:
        left, right, dtype = _pair(name, a, b)
        return _like(_as(function(left, right), dtype)._core, a, b)

    return record


def _heaviside(x: Any, middle: Any) -> Any:
    return where(x < 0.0, 0.0, where(x > 0.0, 1.0, where(x == 0.0, middle, x)))


def _added(log1p: Callable[[Any], Any], exp: Callable[[Any], Any], both: float) -> Callable[[Any, Any], Any]:
    """The logarithm of a sum, whose terms have these logarithms; of equal ones it is larger by that of 2."""

    def function(x: Any, y: Any) -> Any:
        apart = -abs(x - y)
        return where(x == y, x + both, _binary("maximum", x, y) + log1p(exp(apart)))

    return function


def _power(a: Any, b: Any) -> Any:
    left, right, _ = _pair("float_power", a, b)
    return _like(_binary("pow", left, right)._core, a, b)


def _degrees(of: Any) -> Any:
    return of(180.0) / of(math.pi)


def _radians(of: Any) -> Any:
    return of(math.pi) / of(180.0)


_KINDS: Final = {"function": _of_floats, "unary": _of_one, "binary": _of_two, "compare": _comparison}

UFUNCS: Final[dict[np.ufunc, _Record]] = {
    getattr(np, numpy): _KINDS[kind](name) for name, kind, numpy in _horus.PIXEL_OPERATIONS if numpy
} | {
    np.matmul: _product,
    np.floor_divide: _floor_divided,
    np.remainder: _remainder,
    np.fmod: _modulo,
    np.divmod: lambda a, b: (_floor_divided(a, b), _remainder(a, b)),
    np.float_power: _power,
    np.minimum: _extreme("minimum", "and"),
    np.maximum: _extreme("maximum", "or"),
    np.fmin: _extreme("min", "and"),
    np.fmax: _extreme("max", "or"),
    np.copysign: _of_pair("copysign", lambda x, y: where(_is_negative(y), -abs(x), abs(x))),
    np.heaviside: _of_pair("heaviside", _heaviside),
    np.logaddexp: _of_pair("logaddexp", _added(_log1p, _exp, math.log(2.0))),
    np.logaddexp2: _of_pair("logaddexp2", _added(lambda x: _log1p(x) / math.log(2.0), lambda x: _binary("pow", 2.0, x), 1.0)),
    np.bitwise_and: _bitwise("bitwise_and"),
    np.bitwise_or: _bitwise("bitwise_or"),
    np.bitwise_xor: _bitwise("bitwise_xor"),
    np.left_shift: _bitwise("left_shift"),
    np.right_shift: _bitwise("right_shift"),
    np.logical_and: _logical("and"),
    np.logical_or: _logical("or"),
    np.logical_xor: _logical("xor"),
    np.positive: lambda image: image._with(image._numeric("positive")),
    np.conjugate: lambda image: image._with(image._numeric("conjugate")),
    np.absolute: _abs,
    np.fabs: _of_floats("abs"),
    np.trunc: _truncated,
    np.isnan: lambda image: _compared("ne", image, image),
    np.isinf: lambda image: _compared("eq", abs(_as(image, image.dtype if image.dtype.kind == "f" else _F64)), np.inf),
    np.isfinite: lambda image: _compared("lt", abs(_as(image, image.dtype if image.dtype.kind == "f" else _F64)), np.inf),
    np.signbit: _is_negative,
    np.sqrt: _of_floats("sqrt"),
    np.cbrt: _composed("cbrt", _cbrt),
    np.exp2: _composed("exp2", lambda x: _binary("pow", 2.0, x)),
    np.expm1: _composed("expm1", _expm1),
    np.log2: _composed("log2", _log_of(2.0)),
    np.log10: _composed("log10", _log_of(10.0)),
    np.log1p: _composed("log1p", _log1p),
    np.sign: _sign,
    np.rint: _of_floats("round"),
    np.modf: _fractions,
    np.tan: _composed("tan", _tan),
    np.arcsin: _composed("arcsin", lambda x: _binary("atan2", x, _beside(x))),
    np.arccos: _composed("arccos", lambda x: _binary("atan2", _beside(x), x)),
    np.arctan: _composed("arctan", lambda x: _binary("atan2", x, 1.0)),
    np.sinh: _composed("sinh", _sinh),
    np.cosh: _composed("cosh", _cosh),
    np.tanh: _composed("tanh", _tanh),
    np.arcsinh: _composed("arcsinh", _arcsinh),
    np.arccosh: _composed("arccosh", _arccosh),
    np.arctanh: _composed("arctanh", _arctanh),
    np.degrees: _scaled("degrees", _degrees),
    np.rad2deg: _scaled("rad2deg", _degrees),
    np.radians: _scaled("radians", _radians),
    np.deg2rad: _scaled("deg2rad", _radians),
    np.invert: lambda image: ~image,
    np.logical_not: lambda image: ~_truth(image),
}
"""What records each function of NumPy that images have: operations of Horus, and what differs from them or is composed of them."""

if hasattr(np, "bitwise_count"):  # from NumPy 2.0 on
    UFUNCS[np.bitwise_count] = _bit_count
