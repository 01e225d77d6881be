"""OpenCV's functions by operations of Horus: what `horus_image.accel` serves of ``cv2``.

They have OpenCV's parameters, and its results: sums of integers are exact here, and are rounded as OpenCV rounds them. A call that cannot be
so, or in which OpenCV is faster, raises `NotImplementedError`, and is OpenCV's.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .. import _horus
from .._dtype import CODES, NATIVE
from .._foreign import _gpu_of
from .._image import Array, asarray
from .._kept import _keep, _part
from .._measurements import label
from .._order import extremes
from .._public import SUMS, Function, Terms, public
from .._session import current
from .._values import Value, limits, line_filter, plane_window

Core = _horus.Image
Pair = tuple[int, int]
Taps = tuple[float, ...]

_BORDERS: Final = {0: "constant", 1: "nearest", 2: "reflect", 4: "mirror"}
_ISOLATED: Final = 16
ANY: Final = "BHhfd"
"""Types of pixels that are served, by NumPy's letters."""

_DEPTHS: Final = {0: "B", 2: "H", 3: "h", 5: "f", 6: "d"}
"""These types by OpenCV's numbers."""

_SEPARABLE: Final = {"B": ANY, "H": ANY, "h": ANY, "f": "fd", "d": "d"}
"""By the type of pixels: into which types OpenCV has separable filters. It has others of floats, into integers, which are not served."""

_PLANAR: Final = {"B": ANY, "H": "Hfd", "h": "hfd", "f": "f", "d": "d"}
"""Into which types it has filters by kernels of two axes."""

MEGA: Final = 10**6
"""Pixels, each channel counted. On a CPU calls are served from so many on that they took less time than OpenCV's: with OpenCV 5.0, on two
cores with AVX-512 that others used, too, the least of calls that took turns (2026-12-01)."""

NEVER: Final = math.inf

OUTPUTS: Final = {"calcHist": "hist", "connectedComponents": "labels"}
"""Parameters for arrays that take the result, of functions where that is not `dst`."""


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and type(value) is not bool


def _is_number(value: Any) -> bool:
    return (_is_int(value) or isinstance(value, (float, np.floating))) and math.isfinite(value)


