"""Gradients, Canny's edges and thresholds with hysteresis, with the rules of scikit-image 0.26."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import _horus
from ._binary import _Step, _truths, binary_erosion
from ._floats import Given, applied, gaussian, image_of, zeros_like
from ._foreign import of_any_library, plain, read_beside
from ._gaussian import laplace as second_differences
from ._image import Array, Image, asarray, made, where
from ._linear import convolve, correlate1d
from ._linear import sobel as differences
from ._operators import larger, smaller
from ._order import median_filter
from ._public import PIXELS, Terms, public
from ._values import axis_of, enter
from .typing import ArrayLike, Border, Floats, Ints, Output, Pixels

_STEP: Final = (-1.0, 0.0, 1.0)
_EDGES: Final = {
    "sobel": ((0.25, 0.5, 0.25), _STEP),
    "scharr": ((3 / 16, 10 / 16, 3 / 16), _STEP),
    "prewitt": ((1 / 3, 1 / 3, 1 / 3), _STEP),
    "farid": (
        (0.0376593171958126, 0.249153396177344, 0.426374573253687, 0.249153396177344, 0.0376593171958126),
        (-0.109603762960254, -0.276690988455557, 0.0, 0.276690988455557, 0.109603762960254),
    ),
}
"""Weights across and along the differences of each filter."""


def _grown(seed: Image, within: Image, structure: Any) -> Image:
    """The parts of a mask that are connected to a seed."""
    start, mask = enter(seed, "hysteresis")[0], enter(within, "hysteresis")[0]
    assert start is not None and mask is not None, "lazy images have pixels"
    found = _Step(start.ndim, structure, mask, 0, 0, dilates=True).repeat(start, -1)
    return seed._with(found.core)


@public("filters", module="skimage.filters.thresholding", rust="`reconstruct`; `examples/hysteresis.rs`", accel=Terms(PIXELS))
@of_any_library
def apply_hysteresis_threshold(image: ArrayLike, low: ArrayLike, high: ArrayLike) -> Pixels:
    """The pixels above `low` that are connected, by sides of pixels, to one above `high` (``skimage.filters.apply_hysteresis_threshold``).

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.filters import apply_hysteresis_threshold
    >>> image = np.array([1, 2, 3, 2, 1, 2, 1, 3, 2])
    >>> apply_hysteresis_threshold(image, 1.5, 2.5).astype(int)
    array([0, 1, 1, 1, 0, 0, 0, 1, 1])
    """
    given = Given("apply_hysteresis_threshold", image, (1, 2, 3))
    pixels = given.image if given.dtype.kind != "b" else given.image.astype(np.uint8)
    lower, upper = (t if isinstance(t, Image) else plain(t) for t in (low, high))
    lower = smaller(lower, upper) if isinstance(low, Image) or isinstance(high, Image) else np.minimum(lower, upper)
    lower, upper = (t if isinstance(t, Image) or np.ndim(t) else float(t) for t in (lower, upper))
    return given.back(_grown(pixels > upper, pixels > lower, None), lower, upper)


def _mask(mask: Any, like: Image) -> Image:
    """A mask as a lazy image, of the shape of an image."""
    within = mask if isinstance(mask, Image) else asarray(_truths(read_beside(mask, like.session)), session=like.session)
    if within.shape != like.shape:
        raise ValueError(f"a mask of shape {within.shape} for an image of shape {like.shape}")
    return within if within.dtype.kind == "b" else within.astype(bool)


def _gradient(name: str, image: Any, mask: Any, axis: Any, mode: Border, cval: float, axes: tuple[int, ...]) -> Pixels:
    given = Given(name, image, axes)
    pixels, count = given.unit(), given.value.ndim
    smooth, step = _EDGES[name]
    along = range(count) if axis is None else axis if isinstance(axis, Iterable) else [axis]
    along = [axis_of(one, count) for one in along]

    def differences_along(axis: int) -> Image:
        found: Image = pixels
        # Smoothed first: beyond the edges a constant stays itself.
        for other in reversed([other for other in range(count) if other != axis]):
            found = image_of(correlate1d(found, smooth, other, mode=mode, cval=cval))
        return image_of(correlate1d(found, step, axis, mode=mode, cval=cval))

    parts = [differences_along(axis) for axis in along]
    if len(parts) > 1:
        found = applied("sqrt", functools.reduce(Image.__add__, [part * part for part in parts])) * (1.0 / count**0.5)
    else:
        found = parts[0] if parts else pixels * 0.0
    return given.back(_within(found, mask))


def _within(found: Image, mask: Any) -> Image:
    """What is not outside of a mask, or touches what is; other pixels are 0."""
    if mask is None:
        return found
    return where(binary_erosion(_mask(mask, found), np.ones((3,) * len(found.shape), bool), border_value=0), found, 0.0)


def _gradients(name: str, what: str, rust: str, opencv: str) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """A filter, and those of its differences that find horizontal and vertical edges."""
    listed = public("filters", rust=rust, opencv=opencv, differs="a negative `axis` of the first counts from the last")

    def both(image: ArrayLike, mask: ArrayLike | None = None, *, axis: Ints | None = None, mode: Border = "reflect", cval: float = 0.0) -> Pixels:
        return _gradient(name, image, mask, axis, mode, cval, (1, 2, 3))

    def horizontal(image: ArrayLike, mask: ArrayLike | None = None) -> Pixels:
        return _gradient(name, image, mask, 0, "reflect", 0.0, (2,))

    def vertical(image: ArrayLike, mask: ArrayLike | None = None) -> Pixels:
        return _gradient(name, image, mask, 1, "reflect", 0.0, (2,))

    both.__doc__ = f"""{what} differences along an axis, or the length of the gradient, divided by the root of the number of axes
    (``skimage.filters.{name}``).

    Parameters
    ----------
    image : array_like or Image
        Integers become floats from 0 to 1, or -1 to 1.
    mask : array_like or Image of bool, optional
        Pixels outside, and those that touch them, are 0.
    axis : int or sequence of int, optional
        Along which differences are taken; of several, the length of these. All by default. A negative one counts from the last;
        scikit-image 0.26 then also smooths along it, which makes the result smaller.
    mode, cval : optional
        Border mode, as in `horus_image.ndimage`.

    Returns
    -------
    ndarray or Image
        Of ``float32`` if the input is, else of ``float64``.
    """
    horizontal.__doc__ = f"""{what} differences down the rows, which are large at horizontal edges (``skimage.filters.{name}_h``)."""
    vertical.__doc__ = f"""{what} differences along the columns, which are large at vertical edges (``skimage.filters.{name}_v``)."""
    for function, end in ((both, ""), (horizontal, "_h"), (vertical, "_v")):
        function.__name__ = function.__qualname__ = name + end
        function.__module__ = "horus_image.filters"
        listed(function)
    return both, horizontal, vertical


sobel, sobel_h, sobel_v = _gradients("sobel", "Sobel's", "sobel", "cv.Sobel")
scharr, scharr_h, scharr_v = _gradients("scharr", "Scharr's", "separable", "cv.Scharr")
prewitt, prewitt_h, prewitt_v = _gradients("prewitt", "Prewitt's", "separable", "cv.sepFilter2D")
farid, farid_h, farid_v = _gradients("farid", "Farid's and Simoncelli's", "separable", "cv.sepFilter2D")


def _weighted(name: str, image: Any, mask: Any, *weights: Array) -> Pixels:
    """A convolution, or the root of the mean square of several."""
    given = Given(name, image, (weights[0].ndim,))
    pixels = given.unit()
    parts = [image_of(convolve(pixels, one)) for one in weights]
    found = parts[0]
    if len(parts) > 1:
        found = applied("sqrt", functools.reduce(Image.__add__, [part * part for part in parts])) * (1.0 / len(parts) ** 0.5)
    return given.back(_within(found, mask))


_FALLING: Final = np.array([[1.0, 0.0], [0.0, -1.0]])
_RISING: Final = np.array([[0.0, 1.0], [-1.0, 0.0]])


@public("filters", rust="convolve", opencv="cv.filter2D")
@of_any_library
def roberts(image: ArrayLike, mask: ArrayLike | None = None) -> Pixels:
    """The length of Roberts' diagonal differences, divided by the root of 2 (``skimage.filters.roberts``).

    Parameters
    ----------
    image : array_like or Image
        Of rows and columns; integers become floats from 0 to 1, or -1 to 1.
    mask : array_like or Image of bool, optional
        Pixels outside, and those that touch them, are 0.

    Returns
    -------
    ndarray or Image
        Of ``float32`` if the input is, else of ``float64``.

    Examples
    --------
    >>> from horus_image.filters import roberts
    >>> roberts([[0.0, 0.0], [0.0, 1.0]]).round(3)
    array([[0.707, 1.   ],
           [1.   , 0.   ]])
    """
    return _weighted("roberts", image, mask, _FALLING, _RISING)


@public("filters", rust="convolve", opencv="cv.filter2D")
@of_any_library
def roberts_pos_diag(image: ArrayLike, mask: ArrayLike | None = None) -> Pixels:
    """The pixel below on the right less each pixel (``skimage.filters.roberts_pos_diag``)."""
    return _weighted("roberts_pos_diag", image, mask, _FALLING)


@public("filters", rust="convolve", opencv="cv.filter2D")
@of_any_library
def roberts_neg_diag(image: ArrayLike, mask: ArrayLike | None = None) -> Pixels:
    """The pixel below each less the one on its right (``skimage.filters.roberts_neg_diag``)."""
    return _weighted("roberts_neg_diag", image, mask, _RISING)


@public("filters", rust="laplace", opencv="cv.Laplacian")
@of_any_library
def laplace(image: ArrayLike, ksize: int = 3, mask: ArrayLike | None = None) -> Pixels:
    """Each pixel times twice the number of axes, less its neighbours along them (``skimage.filters.laplace``).

    Parameters
    ----------
    image : array_like or Image
        Integers become floats from 0 to 1, or -1 to 1.
    ksize : int, optional
        At least 3. As in scikit-image, nothing depends on it.
    mask : array_like or Image of bool, optional
        Pixels outside, and those that touch them, are 0.

    Returns
    -------
    ndarray or Image
        Of ``float32`` if the input is, else of ``float64``.

    Examples
    --------
    >>> from horus_image.filters import laplace
    >>> laplace([[0.0, 0.0, 1.0, 0.0, 0.0]])
    array([[ 0., -1.,  2., -1.,  0.]])
    """
    if ksize < 3:
        raise ValueError(f"laplace: ksize is {ksize}; it is at least 3")
    given = Given("laplace", image, (1, 2, 3))
    return given.back(_within(0.0 - image_of(second_differences(given.unit())), mask))


@public("filters", module="skimage.filters._median", rust="median", opencv="cv.medianBlur", differs="no `behavior=\'rank\'`")
def median(
    image: ArrayLike,
    footprint: npt.ArrayLike | None = None,
    out: Output = None,
    mode: Border = "nearest",
    cval: float = 0.0,
    behavior: str = "ndimage",
) -> Pixels:
    """The median of each window (``skimage.filters.median``).

    Parameters
    ----------
    image : array_like or Image
        Pixels keep their type.
    footprint : array_like, optional
        The window, by default of 3 pixels along each axis.
    out : array, optional
        Takes the result of an array.
    mode, cval : optional
        Border mode, as in `horus_image.ndimage`.
    behavior : str, optional
        ``"ndimage"``.

    Returns
    -------
    ndarray or Image

    Examples
    --------
    >>> from horus_image.filters import median
    >>> median([1, 9, 2, 3])
    array([1, 2, 3, 3])
    """
    if behavior != "ndimage":
        raise NotImplementedError(f"median: behavior={behavior!r}; only 'ndimage' is there")
    return median_filter(image, 3 if footprint is None else None, footprint, out, mode, cval)


@public("feature", module="skimage.feature._canny", rust="canny", opencv="cv.Canny")
@public(
    "filters", module="skimage.feature._canny", rust="canny", opencv="cv.Canny",
    differs="OpenCV does not interpolate between neighbours", accel=Terms("never")
)
@of_any_library
def canny(
    image: ArrayLike,
    sigma: Floats = 1.0,
    low_threshold: float | None = None,
    high_threshold: float | None = None,
    mask: ArrayLike | None = None,
    use_quantiles: bool = False,
    *,
    mode: Border = "constant",
    cval: float = 0.0,
) -> Pixels:
    """Edges one pixel wide, weak ones kept where they go on from strong ones (``skimage.feature.canny``).

    Parameters
    ----------
    image : array_like or Image
        Of rows and columns; integers become floats from 0 to 1, or -1 to 1.
    sigma : float or sequence of float, optional
        Of the Gaussian that smooths the image before its gradient is taken.
    low_threshold, high_threshold : float, optional
        Of the gradient's magnitude, in the range of the image's type; by default 0.1 and 0.2 of the largest number of the type.
    mask : array_like or Image of bool, optional
        Pixels outside, and those that touch them, have no edges.
    use_quantiles : bool, optional
        Take the thresholds for quantiles of the magnitude, from 0 to 1.
    mode, cval : optional
        Border mode of the Gaussian.

    Returns
    -------
    ndarray or Image of bool
        With `use_quantiles` the magnitude is computed at the call.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.filters import canny
    >>> image = np.zeros((8, 12))
    >>> image[:, 6:] = 1.0
    >>> canny(image)[3].nonzero()[0]
    array([5, 6])
    """
    given = Given("canny", image, (2,))
    given.gray()
    if given.dtype.kind in "iu" and given.dtype.itemsize == 8:
        raise ValueError("64-bit integer images are not supported")
    low, high = _thresholds(given.dtype, low_threshold, high_threshold, use_quantiles)
    pixels = given.unit()
    inside, within = _inside(pixels), None
    if mask is not None:
        within = _mask(mask, pixels)
        pixels = where(within, pixels, 0.0)
        inside = image_of(binary_erosion(within, np.ones((3, 3), bool), border_value=0))

    smooth = gaussian(pixels, sigma, 0, mode, cval)
    if mode == "constant" or within is not None:
        # The share of each smoothed pixel that lies inside.
        share = zeros_like(pixels) + 1.0 if within is None else within.astype(pixels.dtype)
        smooth = smooth / (gaussian(share, sigma, 0, mode, cval) + float(np.finfo(pixels.dtype).eps))
    down, right = (image_of(differences(smooth, axis=axis)) for axis in (0, 1))
    magnitude = applied("sqrt", down * down + right * right)
    if use_quantiles:
        low, high = np.percentile(magnitude.compute(), [100.0 * low, 100.0 * high]).tolist()
    # As there, the lower threshold is a float of 32 bits, and larger than 0.
    low = float(np.float32(low)) or float(np.float32(1e-14))
    thin = inside & (magnitude >= low) & _largest(down, right, magnitude)
    return given.back(_grown(thin & (magnitude >= high), thin, np.ones((3, 3), bool)), mask)


def _thresholds(dtype: np.dtype[Any], low: float | None, high: float | None, quantiles: bool) -> tuple[float, float]:
    largest = float(np.iinfo(dtype).max) if dtype.kind in "iu" else 1.0
    found = []
    for threshold, share in ((low, 0.1), (high, 0.2)):
        if threshold is None:
            found.append(share)
        elif not quantiles:
            found.append(float(threshold) / largest)
        elif 0.0 <= threshold <= 1.0:
            found.append(float(threshold))
        else:
            raise ValueError("Quantile thresholds must be between 0 and 1.")
    if found[1] < found[0]:
        raise ValueError("low_threshold should be lower than high_threshold")
    return found[0], found[1]


def _inside(image: Image) -> Image:
    """All pixels but those of the first and the last row and column."""
    height, width = image.shape
    numbers = [made(_horus.index(image.session._core, (1, height, width), axis), image.session, 2) for axis in (1, 2)]
    rows, columns = numbers
    return (rows > 0.0) & (rows < height - 1.0) & (columns > 0.0) & (columns < width - 1.0)


def _largest(down: Image, right: Image, magnitude: Image) -> Image:
    """True where the magnitude is not below its interpolation one step up and one step down the gradient."""
    ay, ax = abs(down), abs(right)
    steep, same = ay > ax, (down > 0.0) ^ ~(right > 0.0)
    weight = smaller(ay, ax) / larger(ay, ax)

    def at(dy: int, dx: int) -> Image:
        return magnitude._with(_horus.shift(magnitude._core, (0, -dy, -dx), "constant", 0.0))

    def beside(step: int) -> Image:
        straight = where(steep, where(same, at(step, 0), at(-step, 0)), at(0, step))
        diagonal = where(same, at(step, step), at(-step, step))
        return diagonal * weight + straight * (1.0 - weight)

    return (beside(1) <= magnitude) & (beside(-1) <= magnitude)
