"""Lazy images."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable
from typing import Any, Final, Union

import numpy as np
import numpy.typing as npt

from . import _horus
from ._dtype import NATIVE, is_native, ready, stored
from ._session import Session, current

Number = Union[int, float, np.number[Any], np.bool_]
Array = np.ndarray[Any, Any]


class Image:
    """An image, or a volume, that is computed when somebody looks at it.

    Operators and functions record; `compute`, ``numpy.asarray``, `save` and reductions such as `mean` compute everything that they need
    at once, fused, on the device of the image's session. Made by `asarray`, `open` and the functions of `horus_image.ndimage`.

    Types are ``uint8``, ``uint16``, ``int32``, ``float32``, ``float64`` and ``bool``. Of two types that meet the result is NumPy's
    (``numpy.result_type``), but integers saturate instead of wrapping around. Masks combine by ``& | ^ ~``.

    Examples
    --------
    >>> import numpy as np
    >>> import horus_image as hi
    >>> image = hi.asarray(np.array([[10, 200], [30, 40]], np.uint8))
    >>> image
    <horus_image.Image 2x2 uint8>
    >>> (image + 100).compute()
    array([[110, 255],
           [130, 140]], dtype=uint8)
    >>> np.asarray(image > 35)
    array([[False,  True],
           [False,  True]])
    """

    __slots__ = ("__weakref__", "_channels", "_core", "_ndim", "_session")

    _core: _horus.Image
    _session: Session
    _ndim: int
    _channels: bool

    def __init__(self) -> None:
        raise TypeError("images are made by horus_image.asarray and horus_image.open")

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
        """Whether the last axis is that of channels, which filters treat one by one."""
        return self._channels

    @property
    def session(self) -> Session:
        """The session that the image belongs to."""
        return self._session

    def compute(self) -> Array:
        """Evaluate the image into a new array."""
        array: Array = self._core.to_array(list(self.shape))
        return array

    def start(self) -> None:
        """Begin to evaluate the image, and return; whoever looks at it waits."""
        self._core.start()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Evaluate the image and write a file of it; see `horus_image.save`."""
        self._core.save(os.fspath(path))

    def astype(self, dtype: npt.DTypeLike) -> Image:
        """The image in another type: exact where that can hold a value, else rounded to nearest (to even) and saturated."""
        return self._with(_horus.convert(self._core, _native(np.dtype(dtype))))

    def luminance(self) -> Image:
        """One channel of ``float32``, of integers 0 to 1."""
        image = self._with(self._core.luminance())
        image._channels = False
        return image

    def channel(self, index: int) -> Image:
        """One channel of several."""
        image = self._with(_horus.channel(self._core, index))
        image._channels = False
        return image

    def min(self) -> Any:
        """The smallest pixel, ignoring NaN."""
        return self.dtype.type(_horus.reduce(self._numbers(), "min"))

    def max(self) -> Any:
        """The largest pixel, ignoring NaN."""
        return self.dtype.type(_horus.reduce(self._numbers(), "max"))

    def sum(self) -> float:
        """The sum of all pixels, in ``float64``; of a mask, for how many it holds."""
        return _horus.reduce(self._numbers(), "sum")

    def mean(self) -> float:
        """The mean of all pixels, in ``float64``."""
        return _horus.reduce(self._numbers(), "mean")

    def var(self) -> float:
        """The population variance of all pixels, in ``float64``."""
        return _horus.reduce(self._numbers(), "variance")

    def std(self) -> float:
        """The population standard deviation of all pixels, in ``float64``."""
        return float(np.sqrt(self.var()))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("an image is computed into a new array; it cannot be had without a copy")
        array = self.compute()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """The functions of NumPy that Horus has are recorded."""
        record = _UFUNCS.get(ufunc)
        if method != "__call__" or kwargs or record is None:
            return NotImplemented
        first = next(value for value in inputs if isinstance(value, Image))
        operands = [_operand(value, first) for value in inputs]
        return record(*operands)

    def __getitem__(self, key: Any) -> Image:
        """A crop: slices with steps of 1 or -1, and whole numbers; an axis of a whole number goes."""
        from ._index import indexed

        return indexed(self, key)

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("the truth value of an image of several pixels is ambiguous")
        return builtins.bool(self.compute().any())

    def __float__(self) -> float:
        if self.size != 1:
            raise TypeError("only an image of one pixel is a number")
        return float(self.compute().reshape(()))

    def __repr__(self) -> str:
        return f"<horus_image.Image {'x'.join(map(str, self.shape))} {self.dtype.name}>"

    def _repr_png_(self) -> bytes | None:
        """What notebooks show: of one, three or four channels; floats from 0 to 1."""
        channels = self._core.shape[3]
        if self._ndim != 2 or channels not in (1, 3, 4):
            return None
        core = self._core
        if core.dtype in ("i32", "f64"):
            core = _horus.convert(core, "f32")
        return core.encode("png")

    def __reduce__(self) -> tuple[Callable[..., Image], tuple[Array, bool]]:
        """Pixels are pickled, not the program: the other process may have another device."""
        return _restored, (self.compute(), self._channels)

    def __hash__(self) -> int:
        raise TypeError("images are compared pixel by pixel, and have no hash")

    def __neg__(self) -> Image:
        return self._with(_horus.unary("neg", self._numeric("-")))

    def __pos__(self) -> Image:
        return self

    def __abs__(self) -> Image:
        return self._with(_horus.unary("abs", self._numeric("abs")))

    def __invert__(self) -> Image:
        return self._with(_horus.invert(self._core))

    def __add__(self, other: Any) -> Image:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Image:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Image:
        return _binary("sub", self, other)

    def __rsub__(self, other: Any) -> Image:
        return _binary("sub", other, self)

    def __mul__(self, other: Any) -> Image:
        return _binary("mul", self, other)

    def __rmul__(self, other: Any) -> Image:
        return _binary("mul", other, self)

    def __truediv__(self, other: Any) -> Image:
        return _binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Image:
        return _binary("div", other, self)

    def __pow__(self, other: Any) -> Image:
        return _binary("pow", self, other)

    def __rpow__(self, other: Any) -> Image:
        return _binary("pow", other, self)

    def __lt__(self, other: Any) -> Image:
        return _compared("lt", self, other)

    def __le__(self, other: Any) -> Image:
        return _compared("le", self, other)

    def __gt__(self, other: Any) -> Image:
        return _compared("gt", self, other)

    def __ge__(self, other: Any) -> Image:
        return _compared("ge", self, other)

    def __eq__(self, other: object) -> Image:  # type: ignore[override]
        return _compared("eq", self, other)

    def __ne__(self, other: object) -> Image:  # type: ignore[override]
        return _compared("ne", self, other)

    def __and__(self, other: Any) -> Image:
        return _logic("and", self, other)

    def __rand__(self, other: Any) -> Image:
        return _logic("and", self, other)

    def __or__(self, other: Any) -> Image:
        return _logic("or", self, other)

    def __ror__(self, other: Any) -> Image:
        return _logic("or", self, other)

    def __xor__(self, other: Any) -> Image:
        return _logic("xor", self, other)

    def __rxor__(self, other: Any) -> Image:
        return _logic("xor", self, other)

    def _with(self, core: _horus.Image) -> Image:
        """Another image of the same session and axes."""
        return made(core, self._session, self._ndim, self._channels)

    def _numeric(self, name: str) -> _horus.Image:
        if self._core.dtype == "bool":
            raise TypeError(f"{name}: the image is a mask; masks combine by & | ^ ~, and astype makes numbers of them")
        return self._core

    def _numbers(self) -> _horus.Image:
        return _horus.convert(self._core, "u8") if self._core.dtype == "bool" else self._core