def _is_truth(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def _is_pair(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and len(value) == 2 and all(map(_is_int, value))


_KINDS: Final = {"bool": _is_truth, "int": _is_int, "float": _is_number, "Pair": _is_pair}
"""By the annotation of a parameter: which arguments OpenCV takes for it."""


def _opencv(unless: str, bounds: tuple[float, float] = (0.0, 0.0), on_cpu: bool = True) -> Callable[[Function], Function]:
    """A function of OpenCV: which of its calls are OpenCV's own, in Markdown, how far results of floats may differ, and whether calls on a
    CPU are served."""
    if not on_cpu:
        unless = "; ".join(filter(None, ("the device is a CPU", unless)))

    def listed(function: Function) -> Function:
        kinds = {one.name: _KINDS[one.annotation] for one in inspect.signature(function).parameters.values() if one.annotation in _KINDS}

        @functools.wraps(function)
        def called(image: Any, **given: Any) -> Any:
            for name, value in given.items():
                if name in kinds and not kinds[name](value):
                    raise NotImplementedError(f"{name}={value!r}")
            return function(image, **given)

        return public("cv2", module="cv2", differs=unless, accel=Terms("finite", bounds, on_cpu=on_cpu))(called)

    return listed


FASTER: Final = "a call that is faster by OpenCV on a CPU"


def is_on_cpu() -> bool:
    """Returns true if calls are computed on a CPU, and those that OpenCV computes faster there are OpenCV's."""
    from ._calls import Settings

    return Settings.smallest is None and _gpu_of(current()) is None


def _check(image: Any, types: str, on_cpu: float = 0.0, channels: bool = True) -> None:
    """Refuses what is no image of these types, rows and columns and maybe channels; on a CPU also one of fewer pixels."""
    version = importlib.import_module("cv2").__version__
    if not version.startswith("5."):
        raise NotImplementedError(f"OpenCV {version}")
    if type(image) is not np.ndarray or image.dtype.char not in types or not image.size:
        raise NotImplementedError(f"an image of {getattr(image, 'dtype', type(image).__name__)}")
    if image.ndim != 2 and not (channels and image.ndim == 3 and 2 <= image.shape[2] <= 4):
        raise NotImplementedError(f"an image of {image.ndim} axes" if image.ndim != 3 else f"an image of {image.shape[2]} channels")
    if image.size < on_cpu and is_on_cpu():
        raise NotImplementedError(FASTER)


# Programs.


def _layout(core: Core) -> tuple[list[int], list[int]]:
    """Rows and columns, and channels if there are several."""
    _, rows, columns, channels = core.shape
    shape = [rows, columns] if channels == 1 else [rows, columns, channels]
    return shape, [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _core(image: Array) -> Core:
    return asarray(np.ascontiguousarray(image), channels=image.ndim == 3, copy=False)._core


Form = tuple[np.dtype[Any], tuple[int, ...]]


def _form(dst: Any) -> Form | None:
    """The type and the shape of an array that is given for the result, if OpenCV may fill it."""
    if dst is None:
        return None
    if type(dst) is not np.ndarray or not dst.flags.carray:
        raise NotImplementedError("an array for the result of another layout")
    return dst.dtype, dst.shape


def _check_form(form: Form | None, dtype: np.dtype[Any], shape: Sequence[int]) -> None:
    if form is not None and form != (dtype, tuple(shape)):
        raise NotImplementedError("an array for the result of another type or shape")


def _computed(record: Callable[..., Core], image: Array, dst: Any, *options: Any) -> Array:
    """The result of operations on the image of an array, in `dst` if there is one, by a program that is cached for other arrays like these."""
    session, array, part, form = current(), np.ascontiguousarray(image), _part(options), _form(dst)
    key = None if part is None else (record, part, array.dtype.char, array.shape, form)
    known = None if key is None else session._programs.get(key)
    memories = known.run([array]) if type(known) is _horus.Program else None
    if memories is None:
        recording = _horus.Recording(session._core, [_core(array)])
        result = record(*recording.images(), *options)
        layout = _layout(result)
        _check_form(form, NATIVE[result.dtype], layout[0])
        program, memories = _horus.Program.of(session._core, recording, [result], [layout], False)
        if key is not None and program is not None:
            _keep(session, key, program)
    return _stored(np.asarray(memories[0]), dst)


def _stored(found: Array, dst: Array | None) -> Array:
    """The result, in the array that is given for it."""
    if dst is None:
        return found
    dst[...] = found
    return dst


# Arguments.


def _border(number: int) -> str:
    mode = _BORDERS.get(number & ~_ISOLATED)
    if mode is None:
        raise NotImplementedError(f"borderType={number}")
    return mode


def _anchored(size: Pair, anchor: Pair) -> Pair:
    """The row and the column of the anchor of a kernel of rows and columns."""
    at = size[0] // 2 if anchor[1] == -1 else anchor[1], size[1] // 2 if anchor[0] == -1 else anchor[0]
    if not (0 <= at[0] < size[0] and 0 <= at[1] < size[1]):
        raise NotImplementedError("an anchor outside the kernel")
    return at


def _result_code(image: Array, ddepth: int, results: dict[str, str]) -> str:
    """The type of a result, among those for each type of pixels."""
    kind = image.dtype.char if ddepth == -1 else _DEPTHS.get(ddepth)
    if kind is None or kind not in results[image.dtype.char]:
        raise NotImplementedError(f"ddepth={ddepth} of {image.dtype}")
    return CODES[np.dtype(kind)]


def _summed_in(image: Array, gain: float, code: str) -> str:
    """The type of floats in which sums are computed: of integers, `float32`, in which OpenCV and Horus round none."""
    if image.dtype.kind == "f":
        return code
    low, high = limits(image.dtype)
    if max(-low, high) * gain >= 2.0**24:
        raise NotImplementedError("sums of integers beyond 2^24")
    return "f32"


def _is_whole(*numbers: float) -> bool:
    return all(float(number).is_integer() for number in numbers)


def _number_for(image: Array, value: float) -> float:
    """A number as OpenCV takes it for the type of pixels: rounded, and within its range."""
    if image.dtype.kind == "f":
        return float(image.dtype.type(value))
    low, high = limits(image.dtype)
    return float(min(max(round(value), low), high))


# Linear filters.


def _as(core: Core, code: str) -> Core:
    return core if core.dtype == code else _horus.convert(core, code)


def _scaled(core: Core, scale: float, delta: float, code: str) -> Core:
    core = core if scale == 1.0 else _horus.binary("mul", core, scale)
    return _as(core if delta == 0.0 else _horus.binary("add", core, delta), code)


def _separable(core: Core, inner: str, across: Taps, down: Taps, at: Pair, mode: str) -> Core:
    """The correlation with taps along rows, and with others down the columns, anchored at a row and a column."""
    core = _as(core, inner)
    for taps, anchor, axis in ((across, at[1], 2), (down, at[0], 1)):
        core = _horus.correlate(core, [(line_filter(taps, anchor, axis), 0)], mode, 0.0, None)
    return core


def _separably(
    core: Core, inner: str, across: Taps, down: Taps, at: Pair, mode: str, scale: float, delta: float, code: str
) -> Core:
    return _scaled(_separable(core, inner, across, down, at, mode), scale, delta, code)


def _linear(
    src: Array, ddepth: int, across: Taps, down: Taps, at: Pair, scale: float, delta: float, border: int, dst: Any
) -> Array:
    """A separable filter: of floats, or of integers by whole taps."""
    code = _result_code(src, ddepth, _SEPARABLE)
    gain = sum(map(abs, across)) * sum(map(abs, down))
    inner = _summed_in(src, abs(scale) * gain + abs(delta), code)
    if src.dtype.kind != "f" and not _is_whole(*across, *down, scale, delta):
        raise NotImplementedError("taps, a scale or a delta that are not whole")
    options = inner, across, down, at, _border(border), float(scale), float(delta), code
    return _computed(_separably, src, dst, *options)


_BITS: Final = {"B": 8, "H": 16}
"""Of the fractions by which OpenCV weighs pixels."""


@functools.lru_cache(maxsize=256)
def _gaussian(size: int, sigma: float, kind: str) -> Taps:
    """OpenCV's taps: of integers whole ones, whose sum is a power of 2; what rounding one leaves over is added to the next."""
    taps: list[float] = importlib.import_module("cv2").getGaussianKernel(size, sigma, 5 if kind == "f" else 6).ravel().tolist()
    if kind not in _BITS:
        return tuple(taps)
    total, rest, half = 2.0 ** _BITS[kind], 0.0, []
    for tap in taps[: size // 2]:
        rest += tap * total
        half.append(float(round(rest)))
        rest -= half[-1]
    return (*half, total - 2.0 * sum(half), *half[::-1])


def _smooth(core: Core, across: Taps, down: Taps, mode: str) -> Core:
    stored = core.dtype
    inner = {"u8": "f32", "u16": "f64"}.get(stored, stored)  # in which the sums are exact
    found = _separable(core, inner, across, down, (len(down) // 2, len(across) // 2), mode)
    return found if stored == inner else _horus.cast(_horus.mul_add(found, 1.0 / (sum(across) * sum(down)), 0.5), stored)


@_opencv("`int16`; on a CPU below 1 megapixel; with kernels up to 13x13 integers, and floats below 4", SUMS)
def GaussianBlur(
    src: Any, ksize: Pair, sigmaX: float, dst: Any = None, sigmaY: float = 0.0, borderType: int = 4, hint: int = 0
) -> Array:
    (width, height), kind = ksize, src.dtype.char
    across, down = float(sigmaX), float(sigmaY if sigmaY > 0 else sigmaX)
    reach = 2 * (3 if kind == "B" else 4)
    width = round(across * reach + 1) | 1 if width <= 0 < across else width
    height = round(down * reach + 1) | 1 if height <= 0 < down else height
    if hint or width <= 0 or height <= 0 or not width % 2 or not height % 2:
        raise NotImplementedError("a hint, or a kernel that is not odd")
    _check(src, "BHfd", MEGA if width + height > 26 else NEVER if kind in _BITS else 4 * MEGA)
    taps = [_gaussian(int(size), max(sigma, 0.0), kind) for size, sigma in ((width, across), (height, down))]
    return _computed(_smooth, src, dst, *taps, _border(borderType))


def _box(core: Core, size: Pair, at: Pair, mode: str, normalize: bool, code: str) -> Core:
    height, width = size
    area = height * width
    if core.dtype in ("f32", "f64"):
        found = _horus.box_mean(_as(core, code), size, at, mode, 0.0)
        return found if normalize else _horus.binary("mul", found, float(area))
    found = _separable(core, "f32", (1.0,) * width, (1.0,) * height, at, mode)
    if not normalize:
        return _as(found, code)
    if area % 2:  # no mean lies halfway between two numbers
        return _horus.convert(_horus.binary("mul", found, 1.0 / area), code)
    # OpenCV multiplies by 2^23 divided by the area, rounded.
    factor, rest = divmod(1 << 23, area)
    factor, more = (factor, area // 2 + 1) if rest * 2 < area else (factor + 1, area // 2)
    found = _horus.binary("add", _horus.convert(found, "f64"), float(more))
    return _horus.cast(_horus.binary("mul", found, factor / (1 << 23)), code)


def _boxed(src: Any, ddepth: int, ksize: Pair, dst: Any, anchor: Pair, normalize: bool, border: int) -> Array:
    _check(src, "Bfd")
    size = int(ksize[1]), int(ksize[0])
    if min(size) < 1 or (border & _ISOLATED and 1 in src.shape[:2]):
        raise NotImplementedError("a kernel without pixels, or one that OpenCV reduces")
    at, code, area = _anchored(size, anchor), _result_code(src, ddepth, _SEPARABLE), size[0] * size[1]
    _summed_in(src, area, code)
    if src.dtype.kind != "f" and normalize and (code != "u8" or area == 2 or area > (4096 if area % 2 else 256)):
        raise NotImplementedError("means of integers into another type, of two, or of many")
    return _computed(_box, src, dst, size, at, _border(border), bool(normalize), code)


_MEANS: Final = "`int16`, `uint16`; means of `uint8` of 2 pixels, of more than 4096, or of an even number above 256"


@_opencv(f"{_MEANS}; means of `uint8` into another type", SUMS, on_cpu=False)
def boxFilter(
    src: Any, ddepth: int, ksize: Pair, dst: Any = None, anchor: Pair = (-1, -1), normalize: bool = True, borderType: int = 4
) -> Array:
    return _boxed(src, ddepth, ksize, dst, anchor, normalize, borderType)


@_opencv(_MEANS, SUMS, on_cpu=False)
def blur(src: Any, ksize: Pair, dst: Any = None, anchor: Pair = (-1, -1), borderType: int = 4) -> Array:
    return _boxed(src, -1, ksize, dst, anchor, True, borderType)


def _planar(core: Core, inner: str, taps: Taps, size: Pair, at: Pair, mode: str, scale: float, delta: float, code: str) -> Core:
    places = tuple((i // size[1] - at[0], i % size[1] - at[1], tap) for i, tap in enumerate(taps))
    return _scaled(_horus.correlate(_as(core, inner), [(plane_window(places), 0)], mode, 0.0, None), scale, delta, code)


@functools.lru_cache(maxsize=256)
def _unit(taps: Taps, most: int, delta: float) -> float | str:
    """The number of which all taps are whole multiples, if sums for pixels up to `most` are rounded alike however they are computed;
    otherwise why they are not.

    OpenCV rounds each product and each sum to 24 bits. No multiple of the unit may be so close to half a number that this matters.
    """
    if _is_whole(*taps, delta):
        return 1.0
    unit = min(abs(tap) for tap in taps if tap)
    times = np.array(taps) / unit
    if np.abs(times - np.rint(times)).max() > 1e-5 * np.abs(times).max():
        return "taps that are no multiples of the smallest"
    times = np.rint(times)
    highest, lowest = (most * int(times[signs].sum()) for signs in (times > 0, times < 0))
    if highest - lowest >= 2**23:
        return "taps that are large multiples of the smallest"
    sums = np.arange(lowest, highest + 1) * unit + delta
    away = np.abs(sums - np.floor(sums) - 0.5).min()
    if math.frexp(unit)[0] == 0.5 and _is_whole(delta / unit):
        return unit  # nothing is rounded before the end
    if away <= (len(taps) + 4) * 2.0**-23 * (most * sum(map(abs, taps)) + abs(delta)):
        return "sums close to half a number"
    return unit


@_opencv("into integers by taps that are no multiples of the smallest, or 50 and more; on a CPU below 1/4 megapixel, and floats below 4", SUMS)
def filter2D(
    src: Any, ddepth: int, kernel: Any, dst: Any = None, anchor: Pair = (-1, -1), delta: float = 0.0, borderType: int = 4
) -> Array:
    _check(src, ANY, 4 * MEGA if src.dtype.kind == "f" else MEGA // 4)
    if type(kernel) is not np.ndarray or kernel.ndim != 2 or kernel.dtype.char not in ANY:
        raise NotImplementedError("a kernel that is no array of two axes, of a type of pixels")
    if not kernel.any() or not np.isfinite(kernel).all():
        raise NotImplementedError("a kernel of nothing but 0, or taps that are not finite")
    size, code = (kernel.shape[0], kernel.shape[1]), _result_code(src, ddepth, _PLANAR)
    taps = tuple(kernel.astype(np.float64 if code == "f64" else np.float32).ravel().tolist())
    scale, inner = 1.0, code
    if code not in ("f32", "f64"):
        if len(taps) >= 50:
            raise NotImplementedError("a large kernel, by a Fourier transform")
        low, high = limits(src.dtype)
        unit = _unit(taps, max(-low, high), float(delta))
        if isinstance(unit, str):
            raise NotImplementedError(unit)
        scale = unit
        taps = tuple(float(round(tap / scale)) for tap in taps)
    if src.dtype.kind != "f" and _is_whole(*taps):
        inner = _summed_in(src, sum(map(abs, taps)) + abs(delta / scale), code)
    options = inner, taps, size, _anchored(size, anchor), _border(borderType), scale, float(delta), code
    return _computed(_planar, src, dst, *options)


_DERIVATIVES: Final = (
    "integers whose sums exceed 2^24, or with a `scale` or `delta` with fractions; `float32` with `ksize=7`; on a CPU below 1 megapixel "
    "integers of 16 bits, and of 8 bits into `float64`, and {}"
)
_CANCELLING: Final = (1e-4, 1e-12)


def _check_derivative(src: Any, ddepth: int, ksize: int, others: float) -> None:
    """Refuses what is faster by OpenCV on a CPU: calls other than those of most gain below so many pixels."""
    _check(src, ANY, MEGA if src.dtype.char in "Hh" or (src.dtype.char == "B" and ddepth == 6) else others)
    if src.dtype.char == "f" and ksize > 5:
        raise NotImplementedError(f"ksize={ksize} of float32, whose large terms cancel")


def _derivatives(dx: int, dy: int, ksize: int) -> tuple[Taps, Taps]:
    """OpenCV's taps along rows and down columns."""
    cv2 = importlib.import_module("cv2")
    try:
        across, down = cv2.getDerivKernels(dx, dy, ksize, ktype=6)
    except cv2.error as error:
        raise NotImplementedError(f"dx={dx}, dy={dy} and ksize={ksize}") from error
    return tuple(across.ravel().tolist()), tuple(down.ravel().tolist())


def _line(kernel: Any, kind: str) -> Taps:
    if type(kernel) is not np.ndarray or kernel.dtype.char not in ANY or kernel.ndim not in (1, 2) or not kernel.size:
        raise NotImplementedError("a kernel that is no array of one or two axes, of a type of pixels")
    if max(kernel.shape) != kernel.size or not np.isfinite(kernel).all():
        raise NotImplementedError("a kernel that is no line, or taps that are not finite")
    return tuple(kernel.astype(np.float64 if kind == "d" else np.float32).ravel().tolist())


@_opencv("of integers taps with fractions; on a CPU below 4 megapixels", SUMS)
def sepFilter2D(
    src: Any, ddepth: int, kernelX: Any, kernelY: Any, dst: Any = None, anchor: Pair = (-1, -1), delta: float = 0.0, borderType: int = 4
) -> Array:
    _check(src, ANY, 4 * MEGA)
    across, down = (_line(kernel, src.dtype.char) for kernel in (kernelX, kernelY))
    if kernelX.dtype != kernelY.dtype:
        raise NotImplementedError("kernels of two types")
    return _linear(src, ddepth, across, down, _anchored((len(down), len(across)), anchor), 1.0, delta, borderType, dst)


def _derived(src: Any, ddepth: int, dx: int, dy: int, ksize: int, scale: float, delta: float, border: int, dst: Any) -> Array:
    _check_derivative(src, ddepth, ksize, 4 * MEGA)
    across, down = _derivatives(dx, dy, ksize)
    return _linear(src, ddepth, across, down, (len(down) // 2, len(across) // 2), scale, delta, border, dst)


@_opencv(_DERIVATIVES.format("below 4 all others"), _CANCELLING)
def Sobel(
    src: Any, ddepth: int, dx: int, dy: int, dst: Any = None, ksize: int = 3, scale: float = 1.0, delta: float = 0.0, borderType: int = 4
) -> Array:
    return _derived(src, ddepth, dx, dy, ksize, scale, delta, borderType, dst)


@_opencv(_DERIVATIVES.format("below 4 all others"), _CANCELLING)
def Scharr(
    src: Any, ddepth: int, dx: int, dy: int, dst: Any = None, scale: float = 1.0, delta: float = 0.0, borderType: int = 4
) -> Array:
    return _derived(src, ddepth, dx, dy, -1, scale, delta, borderType, dst)


_LAPLACIANS: Final = {1: ((0.0, 1.0, 0.0), (1.0, -4.0, 1.0), (0.0, 1.0, 0.0)), 3: ((2.0, 0.0, 2.0), (0.0, -8.0, 0.0), (2.0, 0.0, 2.0))}


def _laplacian(core: Core, inner: str, smooth: Taps, second: Taps, mode: str, scale: float, delta: float, code: str) -> Core:
    at = len(smooth) // 2, len(smooth) // 2
    along = _separable(core, inner, second, smooth, at, mode)
    return _scaled(_horus.binary("add", along, _separable(core, inner, smooth, second, at, mode)), scale, delta, code)


@_opencv(_DERIVATIVES.format("all others"), _CANCELLING)
def Laplacian(
    src: Any, ddepth: int, dst: Any = None, ksize: int = 1, scale: float = 1.0, delta: float = 0.0, borderType: int = 4
) -> Array:
    _check_derivative(src, ddepth, ksize, NEVER)
    if ksize < 1 or ksize % 2 == 0:
        raise NotImplementedError(f"ksize={ksize}")
    code, mode = _result_code(src, ddepth, _PLANAR if ksize in _LAPLACIANS else _SEPARABLE), _border(borderType)
    if src.dtype.kind != "f" and not _is_whole(scale, delta):
        raise NotImplementedError("a scale or a delta that are not whole")
    if ksize in _LAPLACIANS:
        taps = tuple(tap for row in _LAPLACIANS[ksize] for tap in row)
        inner = _summed_in(src, 16.0 * abs(scale) + abs(delta), code)
        return _computed(_planar, src, dst, inner, taps, (3, 3), (1, 1), mode, float(scale), float(delta), code)
    second, smooth = _derivatives(2, 0, ksize)
    gain = 2.0 * sum(map(abs, second)) * sum(map(abs, smooth))
    options = _summed_in(src, abs(scale) * gain + abs(delta), code), smooth, second, mode, float(scale), float(delta), code
    return _computed(_laplacian, src, dst, *options)


# Orders.


def _median(core: Core, ksize: int) -> Core:
    if ksize < 7:
        return _horus.median(core, (1, ksize, ksize), "nearest", 0.0)
    reach = range(-(ksize // 2), ksize // 2 + 1)
    return _horus.rank(core, [(0, y, x) for y in reach for x in reach], ksize * ksize // 2, "nearest", 0.0)


@_opencv("`float64`; on a CPU `ksize` below 7 or above 75, and below 1/64 megapixel or 16 `ksize`² pixels")
def medianBlur(src: Any, ksize: int, dst: Any = None) -> Array:
    _check(src, "BHhf" if ksize < 7 else "B", max(MEGA // 64, 16 * ksize * ksize) if 7 <= ksize <= 75 else NEVER)
    if ksize % 2 == 0 or not 3 <= ksize <= 255 or (ksize > 5 and src.shape[2:] == (2,)):
        raise NotImplementedError(f"ksize={ksize} of {src.shape[2:] or 1} channels")
    return _computed(_median, src, dst, int(ksize))


def _extreme(core: Core, which: str, footprint: Array, at: Pair, times: int, mode: str) -> Core:
    kind = NATIVE[core.dtype]
    information: Any = np.iinfo(kind) if kind.kind in "iu" else np.finfo(kind)
    beyond = float(information.max if which == "min" else information.min)  # which is no extreme
    _, rows, columns, channels = core.shape
    origin = [one - extent // 2 for one, extent in zip(at, footprint.shape, strict=True)]
    for _ in range(times):
        value = Value(core, kind, (rows, columns), current(), channels > 1)
        core = extremes(value, kind, None, footprint, None, mode, beyond, origin, which).core
    return core


_MORPHOLOGIES: Final = {0: "e", 1: "d", 2: "ed", 3: "de", 4: "d", 5: "ed", 6: "de"}
"""Erosions and dilations of each operation, in order."""

_GRADIENT, _TOPHAT, _BLACKHAT = 4, 5, 6


def _morphology(core: Core, operation: int, *options: Any) -> Core:
    found = core
    for step in _MORPHOLOGIES[operation]:
        found = _extreme(found, "min" if step == "e" else "max", *options)
    if operation == _GRADIENT:
        return _horus.binary("sub", found, _extreme(core, "min", *options))
    if operation == _TOPHAT:
        return _horus.binary("sub", core, found)
    return _horus.binary("sub", found, core) if operation == _BLACKHAT else found


def _morphed(src: Any, op: int, kernel: Any, anchor: Pair, dst: Any, iterations: int, border: int, value: Any) -> Array:
    kernel = np.ones((3, 3), np.uint8) if kernel is None else kernel
    if type(kernel) is not np.ndarray or kernel.dtype.char != "B" or kernel.ndim != 2 or not kernel.any():
        raise NotImplementedError("a kernel that is no mask of bytes")
    if iterations < 1:
        raise NotImplementedError(f"iterations={iterations}")
    footprint, times = kernel != 0, int(iterations)
    row, column = _anchored(kernel.shape, anchor)
    if footprint.all():
        _check(src, ANY, 2 * MEGA)
        # As OpenCV, once by a larger rectangle.
        height, width = (1 + times * (extent - 1) for extent in kernel.shape)
        footprint, row, column, times = np.ones((height, width), bool), row * times, column * times, 1
    else:
        _check(src, ANY, MEGA // 4 if kernel.size > 99 else 4 * MEGA)
    mode = _border(border)
    if op not in _MORPHOLOGIES or (mode == "constant" and value is not None):
        raise NotImplementedError("another operation, or a borderValue")
    return _computed(_morphology, src, dst, int(op), footprint, (int(row), int(column)), times, mode)


_ELEMENTS: Final = "a `borderValue`; on a CPU below 2 megapixels by a rectangle, below 4 by another kernel, and below 1/4 by one of 100 pixels or more"


@_opencv(f"`MORPH_HITMISS`; {_ELEMENTS}")
def morphologyEx(
    src: Any, op: int, kernel: Any, dst: Any = None, anchor: Pair = (-1, -1), iterations: int = 1, borderType: int = 0, borderValue: Any = None
) -> Array:
    return _morphed(src, op, kernel, anchor, dst, iterations, borderType, borderValue)


def _element(kernel: Any, anchor: Pair) -> tuple[Any, Pair]:
    """The kernel and its anchor: without one, OpenCV's erosion and dilation check the anchor of 3x3 pixels, and take their centre."""
    if kernel is None:
        _anchored((3, 3), anchor)
        return kernel, (-1, -1)
    return kernel, anchor


@_opencv(_ELEMENTS)
def erode(
    src: Any, kernel: Any, dst: Any = None, anchor: Pair = (-1, -1), iterations: int = 1, borderType: int = 0, borderValue: Any = None
) -> Array:
    return _morphed(src, 0, *_element(kernel, anchor), dst, iterations, borderType, borderValue)


@_opencv(_ELEMENTS)
def dilate(
    src: Any, kernel: Any, dst: Any = None, anchor: Pair = (-1, -1), iterations: int = 1, borderType: int = 0, borderValue: Any = None
) -> Array:
    return _morphed(src, 1, *_element(kernel, anchor), dst, iterations, borderType, borderValue)


# Intensities.


def _counts(core: Core) -> Array:
    """How often each byte occurs."""
    return _horus.histogram(core, 256, -0.5, 255.5).astype(np.int64)


def _otsu(counts: list[int]) -> float:
    """The threshold between two classes, with OpenCV's roundings."""
    scale, least = 1.0 / sum(counts), float(np.finfo(np.float32).eps)
    mean = sum(value * float(count) for value, count in enumerate(counts)) * scale
    low, share, best, found = 0.0, 0.0, 0.0, 0
    for value, count in enumerate(counts):
        part = count * scale
        low *= share
        share += part
        rest = 1.0 - share
        if min(share, rest) < least or max(share, rest) > 1.0 - least:
            continue
        low = (low + value * part) / share
        high = (mean - share * low) / rest
        between = share * rest * (low - high) * (low - high)
        if between > best:
            best, found = between, value
    return float(found)


def _triangle(counts: list[int]) -> float:
    """The value farthest from the line between the largest count and the farther end of the histogram, as OpenCV takes it."""
    filled = [value for value, count in enumerate(counts) if count]
    first, last, top = max(filled[0] - 1, 0), min(filled[-1] + 1, 255), counts.index(max(counts))
    flipped = top - first < last - top
    if flipped:
        counts, first, top = counts[::-1], 255 - last, 255 - top
    away = [counts[top] * value + (first - top) * counts[value] for value in range(first + 1, top + 1)]
    found = first - 1 if max(away, default=0) <= 0 else first + away.index(max(away))
    return float(255 - found if flipped else found)


_TRUNC, _TOZERO = 2, 3
_AUTOMATIC: Final = {8: _otsu, 16: _triangle}
"""By the bit of a type: what finds the threshold in a histogram."""


def _thresholded(core: Core, kind: int, limit: float, most: float) -> Core:
    if kind == _TRUNC:
        return _horus.binary("minimum", core, limit)
    holds = _horus.compare("gt" if kind in (0, _TOZERO) else "le", core, limit)
    if kind >= _TOZERO:
        return _horus.select(holds, core, 0.0)
    return _horus.binary("mul", _horus.convert(holds, core.dtype), most)


@_opencv("`THRESH_DRYRUN`; thresholds that the type does not hold", on_cpu=False)
def threshold(src: Any, thresh: float, maxval: float, type: int, dst: Any = None) -> tuple[float, Array]:
    _check(src, ANY)
    automatic, kind = _AUTOMATIC.get(type & ~7), type & 7
    if automatic is not None:
        _check(src, "B", channels=False)
        _check_form(_form(dst), src.dtype, src.shape)
        thresh = automatic(_counts(_core(src)).tolist())
    elif type > 7:
        raise NotImplementedError(f"type={type}")
    limit = _number_for(src, thresh if src.dtype.kind == "f" else math.floor(thresh))
    if kind > 4 or (src.dtype.kind != "f" and limit != math.floor(thresh)):
        raise NotImplementedError(f"type={type} and thresh={thresh}")
    found = _computed(_thresholded, src, dst, int(kind), limit, _number_for(src, maxval))
    return float(thresh) if src.dtype.kind == "f" else limit, found


def _adapted(core: Core, size: int, most: float, inverse: bool, delta: float) -> Core:
    mean = _horus.convert(_box(core, (size, size), (size // 2, size // 2), "nearest", True, "u8"), "i16")
    holds = _horus.compare("le" if inverse else "gt", _horus.convert(core, "i16"), _horus.binary("sub", mean, delta))
    return _horus.binary("mul", _horus.convert(holds, "u8"), most)


@_opencv("`ADAPTIVE_THRESH_GAUSSIAN_C`; blocks of more than 63 rows", on_cpu=False)
def adaptiveThreshold(
    src: Any, maxValue: float, adaptiveMethod: int, thresholdType: int, blockSize: int, C: float, dst: Any = None
) -> Array:
    _check(src, "B", channels=False)
    if adaptiveMethod or thresholdType not in (0, 1) or blockSize % 2 == 0 or not 3 <= blockSize <= 63 or abs(C) > 255 or maxValue < 0:
        raise NotImplementedError("another method, type or block")
    delta = math.floor(C) if thresholdType else math.ceil(C)
    options = int(blockSize), _number_for(src, maxValue), bool(thresholdType), float(delta)
    return _computed(_adapted, src, dst, *options)


def _looked_up(core: Core, table: Array, code: str) -> Core:
    return _horus.lookup(core, table, code)


@_opencv("", on_cpu=False)
def equalizeHist(src: Any, dst: Any = None) -> Array:
    _check(src, "B", channels=False)
    _check_form(_form(dst), src.dtype, src.shape)
    core = _core(src)
    counts = _counts(core)
    first = int(counts.nonzero()[0][0])
    if counts[first] == src.size:
        return _stored(src.copy(), dst)
    scale = np.float32(255.0) / np.float32(src.size - counts[first])
    counts[: first + 1] = 0
    table = np.minimum(np.rint(counts.cumsum().astype(np.float32) * scale), 255.0).astype(np.float64)
    return _stored(_horus.lookup(core, table, "u8").to_array(list(src.shape)), dst)


@_opencv("several images, channels or a mask; bins of different widths; an array for the result", on_cpu=False)
def calcHist(images: Any, channels: Any, mask: Any, histSize: Any, ranges: Any, hist: Any = None, accumulate: bool = False) -> Array:
    _check(images, "B")
    for given, count in ((channels, 1), (histSize, 1), (ranges, 2)):
        if not isinstance(given, (list, tuple)) or len(given) != count or not all(map(_is_number, given)):
            raise NotImplementedError("several channels, or bins of different widths")
    low, high = map(float, ranges)
    core, channel, size = _core(images), channels[0], histSize[0]
    if mask is not None or hist is not None or not (_is_int(channel) and 0 <= channel < core.shape[3] and _is_int(size) and size > 0 and low < high):
        raise NotImplementedError("a mask, or bins that are none")
    counts = _counts(_horus.channel(core, int(channel)) if core.shape[3] > 1 else core)
    scale = size / (high - low)
    bins = np.floor(np.arange(256) * scale - low * scale).astype(np.int64)
    inside = (bins >= 0) & (bins < size)
    return np.bincount(bins[inside], counts[inside], int(size)).astype(np.float32)


@_opencv("a table for each channel", on_cpu=False)
def LUT(src: Any, lut: Any, dst: Any = None) -> Array:
    _check(src, "B")
    if type(lut) is not np.ndarray or lut.size != 256 or lut.shape[2:] not in ((), (1,)) or lut.dtype.char not in ANY:
        raise NotImplementedError("a table that is no array of 256 numbers, of one channel")
    return _computed(_looked_up, src, dst, lut.astype(np.float64).ravel(), CODES[lut.dtype])


_GRAY: Final = {6: (3, (0, 1, 2)), 7: (3, (2, 1, 0)), 10: (4, (0, 1, 2)), 11: (4, (2, 1, 0))}
"""Channels, and which are blue, green and red, of conversions to grey."""


def _gray(core: Core, order: tuple[int, int, int]) -> Core:
    weights = (3735.0, 19235.0, 9798.0) if core.dtype == "u8" else (0.114, 0.587, 0.299)
    blue, green, red = (_as(_horus.channel(core, k), "f32") for k in order)
    found = _horus.mul_add(red, weights[2], _horus.mul_add(green, weights[1], _horus.binary("mul", blue, weights[0])))
    return found if core.dtype == "f32" else _horus.cast(_horus.mul_add(found, 2.0**-15, 0.5), "u8")


@_opencv("other conversions than from BGR, RGB, BGRA or RGBA to grey; other types than `uint8` and `float32`", (1e-6, 0.0), on_cpu=False)
def cvtColor(src: Any, code: int, dst: Any = None, dstCn: int = 0, hint: int = 0) -> Array:
    _check(src, "Bf")
    count, order = _GRAY.get(code, (0, ()))
    if dstCn not in (0, 1) or hint or src.ndim != 3 or src.shape[2] != count:
        raise NotImplementedError(f"code={code}")
    return _computed(_gray, src, dst, order)


# Sizes and places.


def _down(core: Core, mode: str) -> Core:
    stored, taps = core.dtype, (1.0, 4.0, 6.0, 4.0, 1.0)
    found = _separable(core, "f64" if stored == "f64" else "f32", taps, taps, (2, 2), mode)
    found = _horus.step(found, (1, 2, 2))
    if stored in ("f32", "f64"):
        return _horus.binary("mul", found, 1.0 / 256)
    return _horus.convert(_horus.unary("floor", _horus.mul_add(found, 1.0 / 256, 0.5)), stored)


@_opencv("a `dstsize` other than half", SUMS, on_cpu=False)
def pyrDown(src: Any, dst: Any = None, dstsize: Any = None, borderType: int = 4) -> Array:
    _check(src, ANY)
    if dstsize is not None or borderType == 0 or borderType & _ISOLATED:
        raise NotImplementedError("a dstsize, or a constant or isolated border")
    return _computed(_down, src, dst, _border(borderType))


def _averaged(core: Core, rows: int, columns: int) -> Core:
    found = _horus.convert(_horus.tiled(core, "sum", rows, columns), "f32")
    if core.dtype == "u8" and (rows, columns) == (2, 2) and core.shape[3] != 2:  # OpenCV rounds halves of 2 channels to even
        return _horus.cast(_horus.mul_add(found, 0.25, 0.5), "u8")
    return _as(_horus.binary("mul", found, float(np.float32(1 / (rows * columns)))), core.dtype)


def _stepped(core: Core, rows: int, columns: int) -> Core:
    return _horus.step(core, (1, rows, columns))


@_opencv("other than whole parts by `INTER_AREA` and `INTER_NEAREST`, or half by `INTER_LINEAR`", SUMS, on_cpu=False)
def resize(src: Any, dsize: Any, dst: Any = None, fx: float = 0.0, fy: float = 0.0, interpolation: int = 1) -> Array:
    _check(src, "Bf")
    height, width = src.shape[:2]
    if dsize is not None and not _is_pair(dsize):
        raise NotImplementedError(f"dsize={dsize!r}")
    factors = dsize is None or tuple(dsize) == (0, 0)
    if factors == (fx == 0.0 or fy == 0.0):
        raise NotImplementedError("a dsize and factors, or neither")
    if factors:
        dsize = round(width * fx), round(height * fy)
    columns, rows = (extent // size if size > 0 and extent % size == 0 else 0 for extent, size in zip((width, height), dsize, strict=True))
    half = rows == columns == 2
    if rows < 1 or columns < 1 or rows * columns == 1 or rows * columns > 65536:
        raise NotImplementedError("a size that is no whole part")
    if factors and (1.0 / fx != columns or 1.0 / fy != rows):
        raise NotImplementedError("factors that are not those of the size")
    if interpolation == 0:
        return _computed(_stepped, src, dst, int(rows), int(columns))
    if interpolation == 3 or (interpolation == 1 and half):
        return _computed(_averaged, src, dst, int(rows), int(columns))
    raise NotImplementedError(f"interpolation={interpolation}")


_METRICS: Final = {(2, 0): "euclidean", (1, 3): "taxicab", (3, 3): "chessboard"}
"""By the kind of distance and the size of the mask: distances that OpenCV does not approximate."""


def _far(core: Core, metric: str) -> Core:
    return _horus.convert(_horus.distances(_horus.convert(core, "bool"), metric, [1.0, 1.0, 1.0]), "f32")


@_opencv("`DIST_L2` that is not `DIST_MASK_PRECISE`; no zeros; results of `uint8`; on a CPU `DIST_L1`, `DIST_C`, and below 1/64 megapixel", SUMS)
def distanceTransform(src: Any, distanceType: int, maskSize: int, dst: Any = None, dstType: int = 5) -> Array:
    metric = _METRICS.get((distanceType, maskSize))
    _check(src, "B", MEGA // 64 if metric == "euclidean" else NEVER, channels=False)
    if metric is None or dstType != 5 or src.all():
        raise NotImplementedError("an approximated distance, or no background")
    return _computed(_far, src, dst, metric)


@_opencv("8 neighbours, of which OpenCV numbers components in another order; labels of `uint16`; on a CPU below 1/4 megapixel")
def connectedComponents(image: Any, labels: Any = None, connectivity: int = 8, ltype: int = 4) -> tuple[int, Array]:
    _check(image, "B", MEGA // 4, channels=False)
    if connectivity != 4 or ltype != 4:
        raise NotImplementedError("8 neighbours, or labels of another type")
    _check_form(_form(labels), NATIVE["i32"], image.shape)
    found: Any = label(image)
    numbers, count = found
    return count + 1, _stored(numbers, labels)
