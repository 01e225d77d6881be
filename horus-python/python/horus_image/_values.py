"""Operands of the functions of `horus_image.ndimage`: a recorded image with the type and shape that SciPy would give it.

A function *enters* its input, records, and *leaves*: an array gives an evaluated array, an image a lazy image.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from . import _horus
from ._colours import Colours
from ._dtype import HALF, NATIVE, STORED, cast, is_native, ready, stored, truth
from ._foreign import DeviceArray, image_core, on_host, read, read_beside, session_of
from ._image import SHARED, Array, Image, in_memory, made, too_many
from ._kept import taking
from ._session import Session, current

if TYPE_CHECKING:
    from .typing import Pixels

MODES: Final = {
    "reflect": "reflect",
    "grid-mirror": "reflect",
    "mirror": "mirror",
    "nearest": "nearest",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}


class UnsupportedTypeError(TypeError, RuntimeError):
    """An array of a type that there is no filter for; SciPy raises one or the other."""


Place = tuple[list[list[float]], list[float]]
"""The map from levels, rows and columns of a result to those of the input: matrix and offset."""

ANYWHERE: Final[Place] = ([], [])
"""The place of pixels that no map tells."""


def place(matrix: np.ndarray[Any, Any], offset: np.ndarray[Any, Any]) -> Place:
    """The map of an image's axes, as one of levels, rows and columns; one of other axes than the input's tells no place."""
    if matrix.shape[0] != matrix.shape[1]:
        return ANYWHERE
    whole, moved = np.eye(3), np.zeros(3)
    whole[3 - len(matrix) :, 3 - len(matrix) :], moved[3 - len(offset) :] = matrix, offset
    return whole.tolist(), moved.tolist()


def related(core: _horus.Image, name: str, images: Iterable[Any], where: Place | None = None) -> _horus.Image:
    """A result of a function, with what files say of the lazy images that it is computed from: its pixels lie where theirs do, or there."""
    cores = [image._core for image in images if isinstance(image, Image)]
    return core if where is ANYWHERE or not cores else _horus.related(core, name, cores, where)


class Value:
    """A recorded image of one to three axes (or a single pixel, of none), with the type that its pixels stand for."""

    __slots__ = ("channels", "core", "dtype", "lazy", "place", "session", "shape")

    def __init__(
        self,
        core: _horus.Image,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        session: Session,
        channels: bool = False,
    ) -> None:
        self.core = core
        self.dtype = dtype
        self.shape = shape
        self.session = session
        self.channels = channels
        self.place: Place | None = None
        self.lazy = False
        """It is an image of the caller, of which a file may say more."""

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def like(self, core: _horus.Image, dtype: np.dtype[Any] | None = None) -> Value:
        """Another value of the same shape."""
        return Value(core, self.dtype if dtype is None else dtype, self.shape, self.session, self.channels)

    def numbers(self) -> _horus.Image:
        """The image, a mask as 0 and 1."""
        return _horus.convert(self.core, "u8") if self.core.dtype == "bool" else self.core

    def floats(self, code: str = "f64") -> _horus.Image:
        """The image in a type of floats."""
        return self.core if self.core.dtype == code else _horus.convert(self.core, code)

    def may_have_alpha(self) -> bool:
        """Returns false unless the last channel may be alpha: not of arrays, nor of the three channels of a colour."""
        count = self.core.shape[3]
        return self.lazy and count > 1 and not (count == 3 and self.core.is_colour())

    def positions(self, axis: int) -> _horus.Image:
        """The position of each pixel along an axis."""
        depth, height, width, _channels = self.core.shape
        return _horus.index(self.session._core, (depth, height, width), axis + 3 - self.ndim)

    def cast(self, dtype: np.dtype[Any]) -> Value:
        """The value in another type, as NumPy converts it."""
        if dtype == self.dtype:
            return self
        return self.like(truth(self.core) if dtype.kind == "b" else cast(self.core, self.dtype, dtype), dtype)

    def stored(self, dtype: np.dtype[Any]) -> Value:
        """The value in another type, as SciPy stores its results: as C converts numbers, and what is less than 1 is false."""
        return self if dtype == self.dtype else self.like(cast(self.core, self.dtype, dtype), dtype)


def of_each_channel(cores: Sequence[_horus.Image], function: Callable[..., _horus.Image]) -> _horus.Image:
    """The result of an operation that takes one channel, of each channel of some images."""
    count = cores[0].shape[3]
    if count == 1:
        return function(*cores)
    return _horus.stack([function(*(_horus.channel(core, k) for core in cores)) for k in range(count)], True)


def beside(pixels: Any, given: Any) -> Any:
    """Further pixels of a call: an image as it is, an array where the given one is, or on the host."""
    if isinstance(pixels, Image):
        return pixels
    if isinstance(given, np.ndarray):
        return on_host(pixels)
    return read_beside(pixels, given._session if isinstance(given, Image) else session_of(given, None))


def enter(input: Any, name: str, session: Session | None = None) -> tuple[Value | None, Any]:
    """The value of an array or an image, none of an array without pixels; and the array or image itself. Of an array it belongs to a session,
    by default the one around."""
    if isinstance(input, Image):
        core, channels = input._core, input._channels
        shape = input.shape[:-1] if channels else input.shape
        lazy = Value(core, NATIVE[core.dtype], shape, input._session, channels)
        lazy.lazy = True
        return lazy, input
    colours = type(input) is Colours
    array = input.array if colours else read(input)
    if isinstance(array, DeviceArray):
        return _on_device(array, name, colours, session)
    dtype = array.dtype if array.dtype.isnative else array.dtype.newbyteorder("=")
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        kind = {"c": "Complex", "O": "Object"}.get(dtype.kind, str(dtype))
        raise TypeError(f"{name}: {kind} type not supported" + ("; use astype" if dtype.kind == "f" else ""))
    if dtype == HALF:
        single = array.astype(np.float32)
        value, _ = enter(Colours(single) if colours else single, name, session)
        return value, array
    if dtype not in STORED:
        raise UnsupportedTypeError(f"{name}: {dtype} type not supported; use astype")
    code = stored(dtype)
    if not array.size:
        return None, array
    if array.ndim - colours > 3:
        raise NotImplementedError(f"{name}: {too_many(array.shape)}")
    session = session or current()
    pixels = ready(array)
    # Read where it lies: all is computed when the call returns.
    if array.ndim == 0:
        pixels = pixels.reshape(1)
    elif colours and array.ndim == 2:
        pixels = pixels[None]
    core = _horus.Image.of_array(session._core, pixels, code, colours, False)
    took = taking()
    if took is not None:
        core = took.entered(core, session, array)
    if colours:
        return Value(core, dtype, array.shape[:-1], session, True), array
    return Value(core, dtype, array.shape, session), array


def _on_device(array: DeviceArray, name: str, colours: bool, session: Session | None) -> tuple[Value, Any]:
    """The value of an array on a GPU, which is computed when the call returns."""
    if not is_native(array.dtype):
        raise TypeError(f"{name}: {array.dtype} type not supported on a GPU; use astype")
    session = session_of(array, session)
    core = image_core(array, session, colours, False)
    took = taking()
    if took is not None:
        if colours:
            took.refused = True
        core = took.entered(core, session, array)
    if array.dtype.kind == "b":
        core = _horus.convert(core, "bool")
    return Value(core, array.dtype, array.shape[:-1] if colours else array.shape, session, colours), array


def output_type(output: Any, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of the result that `output` asks for: an array, a type, the name of one, or nothing, which is the input's type."""
    result = dtype
    if output is None:
        pass
    elif isinstance(output, np.ndarray):
        result = output.dtype
    elif isinstance(output, str):
        result = np.dtype(output)
        if not issubclass(result.type, np.number):
            raise RuntimeError("output must have numeric dtype")
    elif isinstance(output, (type, np.dtype)):
        result = np.dtype(output)
    else:
        raise TypeError(f"output is an array or a type, not {type(output).__name__}")
    if output is not None:
        if result.kind == "c":
            raise UnsupportedTypeError("Complex output type not supported")
        if result.newbyteorder("=") != HALF:
            stored(result)
    native: np.dtype[Any] = result.newbyteorder("=")
    return native


