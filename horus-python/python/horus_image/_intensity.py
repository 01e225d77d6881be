"""Intensities rescaled and corrected, and histograms, with the rules of scikit-image 0.26.

Of integers of 8 and 16 bits, and of masks, NumPy makes a table by the formula that floats are computed by, and the table is applied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from . import _horus
from ._dtype import HALF, NATIVE, cast, is_native, truth
from ._floats import Given, float_type
from ._foreign import dtype_of, of_any_library
from ._image import Array, Image, asarray
from ._public import Terms, public
from ._thresholds import as_numbers, check_bins, whole_bins
from ._values import shape_of
from .typing import ArrayLike, Float, Pixels

DType = np.dtype[Any]
_AXES: Final = (1, 2, 3)
_NAMED: Final = {"uint10": (0, 1023), "uint12": (0, 4095), "uint14": (0, 16383)}
"""Ranges of types that NumPy does not have; they are held in ``uint16``."""


def limits(dtype: DType) -> tuple[float, float]:
    """The least and the greatest number of an image of a type: those of integers, and -1 to 1 of floats."""
    if dtype.kind in "iu":
        return float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)
    return (0.0, 1.0) if dtype.kind == "b" else (-1.0, 1.0)


def _type_of(given: Given, image: Any) -> DType:
    """The type of the caller's pixels, which may be one that is computed in another."""
    return np.dtype(dtype_of(image).type) if given.array is not None else given.dtype


def _of_each(given: Given, formula: Callable[[Any], Any], dtype: DType) -> Pixels:
    """A formula of each pixel, in a type, to which floats are cut."""
    if given.array is None and not is_native(dtype):
        raise TypeError(f"{given.name}: images have no pixels of type {dtype}")
    held = NATIVE["f32"] if dtype == HALF else dtype
    kind, core = given.dtype, given.image._core
    if kind.kind in "iub" and kind.itemsize <= 2:
        low, high = (int(limit) for limit in limits(kind))
        # Of numbers that the image may not have, too.
        with np.errstate(all="ignore"):
            table = np.asarray(formula(np.arange(low, high + 1).astype(kind))).astype(held)
        if kind.kind == "b":
            core, table = _horus.convert(core, "u8"), np.resize(table, 256)
        code = "u8" if held.kind == "b" else next((code for code, native in NATIVE.items() if native == held), "f64")
        core = _horus.lookup(core, table.astype(np.float64), code)
        core = truth(core) if held.kind == "b" else core
    else:
        found = formula(given.image)
        core = truth(found._core) if held.kind == "b" else cast(found._core, found.dtype, held)
    back = given.back(given.image._with(core))
    return back if isinstance(back, Image) else back.astype(dtype, copy=False)


def _range(given: Given, values: Any, dtype: DType, clip_negative: bool = False) -> tuple[float, float]:
    """The range that is named, or given."""
    if isinstance(values, str) and values == "image":
        return _horus.min_max(as_numbers(given.image))
    low: Any
    high: Any
    if isinstance(values, str) and values in _NAMED:
        low, high = _NAMED[values]
    elif isinstance(values, (str, type)):
        low, high = limits(dtype if values == "dtype" else _named(given.name, values))
    else:
        try:
            low, high = values
        except (TypeError, ValueError):
            raise ValueError(f"{given.name}: {values!r} is no range: a name, a type or two numbers") from None
        return float(low), float(high)
    return 0.0 if clip_negative else float(low), float(high)


def _named(name: str, kind: Any) -> DType:
    """A type that `in_range` or `out_range` names."""
    if kind in _NAMED:
        return NATIVE["u16"]
    try:
        dtype: DType = np.dtype(kind)
        if dtype.kind in "biuf":
            return dtype
    except TypeError:
        pass
    raise ValueError(f"{name}: a range is 'image', 'dtype', a type of pixels or a pair of numbers, not {kind!r}")


