"""How much two images differ, with the rules of scikit-image 0.26."""

from __future__ import annotations

import math
import operator
import warnings
from typing import Any

import numpy as np

from ._floats import Given, float_type, gaussian, image_of
from ._foreign import of_any_library, read, read_beside
from ._image import Image, asarray, get_all
from ._intensity import limits
from ._linear import uniform_filter
from ._public import Terms, public
from .typing import ArrayLike, Float, Pixels

_SIMPLE = Terms("finite", (1e-6, 1e-12))
"""Squares of `float32` are summed in `float64` by both."""


def _pair(name: str, first: Any, second: Any, channel_axis: Any = None) -> tuple[Given, Given]:
    """Two images of one shape, in one session."""
    images = [one if isinstance(one, Image) else read(one) for one in (first, second)]
    lazy = next((one for one in images if isinstance(one, Image)), None)
    if images[0].shape != images[1].shape:
        raise ValueError(f"Input images must have the same dimensions. {name}: they are of shapes {images[0].shape} and {images[1].shape}")
    if lazy is not None:
        images = [one if isinstance(one, Image) else asarray(read_beside(one, lazy.session), channels=lazy.channels, session=lazy.session) for one in images]
    given = [Given(name, one, (1, 2, 3), channel_axis) for one in images]
    return given[0], given[1]


def _floats(pair: tuple[Given, Given]) -> tuple[Image, Image]:
    """Both as they are, in the type of floats of both."""
    kind = np.result_type(*(float_type(one.dtype) for one in pair))
    first, second = (one.image if one.image.dtype == kind else one.image.astype(kind) for one in pair)
    return first, second


def _mean(pixels: Image) -> Image:
    """The mean in `float64`, which of an axis would be in the type of the pixels."""
    return pixels.astype(np.float64).mean(keepdims=True)


def _mean_square(pixels: Image) -> Image:
    return _mean(pixels * pixels)


def _numbers(*images: Image) -> list[float]:
    """The numbers of images of one pixel, evaluated together."""
    return [float(one.ravel()[0]) for one in get_all(*images)]


def _double(number: Any) -> float:
    """NumPy's number, as scikit-image returns it."""
    found: float = np.float64(number)
    return found


@public("metrics", module="skimage.metrics.simple_metrics", opencv="cv.norm", accel=_SIMPLE)
@of_any_library
def mean_squared_error(image0: ArrayLike, image1: ArrayLike) -> float:
    """The mean of squared differences (``skimage.metrics.mean_squared_error``).

    Parameters
    ----------
    image0, image1 : array_like or Image
        Of one shape. Pixels are taken as they are, in ``float32`` if both are, else in ``float64``; their squares are summed in ``float64``.

    Returns
    -------
    float

    Examples
    --------
    >>> from horus_image.metrics import mean_squared_error
    >>> float(mean_squared_error([1, 2, 3], [1, 2, 6]))
    3.0
    """
    first, second = _floats(_pair("mean_squared_error", image0, image1))
    (found,) = _numbers(_mean_square(first - second))
    return _double(found)