def computed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which results of a type are computed: `float32` of `float16`."""
    return NATIVE["f32"] if dtype == HALF else dtype


def leave(value: Value, output: Any, given: Any, name: str, *others: Any) -> Pixels:
    """The result for the caller, stored in `output` if that is an array; of the function of a name, of an image and `others` of its shape."""
    dtype = value.dtype
    if isinstance(given, (Image, DeviceArray)):
        if isinstance(output, np.ndarray):
            raise TypeError("a lazy image is not written into an array; compute it, or give an array")
        if not is_native(dtype):
            raise TypeError(f"images have no pixels of type {dtype}")
        core = related(value.core, name, (given, *others), value.place)
        image = made(core, value.session, value.ndim, value.channels)
        if isinstance(given, DeviceArray):
            took = taking()
            if took is not None:
                took.stayed(image)
            image._on_gpu()  # the array may change when this returns
        return image
    if value.channels:
        value = Value(value.core, dtype, (*value.shape, given.shape[-1]), value.session)
    if isinstance(output, np.ndarray):
        _check_shape(output, value.shape)
        flags = output.flags
        # An array that is read in place must not be written to meanwhile.
        apart = not np.may_share_memory(output, given)
        if apart and is_native(output.dtype) and output.dtype == dtype and flags.carray and output.ndim > 0:
            value.core.read_into(output)
        else:
            output[...] = value.core.to_array(list(value.shape)).astype(dtype, copy=False)
        return output
    found = read_out(value)
    halves = found.dtype == np.float32 and output_type(output, given.dtype) == HALF
    return found.astype(HALF) if halves else found


def read_out(value: Value) -> Array:
    """The pixels of a value that is not read again, in its type; of a call like earlier ones, by a program that is kept."""
    took = taking()
    array = None if took is None else took.left(value.core, value.shape, value.dtype)
    if array is None:
        array = evaluated(value)
    return array if array.dtype == value.dtype else array.astype(value.dtype)


def evaluated(value: Value) -> Array:
    """The pixels of a value that is not read again."""
    if math.prod(value.shape) < SHARED:
        array: Array = value.core.to_array(list(value.shape))
        return array
    memory = in_memory(value.core, value.shape)
    # The image goes, and with it the session's share of the memory.
    del value.core
    return np.asarray(memory.own())


def _check_shape(output: Array, shape: tuple[int, ...]) -> None:
    if output.shape != tuple(shape):
        raise RuntimeError("output shape not correct")


def filtered(
    name: str, input: Any, output: Any, record: Callable[[Value, np.dtype[Any]], Value]
) -> Pixels:
    """Enters, records with the type of the result, and leaves; the result has the input's shape."""
    value, given = enter(input, name)
    dtype = output_type(output, given.dtype)
    if isinstance(output, np.ndarray):
        _check_shape(output, given.shape)
    if value is None:
        return output if isinstance(output, np.ndarray) else np.zeros(given.shape, dtype)
    return leave(record(value, computed(dtype)), output, given, name)