@public("exposure", module="skimage.exposure.exposure", differs="`'image'` ignores NaN, which there makes all pixels NaN", accel=Terms("narrow finite"))
@of_any_library
def rescale_intensity(
    image: ArrayLike, in_range: str | type | tuple[Float, Float] = "image", out_range: str | type | tuple[Float, Float] = "dtype"
) -> Pixels:
    """Pixels from one range stretched or shrunk to another (``skimage.exposure.rescale_intensity``).

    Parameters
    ----------
    image : array_like or Image
        Pixels beyond `in_range` become its ends.
    in_range, out_range : str, type or pair of float, optional
        ``"image"``, from the smallest to the largest pixel, which are computed at the call; ``"dtype"``, the range of the image's type, of
        floats -1 to 1; the range of another type, also ``"uint10"``, ``"uint12"`` and ``"uint14"``; or two numbers. The least number of a
        type in `out_range` is 0 where that of `in_range` is not negative.

    Returns
    -------
    array or Image
        Of the type that `out_range` names, to which numbers are cut, by default the image's; of two numbers, floats. scikit-image's, to the
        bit, but of ``float16``.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.exposure import rescale_intensity
    >>> rescale_intensity(np.array([51, 102, 153], np.uint8))
    array([  0, 127, 255], dtype=uint8)
    """
    name = "rescale_intensity"
    given = Given(name, image, _AXES)
    own = _type_of(given, image)
    dtype = float_type(given.dtype)
    if isinstance(out_range, (str, type)):
        dtype = own if out_range in ("dtype", "image") else _named(name, out_range)
    low, high = _range(given, in_range, own)
    least, most = _range(given, out_range, own, low >= 0.0)

    def rescaled(pixels: Any) -> Any:
        pixels = _clipped(pixels, low, high)
        if low == high:
            return _clipped(pixels, least, most)
        return (pixels - low) / (high - low) * (most - least) + least

    return _of_each(given, rescaled, dtype)


def _clipped(pixels: Any, low: float, high: float) -> Any:
    """Floats within limits."""
    return (pixels if pixels.dtype.kind == "f" else pixels.astype(np.float64)).clip(low, high)


def _corrected(name: str, image: Any, formula: Callable[[Any, float], Any]) -> Pixels:
    """A formula of pixels that are not negative, and of the largest number of their type."""
    given = Given(name, image, _AXES)
    if given.dtype.kind in "if" and _horus.min_max(given.image._core)[0] < 0:
        raise ValueError(f"{name}: pixels are negative; see rescale_intensity")
    own = _type_of(given, image)
    scale = limits(own)[1]
    return _of_each(given, lambda pixels: formula(pixels, scale), own)


_CORRECTED: Final = Terms("tabled finite", (1e-5, 1e-12))


@public("exposure", module="skimage.exposure.exposure", accel=_CORRECTED)
@of_any_library
def adjust_gamma(image: ArrayLike, gamma: Float = 1, gain: Float = 1) -> Pixels:
    """Pixels, as shares of the largest number of their type, to the power of `gamma`, times `gain` (``skimage.exposure.adjust_gamma``).

    Parameters
    ----------
    image : array_like or Image
        Not negative, which is seen at the call for floats and signed integers.
    gamma, gain : float, optional
        `gamma` is not negative.

    Returns
    -------
    array or Image
        Of the image's type; bytes are rounded and saturated, other integers cut.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.exposure import adjust_gamma
    >>> adjust_gamma(np.array([0, 51, 102, 255], np.uint8), 2)
    array([  0,  10,  41, 255], dtype=uint8)
    """
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number.")
    power, factor = float(gamma), float(gain)

    def corrected(pixels: Any, scale: float) -> Any:
        if pixels.dtype == np.uint8:
            return np.minimum(np.rint(scale * factor * np.linspace(0.0, 1.0, 256) ** power), scale)
        return (pixels / scale) ** power * scale * factor

    return _corrected("adjust_gamma", image, corrected)


