"""Types, devices and new images of the array API."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from . import _horus
from ._dtype import CODES, NATIVE, truth
from ._foreign import on_host
from ._image import Image, made
from ._image import asarray as image_of
from ._moves import AXES, checked_shape, counted, filled, moved, plain, positions, reshaped, spread, whole
from ._operators import _as
from ._session import Session, current

DType: TypeAlias = np.dtype[Any]
Shape: TypeAlias = int | Sequence[int]

INTEGER: Final = NATIVE["i32"]
FLOAT: Final = NATIVE["f64"]

_KINDS: Final = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "",
    "numeric": "iuf",
}


def type_of(name: str, dtype: npt.DTypeLike) -> DType:
    """A type of pixels."""
    found: DType = np.dtype(dtype)
    if found not in CODES:
        raise TypeError(f"{name}: images have no pixels of type {found}; types are integers of up to 32 bits, float32, float64 and bool")
    return found


def session_at(name: str, device: Session | None) -> Session:
    """The session that a device is, by default that of the ``with`` statement around."""
    if device is None:
        return current()
    if not isinstance(device, Session):
        raise TypeError(f"{name}: devices are sessions, not {type(device).__name__}")
    return device


def image_in(name: str, x: Any) -> Image:
    """An argument that must be an image."""
    if not isinstance(x, Image):
        raise TypeError(f"{name}: expected a horus_image.Image, not {type(x).__name__}; array_api.asarray makes one of arrays and numbers")
    return x


def asarray(obj: Any, /, *, dtype: npt.DTypeLike | None = None, device: Session | None = None, copy: bool | None = None) -> Image:
    """An image of an array, a number, or a sequence of them, as `horus_image.asarray` makes it.

    Whole numbers of Python become ``int32``, others ``float64``. Arrays are converted as by `astype`: integers wrap around. An image that
    another session has is copied to `device` if that is given. Images do not change, so that ``copy=True`` of an image is the image.

    Raises
    ------
    TypeError
        For types that images do not have, ``int64`` among them: `dtype` converts them.
    OverflowError
        For whole numbers of Python that the type does not hold.
    ValueError
        For arrays without pixels or with more than three axes, and with ``copy=False`` if the pixels must be copied.

    Examples
    --------
    >>> from horus_image import array_api as xp
    >>> xp.asarray([[1, 2], [3, 4]]).dtype
    dtype('int32')
    """
    wanted = None if dtype is None else type_of("asarray", dtype)
    if isinstance(obj, Image):
        image = obj if device is None else obj.to_device(session_at("asarray", device))
        if copy is False and (image is not obj or wanted not in (None, obj.dtype)):
            raise ValueError("asarray: another type or device takes a copy")
        return image if wanted is None else astype(image, wanted)
    session = None if device is None else session_at("asarray", device)
    if isinstance(obj, (builtins.bool, int, float, complex, list, tuple)):
        obj = np.asarray(on_host(obj))
        if obj.dtype.kind in "iu" and obj.dtype not in CODES:
            obj = _narrowed("asarray", obj, INTEGER if wanted is None or wanted.kind != "u" else NATIVE["u32"], wanted)
        elif obj.dtype.kind == "c":
            raise TypeError("asarray: images have no complex pixels")
        copy = None
    if wanted is None or (copy is False and getattr(obj, "dtype", None) == wanted):
        return image_of(obj, session=session, copy=copy is not False)
    if copy is False:
        raise ValueError("asarray: another type takes a copy")
    pixels = on_host(obj)
    return astype(image_of(pixels if pixels.dtype in CODES else pixels.astype(wanted), session=session), wanted)


def _narrowed(name: str, array: np.ndarray[Any, Any], dtype: DType, wanted: DType | None = None) -> np.ndarray[Any, Any]:
    """Integers of 64 bits in a type that images have, if it holds them."""
    if wanted is not None and wanted.kind not in "iu":
        return array.astype(wanted)
    target = dtype if wanted is None else wanted
    limits = np.iinfo(target)
    if array.size and (int(array.min()) < limits.min or int(array.max()) > limits.max):
        raise OverflowError(f"{name}: numbers from {array.min()} to {array.max()} are out of the range of {target}")
    return array.astype(target)


def held(name: str, array: Any, session: Session) -> Image:
    """A result of NumPy as an image: integers of 64 bits as those of 32."""
    array = np.asarray(array)
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        array = _narrowed(name, array, NATIVE["u32"] if array.dtype.kind == "u" else INTEGER)
    if not array.size:
        raise ValueError(f"{name}: the result has shape {array.shape}, and images have at least one pixel")
    if array.ndim > AXES:
        raise NotImplementedError(f"{name}: the result has {array.ndim} axes; images have up to {AXES}")
    return image_of(array, session=session)


def astype(x: Image, dtype: npt.DTypeLike, /, *, copy: bool = True, device: Session | None = None) -> Image:
    """The image in another type: floats are cut to integers, and integers wrap around, as NumPy and C do; `Image.astype` rounds and saturates.

    Examples
    --------
    >>> from horus_image import array_api as xp
    >>> xp.astype(xp.asarray([1.75, -1.75]), xp.int32).compute()
    array([ 1, -1], dtype=int32)
    """
    image, wanted = image_in("astype", x), type_of("astype", dtype)
    image = image if device is None else image.to_device(session_at("astype", device))
    if image.dtype == wanted:
        return image
    if wanted.kind == "b":
        return image._with(truth(image._core))
    core = image._core
    if wanted.kind in "iu" and core.dtype != "bool":
        return image._with(_horus.cast(core, CODES[wanted]))
    return image._with(_horus.convert(core, CODES[wanted]))


def from_dlpack(x: Any, /, *, device: Session | None = None, copy: bool | None = None) -> Image:
    """An image of an array of any library that speaks DLPack."""
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack: {type(x).__name__} has no __dlpack__")
    return asarray(x, device=device, copy=copy)


def full(shape: Shape, fill_value: complex, *, dtype: npt.DTypeLike | None = None, device: Session | None = None) -> Image:
    """An image of one number: by default ``bool``, ``int32`` or ``float64``, after the type of the number.

    Examples
    --------
    >>> from horus_image import array_api as xp
    >>> xp.full((2, 2), 7).compute()
    array([[7, 7],
           [7, 7]], dtype=int32)
    """
    return _constant("full", shape, fill_value, dtype, device)


def _constant(name: str, shape: Shape, value: Any, dtype: npt.DTypeLike | None, device: Session | None) -> Image:
    session = session_at(name, device)
    number = asarray(value, dtype=dtype, device=session)
    if number.ndim:
        raise TypeError(f"{name}: fill_value is a number")
    if isinstance(value, Image):
        return spread(number, checked_shape(name, shape))
    # As `astype`, which cuts numbers.
    kind = {"b": builtins.bool, "f": float}.get(number.dtype.kind, int)
    return filled(session, name, shape, number.dtype, kind(value))


def zeros(shape: Shape, *, dtype: npt.DTypeLike | None = None, device: Session | None = None) -> Image:
    """An image of zeros, by default of ``float64``."""
    return _constant("zeros", shape, 0, FLOAT if dtype is None else dtype, device)


def ones(shape: Shape, *, dtype: npt.DTypeLike | None = None, device: Session | None = None) -> Image:
    """An image of ones, by default of ``float64``."""
    return _constant("ones", shape, 1, FLOAT if dtype is None else dtype, device)


def empty(shape: Shape, *, dtype: npt.DTypeLike | None = None, device: Session | None = None) -> Image:
    """`zeros`: images are not written to."""
    return zeros(shape, dtype=dtype, device=device)


def full_like(x: Image, /, fill_value: complex, *, dtype: npt.DTypeLike | None = None, device: Session | None = None) -> Image:
    """An image of one number, of another image's shape and, unless `dtype` names one, type."""
    image = image_in("full_like", x)
    session = image._session if device is None else device
    spatial = image.shape[:-1] if image._channels else image.shape
    found = full(spatial, fill_value, dtype=image.dtype if dtype is None else dtype, device=session)
    if not image._channels:
        return found
    return made(_horus.stack([found._core] * image.shape[-1], True), found._session, found._ndim, True)


