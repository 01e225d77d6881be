"""Images in other sizes, means of blocks and integral images, with the rules of scikit-image 0.26."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import _horus
from ._floats import Given, extreme, float_type, gaussian, image_of
from ._foreign import DeviceArray, dtype_of, of_any_library, read
from ._image import Array, Image, asarray, where
from ._interpolation import zoom
from ._operators import larger, smaller
from ._public import public
from ._values import shape_of
from .typing import ArrayLike, Float, Floats, Ints, Pixels

_AXES: Final = (1, 2, 3)
_MODES: Final = {"constant": "grid-constant", "edge": "nearest", "symmetric": "reflect", "reflect": "mirror", "wrap": "grid-wrap"}
"""SciPy's names of the border modes of ``numpy.pad``, which scikit-image uses."""


def border_of(name: str, mode: str) -> Any:
    """SciPy's name of a border mode."""
    if mode not in _MODES:
        raise ValueError(f"{name}: mode is {mode!r}; modes are {', '.join(_MODES)}")
    return _MODES[mode]


def order_of(name: str, order: int | None, dtype: np.dtype[Any]) -> int:
    """The order of splines: by default 0 of masks, else 1."""
    if order is None:
        return 0 if dtype.kind == "b" else 1
    order = index(order)
    if not 0 <= order <= 5:
        raise ValueError("Spline interpolation order has to be in the range 0-5.")
    if order and dtype.kind == "b":
        raise ValueError(f"{name}: masks are not interpolated; order must be 0, or the image converted")
    return order


def clipped(pixels: Image, found: Image, mode: str, cval: float) -> Image:
    """Pixels within the range of those that they were made of, and of what lies beyond the edges if some of it is there."""
    low, high = extreme(pixels, "min"), extreme(pixels, "max")
    if mode == "constant":
        here = (extreme(found, "min") <= cval) & (extreme(found, "max") >= cval)
        low, high = where(here, smaller(low, cval), low), where(here, larger(high, cval), high)
    # NaN stays.
    return where(found < low, low, where(found > high, high, found))


def _resized(
    given: Given,
    extents: Sequence[float],
    order: int | None,
    mode: str,
    cval: float,
    clip: bool,
    preserve_range: bool,
    anti_aliasing: bool | None,
    anti_aliasing_sigma: Floats | None,
) -> Image:
    """The image with other extents of all axes but channels."""
    name, have = given.name, given.value.shape
    if min(extents) < 1:
        raise ValueError(f"{name}: a result of shape {tuple(extents)} has no pixels")
    if anti_aliasing is None:
        whole = given.dtype.kind in "iu" and order == 0
        anti_aliasing = given.dtype.kind != "b" and not whole and any(a < b for a, b in zip(extents, have, strict=True))
    elif anti_aliasing and given.dtype.kind == "b":
        raise ValueError("anti_aliasing must be False for boolean images")
    factors = np.divide(have, extents)
    degree, border = order_of(name, order, given.dtype), border_of(name, mode)
    pixels = given.image if not degree else given.floats() if preserve_range else given.unit()
    found = pixels
    if anti_aliasing:
        sigma = np.maximum(0, (factors - 1) / 2)
        if anti_aliasing_sigma is not None:
            sigma = np.atleast_1d(np.asarray(anti_aliasing_sigma))
            if len(sigma) not in (1, len(factors), len(factors) + bool(given.value.channels)):
                raise ValueError(f"{name}: anti_aliasing_sigma of {len(sigma)} axes, of an image of {len(factors)}")
            sigma = sigma[: len(factors)] * np.ones_like(factors)
            if (sigma < 0).any():
                raise ValueError("Anti-aliasing standard deviation must be greater than or equal to zero")
            if ((sigma > 0) & (factors <= 1)).any():
                warnings.warn("Anti-aliasing standard deviation greater than zero but not down-sampling along all axes", stacklevel=5)
        found = gaussian(found, sigma.tolist(), 0, border, cval)
    found = image_of(zoom(found, tuple(1 / factor for factor in factors), None, degree, border, cval, grid_mode=True))
    # Weights of degree 1 sum to 1.
    return clipped(pixels, found, mode, float(cval)) if clip and degree and (degree > 1 or mode == "constant") else found