@public("exposure", module="skimage.exposure.exposure", accel=_CORRECTED)
@of_any_library
def adjust_log(image: ArrayLike, gain: Float = 1, inv: bool = False) -> Pixels:
    """The logarithm ``gain * log2(1 + p)`` of pixels `p`, as shares of the largest number of their type (``skimage.exposure.adjust_log``).

    Parameters
    ----------
    image : array_like or Image
        Not negative, which is seen at the call for floats and signed integers.
    gain : float, optional
        A factor.
    inv : bool, optional
        ``gain * (2**p - 1)`` instead.

    Returns
    -------
    array or Image
        Of the image's type; integers are cut.

    Examples
    --------
    >>> from horus_image.exposure import adjust_log
    >>> adjust_log([0.0, 1.0])
    array([0., 1.])
    """
    factor = float(gain)

    def corrected(pixels: Any, scale: float) -> Any:
        share = pixels / scale
        return ((np.exp2(share) - 1.0) if inv else np.log2(share + 1.0)) * scale * factor

    return _corrected("adjust_log", image, corrected)


@public("exposure", module="skimage.exposure.exposure", accel=_CORRECTED)
@of_any_library
def adjust_sigmoid(image: ArrayLike, cutoff: Float = 0.5, gain: Float = 10, inv: bool = False) -> Pixels:
    """The sigmoid ``1 / (1 + exp(gain * (cutoff - p)))`` of pixels `p`, as shares of the largest number of their type
    (``skimage.exposure.adjust_sigmoid``).

    Parameters
    ----------
    image : array_like or Image
        Not negative, which is seen at the call for floats and signed integers.
    cutoff, gain : float, optional
        Where the curve is steepest, and how steep it is.
    inv : bool, optional
        1 less that.

    Returns
    -------
    array or Image
        Of the image's type; integers are cut.

    Examples
    --------
    >>> from horus_image.exposure import adjust_sigmoid
    >>> adjust_sigmoid([0.0, 0.5, 1.0]).round(3)
    array([0.007, 0.5  , 0.993])
    """
    middle, slope = float(cutoff), float(gain)

    def corrected(pixels: Any, scale: float) -> Any:
        curve = 1.0 / (np.exp((middle - pixels / scale) * slope) + 1.0)
        return (1.0 - curve if inv else curve) * scale

    return _corrected("adjust_sigmoid", image, corrected)


@public(
    "exposure", module="skimage.exposure.exposure", rust="histogram", opencv="cv.calcHist", differs="NaN is ignored",
    accel=Terms("counts_of_integers")
)
@of_any_library
def histogram(
    image: ArrayLike, nbins: int = 256, source_range: str = "image", normalize: bool = False, *, channel_axis: int | None = None
) -> tuple[Array, Array]:
    """How many pixels there are of each number, or between each two of some (``skimage.exposure.histogram``).

    Parameters
    ----------
    image : array_like or Image
        It is counted at the call.
    nbins : int, optional
        Bins of floats; integers have one for each number.
    source_range : str, optional
        ``"image"``, from the smallest to the largest pixel, or ``"dtype"``, of all numbers of the type, of floats from -1 to 1.
    normalize : bool, optional
        Shares of all counted pixels instead of numbers.
    channel_axis : int, optional
        The axis of channels, which are counted each by itself, in the same bins.

    Returns
    -------
    hist : ndarray
        Of channels a row each.
    bin_centers : ndarray
        Integers, or the middle of each bin of floats. A pixel that lies between two bins but for a rounding may be counted in the other.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.exposure import histogram
    >>> histogram(np.array([[3, 3, 5]], np.uint8))
    (array([2, 0, 1]), array([3, 4, 5]))
    """
    if source_range not in ("image", "dtype"):
        raise ValueError(f"Incorrect value for `source_range` argument: {source_range}")
    given = Given("histogram", image, _AXES, channel_axis)
    low, high = _range(given, source_range, given.dtype)
    if given.dtype.kind in "iu":
        bins, low, high, centres = whole_bins(given, low, high)
    else:
        bins = int(nbins)
        check_bins("histogram", bins, low, high)
        low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
        kind = float_type(given.dtype)
        edges = np.linspace(kind.type(low), kind.type(high), bins + 1, dtype=kind)
        centres = (edges[:-1] + edges[1:]) / 2.0
    parts = [given.image] if channel_axis is None else [given.image.channel(k) for k in range(given.image._core.shape[3])]
    found = []
    for part in parts:
        counts: Array = _horus.histogram(as_numbers(part), bins, low, high).astype(np.int64)
        found.append(counts / counts.sum() if normalize else counts)
    return found[0] if channel_axis is None else np.stack(found), centres


