"""Equalised and matched histograms, with the rules of scikit-image 0.26."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from . import _horus
from ._dtype import cast, truth
from ._floats import Given, float_type
from ._foreign import dtype_of, of_any_library
from ._image import Array, Image, asarray
from ._public import public
from ._thresholds import histogram
from .typing import ArrayLike, Ints, Pixels


def _looked_up(given: Given, image: Image, table: Array, dtype: np.dtype[Any] | None = None) -> Image:
    """The entries of a table for each value that integers of 8 or 16 bits may have, in order."""
    code = "f32" if (dtype or float_type(given.dtype)) == np.float32 else "f64"
    return image._with(_horus.lookup(image._core, np.asarray(table, np.float64), code))


def _is_narrow(image: Image) -> bool:
    return image._core.dtype in ("u8", "u16", "i8", "i16")


def _all_values(dtype: np.dtype[Any]) -> Array:
    return np.arange(np.iinfo(dtype).min, np.iinfo(dtype).max + 1)


@public("exposure", rust="equalize_hist", opencv="cv.equalizeHist", differs="no `mask`")
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


@public("exposure", rust="equalize_adapthist", opencv="cv.createCLAHE", differs="of planes: unsigned integers of 8 and 16 bits, and floats")
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
    if given.dtype.kind != "f" and given.dtype not in (np.uint8, np.uint16):
        raise NotImplementedError(f"equalize_adapthist of {given.dtype}; of unsigned integers of 8 or 16 bits, or floats")
    limit = clip_limit if clip_limit > 0.0 else 0.0
    result = given.image._with(_horus.equalize_adapthist(given.image._core, (size[0], size[1]), limit, int(nbins)))
    return given.back(result.astype(float_type(given.dtype)))


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


def counted(image: Image) -> tuple[Array, Array]:
    """The values of an image, in order, and how often each occurs."""
    if not _is_narrow(image):
        return np.unique(image.compute(), return_counts=True)
    values = _all_values(image.dtype)
    counts = _horus.histogram(image._core, len(values), values[0] - 0.5, values[-1] + 0.5)
    filled = np.flatnonzero(counts)
    return values[filled], counts[filled]


def _matched(given: Given, image: Image, reference: Image) -> Image:
    values, wanted = counted(reference)
    quantiles = wanted.cumsum() / wanted.sum()
    if _is_narrow(image):
        ours, counts = counted(image)
        table = np.zeros(len(_all_values(image.dtype)))
        table[ours - np.iinfo(image.dtype).min] = np.interp(counts.cumsum() / counts.sum(), quantiles, values)
        return _looked_up(given, image, table)
    pixels = image.compute()
    _, at, counts = np.unique(pixels, return_inverse=True, return_counts=True)
    found = np.interp(counts.cumsum() / counts.sum(), quantiles, values)[at].reshape(pixels.shape)
    return asarray(found.astype(float_type(given.dtype)), session=image.session)
