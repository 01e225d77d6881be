"""Samples at positions that images hold, with the rules of ``scipy.ndimage``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from . import _horus
from ._complex import by_parts
from ._dtype import NATIVE, is_native, ready, rounded, stored
from ._foreign import DeviceArray, image_core, of_any_library, read, read_beside, session_of
from ._image import Image
from ._jit import jit
from ._kept import of_session
from ._public import SUMS, Terms, public
from ._session import Session
from ._splines import prefiltered, spline_order
from ._values import ANYWHERE, Value, beside, computed, edge, enter, leave, number, output_type
from .typing import ArrayLike, Border, Output, Pixels

DType = np.dtype[Any]


def interpolated_singly(value: Value, order: int, dtype: DType, cval: float) -> bool:
    """Returns true if samples are interpolated in `float32`: those of its own images, and those of integers of 8 bits, between which it
    has 2^16 steps."""
    if order > 1:
        return False
    if value.core.dtype == "f32":
        return dtype == NATIVE["f32"]
    return value.dtype.kind in "iu" and value.dtype.itemsize == 1 and dtype.kind in "iu" and abs(cval) < 1 << 8


def is_held(value: Value, order: int, dtype: DType, cval: float) -> bool:
    """Returns true if samples are unsigned numbers of a type: they lie between the pixels and `cval`."""
    unsigned = order < 2 and value.dtype.kind == "u" and dtype.kind == "u"
    return unsigned and value.dtype.itemsize <= dtype.itemsize < 8 and 0.0 <= cval <= np.iinfo(dtype).max


def sampled(
    value: Value, core: _horus.Image, at: list[_horus.Image], order: int, mode: str, cval: float, pad: int
) -> _horus.Image:
    """An image, or the coefficients of its spline, that begins `pad` pixels before `value`, sampled at positions along its last axes."""
    border = edge(mode)
    extents = value.shape[value.ndim - len(at) :]
    if pad or mode == "wrap" or max(extents) > _SINGLE or any(place.dtype != at[0].dtype for place in at):
        at = [place if place.dtype == "f64" else _horus.convert(place, "f64") for place in at]
    places = []
    for place, extent in zip(at, extents, strict=True):
        place = _wrapped(place, extent) if mode == "wrap" else place
        places.append(_horus.binary("add", place, float(pad)) if pad else place)
    # In these modes SciPy mirrors what splines read beyond the edges.
    beyond = "mirror" if mode in ("constant", "wrap") else border
    if len(places) == 1:
        # A line is sampled in its only row; what lies beside that must not come in.
        core, beside = _beside(core, beyond, order, rows=True)
        places.insert(0, _everywhere(places[0], beside))
    if len(places) == 2 and places[0].shape[0] > 1:
        core, beside = _beside(core, beyond, order, rows=False)
        places.insert(0, _everywhere(places[0], beside))
    # In this mode no pixels are added before the first, to which positions would be rounded.
    return _horus.remap(core, places, order, beyond, cval, mode == "constant")


def _beside(core: _horus.Image, mode: str, order: int, rows: bool) -> tuple[_horus.Image, int]:
    """An image of one row, or of one level, repeated as far as a spline reads around it where it would read a constant there; and which of
    them is the image."""
    reach = 3 if mode == "constant" and order > 1 else 0
    if reach and rows:
        core = _horus.pad(core, (reach, reach), (0, 0), "nearest", 0.0)
    elif reach:
        core = _horus.stack([core] * (2 * reach + 1), False)
    return core, reach


_SINGLE: Final = 1 << 24
"""Pixels along an axis up to which `float32` holds the number of each."""


def _everywhere(like: _horus.Image, position: int) -> _horus.Image:
    """One position, in an image of positions."""
    return _horus.binary("add", _horus.binary("mul", like, 0.0), float(position))


def _wrapped(place: _horus.Image, extent: int) -> _horus.Image:
    """Positions in an image whose last pixel is its first, as SciPy's mode ``wrap`` has it."""
    period = float(extent - 1)
    if not period:
        return _horus.binary("mul", place, 0.0)
    turns = _horus.unary("floor", _horus.binary("div", place, period))
    after = _horus.binary("sub", place, _horus.binary("mul", turns, period))
    back = _horus.unary("floor", _horus.binary("div", _horus.unary("neg", place), period))
    before = _horus.binary("add", place, _horus.binary("mul", _horus.binary("add", back, 1.0), period))
    inside = _horus.select(_horus.compare("gt", place, period), after, place)
    return _horus.select(_horus.compare("lt", place, 0.0), before, inside)