@public("metrics", module="skimage.metrics.simple_metrics", accel=_SIMPLE)
@of_any_library
def normalized_root_mse(image_true: ArrayLike, image_test: ArrayLike, *, normalization: str = "euclidean") -> float:
    """The root of `mean_squared_error` over a number of the first image (``skimage.metrics.normalized_root_mse``).

    Parameters
    ----------
    image_true, image_test : array_like or Image
        Of one shape.
    normalization : {'euclidean', 'min-max', 'mean'}, optional
        The root of the mean square, the range, or the mean of `image_true`.

    Examples
    --------
    >>> from horus_image.metrics import normalized_root_mse
    >>> float(normalized_root_mse([0, 2, 4], [0, 2, 1], normalization="min-max").round(3))
    0.433
    """
    first, second = _floats(_pair("normalized_root_mse", image_true, image_test))
    how = normalization.lower()
    if how == "euclidean":
        parts = [_mean_square(first)]
    elif how == "min-max":
        parts = [first.max(keepdims=True), first.min(keepdims=True)]
    elif how == "mean":
        parts = [_mean(first)]
    else:
        raise ValueError(f"Unsupported norm_type: normalization is 'euclidean', 'min-max' or 'mean', not {normalization!r}")
    error, *numbers = _numbers(_mean_square(first - second), *parts)
    size = math.sqrt(numbers[0]) if how == "euclidean" else numbers[0] - (numbers[1] if how == "min-max" else 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _double(np.float64(math.sqrt(error)) / size)


@public("metrics", module="skimage.metrics.simple_metrics", opencv="cv.PSNR", accel=_SIMPLE)
@of_any_library
def peak_signal_noise_ratio(image_true: ArrayLike, image_test: ArrayLike, *, data_range: Float | None = None) -> float:
    """The largest square that pixels may have over `mean_squared_error`, in decibels (``skimage.metrics.peak_signal_noise_ratio``).

    Parameters
    ----------
    image_true, image_test : array_like or Image
        Of one shape.
    data_range : float, optional
        Between the least and the greatest number that pixels may have. By default that of the type of `image_true`, 0 to 1 of floats none of
        which is negative, and -1 to 1 of others; floats beyond raise `ValueError`.

    Returns
    -------
    float
        Infinite if both are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.metrics import peak_signal_noise_ratio
    >>> dark = np.zeros((4, 4), np.uint8)
    >>> float(peak_signal_noise_ratio(dark, dark + np.uint8(2)).round(2))
    42.11
    """
    pair = _pair("peak_signal_noise_ratio", image_true, image_test)
    first, second = _floats(pair)
    error = _mean_square(first - second)
    if data_range is None:
        if pair[0].dtype != pair[1].dtype:
            warnings.warn("Inputs have mismatched dtype. Setting data_range based on image_true.", stacklevel=3)
        low, high = limits(pair[0].dtype)
        found, least, most = _numbers(error, first.min(keepdims=True), first.max(keepdims=True))
        if most > high or least < low:
            raise ValueError(
                "image_true has intensity values outside the range expected for its data type. Please manually specify the data_range."
            )
        data_range = high if least >= 0 else high - low
    else:
        (found,) = _numbers(error)
    with np.errstate(divide="ignore"):
        return _double(10.0 * np.log10(float(data_range) ** 2 / np.float64(found)))


@public("metrics", module="skimage.metrics._structural_similarity", opencv="cv.quality.QualitySSIM", accel=Terms("double finite", (0.0, 1e-9)))
@of_any_library
def structural_similarity(
    im1: ArrayLike,
    im2: ArrayLike,
    *,
    win_size: int | None = None,
    gradient: bool = False,
    data_range: Float | None = None,
    channel_axis: int | None = None,
    gaussian_weights: bool = False,
    full: bool = False,
    K1: float = 0.01,
    K2: float = 0.03,
    sigma: float = 1.5,
    use_sample_covariance: bool = True,
) -> float | tuple[float | Pixels, ...]:
    """The mean structural similarity of two images, 1 of equal ones (``skimage.metrics.structural_similarity``).

    Parameters
    ----------
    im1, im2 : array_like or Image
        Of one shape, at least as large as the window.
    win_size : int, optional
        The side of the window, odd; 7, or that of the Gaussian.
    gradient : bool, optional
        Also return the derivative by `im2`.
    data_range : float, optional
        Between the least and the greatest number that pixels may have; needed for floats, and by default that of the type of integers.
    channel_axis : int, optional
        The axis of an array that is that of channels. A lazy image knows its own. Similarities of channels are averaged.
    gaussian_weights : bool, optional
        Weigh the pixels of a window by a Gaussian of `sigma`, cut at 3.5 of it.
    full : bool, optional
        Also return the similarity of each pixel.
    K1, K2 : float, optional
        Shares of the range whose squares keep quotients finite.
    sigma : float, optional
    use_sample_covariance : bool, optional
        Divide covariances by the number of pixels less one.

    Returns
    -------
    float, or tuple of it, the gradient and the similarity of each pixel
        The mean is of pixels whose window lies within the image. Images stay lazy, of ``float32`` if `im1` is, else ``float64``.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.metrics import structural_similarity
    >>> image = np.tile(np.arange(16, dtype=np.uint8), (16, 1))
    >>> float(structural_similarity(image, image))
    1.0
    """
    name = "structural_similarity"
    pair = _pair(name, im1, im2, channel_axis)
    given = pair[0]
    for what, share in (("K1", K1), ("K2", K2), ("sigma", sigma)):
        if share < 0:
            raise ValueError(f"{what} must be positive")
    if win_size is None:
        win_size = 2 * int(3.5 * sigma + 0.5) + 1 if gaussian_weights else 7
    size = operator.index(win_size)
    shape = given.value.shape
    if min(shape) < size:
        raise ValueError(f"win_size exceeds image extent. {name}: a window of {size} pixels in an image of shape {shape}")
    if size % 2 == 0:
        raise ValueError("Window size must be odd.")
    kind = float_type(given.dtype)
    x, y = (one.image if one.image.dtype == kind else one.image.astype(kind) for one in pair)

    def averaged(pixels: Image) -> Image:
        return gaussian(pixels, sigma, 0, "reflect", 0.0, 3.5) if gaussian_weights else image_of(uniform_filter(pixels, size))

    count = size ** len(shape)
    norm = count / (count - 1) if use_sample_covariance else 1.0
    ux, uy = averaged(x), averaged(y)
    vx, vy = (norm * (averaged(one * one) - mean * mean) for one, mean in ((x, ux), (y, uy)))
    vxy = norm * (averaged(x * y) - ux * uy)
    whole = _range_of(pair) if data_range is None else float(data_range)
    c1, c2 = (K1 * whole) ** 2, (K2 * whole) ** 2
    a1, a2 = 2.0 * ux * uy + c1, 2.0 * vxy + c2
    b1, b2 = ux * ux + uy * uy + c1, vx + vy + c2
    similarity = (a1 * a2) / (b1 * b2)
    pad = (size - 1) // 2
    results: list[float | Pixels] = []
    if gradient:
        slope = averaged(a1 / (b1 * b2)) * x + averaged(-similarity / b2) * y
        slope = slope + averaged((ux * (a2 - a1) - uy * (b2 - b1) * similarity) / (b1 * b2))
        results.append(given.back(slope * (2.0 / math.prod(shape)), pair[1].image))
    if full:
        results.append(given.back(similarity, pair[1].image))
    inner = tuple(slice(pad, extent - pad) for extent in shape)
    mean = np.float64(similarity[inner].mean())
    # Means of channels are averaged in the type of the floats.
    mean = kind.type(mean) if given.value.channels else mean
    return (mean, *results) if results else mean


def _range_of(pair: tuple[Given, Given]) -> float:
    """The range of the first type, of integers."""
    if any(one.dtype.kind == "f" for one in pair):
        raise ValueError("Since image dtype is floating point, you must specify the data_range parameter.")
    first = pair[0].dtype
    low, high = limits(first)
    if first != pair[1].dtype:
        warnings.warn("Inputs have mismatched dtypes. Setting data_range based on im1.dtype.", stacklevel=4)
    if first.kind in "iu" and first != np.uint8:
        warnings.warn(f"Setting data_range based on im1.dtype. data_range = {high - low:.0f}. Please specify data_range explicitly.", stacklevel=4)
    return high - low
