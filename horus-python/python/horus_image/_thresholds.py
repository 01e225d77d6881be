"""Thresholds of a whole image, and of each pixel, with the rules of scikit-image 0.26."""

from __future__ import annotations

import functools
import itertools
import numbers as numbers_of
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import _horus
from ._floats import Given, applied, float_type, gaussian, image_of
from ._foreign import of_any_library
from ._image import Array, Image
from ._linear import uniform_filter
from ._order import median_filter
from ._public import PIXELS, SUMS, Terms, public
from ._values import check_reach, enter
from .typing import ArrayLike, Border, Float, Ints, Pixels

_MOST_BINS: Final = 1 << 20
"""Bins of a histogram: one for each whole number between the smallest and the largest pixel, or as many as are asked for."""

_MANY: Final = 1 << 16
"""Pixels of 16 bits for which all bins there can be cost less than another evaluation."""

Histogram = tuple[Array, Array]


def as_numbers(image: Image) -> _horus.Image:
    """The pixels as numbers, which can be counted."""
    core = image._core
    return _horus.convert(core, "u8") if core.dtype == "bool" else core


def whole_bins(given: Given, low: float, high: float) -> tuple[int, float, float, Array]:
    """A bin for each whole number: how many, from where, to where, and their centres."""
    bins = int(high) - int(low) + 1
    if bins > _MOST_BINS:
        raise NotImplementedError(f"{given.name} of integers from {int(low)} to {int(high)}: a histogram of {bins} bins; convert to floats")
    return bins, low - 0.5, high + 0.5, np.arange(int(low), int(high) + 1)


def check_bins(name: str, nbins: int, low: float, high: float) -> None:
    """Raises if floats between limits are not counted in so many bins."""
    if low > high:
        raise ValueError(f"{name}: all pixels are NaN")
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"{name}: pixels from {low} to {high}; they must be finite")
    if not 0 < nbins <= _MOST_BINS:
        raise ValueError(f"{name}: a histogram of {nbins} bins; the limit is {_MOST_BINS}")


def histogram(given: Given, nbins: int) -> Histogram:
    """Counts, and centres of bins: one for each whole number of integers, else equal parts from the smallest to the largest pixel."""
    core = as_numbers(given.image)
    size = given.dtype.itemsize
    if given.dtype.kind in "iub" and (size == 1 or (size == 2 and given.image.size >= _MANY)):
        # All bins there can be are counted by the evaluation that would find the smallest and the largest pixel.
        bins = 1 << 8 * size
        least = -bins // 2 if given.dtype.kind == "i" else 0
        counts = _horus.histogram(core, bins, least - 0.5, least + bins - 0.5)
        filled = np.flatnonzero(counts)
        return counts[filled[0] : filled[-1] + 1], np.arange(least + int(filled[0]), least + int(filled[-1]) + 1)
    low, high = _horus.min_max(core)
    if given.dtype.kind in "iu":
        bins, low, high, centres = whole_bins(given, low, high)
        return _horus.histogram(core, bins, low, high), centres
    check_bins(given.name, nbins, low, high)
    if low == high:
        return np.array([given.image.size], np.uint64), np.array([low])
    edges = np.linspace(low, high, nbins + 1)
    return _horus.histogram(core, nbins, low, high), (edges[:-1] + edges[1:]) / 2.0


def _counted(name: str, image: Any, nbins: int, hist: Any) -> Histogram:
    """The histogram of an image, or the one that is given, without empty bins at its ends; counts as floats of 32 bits, as there."""
    if hist is not None:
        counts, centres = hist if isinstance(hist, (tuple, list)) else (hist, np.arange(np.size(hist)))
        counts, centres = np.asarray(counts), np.asarray(centres)
        filled = np.flatnonzero(counts)
        if counts.ndim != 1 or counts.shape != centres.shape or not filled.size:
            raise ValueError(f"{name}: hist is counts, some of them not 0, or those and as many centres")
        counts, centres = (part[filled[0] : filled[-1] + 1] for part in (counts, centres))
    elif image is None:
        raise ValueError(f"{name}: either image or hist must be provided")
    else:
        counts, centres = histogram(Given(name, image, (1, 2, 3)), int(nbins))
    return counts.astype(np.float32), centres


