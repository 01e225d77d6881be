"""Equalised and matched histograms, with the rules of scikit-image 0.26."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from . import _horus
from ._dtype import cast, truth
from ._floats import Given, extreme, float_type
from ._foreign import dtype_of, of_any_library
from ._image import Array, Image, asarray, where
from ._public import public
from ._thresholds import histogram
from .typing import ArrayLike, Ints, Pixels

_LEVELS: Final = 1 << 14
"""Grey levels of adaptive equalisation."""


def _looked_up(given: Given, image: Image, table: Array, dtype: np.dtype[Any] | None = None) -> Image:
    """The entries of a table for each value that integers of 8 or 16 bits may have, in order."""
    code = "f32" if (dtype or float_type(given.dtype)) == np.float32 else "f64"
    return image._with(_horus.lookup(image._core, np.asarray(table, np.float64), code))


def _is_narrow(image: Image) -> bool:
    return image._core.dtype in ("u8", "u16", "i8", "i16")


def _all_values(dtype: np.dtype[Any]) -> Array:
    return np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1)


@public("exposure", rust="`histogram`, `lookup`", opencv="cv.equalizeHist", differs="no `mask`")
@of_any_library
def equalize_hist(image: ArrayLike, nbins: int = 256, mask: ArrayLike | None = None) -> Pixels:
    """Each pixel becomes the share of pixels that are not brighter (``skimage.exposure.equalize_hist``).

    Parameters
    ----------
    image : array_like or Image
        All its pixels are counted, those of all channels together.
    nbins : int, optional
        Bins of the histogram of floats, between whose centres shares are interpolated; of integers each number has its own.
    mask : None
        Not supported.

    Returns
    -------
    array or Image
        Floats from 0 to 1.

    Examples
    --------
    >>> from horus_image import exposure
    >>> exposure.equalize_hist([[0.0, 0.25, 0.5, 1.0]], nbins=2)
    array([[0.5 , 0.5 , 0.75, 1.  ]])
    """
    if mask is not None:
        raise NotImplementedError("equalize_hist: a mask is not supported")
    given = Given("equalize_hist", image, (1, 2, 3))
    counts, centres = histogram(given, int(nbins))
    if given.dtype.kind == "f" and len(centres) == 1:
        # Floats that are all alike are in the middle of a range of 1, as there.
        counts, edges = np.histogram(centres.astype(given.dtype), int(nbins))
        centres = (edges[:-1] + edges[1:]) / 2.0
    share = counts.cumsum() / float(counts.sum())
    if _is_narrow(given.image):
        return given.back(_looked_up(given, given.image, np.interp(_all_values(given.dtype), centres, share)))
    step = float(centres[1] - centres[0]) if len(centres) > 1 else 1.0
    numbers = given.image.astype(np.float64)
    return given.back(_interpolated(given, share, (numbers - float(centres[0])) * (1.0 / step)))


def _interpolated(given: Given, row: Array, columns: Image) -> Image:
    """A row of numbers at positions, linearly, beyond its ends the first and the last."""
    core = _horus.Image.of_array(columns.session._core, row[None], "f64", False)
    kind = float_type(given.dtype)
    planes = [columns] if not columns.channels else [columns.channel(k) for k in range(columns._core.shape[3])]
    # A volume also has levels; the row is one.
    lead = 2 if columns._core.shape[0] > 1 else 1
    found = [_horus.remap(core, [(plane * 0.0)._core] * lead + [plane._core], 1, "nearest", 0.0) for plane in planes]
    stacked = columns._with(_horus.stack(found, True) if columns.channels else found[0])
    return stacked if kind == np.float64 else stacked.astype(kind)


@public("exposure", opencv="cv.createCLAHE", differs="of planes: unsigned integers of 8 and 16 bits, and floats")
@of_any_library
def equalize_adapthist(image: ArrayLike, kernel_size: Ints | None = None, clip_limit: float = 0.01, nbins: int = 256) -> Pixels:
    """Histograms of tiles equalised, with limited contrast (``skimage.exposure.equalize_adapthist``, CLAHE).

    Parameters
    ----------
    image : array_like or Image
        Unsigned integers of 8 or 16 bits, or floats from -1 to 1, of two axes. Of colours, equalise the lightness.
    kernel_size : int or pair of int, optional
        Rows and columns of a tile; an eighth of the image by default.
    clip_limit : float, optional
        The largest share of a tile's pixels in a bin of its histogram; what is more goes to all bins. 0 sets no limit.
    nbins : int, optional
        Bins of a histogram.

    Returns
    -------
    array or Image
        Floats from 0 to 1: scikit-image's, to the bit.

    Notes
    -----
    The histograms of all tiles are counted in one pass, and each pixel is interpolated between the results of the four tiles around it in
    another.
    """
    given = Given("equalize_adapthist", image, (2,))
    given.gray()
    height, width = given.image.shape
    if kernel_size is None:
        size = [max(height // 8, 1), max(width // 8, 1)]
    else:
        size = [int(n) for n in kernel_size] if isinstance(kernel_size, Iterable) else [int(kernel_size)] * 2
    if len(size) != 2 or min(size) < 1:
        raise ValueError(f"Incorrect value of `kernel_size`: {kernel_size}")
    if not 1 <= int(nbins) <= _LEVELS:
        raise ValueError(f"equalize_adapthist: {nbins} bins; the range is 1 to {_LEVELS}")
    bins = _binned(given, int(nbins))
    tiles = [math.ceil(n / k) for n, k in zip((height, width), size, strict=True)]
    counts = _tile_counts(bins, tiles, size, int(nbins))
    limit = max(int(clip_limit * size[0] * size[1]), 1) if clip_limit > 0.0 else size[0] * size[1]
    clipped = np.stack([_clipped(row, limit) for row in counts])
    levels = np.minimum(np.floor(clipped.cumsum(axis=1) * ((_LEVELS - 1) / (size[0] * size[1]))), _LEVELS - 1)
    result = _between_tiles(bins, levels.reshape(*tiles, int(nbins)), size).astype(float_type(given.dtype))
    low, high = extreme(result, "min"), extreme(result, "max")
    spread = where(high > low, high - low, 1.0)
    # As there, an image of one level is white unless it is black.
    return given.back(where(high > low, (result - low) / spread, result.clip(0.0, 1.0)))


def _binned(given: Given, nbins: int) -> Image:
    """The bin of each pixel, once the image is stretched over all levels."""
    image = given.image
    if given.dtype.kind == "f":
        low, high = _horus.min_max(image._core)
        if not (low >= -1.0 and high <= 1.0):
            raise ValueError("Images of type float must be between -1 and 1.")
        image = (given.floats() * 65535.0).clip(0.0, 65535.0).astype(np.uint16)
    elif given.dtype not in (np.uint8, np.uint16):
        raise NotImplementedError(f"equalize_adapthist of {given.dtype}; of unsigned integers of 8 or 16 bits, or floats")
    low, high = _horus.min_max(image._core)
    values = _all_values(image.dtype)
    if high > low:
        stretched = np.round((np.clip(values, low, high) - low) / (high - low) * (_LEVELS - 1))
    else:
        # As there: an image of one value is clipped to the levels.
        stretched = np.clip(values * (257 if image.dtype == np.uint8 else 1), 0, _LEVELS - 1)
    table = stretched.astype(np.int64) // (1 + _LEVELS // nbins)
    return image._with(_horus.lookup(image._core, table.astype(np.float64), "u16"))


def _tile_counts(bins: Image, tiles: list[int], size: list[int], nbins: int) -> Array:
    """The histogram of each tile, a row; tiles beyond the lower and the right edge hold mirrored pixels."""
    shape = [n * k for n, k in zip(tiles, size, strict=True)]
    beyond = [more - n for more, n in zip(shape, bins.shape, strict=True)]
    core = bins._core
    if any(beyond):
        core = _horus.pad(core, (0, beyond[0]), (0, beyond[1]), "mirror", 0.0)
    rows, columns = (np.arange(n, dtype=np.int32) // k for n, k in zip(shape, size, strict=True))
    labels = _grid(bins, rows * tiles[1], columns)
    counts = _horus.histogram_by_label(core, labels._core, tiles[0] * tiles[1], nbins, (-0.5, nbins - 0.5))
    return counts.astype(np.int64)


def _grid(image: Image, rows: Array, columns: Array) -> Image:
    """The sum of a number for each row and one for each column."""
    return asarray(rows[:, None], session=image.session) + asarray(columns[None], session=image.session)


def _clipped(counts: Array, limit: int) -> Array:
    """A histogram without more than `limit` in a bin: what is more goes to all bins alike, then, one each, to bins at equal distances."""
    more = int((counts - limit).clip(0).sum())
    counts = np.minimum(counts, limit)
    each = more // counts.size
    upper = limit - each
    low = counts < upper
    more -= int(low.sum()) * each
    counts[low] += each
    # As there, also those that have just been raised.
    middle = (counts >= upper) & (counts < limit)
    more -= int((limit - counts[middle]).sum())
    counts[middle] = limit
    while more > 0:
        before = more
        for first in range(counts.size):
            step = max(1, np.count_nonzero(counts < limit) // more)
            every = counts[first::step]
            under = every < limit
            every[under] += 1
            more -= np.count_nonzero(under)
            if more <= 0:
                break
        if more == before:
            break
    return counts


def _between_tiles(bins: Image, levels: Array, size: list[int]) -> Image:
    """The level of each pixel's bin, linearly between the four tiles around it, with scikit-image's roundings: products of `float64`, added up
    in `float32`, and cut to whole levels.

    The levels are an image with a row for each row of tiles; its columns are bins, and in each bin the tiles of a row. The outermost
    tiles are there twice.
    """
    doubled = np.pad(levels, [(1, 1), (1, 1), (0, 0)], mode="edge")
    down, along, nbins = doubled.shape
    table = doubled.transpose(0, 2, 1).reshape(down, nbins * along).astype(np.float32)
    core = _horus.Image.of_array(bins.session._core, table, "f32", False)
    (y, below), (x, after) = (np.divmod(np.arange(n) + k // 2, k) for n, k in zip(bins.shape, size, strict=True))
    shares = [[1.0 - part / k, part / k] for part, k in zip((below, after), size, strict=True)]
    first, total = bins.astype(np.float64) * float(along), None
    for row in (0, 1):
        for column in (0, 1):
            at = _grid(bins, y + float(row), 0.0 * x), first + asarray((x + float(column))[None], session=bins.session)
            level = bins._with(_horus.remap(core, [at[0]._core, at[1]._core], 0, "nearest", 0.0))
            share = asarray(shares[0][row][:, None], session=bins.session) * asarray(shares[1][column][None], session=bins.session)
            part = (level.astype(np.float64) * share).astype(np.float32)
            total = part if total is None else total + part
    assert total is not None
    return bins._with(_horus.unary("floor", total._core))


@public("exposure", rust="`histogram`, `lookup`")
@of_any_library
def match_histograms(image: ArrayLike, reference: ArrayLike, *, channel_axis: int | None = None) -> Pixels:
    """Pixels changed so that their histogram is that of another image (``skimage.exposure.match_histograms``).

    Parameters
    ----------
    image : array_like or Image
        Integers of 8 or 16 bits are counted; others, and floats, are sorted on the host.
    reference : array_like or Image
        With as many axes, but any size.
    channel_axis : int, optional
        The axis of channels, each of which is matched with that of the reference.

    Returns
    -------
    array or Image
        ``float64``; with channels, the type of `image`, cut to whole numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image import exposure
    >>> exposure.match_histograms(np.array([[0, 1, 2, 3]], np.uint8), np.array([[0, 10, 20, 30]], np.uint8))
    array([[ 0., 10., 20., 30.]])
    """
    name = "match_histograms"
    given = Given(name, image, (1, 2, 3), channel_axis)
    other = Given(name, reference, (1, 2, 3), channel_axis)
    if given.value.ndim != other.value.ndim:
        raise ValueError("Image and reference must have the same number of channels.")
    if channel_axis is None:
        given.gray()
        other.gray()
        return given.back(_matched(given, given.image, other.image))
    count = given.image._core.shape[3]
    if count != other.image._core.shape[3]:
        raise ValueError("Number of channels in the input image and reference image must match!")
    parts = [_matched(given, given.image.channel(k), other.image.channel(k)) for k in range(count)]
    cut = [truth(part._core) if given.dtype.kind == "b" else cast(part._core, part.dtype, given.dtype) for part in parts]
    found = given.back(given.image._with(_horus.stack(cut, True)))
    if isinstance(found, Image):
        return found
    # As there: numbers of the image's type, those of float16 in float32.
    kind = dtype_of(image)
    found = found.astype(kind, copy=False)
    return found.astype(float_type(given.dtype), copy=False) if kind.kind == "f" else found


def _counted(image: Image) -> tuple[Array, Array]:
    """The values of an image, in order, and how often each occurs."""
    if not _is_narrow(image):
        return np.unique(image.compute(), return_counts=True)
    values = _all_values(image.dtype)
    counts = _horus.histogram(image._core, len(values), values[0] - 0.5, values[-1] + 0.5)
    filled = np.flatnonzero(counts)
    return values[filled], counts[filled]


def _matched(given: Given, image: Image, reference: Image) -> Image:
    values, wanted = _counted(reference)
    quantiles = wanted.cumsum() / wanted.sum()
    if _is_narrow(image):
        ours, counts = _counted(image)
        table = np.zeros(len(_all_values(image.dtype)))
        table[ours - np.iinfo(image.dtype).min] = np.interp(counts.cumsum() / counts.sum(), quantiles, values)
        return _looked_up(given, image, table)
    pixels = image.compute()
    _, at, counts = np.unique(pixels, return_inverse=True, return_counts=True)
    found = np.interp(counts.cumsum() / counts.sum(), quantiles, values)[at].reshape(pixels.shape)
    return asarray(found.astype(float_type(given.dtype)), session=image.session)