def shape_of(given: Any) -> tuple[int, ...]:
    """The shape of an array, or of an image, whatever its type."""
    return tuple(given.array.shape[:-1]) if type(given) is Colours else np.shape(given)


def edge(mode: Any) -> str:
    """The border mode of a name."""
    try:
        return MODES[mode]
    except (KeyError, TypeError):
        raise RuntimeError("boundary mode not supported") from None


def one_mode(mode: Any, what: str) -> str:
    """The border mode, if all axes have the same."""
    if not isinstance(mode, str) and isinstance(mode, Iterable):
        raise RuntimeError(f"A sequence of modes is not supported{what}")
    return edge(mode)


def for_each(given: Any, count: int) -> list[Any]:
    """A value for each axis, of one for all or a sequence of them."""
    if not isinstance(given, str) and np.iterable(given):
        values = list(given)
        if len(values) != count:
            raise RuntimeError("sequence argument must have length equal to input rank")
        return values
    return [given] * count


def axis_of(axis: Any, ndim: int) -> int:
    """An axis counted from the first."""
    at = operator.index(axis)
    if not -ndim <= at < ndim:
        raise np.exceptions.AxisError(at, ndim)
    return at % ndim


def axes_of(axes: Any, ndim: int) -> tuple[int, ...]:
    """The axes that are meant, all by default."""
    if axes is None:
        return tuple(range(ndim))
    if np.isscalar(axes):
        axes = (axes,)
    elif not isinstance(axes, Iterable):
        raise ValueError("axes must be an integer, iterable of integers, or None")
    found = []
    for axis in axes:
        at = operator.index(axis)
        if not -ndim <= at < ndim:
            raise ValueError(f"specified axis: {at} is out of range")
        found.append(at % ndim)
    if len(set(found)) != len(found):
        raise ValueError("axes must be unique")
    return tuple(found)


