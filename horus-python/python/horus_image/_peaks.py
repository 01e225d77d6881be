"""Local maxima, as scikit-image finds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._foreign import of_any_library, on_host
from ._image import Array, Image
from ._order import maximum_filter
from ._public import PIXELS, Terms, public
from ._values import shape_of
from .typing import ArrayLike


@public("feature", module="skimage.feature.peak", rust="peak_local_max", differs="no `labels` or `p_norm`")
@public("measure", module="skimage.feature.peak", rust="peak_local_max", differs="no `labels` or `p_norm`", accel=Terms(f"peaks {PIXELS}"))
@of_any_library
def peak_local_max(
    image: ArrayLike,
    min_distance: int = 1,
    threshold_abs: float | None = None,
    threshold_rel: float | None = None,
    exclude_border: bool | int | tuple[int, ...] = True,
    num_peaks: float = np.inf,
    footprint: npt.ArrayLike | None = None,
) -> Array:
    """The positions of local maxima, the highest first (``skimage.feature.peak_local_max``).

    Parameters
    ----------
    image : array_like or Image
        Numbers, of one to three axes.
    min_distance : int
        Pixels from a peak along each axis within which no pixel is higher.
    threshold_abs, threshold_rel : float, optional
        Peaks are above the larger of `threshold_abs`, by default the lowest pixel, and `threshold_rel` times the highest one.
    exclude_border : bool, int or tuple of int
        Peaks are further from the border: by `min_distance`, or by these.
    num_peaks : int
        At most so many, the highest.
    footprint : array_like of bool, optional
        The pixels around, in place of the square of `min_distance`.

    Examples
    --------
    >>> from horus_image.measure import peak_local_max
    >>> peak_local_max([[0, 0, 0, 0, 0], [0, 5, 0, 9, 0], [0, 0, 0, 0, 0]])
    array([[1, 3],
           [1, 1]])
    """
    pixels = on_host(image)
    if isinstance(image, Image) and image.channels:
        raise TypeError("peak_local_max: an image of channels; take one of them")
    none = np.empty((0, pixels.ndim), np.int64)
    widths = _border(pixels, min_distance, exclude_border)
    if not pixels.size:
        return none
    lowest, highest = pixels.min(), pixels.max()
    threshold = lowest if threshold_abs is None else threshold_abs
    if threshold_rel is not None:
        threshold = max(threshold, threshold_rel * highest)
    around = np.ones((2 * min_distance + 1,) * pixels.ndim, bool) if footprint is None else np.asarray(footprint, bool)
    if around.size == 1 or pixels.size == 1:
        peaks = pixels > threshold
    else:
        whole = image if isinstance(image, Image) else pixels
        peaks = np.asarray(whole == maximum_filter(whole, footprint=around, mode="nearest"))
        if peaks.all():
            return none
    for axis, width in enumerate(widths):
        if width > 0:
            ends = np.moveaxis(peaks, axis, 0)
            ends[:width] = ends[-width:] = False
    at = np.nonzero(peaks)
    heights = pixels[at]
    above = heights > threshold
    places = np.transpose(at)[above][np.argsort(-heights[above].astype(np.float64), kind="stable")]
    places = _apart(places, pixels.shape, min_distance)
    return places if num_peaks >= len(places) else places[: int(num_peaks)]


def _border(pixels: Array, min_distance: int, exclude: bool | int | tuple[int, ...]) -> tuple[int, ...]:
    if isinstance(exclude, (bool, np.bool_)):
        return (min_distance if exclude else 0,) * pixels.ndim
    if not isinstance(exclude, tuple):
        if exclude < 0:
            raise ValueError("`exclude_border` cannot be a negative value")
        return (int(exclude),) * pixels.ndim
    if len(exclude) != pixels.ndim:
        raise ValueError("`exclude_border` should have the same length as the dimensionality of the image.")
    if any(width < 0 for width in exclude):
        raise ValueError("`exclude_border` can not be negative")
    return tuple(exclude)


def _apart(places: Array, shape: tuple[int, ...], distance: int) -> Array:
    """Places that are no closer than so many pixels to one before them."""
    if distance <= 1 or len(places) < 2:
        return places
    taken, kept = np.zeros(shape, bool), []
    for i, place in enumerate(map(tuple, places.tolist())):
        if not taken[place]:
            kept.append(i)
            taken[tuple(slice(max(0, p - distance + 1), p + distance) for p in place)] = True
    return places[kept]


@public("feature", module="skimage.feature.corner", rust="peak_local_max", opencv="cv.goodFeaturesToTrack", differs="no `labels`")
@of_any_library
def corner_peaks(
    image: ArrayLike,
    min_distance: int = 1,
    threshold_abs: float | None = None,
    threshold_rel: float | None = None,
    exclude_border: bool | int | tuple[int, ...] = True,
    indices: bool = True,
    num_peaks: float = np.inf,
    footprint: npt.ArrayLike | None = None,
    *,
    p_norm: float = np.inf,
) -> Array:
    """The positions of local maxima, the highest first, none of which is near one before it (``skimage.feature.corner_peaks``).

    Parameters
    ----------
    image : array_like or Image
        Numbers, of one to three axes. It is computed at the call.
    min_distance, threshold_abs, threshold_rel, exclude_border, num_peaks, footprint
        As of `peak_local_max`; of equal pixels that touch, one is a peak.
    indices : bool, optional
        Return positions; otherwise a mask.
    p_norm : float, optional
        How distances are measured: infinite for the longest way along an axis, 2 for straight lines.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.feature import corner_peaks
    >>> response = np.zeros((5, 5))
    >>> response[2:4, 2:4] = 1
    >>> corner_peaks(response)
    array([[2, 2]])
    """
    places = peak_local_max(image, min_distance, threshold_abs, threshold_rel, exclude_border, footprint=footprint)
    kept: list[int] = []
    near = np.zeros(len(places), bool)
    for at, place in enumerate(places):
        if not near[at]:
            kept.append(at)
            near |= np.linalg.norm(places - place, ord=p_norm, axis=1) <= min_distance
    places = places[kept] if num_peaks >= len(kept) else places[kept[: int(num_peaks)]]
    if indices:
        return places
    mask = np.zeros(shape_of(image), bool)
    mask[tuple(places.T)] = True
    return mask