@public("exposure", module="skimage.exposure.exposure", rust="histogram", differs="NaN is ignored", accel=Terms("counts_of_integers"))
@of_any_library
def cumulative_distribution(image: ArrayLike, nbins: int = 256) -> tuple[Array, Array]:
    """The share of pixels that are not brighter than each bin of the histogram (``skimage.exposure.cumulative_distribution``).

    Parameters
    ----------
    image, nbins
        As of `histogram`.

    Returns
    -------
    img_cdf : ndarray
        Floats up to 1.
    bin_centers : ndarray
        As of `histogram`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.exposure import cumulative_distribution
    >>> cumulative_distribution(np.array([[3, 3, 5, 6]], np.uint8))
    (array([0.5 , 0.5 , 0.75, 1.  ]), array([3, 4, 5, 6]))
    """
    counts, centres = histogram(image, nbins)
    share = counts.cumsum()
    return (share / float(share[-1])).astype(float_type(image.dtype if isinstance(image, Image) else dtype_of(image).newbyteorder("=")), copy=False), centres


@public("exposure", module="skimage.exposure.exposure", accel=Terms("numbers narrow finite", scalar=np.bool_))
@of_any_library
def is_low_contrast(
    image: ArrayLike, fraction_threshold: Float = 0.05, lower_percentile: Float = 1, upper_percentile: Float = 99, method: str = "linear"
) -> bool:
    """True where the range of brightness, without extremes, is below a share of the type's range (``skimage.exposure.is_low_contrast``).

    Parameters
    ----------
    image : array_like or Image
        It is computed at the call. A last axis of three or four is of red, green, blue and alpha, whose luminance counts. Masks are of low
        contrast where all pixels are alike.
    fraction_threshold : float, optional
        The share; of the range of floats, which is 2.
    lower_percentile, upper_percentile : float, optional
        The percentiles between which brightness counts.
    method : str, optional
        ``"linear"``.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.exposure import is_low_contrast
    >>> is_low_contrast(np.linspace(0, 0.04, 100)), is_low_contrast(np.linspace(0, 0.5, 100))
    (True, False)
    """
    name = "is_low_contrast"
    shape = shape_of(image)
    if len(shape) == 3 and shape[2] in (3, 4) and (not isinstance(image, Image) or image.channels):
        image = _luminance(name, image, shape[2])
    given = Given(name, image, _AXES)
    if given.dtype.kind == "b":
        return bool(given.image.all()) or not bool(given.image.any())
    low, high = np.percentile(given.image.compute(), [lower_percentile, upper_percentile])
    least, most = limits(given.dtype)
    return bool((high - low) / (most - least) < fraction_threshold)


def _luminance(name: str, image: ArrayLike, count: int) -> Image:
    """The luminance of an image of red, green and blue; where alpha is less than 1, with white behind."""
    given = Given(name, image if isinstance(image, Image) else asarray(image, channels=True), (2,))
    return luminance_of(given.unit(), count)


def luminance_of(pixels: Image, count: int) -> Image:
    """The luminance of floats of red, green and blue, and perhaps alpha."""
    parts = [pixels.channel(k) for k in range(3)]
    if count == 4:
        alpha = pixels.channel(3)
        parts = [(part * alpha + (1.0 - alpha)).clip(0.0, 1.0) for part in parts]
    red, green, blue = parts
    return red * 0.2125 + green * 0.7154 + blue * 0.0721