def made(core: _horus.Image, session: Session, ndim: int, channels: bool = False) -> Image:
    """An image of what Horus recorded."""
    image = object.__new__(Image)
    image._core = core
    image._session = session
    image._ndim = ndim
    image._channels = channels
    return image


def asarray(array: Any, *, channels: bool = False, session: Session | None = None) -> Image:
    """An image of the pixels of an array.

    Parameters
    ----------
    array : array_like
        One axis: an image of one row. Two: rows and columns. Three: levels, rows and columns of a volume; with `channels`, rows, columns
        and channels. Pixels are copied once, whatever the strides, so that the array may change or go. An image is returned as it is.
    channels : bool, optional
        Whether the last of three axes is that of channels, which filters treat one by one.
    session : Session, optional
        The session of the image; by default that of the ``with`` statement around, else one opened at first use.

    Returns
    -------
    Image

    Raises
    ------
    TypeError
        For types that images do not have: other than ``uint8``, ``uint16``, ``int32``, ``float32``, ``float64`` and ``bool``.
    ValueError
        For an array without pixels, or of more axes.

    Examples
    --------
    >>> import numpy as np
    >>> import horus_image as hi
    >>> hi.asarray(np.zeros((480, 640, 3), np.uint8), channels=True)
    <horus_image.Image 480x640x3 uint8>
    >>> hi.asarray([[1.5, 2.5]]).dtype
    dtype('float64')
    """
    if isinstance(array, Image):
        return array
    pixels = np.asarray(array)
    code = _native(pixels.dtype)
    if not 1 <= pixels.ndim <= 3 or (channels and pixels.ndim != 3):
        raise ValueError(f"an array of shape {pixels.shape} is no image; see asarray for the axes that images have")
    session = session or current()
    core = _horus.Image.of_array(session._core, ready(pixels), code, channels)
    return made(core, session, 2 if channels else pixels.ndim, channels)