def mapped(
    name: str, input: Any, output: Any, shape: Any, record: Callable[[Value, DType, tuple[int, ...]], Value]
) -> Pixels:
    """Enters, records what has a shape of its own, and leaves."""
    value, given = enter(input, name)
    dtype = output_type(output, given.dtype)
    spatial = value.shape if value is not None else given.shape
    if len(spatial) < 1:
        raise RuntimeError("input and output rank must be > 0")
    extents = tuple(int(extent) for extent in (spatial if shape is None else shape))
    channels = given.shape[len(spatial) :] if value is not None and value.channels else ()
    if isinstance(output, np.ndarray) and output.shape != (*extents, *channels):
        raise RuntimeError("output shape not correct")
    if value is None:
        if 0 in extents:
            return output if isinstance(output, np.ndarray) else np.zeros(extents, dtype)
        raise NotImplementedError(f"{name}: an input without pixels")
    if 0 in extents and not isinstance(given, Image):
        return output if isinstance(output, np.ndarray) else np.zeros((*extents, *channels), dtype)
    return leave(record(value, computed(dtype), extents), output, given, name)


@public("ndimage", rust="remap", opencv="cv.remap", accel=Terms("floats interpolated finite", SUMS))
@of_any_library
@by_parts
def map_coordinates(
    input: ArrayLike,
    coordinates: ArrayLike | Sequence[ArrayLike],
    output: Output = None,
    order: int = 3,
    mode: Border = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Pixels:
    """Sample at coordinates, by splines of order 0 to 5 (``scipy.ndimage.map_coordinates``).

    Coordinates are an array, on the host or where `input` is, or as many images as `input` has axes. A coordinate that is no number yields none, or 0 of integers, but with
    mode ``constant``, where it yields `cval`.

    Examples
    --------
    >>> from horus_image.ndimage import map_coordinates
    >>> map_coordinates([[0.0, 1.0], [2.0, 3.0]], [[0.5, 1.0], [0.5, 0.25]], order=1)
    array([1.5 , 2.25])
    """
    degree = spline_order(order)
    images = isinstance(coordinates, (list, tuple)) and any(isinstance(axis, Image) for axis in coordinates)
    pixels = input if isinstance(input, Image) else read(input)
    places: Any = coordinates if images else beside(coordinates, pixels)
    if not images and np.iscomplexobj(places):
        raise TypeError("Complex type not supported")
    if isinstance(pixels, DeviceArray) and isinstance(places, DeviceArray) and output is None:
        axes = 1 < places.ndim <= 4 and places.size > 0 and len(places) == pixels.ndim
        if axes and isinstance(mode, str) and is_native(pixels.dtype) and is_native(places.dtype):
            beyond = number(cval)

            def of_images(image: Image, *at: Image) -> Any:
                return map_coordinates(image, at, None, degree, mode, beyond, prefilter)

            key = "map_coordinates", degree, mode, beyond.hex(), bool(prefilter)
            found: Image = of_session(session_of(pixels, None), key, lambda: jit(of_images))(pixels, *_parts(places))
            return found
    spatial = pixels.shape[:-1] if isinstance(pixels, Image) and pixels.channels else pixels.shape
    shape = tuple(next(axis.shape for axis in places if isinstance(axis, Image)) if images else places.shape[1:])
    if len(spatial) < 1 or len(shape) < 1:
        raise RuntimeError("input and output rank must be > 0")
    if len(places) != len(spatial):
        raise RuntimeError("invalid shape for coordinate array")

    def record(value: Value, dtype: DType, extents: tuple[int, ...]) -> Value:
        # Positions with more axes than an image are sampled as rows.
        flat = extents if len(extents) <= 3 else (math.prod(extents[:-1]), extents[-1])
        keeps = not isinstance(pixels, np.ndarray)
        at = [_positions(axis, flat, value.session, keeps) for axis in _parts(places)]
        single = interpolated_singly(value, degree, dtype, number(cval))
        core, pad = value.floats("f32" if single else "f64"), 0
        if degree > 1 and prefilter:
            core, pad = prefiltered(value.like(core, NATIVE["f64"]), degree, tuple(range(value.ndim)), mode, number(cval))
        found = sampled(value, core, at, degree, mode, number(cval), pad)
        result = Value(rounded(found, dtype), dtype, extents, value.session, value.channels)
        result.place = ANYWHERE
        if isinstance(pixels, Image) and len(extents) > 3:
            raise NotImplementedError(f"map_coordinates: a lazy result of {len(extents)} axes; images have up to three")
        return result

    return mapped("map_coordinates", pixels, output, shape, record)


@public("ndimage", rust="remap", opencv="cv.remap")
@of_any_library
def geometric_transform(
    input: ArrayLike,
    mapping: Callable[..., Sequence[float]],
    output_shape: tuple[int, ...] | None = None,
    output: Output = None,
    order: int = 3,
    mode: Border = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
    extra_arguments: tuple[object, ...] = (),
    extra_keywords: dict[str, object] | None = None,
) -> Pixels:
    """Sample where a function of Python says (``scipy.ndimage.geometric_transform``): `map_coordinates` of what it returns.

    The function is called once for each pixel of the result, which takes most of the time: `map_coordinates` of arrays, or of images, takes less.

    Examples
    --------
    >>> from horus_image.ndimage import geometric_transform
    >>> geometric_transform([1.0, 2.0, 4.0], lambda at: (at[0] - 0.5,), order=1)
    array([0. , 1.5, 3. ])
    """
    if not callable(mapping):
        raise ValueError(f"geometric_transform: mapping is {type(mapping).__name__}, no function of Python")
    pixels: Any = input if isinstance(input, Image) else read(input)
    spatial = pixels.shape[:-1] if isinstance(pixels, Image) and pixels.channels else pixels.shape
    extents = spatial if output_shape is None else tuple(output_shape)
    if not spatial or not extents:
        raise RuntimeError("input and output rank must be > 0")
    spline_order(order)
    edge(mode)
    if pixels.dtype.kind != "c":
        output_type(output, pixels.dtype)
        number(cval)
    if isinstance(output, np.ndarray) and output.shape != (*extents, *pixels.shape[len(spatial) :]):
        raise RuntimeError("output shape not correct")

    def positions() -> Iterator[float]:
        for at in np.ndindex(*extents):
            point = tuple(mapping(at, *extra_arguments, **(extra_keywords or {})))
            if len(point) < len(spatial):
                raise TypeError(f"geometric_transform: mapping returns fewer than {len(spatial)} numbers, one for each axis of the image")
            yield from point[: len(spatial)]

    flat = np.fromiter(positions(), np.float64, math.prod(extents) * len(spatial))
    places = flat.reshape(-1, len(spatial)).T.reshape(len(spatial), *extents)
    found: Pixels = map_coordinates(pixels, places, output, order, mode, cval, prefilter)
    return found


def _parts(coordinates: Any) -> list[Any]:
    """The positions along each axis."""
    return [coordinates[axis] for axis in range(len(coordinates))]


def _positions(axis: Any, shape: tuple[int, ...], session: Session, keeps: bool) -> _horus.Image:
    """The positions along an axis, as an image of floats in the session of what is sampled. One that `keeps` them until after the call has
    a copy of what is the caller's."""
    if isinstance(axis, Image):
        if axis.channels:
            raise TypeError("map_coordinates: coordinates are images of one channel")
        return axis._core if axis._core.dtype in ("f32", "f64") else _horus.convert(axis._core, "f64")
    axis = read_beside(axis, session)
    if isinstance(axis, DeviceArray):
        core = image_core(axis, session, False, False)
        return core if core.dtype in ("f32", "f64") else _horus.convert(core, "f64")
    # Positions are split into pixels and fractions in `float64`, whatever they are given in.
    dtype = np.float32 if axis.dtype == np.float32 else np.float64
    pixels = ready(np.ascontiguousarray(axis, dtype=dtype)).reshape(shape)
    copy = keeps and np.may_share_memory(pixels, axis)
    return _horus.Image.of_array(session._core, pixels, stored(pixels.dtype), False, copy)