def placed(given: Any, axes: Sequence[int], ndim: int, other: Any) -> list[Any]:
    """A value for each axis of an image: those given for some axes, in the order of these, and another elsewhere."""
    found = dict(zip(axes, for_each(given, len(axes)), strict=True))
    return [found.get(axis, other) for axis in range(ndim)]


def widened(array: Array, axes: Sequence[int], ndim: int, what: str) -> Array:
    """An array of some axes of an image, in rising order, as one of all: of one pixel along the others."""
    if array.ndim != len(axes):
        raise RuntimeError(f"{what}.ndim ({array.ndim}) must match len(axes) ({len(axes)})")
    return array if len(axes) == ndim else np.expand_dims(array, tuple(axis for axis in range(ndim) if axis not in axes))


def number(cval: Any) -> float:
    """The constant beyond the edges."""
    if type(cval) is float:
        return cval
    if np.iscomplexobj(cval):
        raise TypeError("cval must be a real number, not complex")
    return float(cval)


def held(value: Value, cval: float) -> float:
    """The constant beyond the edges in the type of the pixels, as SciPy holds it in windows of several axes."""
    if value.dtype.kind == "f":
        return cval
    low, high = limits(value.dtype)
    if low <= cval <= high and cval.is_integer():
        return cval + 0.0  # integers have one zero
    with np.errstate(invalid="ignore"):
        return float(np.float64(cval).astype(value.dtype if value.dtype.kind != "b" else np.uint8))


@functools.lru_cache(maxsize=64)
def limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    """The smallest and the largest number of a type of integers; of truth values 0 and 1."""
    if dtype.kind == "b":
        return 0, 1
    information = np.iinfo(dtype)
    return int(information.min), int(information.max)


_FARTHEST: Final = 1 << 15
"""Pixels that filters of Horus reach at most: looked at before there is a tap for each."""

_MOST_PIXELS: Final = 1 << 22
"""Pixels of a footprint, whose places are told one by one."""


def check_reach(pixels: Any) -> None:
    """Refuses filters that reach further than Horus's do."""
    if pixels > _FARTHEST:
        raise ValueError(f"the filter reaches {pixels} pixels; the limit is {_FARTHEST}")


def check_pixels(footprint: Iterable[int]) -> None:
    """Refuses footprints of so many pixels that none can be kept of each."""
    count = math.prod(footprint)
    if count > _MOST_PIXELS:
        raise ValueError(f"a footprint of {count} pixels; the limit is {_MOST_PIXELS}")