def open(
    path: str | os.PathLike[str], *, page: int | None = None, volume: bool = False, session: Session | None = None
) -> Image:
    """Read a picture: PNG, JPEG, TIFF, PNM, BMP or npy, recognised by content.

    Parameters
    ----------
    path : path_like
        The file.
    page : int, optional
        The page of a TIFF file, from 0 on.
    volume : bool, optional
        All pages of a TIFF file as levels, or an npy array of three axes as levels, rows and columns.
    session : Session, optional
        As in `asarray`.

    Returns
    -------
    Image
        Of the file's type; of two axes, or three with channels.

    Raises
    ------
    OSError
        If the file cannot be read or decoded.
    """
    session = session or current()
    core = session._core.read(os.fspath(path), page, volume)
    levels, channels = core.shape[0], core.shape[3]
    return made(core, session, 3 if volume or levels > 1 else 2, channels > 1)


def save(path: str | os.PathLike[str], image: Any) -> None:
    """Write an image, or an array, to a file of the format that its name says.

    Integers are written as they are, floats from 0 to 1 to the full range of the file, masks as 0 and its largest number; ``.npy`` and
    float TIFF keep values. The file gets its name when it is complete.

    Raises
    ------
    OSError
        If the file cannot be written, or its format cannot hold the image.
    """
    asarray(image).save(path)


def minimum(a: Any, b: Any) -> Image:
    """The smaller of both, pixel by pixel; a NaN is ignored. One of both is an image."""
    return _binary("min", a, b)


def maximum(a: Any, b: Any) -> Image:
    """The larger of both, pixel by pixel; a NaN is ignored. One of both is an image."""
    return _binary("max", a, b)


def where(mask: Image, a: Any, b: Any) -> Image:
    """The pixels of `a` where the mask holds, else those of `b`; one of both is an image.

    Examples
    --------
    >>> import horus_image as hi
    >>> image = hi.asarray([[1.0, 5.0]])
    >>> hi.where(image > 2, image, 0.0).compute()
    array([[0., 5.]])
    """
    a, b = _met("where", a, b)
    image = a if isinstance(a, Image) else b
    return image._with(_horus.select(mask._core, _core(a), _core(b)))


def _restored(array: Array, channels: bool) -> Image:
    return asarray(array, channels=channels)


def _native(dtype: np.dtype[Any]) -> str:
    code = stored(dtype)
    if not is_native(dtype.newbyteorder("=")):
        raise TypeError(f"images have no pixels of type {dtype}; convert them, or call a function of horus_image.ndimage with the array")
    return code