def whole(given: Given, order: int | None, back: Pixels) -> Pixels:
    """The nearest pixels of integers of 64 bits, which are held in floats, in their type."""
    return back.astype(given.dtype, copy=False) if isinstance(back, np.ndarray) and order == 0 else back


def _few_channels(image: Any, shape: tuple[int, ...]) -> int | None:
    """The last axis of an array that keeps its length, if it is as short as that of channels is."""
    is_array = not isinstance(image, Image) and not isinstance(read(image), DeviceArray)
    return -1 if is_array and len(shape) > 2 and shape[-1] <= 4 else None


@public("transform", module="skimage.transform", rust="resize", opencv="cv.resize", differs="not to more axes")
@of_any_library
def resize(
    image: ArrayLike,
    output_shape: Ints,
    order: int | None = None,
    mode: str = "reflect",
    cval: Float = 0,
    clip: bool = True,
    preserve_range: bool = False,
    anti_aliasing: bool | None = None,
    anti_aliasing_sigma: Floats | None = None,
) -> Pixels:
    """The image with other extents, interpolated between the middles of pixels (``skimage.transform.resize``).

    Parameters
    ----------
    image : array_like or Image
        Integers become floats from 0 to 1, or -1 to 1.
    output_shape : sequence of int
        Extents of all axes, or of all but the last, which stays.
    order : int, optional
        Of splines, from 0, the nearest pixel, to 5; by default 1, of masks 0.
    mode : str, optional
        What lies beyond the edges, in the words of ``numpy.pad``: ``constant``, ``edge``, ``symmetric``, ``reflect`` or ``wrap``.
    cval : float, optional
        The constant.
    clip : bool, optional
        Keep results within the range of the image.
    preserve_range : bool, optional
        Keep numbers of integers as they are.
    anti_aliasing : bool, optional
        Smooth the image first; by default where an axis becomes shorter.
    anti_aliasing_sigma : float or sequence of float, optional
        Of the Gaussian that smooths, of arrays along all axes; by default half of what the factor is above 1.

    Returns
    -------
    ndarray or Image
        Of ``float32`` if the input is, else of ``float64``; of order 0 of the input's type.

    Examples
    --------
    >>> from horus_image.transform import resize
    >>> resize([[0.0, 1.0]], (1, 4))
    array([[0.25, 0.25, 0.75, 0.75]])
    """
    shape, extents = shape_of(image), [float(extent) for extent in np.atleast_1d(np.asarray(output_shape))]
    if len(extents) not in (len(shape), len(shape) - 1):
        raise ValueError(f"resize: an image of {len(shape)} axes and extents of {len(extents)}")
    last = extents[-1] if len(extents) == len(shape) else float(shape[-1])
    extents = [*extents[: len(shape) - 1], last]
    # A sigma that is given smooths along the last axis, too.
    axis = _few_channels(image, shape) if last == shape[-1] and anti_aliasing_sigma is None else None
    given = Given("resize", image, _AXES, axis)
    if given.value.channels:
        if last != shape[-1]:
            raise NotImplementedError(f"resize: {shape[-1]} channels into {int(last)}; channels stay")
        extents = extents[:-1]
    found = _resized(given, extents, order, mode, float(cval), clip, preserve_range, anti_aliasing, anti_aliasing_sigma)
    return whole(given, order, given.back(found, moved=True))


