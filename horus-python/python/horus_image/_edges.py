"""Canny's edges and thresholds with hysteresis, with the rules of scikit-image 0.26."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _horus
from ._binary import _Step, binary_erosion
from ._floats import Given, applied, gaussian, zeros_like
from ._image import Image, asarray, made, maximum, minimum, where
from ._linear import sobel
from ._values import enter


def _grown(seed: Image, within: Image, structure: Any) -> Image:
    """The parts of a mask that are connected to a seed."""
    start, mask = enter(seed, "hysteresis")[0], enter(within, "hysteresis")[0]
    assert start is not None and mask is not None, "lazy images have pixels"
    found = _Step(start.ndim, structure, mask, 0, 0, dilates=True).repeat(start, -1)
    return seed._with(found.core)


def apply_hysteresis_threshold(image: Any, low: Any, high: Any) -> Any:
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
    if isinstance(low, Image) or isinstance(high, Image):
        low = minimum(low, high)
    else:
        low = np.minimum(low, high)
    low, high = (t if isinstance(t, Image) or np.ndim(t) else float(t) for t in (low, high))
    return given.back(_grown(pixels > high, pixels > low, None))


def canny(
    image: Any,
    sigma: Any = 1.0,
    low_threshold: float | None = None,
    high_threshold: float | None = None,
    mask: Any = None,
    use_quantiles: bool = False,
    *,
    mode: str = "constant",
    cval: float = 0.0,
) -> Any:
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
        within = mask if isinstance(mask, Image) else asarray(np.asarray(mask).astype(bool), session=pixels.session)
        within = within if within.dtype.kind == "b" else within.astype(bool)
        if within.shape != pixels.shape:
            raise ValueError(f"a mask of shape {within.shape} for an image of shape {pixels.shape}")
        pixels = where(within, pixels, 0.0)
        inside = binary_erosion(within, np.ones((3, 3), bool), border_value=0)

    smooth = gaussian(pixels, sigma, 0, mode, cval)
    if mode == "constant" or within is not None:
        # The share of each smoothed pixel that lies inside.
        share = zeros_like(pixels) + 1.0 if within is None else within.astype(pixels.dtype)
        smooth = smooth / (gaussian(share, sigma, 0, mode, cval) + float(np.finfo(pixels.dtype).eps))
    down, right = sobel(smooth, axis=0), sobel(smooth, axis=1)
    magnitude = applied("sqrt", down * down + right * right)
    if use_quantiles:
        low, high = np.percentile(magnitude.compute(), [100.0 * low, 100.0 * high]).tolist()
    # As there, the lower threshold is a float of 32 bits, and larger than 0.
    low = float(np.float32(low)) or float(np.float32(1e-14))
    thin = inside & (magnitude >= low) & _largest(down, right, magnitude)
    return given.back(_grown(thin & (magnitude >= high), thin, np.ones((3, 3), bool)))


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
    weight = minimum(ay, ax) / maximum(ay, ax)

    def at(dy: int, dx: int) -> Image:
        return magnitude._with(_horus.shift(magnitude._core, (0, -dy, -dx), "constant", 0.0))

    def beside(step: int) -> Image:
        straight = where(steep, where(same, at(step, 0), at(-step, 0)), at(0, step))
        diagonal = where(same, at(step, step), at(-step, step))
        return diagonal * weight + straight * (1.0 - weight)

    return (beside(1) <= magnitude) & (beside(-1) <= magnitude)