def _operand(value: Any, beside: Image) -> Any:
    """An operand: a number or an image, made of an array if need be."""
    if isinstance(value, (Image, bool, int, float)):
        return value
    array = np.asarray(value)
    if array.ndim == 0:
        return array[()]
    return asarray(array, channels=beside._channels and array.ndim == 3, session=beside._session)


def _core(value: Any) -> Any:
    return value._core if isinstance(value, Image) else float(value)


def _met(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Both operands, images among them in the type of both; one is an image."""
    first = a if isinstance(a, Image) else b
    if not isinstance(first, Image):
        raise TypeError(f"{name}: one of both must be a horus_image.Image")
    a, b = _operand(a, first), _operand(b, first)
    kinds = [value.dtype if isinstance(value, Image) else value for value in (a, b)]
    dtype = np.result_type(*kinds)
    if dtype not in NATIVE.values():
        raise TypeError(f"{name}: images have no pixels of type {dtype}, NumPy's type of both; use astype")
    return tuple(value.astype(dtype) if isinstance(value, Image) and value.dtype != dtype else value for value in (a, b))  # type: ignore[return-value]


def _like(core: _horus.Image, a: Any, b: Any) -> Image:
    """What was recorded of two operands, with the axes of the larger."""
    images = [value for value in (a, b) if isinstance(value, Image)]
    largest = max(images, key=lambda image: image.ndim)
    channels = any(image._channels for image in images)
    return made(core, largest._session, max(image._ndim for image in images), channels)


def _binary(name: str, a: Any, b: Any) -> Image:
    a, b = _met(name, a, b)
    first = a if isinstance(a, Image) else b
    if name in ("div", "atan2", "hypot") and first.dtype.kind in "iub":
        a, b = (value.astype(np.float64) if isinstance(value, Image) else value for value in (a, b))
    elif first.dtype.kind == "b":
        raise TypeError(f"{name}: masks combine by & | ^ ~; astype makes numbers of them")
    if isinstance(a, Image):
        return _like(_horus.binary(name, a._core, _core(b)), a, b)
    return _like(_horus.binary_of_number(name, float(a), b._core), a, b)


_TURNED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def _compared(name: str, a: Any, b: Any) -> Image:
    a, b = _met(name, a, b)
    if not isinstance(a, Image):
        a, b, name = b, a, _TURNED[name]
    if a.dtype.kind == "b":
        a, b = (value.astype(np.uint8) if isinstance(value, Image) else value for value in (a, b))
    return _like(_horus.compare(name, a._core, _core(b)), a, b)


def _logic(name: str, a: Image, b: Any) -> Image:
    b = _operand(b, a)
    if not isinstance(b, Image) or a.dtype.kind != "b" or b.dtype.kind != "b":
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


def _of_two(name: str) -> Callable[[Any, Any], Image]:
    return lambda a, b: _binary(name, a, b)


def _of_masks(name: str) -> Callable[[Any, Any], Image]:
    return lambda a, b: _logic(name, a, b) if isinstance(a, Image) else _logic(name, b, a)


def _comparison(name: str) -> Callable[[Any, Any], Image]:
    return lambda a, b: _compared(name, a, b)


_UFUNCS: Final[dict[np.ufunc, Callable[..., Image]]] = {
    np.add: _of_two("add"),
    np.subtract: _of_two("sub"),
    np.multiply: _of_two("mul"),
    np.true_divide: _of_two("div"),
    np.power: _of_two("pow"),
    np.minimum: _of_two("min"),
    np.maximum: _of_two("max"),
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
    np.absolute: _of_one("abs"),
    np.sqrt: _of_one("sqrt"),
    np.exp: _of_one("exp"),
    np.log: _of_one("log"),
    np.square: _of_one("square"),
    np.sign: _of_one("sign"),
    np.floor: _of_one("floor"),
    np.ceil: _of_one("ceil"),
    np.rint: _of_one("round"),
    np.sin: _of_one("sin"),
    np.cos: _of_one("cos"),
    np.invert: lambda image: ~image,
    np.logical_not: lambda image: ~image,
}