def zeros_like(x: Image, /, *, dtype: npt.DTypeLike | None = None, device: Session | None = None) -> Image:
    """An image of zeros, of another image's shape and type."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Image, /, *, dtype: npt.DTypeLike | None = None, device: Session | None = None) -> Image:
    """An image of ones, of another image's shape and type."""
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x: Image, /, *, dtype: npt.DTypeLike | None = None, device: Session | None = None) -> Image:
    """`zeros_like`: images are not written to."""
    return zeros_like(x, dtype=dtype, device=device)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: npt.DTypeLike | None = None,
    device: Session | None = None,
) -> Image:
    """The numbers of ``numpy.arange``, of ``int32`` if the limits are whole numbers; at least one."""
    first, last = (0, start) if stop is None else (start, stop)
    found = np.arange(first, last, step, dtype=None if dtype is None else type_of("arange", dtype))
    return held("arange", found, session_at("arange", device))


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: npt.DTypeLike | None = None,
    device: Session | None = None,
    endpoint: bool = True,
) -> Image:
    """The numbers of ``numpy.linspace``, by default of ``float64``; at least one."""
    found = np.linspace(start, stop, num, dtype=FLOAT if dtype is None else type_of("linspace", dtype), endpoint=endpoint)
    return held("linspace", found, session_at("linspace", device))


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: npt.DTypeLike | None = None,
    device: Session | None = None,
) -> Image:
    """Ones on a diagonal of a matrix, `k` columns right of the main one, else zeros."""
    session = session_at("eye", device)
    shape = checked_shape("eye", (n_rows, n_rows if n_cols is None else n_cols))
    rows, columns = (_horus.index(session._core, whole(shape), axis) for axis in (1, 2))
    on = _horus.compare("eq", _horus.binary("sub", columns, rows), float(operator.index(k)))
    return astype(made(on, session, 2), FLOAT if dtype is None else dtype)