@public("transform", module="skimage.transform", rust="resize", opencv="cv.resize")
@of_any_library
def rescale(
    image: ArrayLike,
    scale: Floats,
    order: int | None = None,
    mode: str = "reflect",
    cval: Float = 0,
    clip: bool = True,
    preserve_range: bool = False,
    anti_aliasing: bool | None = None,
    anti_aliasing_sigma: Floats | None = None,
    *,
    channel_axis: int | None = None,
) -> Pixels:
    """The image enlarged or made smaller by a factor (``skimage.transform.rescale``).

    Parameters
    ----------
    image : array_like or Image
        Channels of an image stay.
    scale : float or sequence of float
        The factor, or one for each axis but channels.
    order, mode, cval, clip, preserve_range, anti_aliasing, anti_aliasing_sigma : optional
        As of `resize`.
    channel_axis : int, optional
        The axis of channels, which stays.

    Returns
    -------
    ndarray or Image
        As of `resize`.

    Examples
    --------
    >>> from horus_image.transform import rescale
    >>> rescale([[0.0, 1.0]], (1, 2))
    array([[0.25, 0.25, 0.75, 0.75]])
    """
    given = Given("rescale", image, _AXES, channel_axis)
    factors = np.atleast_1d(np.asarray(scale))
    if len(factors) not in (1, given.value.ndim):
        raise ValueError("Supply a single scale, or one value per spatial axis")
    extents = np.maximum(np.round(factors * np.asarray(given.value.shape)), 1).tolist()
    found = _resized(given, extents, order, mode, float(cval), clip, preserve_range, anti_aliasing, anti_aliasing_sigma)
    return whole(given, order, given.back(found, moved=True))


def _pyramid(
    name: str, image: Any, factor: Float, sigma: Any, order: int, mode: str, cval: Float, preserve_range: bool, channel_axis: int | None, grows: bool
) -> Pixels:
    if factor <= 1:
        raise ValueError("scale factor must be greater than 1")
    given = Given(name, image, _AXES, channel_axis)
    pixels = given.floats() if preserve_range else given.unit()
    width = 2 * factor / 6.0 if sigma is None else sigma
    extents = [math.ceil(factor * extent if grows else extent / float(factor)) for extent in given.value.shape]

    def smooth(pixels: Image) -> Image:
        # Smoothed with SciPy's mode of this name, as there.
        return gaussian(pixels, width, 0, mode, float(cval))

    def sized(pixels: Image) -> Image:
        return _resized(Given(name, pixels, _AXES), extents, order, mode, float(cval), True, True, False, None)

    return given.back(smooth(sized(pixels)) if grows else sized(smooth(pixels)), moved=True)


@public("transform", module="skimage.transform", rust="pyramid_down", opencv="cv.pyrDown")
@of_any_library
def pyramid_reduce(
    image: ArrayLike,
    downscale: Float = 2,
    sigma: Float | None = None,
    order: int = 1,
    mode: str = "reflect",
    cval: Float = 0,
    preserve_range: bool = False,
    *,
    channel_axis: int | None = None,
) -> Pixels:
    """The image smoothed, then made smaller (``skimage.transform.pyramid_reduce``).

    Parameters
    ----------
    image : array_like or Image
        Channels of an image stay. Integers become floats from 0 to 1, or -1 to 1, unless `preserve_range` is true.
    downscale : float, optional
        The factor, above 1. Extents are rounded up.
    sigma : float, optional
        Of the Gaussian, by default a third of the factor.
    order, cval, preserve_range : optional
        As of `resize`.
    mode : str, optional
        ``reflect``, ``constant`` or ``wrap``; smoothed with the border mode of this name of `horus_image.ndimage`, and resized with that of
        `resize`.
    channel_axis : int, optional
        The axis of channels, which stays.

    Returns
    -------
    ndarray or Image
        Of ``float32`` if the input is, else of ``float64``.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.transform import pyramid_reduce
    >>> pyramid_reduce(np.eye(9)).shape
    (5, 5)
    """
    return _pyramid("pyramid_reduce", image, downscale, sigma, order, mode, cval, preserve_range, channel_axis, False)


@public("transform", module="skimage.transform", rust="pyramid_up", opencv="cv.pyrUp")
@of_any_library
def pyramid_expand(
    image: ArrayLike,
    upscale: Float = 2,
    sigma: Float | None = None,
    order: int = 1,
    mode: str = "reflect",
    cval: Float = 0,
    preserve_range: bool = False,
    *,
    channel_axis: int | None = None,
) -> Pixels:
    """The image enlarged, then smoothed (``skimage.transform.pyramid_expand``). Arguments and result are those of `pyramid_reduce`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.transform import pyramid_expand
    >>> pyramid_expand(np.eye(9)).shape
    (18, 18)
    """
    return _pyramid("pyramid_expand", image, upscale, sigma, order, mode, cval, preserve_range, channel_axis, True)


