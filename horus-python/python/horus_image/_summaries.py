"""Numbers of a whole image, with the rules of scikit-image 0.26."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ._edges import sobel
from ._equalize import counted
from ._floats import Given, float_type, image_of
from ._foreign import of_any_library
from ._image import Array, Image, get_all, where
from ._intensity import luminance_of
from ._linear import uniform_filter1d
from ._public import Terms, public
from .typing import ArrayLike, Float

_LEAST: Final = float(np.spacing(1))
"""Differences that are taken for none."""


@public("measure", module="skimage.measure.entropy", accel=Terms("integers", (0.0, 1e-12), np.float64))
@of_any_library
def shannon_entropy(image: ArrayLike, base: Float = 2) -> float:
    """The entropy of the numbers of pixels of each brightness (``skimage.measure.shannon_entropy``).

    Parameters
    ----------
    image : array_like or Image
        Integers of 8 or 16 bits are counted; others, and floats, are sorted on the host.
    base : float, optional
        Of the logarithm: 2 gives bits.

    Returns
    -------
    float

    Examples
    --------
    >>> from horus_image.measure import shannon_entropy
    >>> shannon_entropy([[1, 2], [3, 4]])
    2.0
    """
    given = Given("shannon_entropy", image, (1, 2, 3))
    _, counts = counted(given.image)
    share = counts / counts.sum()
    return float(-(share * np.log(share)).sum() / np.log(base)) + 0.0


@public("measure", module="skimage.measure._blur_effect")
@of_any_library
def blur_effect(
    image: ArrayLike, h_size: int = 11, channel_axis: int | None = None, reduce_func: Callable[..., Any] | None = np.max
) -> float | list[float]:
    """How little another blur changes an image: 0 for a sharp one, up to 1 (``skimage.measure.blur_effect``).

    Parameters
    ----------
    image : array_like or Image
        It is computed at the call. Of colours the luminance counts.
    h_size : int, optional
        Pixels that the other blur averages.
    channel_axis : int, optional
        The axis of red, green and blue.
    reduce_func : callable, optional
        What becomes of the numbers of all axes; of None they are a list.

    Returns
    -------
    float or list of float

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.measure import blur_effect
    >>> noise = np.random.default_rng(1).random((40, 50))
    >>> round(float(blur_effect(noise)), 2), round(float(blur_effect(np.add.outer(np.arange(40.0), np.arange(50.0)))), 2)
    (0.13, 0.94)
    """
    given = Given("blur_effect", image, (1, 2, 3), channel_axis)
    channels = given.value.core.shape[3]
    if channels not in (1, 3) or channels == 1 and given.value.channels:
        raise ValueError(f"blur_effect: {channels} channels; they are red, green and blue")
    if min(given.value.shape) < 4:
        raise ValueError(f"blur_effect: an image of shape {given.value.shape}; pixels beside its edges do not count")
    pixels = luminance_of(given.unit(), 3) if given.value.channels else given.unit()
    inner = tuple(slice(2, extent - 1) for extent in pixels.shape)
    found = []
    for axis in range(given.value.ndim):
        blurred = image_of(uniform_filter1d(pixels, h_size, axis))
        sharp, soft = (_at_least(abs(image_of(sobel(one, axis=axis))), _LEAST) for one in (pixels, blurred))
        whole, lost = (float(part[inner].sum()) for part in (sharp, _at_least(sharp - soft, 0.0)))
        found.append(abs(whole - lost) / whole)
    return found if reduce_func is None else reduce_func(found)


def _at_least(pixels: Image, low: float) -> Image:
    """Pixels, or the number where they are below it. NaN stays."""
    return where(pixels < low, low, pixels)


@public("measure", rust="`shapes` of `by_label`", opencv="cv.moments")
@of_any_library
def centroid(image: ArrayLike, *, spacing: Sequence[Float] | None = None) -> Array:
    """The centre of pixels weighed by their brightness (``skimage.measure.centroid``).

    Parameters
    ----------
    image : array_like or Image
        Without channels. It is computed at the call; sums are of ``float64``.
    spacing : sequence of float, optional
        Distances of pixels along each axis.

    Returns
    -------
    ndarray
        A position along each axis.

    Examples
    --------
    >>> from horus_image.measure import centroid
    >>> centroid([[0, 0, 0], [0, 1, 3]])
    array([1.  , 1.75])
    """
    given = Given("centroid", image, (1, 2, 3))
    given.gray()
    count = given.value.ndim
    sides = [1.0] * count if spacing is None else [float(side) for side in spacing]
    if len(sides) != count:
        raise ValueError(f"centroid: spacing of {len(sides)} axes, of an image of {count}")
    pixels = given.image.astype(np.float64)
    lines = get_all(*(_along(pixels, axis) for axis in range(count)))
    # Without any brightness there is no centre, but NaN.
    with np.errstate(invalid="ignore", divide="ignore"):
        centres = [np.arange(len(line)) @ line / line.sum() * side for line, side in zip(lines, sides, strict=True)]
    return np.array(centres, float_type(given.dtype))


def _along(pixels: Image, axis: int) -> Image:
    """The sums of what lies across each place along an axis."""
    across = tuple(other for other in range(pixels.ndim) if other != axis)
    return pixels.sum(axis=across) if across else pixels
