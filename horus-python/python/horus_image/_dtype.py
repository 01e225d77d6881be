"""Types of pixels: NumPy's, those that Horus stores, and the conversions of SciPy between them.

Horus stores integers of up to 32 bits, `f32`, `f64` and masks. NumPy's 64-bit integers are held in `f64`, which
holds those up to 2^53, and becomes itself again when a result is given back.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from . import _horus

# The stored type of each type of NumPy that arrays may have.
STORED: Final[dict[np.dtype[Any], str]] = {
    np.dtype(np.bool_): "bool",
    np.dtype(np.uint8): "u8",
    np.dtype(np.int8): "i8",
    np.dtype(np.uint16): "u16",
    np.dtype(np.int16): "i16",
    np.dtype(np.uint32): "u32",
    np.dtype(np.int32): "i32",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.int64): "f64",
    np.dtype(np.uint64): "f64",
    np.dtype(np.longlong): "f64",
    np.dtype(np.ulonglong): "f64",
}

# The types of lazy images: those that Horus stores as they are.
NATIVE: Final[dict[str, np.dtype[Any]]] = {
    "bool": np.dtype(np.bool_),
    "u8": np.dtype(np.uint8),
    "i8": np.dtype(np.int8),
    "u16": np.dtype(np.uint16),
    "i16": np.dtype(np.int16),
    "u32": np.dtype(np.uint32),
    "i32": np.dtype(np.int32),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}

HALF: Final = np.dtype(np.float16)
"""Arrays of it are read, computed in `float32`, and written."""

CODES: Final = {dtype: code for code, dtype in NATIVE.items()}
"""The names of these types."""

LARGEST: Final = 2**53
"""The largest magnitude up to which `float64` has every whole number."""


def stored(dtype: np.dtype[Any]) -> str:
    """The type in which Horus stores pixels of a type of NumPy."""
    code = STORED.get(dtype)
    if code is None:
        native = dtype.newbyteorder("=")
        code = STORED.get(native)
    if code is None:
        raise TypeError(f"images have no pixels of type {dtype}: use astype, to integers of up to 32 bits, float32, float64 or bool")
    return code


def is_native(dtype: np.dtype[Any]) -> bool:
    """Returns true if Horus stores the type unchanged."""
    code = STORED.get(dtype)
    return code is not None and NATIVE[code] == dtype


def ready(array: np.ndarray[Any, Any], channels: bool = False) -> np.ndarray[Any, Any]:
    """The array in the type that Horus stores, in C order, aligned and in this machine's byte order; truth values as bytes. One with a last axis
    of channels may also have one plane after the other."""
    code = stored(array.dtype)
    native = NATIVE[code]
    if array.dtype != native:
        if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
            if int(array.max()) > LARGEST or int(array.min()) < -LARGEST:
                raise ValueError(f"{array.dtype} is computed in float64, and there are magnitudes above 2^53")
        return array.astype(native, order="C")
    in_order = array.flags.c_contiguous or (channels and np.moveaxis(array, -1, 0).flags.c_contiguous)
    if not (in_order and array.flags.aligned):
        array = array.copy()
    # Arrays of truth values may hold other bytes than 0 and 1.
    return array.view(np.uint8) if native.kind == "b" else array


def whole(core: _horus.Image) -> _horus.Image:
    """Floats without what follows the point."""
    below = _horus.compare("lt", core, 0.0)
    return _horus.select(below, _horus.unary("ceil", core), _horus.unary("floor", core))


def truth(core: _horus.Image) -> _horus.Image:
    """True where numbers are not 0, as NumPy converts them to truth values."""
    return core if core.dtype == "bool" else _horus.invert(_horus.compare("eq", core, 0.0))


def cast(core: _horus.Image, source: np.dtype[Any], dtype: np.dtype[Any]) -> _horus.Image:
    """Pixels of a type as those of another, as C converts them: without what follows the point, and what is too large for a type modulo its
    range."""
    code = stored(dtype)
    if dtype.kind == "b":
        # Numbers below 1 are cut to 0.
        return _horus.convert(whole(core) if source.kind == "f" else core, "bool")
    if code == "f64" and dtype.kind != "f" and source.kind == "f":
        core = whole(core)  # integers of 64 bits
    if core.dtype == code:
        return core
    return _horus.convert(core, code) if core.dtype == "bool" else _horus.cast(core, code)


def rounded(core: _horus.Image, dtype: np.dtype[Any], held: bool = False) -> _horus.Image:
    """Floats as the nearest whole numbers of a type, halves away from 0, saturated: what SciPy's interpolations do. Unsigned numbers that the
    type is known to have, as `held`, are cut."""
    if dtype.kind == "f":
        code = stored(dtype)
        return core if core.dtype == code else _horus.convert(core, code)
    if dtype.kind == "b":
        return cast(core, NATIVE["f64"], dtype)
    up = _horus.binary("add", core, 0.5)
    if held:
        return cast(up, NATIVE["f64"], dtype)
    up = _horus.unary("floor", up)
    if dtype.kind == "u" and dtype.itemsize < 8:
        return _horus.convert(up, STORED[dtype])  # what is negative is 0
    down = _horus.unary("ceil", _horus.binary("sub", core, 0.5))
    whole = _horus.select(_horus.compare("gt", core, 0.0), up, down)
    if dtype.itemsize < 8:
        return _horus.convert(whole, STORED[dtype])  # a NaN is 0
    information = np.iinfo(dtype)
    numbers = _horus.select(_horus.compare("eq", whole, whole), whole, 0.0)
    return _horus.clamp(numbers, float(information.min), float(information.max))