def _sums_in(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of NumPy's sums: 64 bits of integers and masks."""
    return np.dtype(np.uint64 if dtype.kind == "u" else np.int64 if dtype.kind in "ib" else dtype)


_REDUCED: Final[dict[Callable[..., Any], str]] = {np.sum: "sum", np.mean: "mean", np.min: "min", np.max: "max", np.std: "std", np.var: "var"}
"""What tiles are reduced to, by the function of NumPy."""


def _blocks(name: str, image: Any, block_size: Any, how: str, cval: float) -> Pixels:
    """Blocks reduced to a pixel each; what they lack at the last edges is a constant."""
    shape = shape_of(image)
    sizes = [index(size) for size in block_size] if isinstance(block_size, Iterable) else [index(block_size)] * len(shape)
    if not shape:
        raise ValueError(f"{name}: a number has no blocks")
    if len(sizes) != len(shape):
        raise ValueError(f"{name}: sizes of {len(sizes)} axes, of an image of {len(shape)}")
    if min(sizes) < 1:
        raise ValueError(f"{name}: blocks of {sizes}; they have at least one pixel along each axis")
    given = Given(name, image, _AXES, _few_channels(image, shape) if sizes[-1] == 1 else None)
    extents = given.value.shape
    if len(sizes) > len(extents):
        if sizes[-1] != 1:
            raise NotImplementedError(f"{name}: blocks of several channels")
        sizes = sizes[:-1]
    if len(sizes) == 3 and sizes[0] != 1:
        raise NotImplementedError(f"{name}: blocks of several levels; they are of rows and columns")
    height, width = [1, *sizes][-2:]
    rows, columns = [1, *extents][-2:]
    kind = np.dtype(dtype_of(image).type) if given.array is not None else given.dtype
    pixels = given.image if kind.kind != "b" or how in ("min", "max") else given.image.astype(np.uint8)
    # A constant is of the image's type, as there.
    fill = float(np.asarray(cval).astype(kind))
    core = _horus.pad(pixels._core, (0, -rows % height), (0, -columns % width), "constant", fill)
    found = getattr(pixels._with(core).tiles(height, width), how)()
    found = found.astype(given.dtype) if given.dtype.kind == "f" else found
    back = given.back(found, moved=True)
    if isinstance(back, Image):
        return back
    wide = _sums_in(kind) if how == "sum" else kind if how in ("min", "max") or kind.kind == "f" else np.dtype(np.float64)
    return back.astype(wide, copy=False)


@public("transform", module="skimage.transform", rust="`tiles`, `mean`", opencv="`cv.resize` with `INTER_AREA`", differs="blocks of rows and columns")
@of_any_library
def downscale_local_mean(image: ArrayLike, factors: Ints, cval: Float = 0, clip: bool = True) -> Pixels:
    """The mean of each block (``skimage.transform.downscale_local_mean``).

    Parameters
    ----------
    image : array_like or Image
        Blocks are of rows and columns, not of levels or channels.
    factors : int or sequence of int
        Pixels of a block along each axis.
    cval : float, optional
        What blocks at the last edges lack.
    clip : bool, optional
        Changes nothing, as there.

    Returns
    -------
    ndarray or Image
        Floats.

    Examples
    --------
    >>> from horus_image.transform import downscale_local_mean
    >>> downscale_local_mean([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], (2, 2))
    array([[2.  , 1.75]])
    """
    return _blocks("downscale_local_mean", image, factors, "mean", float(cval))


@public("measure", module="skimage.measure", rust="`tiles`", differs="functions of NumPy, of which `min` and `max` ignore NaN; blocks of rows and columns")
@of_any_library
def block_reduce(
    image: ArrayLike, block_size: Ints = 2, func: Callable[..., object] = np.sum, cval: Float = 0, func_kwargs: dict[str, object] | None = None
) -> Pixels:
    """The sum of each block, or another number of it (``skimage.measure.block_reduce``).

    Parameters
    ----------
    image : array_like or Image
        Blocks are of rows and columns, not of levels or channels.
    block_size : int or sequence of int, optional
        Pixels of a block along each axis.
    func : callable, optional
        ``numpy.sum``, ``mean``, ``min``, ``max``, ``std`` or ``var``.
    cval : float, optional
        What blocks at the last edges lack.
    func_kwargs : None
        Not supported.

    Returns
    -------
    ndarray or Image
        Of arrays in NumPy's type. Sums of an image are ``float64``.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.measure import block_reduce
    >>> block_reduce(np.array([[0, 1, 2], [3, 4, 5]]), 2, np.max)
    array([[4, 5]])
    """
    if func not in _REDUCED or func_kwargs:
        raise NotImplementedError("block_reduce: functions are numpy's sum, mean, min, max, std and var, without other arguments")
    return _blocks("block_reduce", image, block_size, _REDUCED[func], float(cval))


@public("transform", module="skimage.transform", rust="cumsum", opencv="cv.integral")
@of_any_library
def integral_image(image: ArrayLike, *, dtype: npt.DTypeLike | None = None) -> Pixels:
    """The sums of all pixels before each and itself, along all axes (``skimage.transform.integral_image``).

    Parameters
    ----------
    image : array_like or Image
        Sums are added in ``float64``, of each channel of an image by itself.
    dtype : data-type, optional
        The type of the result; by default ``float64``, of arrays of integers one of 64 bits. Sums of an image that it does not hold
        become its limits; of an array they wrap, as in scikit-image.

    Returns
    -------
    ndarray or Image

    Examples
    --------
    >>> from horus_image.transform import integral_image
    >>> integral_image([[1, 2], [3, 4]])
    array([[ 1,  3],
           [ 4, 10]])
    """
    given = Given("integral_image", image, _AXES)
    found = given.image if given.dtype.kind != "b" else given.image.astype(np.uint8)
    for axis in range(given.value.ndim):
        found = found.cumsum(axis)
    back = given.back(found)
    if isinstance(back, Image):
        return back if dtype is None else back.astype(dtype)
    wide = np.dtype(np.float64) if given.dtype.kind == "f" else _sums_in(given.dtype)
    return back.astype(wide if dtype is None else dtype, copy=False)


@public("transform", module="skimage.transform")
def integrate(ii: ArrayLike, start: npt.ArrayLike, end: npt.ArrayLike) -> Array:
    """Sums of windows from an integral image (``skimage.transform.integrate``).

    Parameters
    ----------
    ii : array_like or Image
        The integral image; an image is evaluated at the call.
    start, end : sequence of int, or of such
        The first and the last pixel of each window; negative ones count from the last.

    Returns
    -------
    ndarray of float64

    Examples
    --------
    >>> from horus_image.transform import integral_image, integrate
    >>> integrate(integral_image([[1, 2], [3, 4]]), (0, 1), (1, 1))
    array([6.])
    """
    sums = ii if isinstance(ii, Image) else read(ii)
    sums = asarray(sums) if isinstance(sums, DeviceArray) else sums
    first, last = (np.atleast_2d(np.asarray(corner)) for corner in (start, end))
    first, last = (np.where(corner < 0, corner + np.asarray(sums.shape), corner) for corner in (first, last))
    if (last < first).any():
        raise IndexError("end coordinates must be greater or equal to start")
    if (first < 0).any() or (last >= sums.shape).any():
        raise IndexError(f"integrate: windows beyond the pixels of an image of shape {sums.shape}")
    count = sums.ndim
    found: Array = np.zeros(len(first))
    for number in range(2**count):
        before = [bool(number >> (count - 1 - axis) & 1) for axis in range(count)]
        corners = np.where(before, first - 1, last)
        values = np.asarray(sums[tuple(np.maximum(corners, 0).T)], dtype=np.float64)
        found += np.where((corners >= 0).all(axis=1), (-1) ** sum(before) * values, 0.0)
    return found