def _triangle(name: str, x: Image, k: int, comparison: str) -> Image:
    image = plain(image_in(name, x))
    if image.ndim < 2:
        raise ValueError(f"{name}: matrices have two axes; the image has {image.ndim}")
    rows, columns = positions(image, image.shape, 1), positions(image, image.shape, 2)
    kept = _horus.compare(comparison, _horus.binary("sub", columns, rows), float(operator.index(k)))
    return moved(image, _horus.select(kept, counted(image), 0.0), image.ndim)


def tril(x: Image, /, *, k: int = 0) -> Image:
    """The lower triangle of each matrix, up to `k` columns right of the diagonal, with zeros above.

    Examples
    --------
    >>> from horus_image import array_api as xp
    >>> xp.tril(xp.ones((2, 2), dtype=xp.int8)).compute()
    array([[1, 0],
           [1, 1]], dtype=int8)
    """
    return _triangle("tril", x, k, "le")


def triu(x: Image, /, *, k: int = 0) -> Image:
    """The upper triangle of each matrix, from `k` columns right of the diagonal on, with zeros below."""
    return _triangle("triu", x, k, "ge")


def meshgrid(*arrays: Image, indexing: str = "xy") -> list[Image]:
    """The coordinates of a grid, of up to three images of one axis each."""
    images = [image_in("meshgrid", x) for x in arrays]
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    if any(image.ndim > 1 for image in images):
        raise ValueError("meshgrid: coordinates have one axis")
    if len(images) > AXES:
        raise NotImplementedError(f"meshgrid: {len(images)} axes requested; images have up to {AXES}")
    places = list(range(len(images)))
    if indexing == "xy" and len(images) > 1:
        places[:2] = 1, 0
    shape = [0] * len(images)
    for image, place in zip(images, places, strict=True):
        shape[place] = image.size
    lines = [
        reshaped(image, [image.size if at == place else 1 for at in range(len(images))])
        for image, place in zip(images, places, strict=True)
    ]
    return [spread(line, shape) for line in lines]


