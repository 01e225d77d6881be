"""Numbers of a whole image, and of a line, with the rules of scikit-image 0.26."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ._edges import sobel
from ._equalize import counted
from ._floats import Given, float_type, image_of
from ._foreign import of_any_library, read
from ._image import Array, Image, get_all, where
from ._intensity import luminance_of
from ._linear import uniform_filter1d
from ._public import Terms, public
from ._resizing import order_of
from ._sampling import map_coordinates
from .typing import ArrayLike, Border, Float

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


@public("measure", module="skimage.measure.profile", rust="remap")
@of_any_library
def profile_line(
    image: ArrayLike,
    src: Sequence[Float],
    dst: Sequence[Float],
    linewidth: int = 1,
    order: int | None = None,
    mode: Border = "reflect",
    cval: Float = 0.0,
    *,
    reduce_func: Callable[..., Any] | None = np.mean,
) -> Array:
    """The pixels along a line (``skimage.measure.profile_line``).

    Parameters
    ----------
    image : array_like or Image
        Of rows and columns, and perhaps channels. Only what lies under the line is computed of it.
    src, dst : pair of float
        Row and column of both ends; the last belongs to the line.
    linewidth : int, optional
        Pixels across the line.
    order : int, optional
        Of the splines between pixels, from 0 to 5; by default 0 of masks, else 1.
    mode, cval : optional
        Border mode, as in `horus_image.ndimage`; ``constant`` and ``wrap`` are those of a grid.
    reduce_func : callable, optional
        What becomes of the pixels across the line, which are its axis 1; of None they stay.

    Returns
    -------
    ndarray
        A pixel for each step of one pixel, and for each channel.

    Examples
    --------
    >>> from horus_image.measure import profile_line
    >>> profile_line([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]], (0, 0), (0, 2))
    array([1., 2., 3.])
    """
    given = Given("profile_line", image, (2,), _last(image))
    degree = order_of("profile_line", order, given.dtype)
    (row, column), (last_row, last_column) = ((float(one) for one in end) for end in (src, dst))
    angle = np.arctan2(last_row - row, last_column - column)
    steps = int(np.ceil(np.hypot(last_row - row, last_column - column) + 1))
    # Across, from the far side to the near one: as there, the first column is that of the last.
    across = np.linspace(0.5, -0.5, linewidth) * (linewidth - 1) if linewidth > 1 else np.zeros(1)
    rows = np.linspace(row, last_row, steps)[:, np.newaxis] + across * np.cos(angle)
    columns = np.linspace(column, last_column, steps)[:, np.newaxis] - across * np.sin(angle)
    borders: dict[str, Border] = {"constant": "grid-constant", "wrap": "grid-wrap"}
    pixels = given.image.astype(np.uint8) if given.dtype.kind == "b" else given.image
    planes = [pixels.channel(k) for k in range(pixels._core.shape[3])] if given.value.channels else [pixels]
    sampled = [
        image_of(map_coordinates(plane, [rows, columns], None, degree, borders.get(mode, mode), float(cval), degree > 1)) for plane in planes
    ]
    kind = np.dtype(bool) if given.dtype.kind == "b" else given.dtype
    found = np.stack([one.astype(kind) for one in get_all(*sampled)], axis=-1)
    found = found if given.value.channels else found[..., 0]
    if reduce_func is None:
        return found
    try:
        reduced: Array = reduce_func(found, axis=1)
    except TypeError:
        reduced = np.apply_along_axis(reduce_func, 1, found)
    return reduced


def _last(image: Any) -> int | None:
    """The axis of channels of an array of three."""
    given = image if isinstance(image, Image) else read(image)
    return None if isinstance(given, Image) and not given.channels or given.ndim < 3 else given.ndim - 1