def check_origin(size: int, origin: Any) -> int:
    """An origin that keeps the pixel under the window."""
    at = operator.index(origin)
    check_reach(size // 2)
    if not 0 <= size // 2 + at < size:
        raise ValueError("invalid origin")
    return at


@functools.lru_cache(maxsize=512)
def line_filter(taps: tuple[float, ...], anchor: int, axis: int) -> _horus.Filter:
    """A filter along the levels (0), the rows (1) or the columns (2), whose tap `anchor` falls on the pixel."""
    before, after = anchor, len(taps) - 1 - anchor
    if anchor != len(taps) // 2:
        # Filters anchor at half their size: taps of 0 make it so.
        reach = max(before, after)
        taps = (0.0,) * (reach - before) + taps + (0.0,) * (reach - after)
    return _horus.Filter(list(taps), 1 if axis == 2 else len(taps), len(taps) if axis == 2 else 1)


@functools.lru_cache(maxsize=512)
def line_window(size: int, anchor: int, axis: int) -> _horus.Filter:
    """A window along the rows (1) or the columns (2)."""
    if anchor == size // 2:
        return _horus.Filter([0.0] * size, size if axis == 1 else 1, size if axis == 2 else 1)
    steps = range(-anchor, size - anchor)
    offsets = [(step, 0) if axis == 1 else (0, step) for step in steps]
    return _horus.Filter([0.0] * size, 0, 0, offsets)


def plane_window(weights: tuple[tuple[int, int, float], ...]) -> _horus.Filter:
    """A window of weights at rows and columns around the pixel; one of all pixels of a rectangle is that rectangle."""
    # What is kept tells 0.0 from -0.0, which are equal, and differ where they are subtracted from a zero.
    return _plane_window(weights, tuple(math.copysign(1.0, weight) < 0.0 for _, _, weight in weights if weight == 0.0))


@functools.lru_cache(maxsize=256)
def _plane_window(weights: tuple[tuple[int, int, float], ...], _signs: tuple[bool, ...]) -> _horus.Filter:
    places = [(y, x) for y, x, _ in weights]
    if places:
        height, width = (1 + max(axis) - min(axis) for axis in zip(*places, strict=True))
        rows, columns = range(-(height // 2), height - height // 2), range(-(width // 2), width - width // 2)
        if len(places) == height * width and places == [(y, x) for y in rows for x in columns]:
            return _horus.Filter([weight for _, _, weight in weights], height, width)
    return _horus.Filter([weight for _, _, weight in weights], 0, 0, [(y, x) for y, x, _ in weights])


def core_axis(axis: int, ndim: int) -> int:
    """The axis of levels (0), rows (1) or columns (2) that an axis of an array is."""
    return axis + 3 - ndim


def correlated(
    value: Value, taps: tuple[float, ...], anchor: int, axis: int, mode: str, cval: float, code: str
) -> _horus.Image:
    """The correlation along an axis, in a type of floats."""
    core = value.floats(code)
    along = core_axis(axis, value.ndim)
    taken = line_filter(taps, anchor, along)
    if along == 0:
        return _horus.correlate_depth(core, taken, mode, cval)
    return _horus.correlate(core, [(taken, 0)], mode, cval, None)


_EXACT: Final = {"f32": 2.0**24, "f64": 2.0**53}
"""Whole numbers up to which a type has every one."""


def exact_in(value: Value, gain: float, mode: str, cval: float) -> str | None:
    """The type of floats, if there is one, in which sums of whole numbers of pixels are exact, whose number is `gain`."""
    if value.dtype.kind == "f" or value.dtype.itemsize == 8 or not gain.is_integer():
        return None
    low, high = limits(value.dtype)
    most = max(-low, high)
    if mode == "constant":
        if not cval.is_integer():
            return None
        most = max(most, int(abs(cval)))
    return next((code for code, limit in _EXACT.items() if most * gain < limit), None)


def precision(value: Value, taps: Iterable[float], dtype: np.dtype[Any], mode: str, cval: float) -> str | None:
    """The type in which a linear filter is computed: `float32` where that rounds nothing, or input and result have that type, else
    `float64`; none if it rounds in both, and the result is cut to integers, for which the order of its sum matters."""
    if value.core.dtype == "f32" and dtype == NATIVE["f32"]:
        return "f32"
    weights = list(taps)
    whole = all(tap.is_integer() for tap in weights)
    exact = exact_in(value, sum(map(abs, weights)), mode, cval) if whole else None
    return exact or ("f64" if dtype.kind == "f" else None)


_SMALL: Final = {"bool", "u8", "i8", "u16", "i16"}
"""Types whose sums `int32` holds."""


def combined(kind: str, a: Value, b: Value, dtype: np.dtype[Any]) -> Value:
    """The sum ("add") or the difference ("sub") of integers, as NumPy computes it into an array of a type: around its range."""
    code = "i32" if {a.core.dtype, b.core.dtype} <= _SMALL else "f64"
    left, right = (side.core if side.core.dtype == code else _horus.convert(side.core, code) for side in (a, b))
    return a.like(cast(_horus.binary(kind, left, right), NATIVE["f64" if code == "f64" else "i32"], dtype), dtype)


def offsets_of(footprint: Array, origins: Sequence[int]) -> list[tuple[int, int, int]]:
    """Levels, rows and columns from the pixel to each pixel of a footprint of up to three axes, in the footprint's order."""
    check_pixels(footprint.shape)
    lead = 3 - footprint.ndim
    anchors = [size // 2 + origin for size, origin in zip(footprint.shape, origins, strict=True)]
    places = np.argwhere(footprint)
    found = []
    for place in places.tolist():
        by = [0] * lead + [at - anchor for at, anchor in zip(place, anchors, strict=True)]
        found.append((by[0], by[1], by[2]))
    return found