def isdtype(dtype: npt.DTypeLike, kind: str | DType | tuple[str | DType, ...]) -> bool:
    """Whether a type is another, of a kind such as ``"integral"``, or one of several."""
    found: DType = np.dtype(dtype)
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str):
            if one not in _KINDS:
                raise ValueError(f"isdtype: {one!r} is no kind of types; kinds are {', '.join(_KINDS)}")
            if found.kind in _KINDS[one] and found in CODES:
                return True
        elif found == np.dtype(one):
            return True
    return False


def can_cast(from_: npt.DTypeLike | Image, to: npt.DTypeLike, /) -> bool:
    """Whether every number of a type is one of another."""
    source: Any = from_
    return builtins.bool(np.can_cast(np.dtype(source.dtype if isinstance(source, Image) else source), np.dtype(to)))


def result_type(*arrays_and_dtypes: Any) -> DType:
    """NumPy's type of several images, types and numbers, of which one is no number.

    Raises
    ------
    TypeError
        If images do not have it: ``int64`` of ``int32`` and ``uint32``.
    """
    kinds = [value.dtype if isinstance(value, Image) else value for value in arrays_and_dtypes]
    return type_of("result_type", np.result_type(*kinds))


def promoted(name: str, arrays: Iterable[Any]) -> list[Image]:
    """Images in the type of all."""
    images = [image_in(name, x) for x in arrays]
    if not images:
        raise ValueError(f"{name}: no images are given")
    dtype = type_of(name, np.result_type(*(image.dtype for image in images)))
    return [_as(image, dtype) for image in images]


class FloatLimits(NamedTuple):
    """Limits of a type of floats, as floats."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntegerLimits(NamedTuple):
    """Limits of a type of integers, as integers."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: npt.DTypeLike | Image, /) -> FloatLimits:
    """The limits of a type of floats, or of an image's."""
    given: Any = type
    dtype = given.dtype if isinstance(given, Image) else type_of("finfo", given)
    if dtype.kind != "f":
        raise TypeError(f"finfo: {dtype} is no type of floats")
    found = np.finfo(dtype)
    return FloatLimits(found.bits, float(found.eps), float(found.max), float(found.min), float(found.smallest_normal), dtype)


def iinfo(type: npt.DTypeLike | Image, /) -> IntegerLimits:
    """The limits of a type of integers, or of an image's."""
    given: Any = type
    dtype = given.dtype if isinstance(given, Image) else type_of("iinfo", given)
    if dtype.kind not in "iu":
        raise TypeError(f"iinfo: {dtype} is no type of integers")
    found = np.iinfo(dtype)
    return IntegerLimits(found.bits, int(found.max), int(found.min), dtype)


class NamespaceInfo:
    """What `horus_image.array_api` has; devices are sessions."""

    def capabilities(self) -> dict[str, Any]:
        """Masks are no indices; `nonzero` and ``unique_values`` evaluate; images without channels have up to three axes."""
        return {"boolean indexing": False, "data-dependent shapes": True, "max dimensions": AXES}

    def default_device(self) -> Session:
        """The session of the ``with`` statement around, else the one that is opened at first use."""
        return current()

    def devices(self) -> list[Session]:
        """The default device; `horus_image.session` opens others."""
        return [current()]

    def default_dtypes(self, *, device: Session | None = None) -> dict[str, DType]:
        """Types of numbers of Python, and of positions."""
        session_at("default_dtypes", device)
        return {"real floating": FLOAT, "integral": INTEGER, "indexing": INTEGER}

    def dtypes(self, *, device: Session | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The types of pixels, of some kinds or all."""
        session_at("dtypes", device)
        found = {dtype.name: dtype for dtype in NATIVE.values()}
        return found if kind is None else {name: dtype for name, dtype in found.items() if isdtype(dtype, kind)}


def __array_namespace_info__() -> NamespaceInfo:
    """What the namespace has: types, devices and capabilities."""
    return NamespaceInfo()