@public(
    "filters", module="skimage.filters.thresholding", rust="otsu", opencv="THRESH_OTSU", differs="a float",
    accel=Terms("integers", scalar=np.int64)
)
@of_any_library
def threshold_otsu(image: ArrayLike | None = None, nbins: int = 256, *, hist: npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike] | None = None) -> float:
    """The threshold that parts the pixels into two classes that differ most (``skimage.filters.threshold_otsu``).

    Parameters
    ----------
    image : array_like or Image, optional
        All its pixels are counted, those of all channels together.
    nbins : int, optional
        Bins of the histogram of floats; of integers each number has its own.
    hist : array or pair of arrays, optional
        Counts, and the centres of their bins, instead of an image.

    Returns
    -------
    float
        Pixels above belong to the brighter class. The image is computed at the call.

    Examples
    --------
    >>> from horus_image.filters import threshold_otsu
    >>> threshold_otsu([[10, 12, 11, 200, 210, 205]])
    12.0
    """
    counts, centres = _counted("threshold_otsu", image, nbins, hist)
    if len(centres) == 1:
        return float(centres[0])
    return float(centres[_horus.otsu_bin(counts, centres.astype(np.float64))])


@public("filters", module="skimage.filters.thresholding", differs="a float", accel=Terms("integers", scalar=np.int64))
@of_any_library
def threshold_yen(image: ArrayLike | None = None, nbins: int = 256, *, hist: npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike] | None = None) -> float:
    """The threshold of the greatest correlation of both classes (``skimage.filters.threshold_yen``). Arguments and result are those of
    `threshold_otsu`.

    Examples
    --------
    >>> from horus_image.filters import threshold_yen
    >>> threshold_yen([[10, 12, 11, 200, 210, 205]])
    12.0
    """
    counts, centres = _counted("threshold_yen", image, nbins, hist)
    if len(centres) == 1:
        return float(centres[0])
    share = counts / counts.sum()
    total, squares = np.cumsum(share), np.cumsum(share**2)
    squares_above = np.cumsum(share[::-1] ** 2)[::-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        criterion = np.log(((squares[:-1] * squares_above[1:]) ** -1) * (total[:-1] * (1.0 - total[:-1])) ** 2)
    return float(centres[criterion.argmax()])


@public(
    "filters", module="skimage.filters.thresholding", differs="a float; NaN is ignored; each number of a mask has its bin",
    accel=Terms("integers", scalar=np.int64)
)
@of_any_library
def threshold_isodata(
    image: ArrayLike | None = None,
    nbins: int = 256,
    return_all: bool = False,
    *,
    hist: npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
) -> float | Array:
    """The threshold midway between the means of both classes, of Ridler and Calvard (``skimage.filters.threshold_isodata``).

    Parameters
    ----------
    image, nbins, hist
        As of `threshold_otsu`.
    return_all : bool, optional
        An array of all thresholds that are midway within the width of a bin, instead of the lowest.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> from horus_image.filters import threshold_isodata
    >>> threshold_isodata([[10, 12, 11, 200, 210, 205]])
    108.0
    """
    counts, centres = _counted("threshold_isodata", image, nbins, hist)
    found = centres
    if len(centres) > 1:
        below, sums = np.cumsum(counts), np.cumsum(counts * centres)
        above = below[-1] - below
        means = (sums[:-1] / below[:-1] + (sums[-1] - sums[:-1]) / above[:-1]) / 2.0
        away = means - centres[:-1]
        found = centres[:-1][(away >= 0) & (away < centres[1] - centres[0])]
    return found if return_all else float(found[0])


@public(
    "filters", module="skimage.filters.thresholding", differs="a float; NaN is ignored; each number of a mask has its bin",
    accel=Terms("integers", scalar=np.int64)
)
@of_any_library
def threshold_minimum(
    image: ArrayLike | None = None,
    nbins: int = 256,
    max_num_iter: int = 10000,
    *,
    hist: npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
) -> float:
    """The least frequent brightness between the two most frequent ones of a smoothed histogram (``skimage.filters.threshold_minimum``).

    Parameters
    ----------
    image, nbins, hist
        As of `threshold_otsu`.
    max_num_iter : int, optional
        How often the histogram is smoothed at most, until two maxima are left.

    Returns
    -------
    float

    Raises
    ------
    RuntimeError
        If not two maxima are left.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.filters import threshold_minimum
    >>> threshold_minimum(hist=np.array([1, 4, 9, 4, 1, 0, 1, 4, 8, 4, 1]))
    5.0
    """
    if max_num_iter < 1:
        raise ValueError(f"threshold_minimum: max_num_iter is {max_num_iter}; it must be positive")
    counts, centres = _counted("threshold_minimum", image, nbins, hist)
    tops = np.zeros(0, np.int64)
    for step in range(max_num_iter):
        wide = np.pad(counts, 1, mode="edge").astype(np.float64)
        counts = ((wide[:-2] + wide[1:-1] + wide[2:]) / 3.0).astype(np.float32)
        # Where counts fall after they last rose, or from the start.
        slopes = np.sign(np.diff(counts))
        places = np.flatnonzero(slopes)
        falls = slopes[places] < 0
        tops = places[falls & ~np.concatenate([[False], falls[:-1]])] if len(places) else places
        if len(tops) < 3:
            break
    if len(tops) != 2:
        raise RuntimeError("Unable to find two maxima in histogram")
    if step == max_num_iter - 1:
        raise RuntimeError("Maximum iteration reached for histogram smoothing")
    first, last = tops
    return float(centres[first + np.argmin(counts[first : last + 1])])


_MOST_SQUARE: Final = 1 << 12
"""Bins of which all pairs are compared."""


@public("filters", module="skimage.filters.thresholding")
@of_any_library
def threshold_multiotsu(
    image: ArrayLike | None = None,
    classes: int = 3,
    nbins: int = 256,
    *,
    hist: npt.ArrayLike | tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
) -> Array:
    """The thresholds that part the pixels into classes that differ most (``skimage.filters.threshold_multiotsu``).

    Parameters
    ----------
    image : array_like or Image, optional
        All its pixels are counted, those of all channels together. It is computed at the call.
    classes : int, optional
        Number of classes, at least 2.
    nbins : int, optional
        Bins of the histogram of floats; of integers each number has its own, up to 4096.
    hist : array or pair of arrays, optional
        Counts, and the centres of their bins, instead of an image.

    Returns
    -------
    ndarray
        One threshold less than there are classes.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.filters import threshold_multiotsu
    >>> threshold_multiotsu(np.array([[1, 2, 1, 90, 91, 92, 200, 201]], np.uint8))
    array([ 2, 92])
    """
    if classes < 2:
        raise ValueError(f"threshold_multiotsu: {classes} classes; there are at least 2")
    counts, centres = _counted("threshold_multiotsu", image, nbins, hist)
    share = counts if hist is not None else (counts / counts.sum(dtype=np.float64)).astype(np.float32)
    filled = np.flatnonzero(share)
    if len(filled) < classes:
        raise ValueError(f"threshold_multiotsu: {len(filled)} different values in bins cannot be thresholded in {classes} classes")
    if len(filled) > classes:
        if len(share) > _MOST_SQUARE:
            raise NotImplementedError(f"threshold_multiotsu: a histogram of {len(share)} bins; the limit is {_MOST_SQUARE}: convert to floats")
        filled = np.array([*_most_different(_between(share), classes), -1])
    found: Array = centres[filled[:-1]]
    return found


def _between(share: Array) -> Array:
    """The square of the sum of numbers over the sum of shares, of the bins from one to another, in ``float32``, as there; that of the first alone
    is 0."""
    numbers = np.arange(len(share), dtype=np.float32)
    numbers[0] = 1.0
    mass, moment = (np.concatenate([[np.float32(0)], np.cumsum(part, dtype=np.float32)]) for part in (share, numbers * share))
    masses, moments = (part[np.newaxis, 1:] - part[:-1, np.newaxis] for part in (mass, moment))
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.where(masses > 0, moments * moments / masses, np.float32(0))
    found[0, 0] = 0.0
    return found


def _most_different(between: Array, classes: int) -> tuple[int, ...]:
    """The last bins of all classes but one whose sum is the largest: the first of equal ones, by a sum in the order that it has there."""
    first, last = between[0, :-1], between[1:, -1]
    if classes == 2:
        return (int((first + last).argmax()),)
    ends = np.arange(len(first))
    # Of the two last ends the second follows the first.
    middle = np.where(ends > ends[:, np.newaxis], between[1:, :-1], -np.float32(np.inf))
    best, found = np.float32(0), tuple(range(classes - 1))
    for before in itertools.combinations(range(len(first)), classes - 3):
        sums = np.broadcast_to(last, middle.shape)
        if before:
            sums = sums + first[before[0]]
            for one, other in itertools.pairwise(before):
                sums = sums + middle[one, other]
            sums = sums + middle[before[-1], :, np.newaxis] + middle
        else:
            sums = sums + first[:, np.newaxis] + middle
        most = sums.max()
        if most > best:
            best, found = most, (*before, *map(int, np.unravel_index(sums.argmax(), sums.shape)))
    return found


@public("filters", module="skimage.filters.thresholding", rust="mean", accel=Terms("numbers double finite", (0.0, 1e-12), np.float64))
@of_any_library
def threshold_mean(image: ArrayLike) -> float:
    """The mean of all pixels, those of all channels together (``skimage.filters.threshold_mean``).

    Examples
    --------
    >>> from horus_image.filters import threshold_mean
    >>> threshold_mean([[10, 12, 11, 200, 210, 205]])
    108.0
    """
    given = Given("threshold_mean", image, (1, 2, 3))
    return _horus.reduce(as_numbers(given.image), "mean")


@public(
    "filters", module="skimage.filters.thresholding", differs="a float; NaN is ignored; each number of a mask has its bin",
    accel=Terms("integers", scalar=np.int64)
)
@of_any_library
def threshold_triangle(image: ArrayLike, nbins: int = 256) -> float:
    """The brightness whose count is farthest below a line from the highest count to the longer end of the histogram
    (``skimage.filters.threshold_triangle``).

    Parameters
    ----------
    image, nbins
        As of `threshold_otsu`.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.filters import threshold_triangle
    >>> threshold_triangle(np.repeat([0, 1, 2, 3, 4, 9], [40, 30, 3, 2, 1, 1]))
    2.0
    """
    counts, centres = histogram(Given("threshold_triangle", image, (1, 2, 3)), int(nbins))
    counts = counts.astype(np.int64)
    last, top = len(counts) - 1, int(np.argmax(counts))
    if not last:
        return float(centres[0])
    flip = top < last - top
    if flip:
        counts, top = counts[::-1], last - top
    at, height = np.arange(top), counts[top]
    # In units of the line, as there, whose roundings decide between what is as far.
    length = np.sqrt(height**2 + top**2)
    level = int(np.argmax(height / length * at - top / length * counts[:top]))
    return float(centres[last - level if flip else level])


@public("filters", module="skimage.filters.thresholding", accel=Terms("integers unguided", (0.0, 1e-9), np.float64))
@of_any_library
def threshold_li(
    image: ArrayLike,
    *,
    tolerance: float | None = None,
    initial_guess: float | Callable[[Array], float] | None = None,
    iter_callback: Callable[[float], Any] | None = None,
) -> float:
    """The threshold of the least cross entropy, found step by step (``skimage.filters.threshold_li``).

    Parameters
    ----------
    image : array_like or Image
        It is computed at the call. Pixels that are no finite numbers are ignored. Floats are sorted by the host.
    tolerance : float, optional
        Change of the threshold that ends the iteration; by default half the smallest difference of two pixels.
    initial_guess : float or callable, optional
        The initial threshold, or a function of all pixels minus the smallest that returns it; by default their mean.
    iter_callback : callable, optional
        Is called with the threshold at each step.

    Returns
    -------
    float

    Examples
    --------
    >>> from horus_image.filters import threshold_li
    >>> round(threshold_li([[10, 12, 11, 200, 210, 205]]), 2)
    46.79
    """
    if tolerance is not None and tolerance < 0:
        raise ValueError(f"threshold_li: tolerance is {tolerance}; it must not be negative")
    given = Given("threshold_li", image, (1, 2, 3))
    if given.dtype.kind in "iub":
        counts, centres = histogram(given, 256)
        values, numbers = (centres - centres[0]).astype(np.float64), counts.astype(np.float64)
        lowest = float(centres[0])
        kept = numbers > 0
        values, numbers = values[kept], numbers[kept]
        closest = 0.5
    else:
        pixels = given.image.compute().astype(np.float64).ravel()
        pixels = np.sort(pixels[~np.isnan(pixels)])
        if not pixels.size or pixels[0] == pixels[-1]:
            return float(pixels[0]) if pixels.size else float("nan")
        pixels = pixels[np.isfinite(pixels)]
        if not pixels.size:
            return 0.0
        lowest = float(pixels[0])
        values, numbers = pixels - lowest, np.ones(len(pixels))
        apart = np.diff(values)
        closest = float(apart[apart > 0].min()) / 2 if (apart > 0).any() else 0.0
    if len(values) == 1 or values[-1] == 0.0:
        return lowest
    return lowest + _least_entropy(values, numbers, lowest, tolerance or closest, initial_guess, iter_callback)


def _least_entropy(
    values: Array, numbers: Array, lowest: float, tolerance: float, guess: Any, watch: Callable[[float], Any] | None
) -> float:
    """Li's iteration over sorted values from 0 on, and how often each occurs."""
    counts, sums = np.cumsum(numbers), np.cumsum(values * numbers)
    if guess is None:
        following = float(sums[-1] / counts[-1])
    elif callable(guess):
        following = float(guess(np.repeat(values, numbers.astype(np.int64))))
    elif isinstance(guess, numbers_of.Real):
        following = float(guess) - lowest
        if not 0 < following < values[-1]:
            raise ValueError(
                "The initial guess for threshold_li must be within the range of the image. "
                f"Got {guess!r} for image min {lowest} and max {lowest + float(values[-1])}."
            )
    else:
        raise TypeError(
            "Incorrect type for `initial_guess`; should be a floating point value, or a function mapping an array to a floating point value."
        )
    threshold = -2.0 * tolerance
    while True:
        if watch is not None:
            watch(following + lowest)
        if not abs(following - threshold) > tolerance:
            return following
        threshold = following
        # Number of values not above the threshold.
        at = int(np.searchsorted(values, threshold, side="right"))
        if not 0 < at < len(values):
            return following
        back = sums[at - 1] / counts[at - 1]
        if back == 0.0:
            return following
        fore = (sums[-1] - sums[at - 1]) / (counts[-1] - counts[at - 1])
        following = float((back - fore) / (np.log(back) - np.log(fore)))


def _sizes(given: Given, size: Any, what: str) -> list[int]:
    sizes = list(size) if isinstance(size, Iterable) else [size] * given.value.ndim
    if len(sizes) != given.value.ndim:
        raise ValueError(f"{given.name}: {len(sizes)} sizes for {given.value.ndim} axes")
    if any(one % 2 == 0 for one in sizes):
        raise ValueError(f"{given.name}: {what} must be odd; got {size}")
    check_reach(max(sizes) // 2)
    return [int(one) for one in sizes]


def _plane_moments(core: _horus.Image, height: int, width: int) -> tuple[_horus.Image, _horus.Image]:
    """Mean and variance of the rectangle around each pixel, by its own mean: nothing cancels where pixels are large."""
    window = ((height, width), (height // 2, width // 2), "mirror", 0.0)
    return _horus.box_mean(core, *window), _horus.box_variance(core, *window)


def _across_levels(count: int, moments: tuple[_horus.Image, _horus.Image]) -> tuple[_horus.Image, _horus.Image]:
    """Mean and variance over `count` levels, of those of each level."""
    add = functools.partial(_horus.binary, "add")
    share = functools.partial(_horus.binary, "mul")

    def levels(of: _horus.Image) -> list[_horus.Image]:
        return [_horus.shift(of, (-by, 0, 0), "mirror", 0.0) if by else of for by in range(-(count // 2), count // 2 + 1)]

    means, within = (levels(of) for of in moments)
    mean = share(functools.reduce(add, means), 1.0 / count)
    between = (_horus.unary("square", _horus.binary("sub", one, mean)) for one in means)
    return mean, share(functools.reduce(add, map(add, between, within)), 1.0 / count)


def _moments(given: Given, window: Any) -> tuple[Image, Image]:
    """Mean and standard deviation of the window around each pixel, in ``float64``, mirrored about the edge pixels."""
    sizes = _sizes(given, window, "window_size")
    value, _ = enter(given.image.astype(np.float64), given.name)
    assert value is not None
    depth, height, width = [1] * (3 - value.ndim) + sizes
    moments = _plane_moments(value.core, height, width)
    if depth > 1:
        moments = _across_levels(depth, moments)
    mean, variance = (given.image._with(core) for core in moments)
    return mean, applied("sqrt", variance)


_by_deviations = public(
    "filters", module="skimage.filters.thresholding", rust="examples/sauvola.rs", opencv="cv.ximgproc.niBlackThreshold",
    differs="deviations are from the mean of each window, in `float64`", accel=Terms(f"double {PIXELS}", (0.0, 1e-5))
)


@_by_deviations
@of_any_library
def threshold_niblack(image: ArrayLike, window_size: Ints = 15, k: float = 0.2) -> Pixels:
    """The local mean minus `k` times the local deviation (``skimage.filters.threshold_niblack``).

    Parameters
    ----------
    image : array_like or Image
        Taken as it is, and mirrored about its edge pixels.
    window_size : int or sequence of int, optional
        The side of the window; odd.
    k : float, optional

    Returns
    -------
    ndarray or Image
        Of ``float32`` if the input is, else of ``float64``; computed in ``float64``.

    Examples
    --------
    >>> from horus_image.filters import threshold_niblack
    >>> threshold_niblack([[0.0, 0.0, 3.0, 0.0, 0.0]], window_size=(1, 3), k=1.0).round(3)
    array([[ 0.   , -0.414, -0.414, -0.414,  0.   ]])
    """
    given = Given("threshold_niblack", image, (1, 2, 3))
    mean, deviation = _moments(given, window_size)
    return given.back((mean - deviation * float(k)).astype(float_type(given.dtype)))


@_by_deviations
@of_any_library
def threshold_sauvola(image: ArrayLike, window_size: Ints = 15, k: float = 0.2, r: float | None = None) -> Pixels:
    """The local mean, lowered where the deviation is small (``skimage.filters.threshold_sauvola``).

    Arguments and result are those of `threshold_niblack`; `r` is the largest deviation, by default half the range of the image's type
    (of floats, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.filters import threshold_sauvola
    >>> float(threshold_sauvola(np.full((3, 3), 0.5), window_size=3)[1, 1])
    0.4
    """
    given = Given("threshold_sauvola", image, (1, 2, 3))
    if r is None:
        if given.dtype.kind in "iu":
            information = np.iinfo(given.dtype)
            r = 0.5 * (float(information.max) - float(information.min))
        else:
            r = 1.0
    if not r:
        raise ValueError("threshold_sauvola: r is 0; it must not be 0")
    mean, deviation = _moments(given, window_size)
    found = mean * ((deviation * (1.0 / float(r)) - 1.0) * float(k) + 1.0)
    return given.back(found.astype(float_type(given.dtype)))


@public(
    "filters", module="skimage.filters.thresholding", rust="`a.gauss(s) - offset`", opencv="cv.adaptiveThreshold", differs="no `generic`",
    accel=Terms(PIXELS, SUMS)
)
@of_any_library
def threshold_local(
    image: ArrayLike,
    block_size: Ints = 3,
    method: str = "gaussian",
    offset: float = 0,
    mode: Border = "reflect",
    param: Float | None = None,
    cval: float = 0,
) -> Pixels:
    """A local mean or median, minus `offset` (``skimage.filters.threshold_local``).

    Parameters
    ----------
    image : array_like or Image
    block_size : int or sequence of int, optional
        The side of the neighbourhood; odd.
    method : {'gaussian', 'mean', 'median'}, optional
        ``'generic'``, a function of Python for each pixel, raises `NotImplementedError`.
    offset : float, optional
    mode, cval : optional
        Border mode, as in `horus_image.ndimage`.
    param : float, optional
        The sigma of ``'gaussian'``, by default a sixth of the block.

    Returns
    -------
    ndarray or Image
        Of ``float32`` if the input is, else of ``float64``.

    Examples
    --------
    >>> from horus_image.filters import threshold_local
    >>> threshold_local([[0.0, 0.0, 3.0, 0.0, 0.0]], (1, 3), "mean")
    array([[0., 1., 1., 1., 0.]])
    """
    given = Given("threshold_local", image, (1, 2, 3))
    sizes = _sizes(given, block_size, "block_size")
    pixels = given.floats()
    if method == "gaussian":
        sigma = [(size - 1) / 6.0 for size in sizes] if param is None else param
        found = gaussian(pixels, sigma, 0, mode, cval)
    elif method == "mean":
        found = image_of(uniform_filter(pixels, sizes, mode=mode, cval=cval))
    elif method == "median":
        found = image_of(median_filter(pixels, tuple(sizes), mode=mode, cval=cval))
    elif method == "generic":
        raise NotImplementedError("threshold_local: 'generic' calls a function of Python for each pixel")
    else:
        raise ValueError("Invalid method specified. Please use `gaussian`, `mean`, or `median`.")
    return given.back(found - float(offset))
