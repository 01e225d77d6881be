"""The functions that are replaced: a row each, and the conditions of a call under which the result is the library's own."""

from __future__ import annotations

import functools
import importlib
import inspect
import math
from typing import Any, Final

import numpy as np

from ._calls import ALONE, Array, Call, Condition, Row

_WIDE: Final = "integers of many bits"


def _is_floating(dtype: np.dtype[Any]) -> bool:
    return dtype.char in "fd"


def finite(call: Call) -> str | None:
    """Orders and zeros beside NaN and infinities are not the library's."""
    for name in ("cval", "weights", "coordinates"):
        if call[name] is not None and not np.isfinite(call[name]).all():
            return f"{name} that is not finite"
    if not _is_floating(call.image.dtype):
        return None
    with np.errstate(all="ignore"):
        # A sum, which a NaN or an infinity reaches, is faster than a test of each pixel.
        return None if math.isfinite(float(call.image.sum())) else "pixels that are not finite"


def floats(call: Call) -> str | None:
    """Integers are cut: where a number is whole but for a rounding, to one or the other."""
    return None if _is_floating(call.result) else f"a result of {call.result}, which roundings may change"


def summed(call: Call) -> str | None:
    """Floats, or integers whose sums C cuts to integers of 32 bits: beyond them it leaves open what they become."""
    if _is_floating(call.result):
        return None
    if call.image.dtype.kind not in "iu" or call.result.kind not in "iu":
        return f"{call.image.dtype} into {call.result}"
    if max(call.image.dtype.itemsize, call.result.itemsize) > 2:
        return _WIDE
    weights, cval = call["weights"], call["cval"]
    if cval is not None and abs(cval) > 2**16:
        return f"cval={cval}"
    return "weights that leave 32 bits" if weights is not None and np.abs(weights).sum() > 2**14 else None


def same_type(call: Call) -> str | None:
    """Pixels are ordered, not computed."""
    return None if call.result == call.image.dtype else f"{call.image.dtype} into {call.result}"


def one_window(call: Call) -> str | None:
    """A footprint or a size, at which the library does not warn, and no heights."""
    if call["structure"] is not None:
        return "a structure of heights"
    return "a size and a footprint" if call["size"] is not None and call["footprint"] is not None else None


def ranked(call: Call) -> str | None:
    """Of one axis, SciPy 1.15 and newer take a footprint as if it had no gaps."""
    return "a footprint of one axis" if call.image.ndim == 1 and call["footprint"] is not None else None


def several_axes(call: Call) -> str | None:
    """Axes as a sequence, in rising order: libraries take a number, and another order, each in its way."""
    axes = call["axes"]
    if axes is None:
        return None
    if not isinstance(axes, (tuple, list)):
        return "axes that are no sequence"
    places = [axis % call.image.ndim if isinstance(axis, int) else -1 for axis in axes]
    return None if places == sorted(places) else "axes in another order"


def narrow(call: Call) -> str | None:
    """Differences, which are exact."""
    return _WIDE if call.image.dtype.kind in "iu" and call.image.dtype.itemsize > 4 else None


def positive(call: Call) -> str | None:
    """By a sigma of 0 the library divides."""
    return None if call["sigma"] > 0 else "sigma=0"


def held_constant(call: Call) -> str | None:
    """A constant beyond the edges that integers hold."""
    if _is_floating(call.image.dtype) or call["cval"] is None:
        return None
    cval = float(call["cval"])
    if call.image.dtype.kind == "b":
        low, high = 0, 1
    else:
        low, high = np.iinfo(call.image.dtype).min, np.iinfo(call.image.dtype).max
    return None if cval.is_integer() and low <= cval <= high else f"cval={cval}, which {call.image.dtype} does not hold"


def truths(call: Call) -> str | None:
    """Masks, into masks."""
    for name in ("mask", "output"):
        value = call[name]
        if value is not None and not (type(value) is np.ndarray and value.dtype.kind == "b"):
            return f"{name} that is no array of truth values"
    return None


def interpolated(call: Call) -> str | None:
    """Floats between pixels; beyond edges where the library's prefilter is exact, and nearest pixels nowhere."""
    order = call["order"]
    if order == 0:
        return "order=0, whose halves are rounded another way"
    if order is not None and order > 1 and call["prefilter"] is not False and call["mode"] not in ("constant", "mirror", "grid-wrap"):
        return f"a prefilter with mode={call['mode']!r}"
    return None


_NEAR: Final = 1e-6
"""Pixels from the edge of an image within which roundings take a position across it."""

_ENDING: Final = ("constant", "wrap")
"""Modes in which a result jumps at the edge."""

_ON_THE_EDGE: Final = "positions on the edge but for a rounding"


def _meets_edges(shape: Any, matrix: Array, offset: Array, output: Any) -> bool:
    """Returns true if an affine map of the plane takes a pixel close to the first or the last row or column, and not exactly there."""
    numbers = np.concatenate([matrix.ravel(), offset.ravel()]) * 2.0**20
    if np.array_equal(numbers, np.rint(numbers)):
        return False
    rows = np.arange(output[0])
    for axis in range(2):
        down, right = matrix[axis]
        for edge in (0, shape[axis] - 1):
            away = edge - offset[axis] - down * rows
            columns = np.clip(np.rint(away / right), 0, output[1] - 1) if abs(right) > 1e-12 else 0
            if (np.abs(away - right * columns) < _NEAR).any():
                return True
    return False


def mapped(call: Call) -> str | None:
    """Affine maps whose positions keep away from edges where the result jumps."""
    if call["mode"] not in _ENDING:
        return None
    matrix, offset = np.asarray(call["matrix"], float), np.zeros(2) + call["offset"]
    if call.image.ndim != 2 or matrix.shape not in ((2,), (2, 2)):
        return f"a map with mode={call['mode']!r}"
    square = np.diag(matrix) if matrix.ndim == 1 else matrix
    output = call["output_shape"] or (call["output"].shape if type(call["output"]) is np.ndarray else call.image.shape)
    return _ON_THE_EDGE if _meets_edges(call.image.shape, square, offset, output) else None


def rotated(call: Call) -> str | None:
    """Rotations, as `mapped`."""
    axes = sorted(call["axes"])
    if call["mode"] not in _ENDING:
        return None
    if call.image.ndim < 2 or len(axes) != 2 or axes[0] < 0 or axes[1] >= call.image.ndim:
        return "axes that are no plane"
    turn = np.deg2rad(call["angle"])
    matrix = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    matrix = np.where(np.abs(matrix - np.rint(matrix)) < 1e-12, np.rint(matrix), matrix)
    shape = np.array(call.image.shape)[axes]
    output = shape
    if call["reshape"]:
        bounds = matrix @ [[0, 0, shape[0], shape[0]], [0, shape[1], 0, shape[1]]]
        output = (np.ptp(bounds, axis=1) + 0.5).astype(int)
    offset = (shape - 1) / 2 - matrix @ ((output - 1) / 2)
    return _ON_THE_EDGE if _meets_edges(shape, matrix, offset, output) else None


def shifted(call: Call) -> str | None:
    """Translations, as `mapped`."""
    fraction = np.abs(np.asarray(call["shift"]) % 1.0)
    near = (fraction != 0) & ((fraction < _NEAR) | (fraction > 1 - _NEAR))
    return _ON_THE_EDGE if call["mode"] in _ENDING and near.any() else None


def zoomed(call: Call) -> str | None:
    """Zooms whose last pixel falls on the last of the image."""
    factors = np.zeros(call.image.ndim) + call["zoom"]
    if (factors == 1.0).all():
        return "zoom=1, a copy in newer versions"
    if call["mode"] not in _ENDING:
        return None
    if call["grid_mode"]:
        return f"grid_mode with mode={call['mode']!r}"
    for extent, factor in zip(call.image.shape, factors, strict=True):
        last = round(extent * factor) - 1
        if last > 0 and last * ((extent - 1) / last) != extent - 1:
            return _ON_THE_EDGE
    return None


def background(call: Call) -> str | None:
    """In planes and volumes, and not without any background."""
    if call.image.ndim not in {2, 3}:
        return "distances in other than two or three axes"
    if call["distances"] is not None or call["indices"] is not None:
        return "arrays for the results"
    return "no background" if call.image.all() else None


def label_types(call: Call) -> str | None:
    """Labels of the default type."""
    output = call["output"]
    return None if output is None or call.result == np.int32 else f"labels of {call.result}"


def labelled(call: Call) -> str | None:
    """By whole labels: without any, NumPy's are as fast."""
    if call["labels"] is None or call["index"] is None:
        return "no labels"
    kinds = {np.asarray(call[name]).dtype.kind for name in ("labels", "index")}
    return None if kinds <= {"i", "u"} else "labels that are no integers"


def counted(call: Call) -> str | None:
    """Whole numbers, which no rounding takes across the edge of a bin, of all pixels."""
    if call["labels"] is not None or call["index"] is not None:
        return "labels"
    return None if call.image.dtype.kind in "iu" else f"bins of {call.image.dtype}"


def double(call: Call) -> str | None:
    """Integers and ``float64``."""
    return None if call.image.dtype.char != "f" else "an image of float32"


def integers(call: Call) -> str | None:
    """Integers without sign, not all alike, of which each has its own bin."""
    if call.image.dtype.kind != "u":
        return f"a histogram of {call.image.dtype}"
    if call.image.ndim > 2 and call.image.shape[-1] in (3, 4):
        return "an image of channels"
    return "an image of one number" if call.image.min() == call.image.max() else None


def unguided(call: Call) -> str | None:
    """A guess makes the library's iteration one in integers."""
    return None if call["initial_guess"] is None else "an initial_guess"


def numbers(call: Call) -> str | None:
    """Numbers, not truth values, of two or three axes."""
    if call.image.ndim < 2:
        return "an image of one axis"
    return "an image of truth values" if call.image.dtype.kind == "b" else None


def ridges(call: Call) -> str | None:
    """Planes whose pixels differ: of others the result, as large as any, may be that of roundings."""
    if call.image.ndim != 2 or call.image.dtype.kind == "b":
        return ALONE
    return ALONE if call.image.min() == call.image.max() else None


def frangi(call: Call) -> str | None:
    """Ridges in ``float64``: those of ``float32`` hang on the sign of what is nearly 0."""
    return ALONE if call.image.dtype.char == "f" else ridges(call)


def canny(_call: Call) -> str | None:
    """Of two equal magnitudes, a rounding says which is an edge."""
    return ALONE


@functools.cache
def _counts_from_the_last() -> bool:
    """Returns true if scikit-image's `unsharp_mask` has got the axis right (its issue 7264): else it takes the first, which here is too short."""
    function = inspect.unwrap(importlib.import_module("skimage.filters._unsharp_mask").unsharp_mask)
    try:
        function(np.zeros((2, 2, 3)), channel_axis=-1)
    except IndexError:
        return False
    return True


def channels_counted(call: Call) -> str | None:
    """A negative axis of channels scikit-image 0.26 takes for the first: most of its result is never written."""
    axis = call["channel_axis"]
    return None if axis is None or axis >= 0 or _counts_from_the_last() else "a negative channel_axis"


def peaks(call: Call) -> str | None:
    """Distances at which the library does not warn, and borders of a kind that it takes."""
    border = call["exclude_border"]
    if call["min_distance"] < 1 or not all(isinstance(one, int) for one in (border if isinstance(border, tuple) else (border,))):
        return "another distance or border than whole numbers"
    return None


def measured(call: Call) -> str | None:
    """Measures that no cancellation makes inexact, and that the library takes in ``float64``."""
    properties, intensities = call["properties"], call["intensity_image"]
    if "intensity_std" in properties or "orientation" in properties:
        return "a deviation, which cancels, or an orientation, which jumps half a turn"
    if intensities is not None and intensities.dtype.char == "f":
        return "intensities of float32"
    if intensities is None and any("intensity" in name or "weighted" in name for name in properties):
        return "no intensity image"
    return numbers(call)


def rows(
    module: str,
    area: str,
    names: str,
    *conditions: Condition,
    bounds: tuple[float, float] = (0.0, 0.0),
    scalar: type[np.generic] | None = None,
) -> list[Row]:
    """Rows of functions that a module of Horus has under the library's names."""
    return [Row(module, name, f"{area}.{name}", conditions, bounds, scalar) for name in names.split()]


_ORDERS: Final = (same_type, one_window, several_axes, held_constant, finite)
_SUMS: Final = (1e-5, 1e-12)
_POSITIONS: Final = (1e-5, 1e-6)
"""Positions in the plane are held to 2^-21 of a pixel."""

_PIXELS: Final = (numbers, finite)
_NDIMAGE: Final = ("scipy.ndimage", "ndimage")

ROWS: Final[list[Row]] = [
    *rows(
        *_NDIMAGE,
        "gaussian_filter gaussian_laplace uniform_filter uniform_filter1d",
        summed,
        several_axes,
        finite,
        bounds=_SUMS,
    ),
    # Squares of integers wrap around, and roots of what is negative warn.
    *rows(*_NDIMAGE, "gaussian_gradient_magnitude", floats, several_axes, finite, bounds=_SUMS),
    *rows(*_NDIMAGE, "gaussian_filter1d", summed, positive, finite, bounds=_SUMS),
    *rows(*_NDIMAGE, "correlate correlate1d convolve convolve1d sobel prewitt laplace", summed, several_axes, finite, bounds=_SUMS),
    *rows(
        *_NDIMAGE,
        "minimum_filter maximum_filter minimum_filter1d maximum_filter1d grey_erosion grey_dilation grey_opening grey_closing",
        *_ORDERS,
    ),
    *rows(*_NDIMAGE, "median_filter percentile_filter rank_filter", ranked, *_ORDERS),
    *rows(*_NDIMAGE, "morphological_gradient white_tophat black_tophat", *_ORDERS, narrow),
    *rows(*_NDIMAGE, "binary_erosion binary_dilation binary_opening binary_closing binary_propagation binary_fill_holes binary_hit_or_miss", truths, several_axes),
    *rows(*_NDIMAGE, "zoom", floats, interpolated, zoomed, finite, bounds=_POSITIONS),
    *rows(*_NDIMAGE, "rotate", floats, interpolated, rotated, finite, bounds=_POSITIONS),
    *rows(*_NDIMAGE, "shift", floats, interpolated, shifted, finite, bounds=_POSITIONS),
    *rows(*_NDIMAGE, "affine_transform", floats, interpolated, mapped, finite, bounds=_POSITIONS),
    *rows(*_NDIMAGE, "map_coordinates", floats, interpolated, finite, bounds=_SUMS),
    *rows(*_NDIMAGE, "spline_filter spline_filter1d", floats, interpolated, finite, bounds=_SUMS),
    *rows(*_NDIMAGE, "distance_transform_edt", background, bounds=(0.0, 1e-12)),
    *rows(*_NDIMAGE, "label", label_types),
    *rows(*_NDIMAGE, "minimum maximum", labelled, finite),
    *rows(*_NDIMAGE, "histogram", counted),
    *rows("skimage.filters.ridges", "filters", "sato meijering", ridges, *_PIXELS, bounds=(2e-5, 1e-10)),
    *rows("skimage.filters.ridges", "filters", "frangi", frangi, *_PIXELS, bounds=(0.0, 1e-4)),
    *rows("skimage.filters.thresholding", "filters", "threshold_otsu threshold_yen", integers, scalar=np.int64),
    *rows("skimage.filters.thresholding", "filters", "threshold_li", integers, unguided, bounds=(0.0, 1e-9), scalar=np.float64),
    *rows("skimage.filters.thresholding", "filters", "threshold_niblack threshold_sauvola", double, *_PIXELS, bounds=(0.0, 1e-5)),
    *rows("skimage.filters.thresholding", "filters", "threshold_local", *_PIXELS, bounds=_SUMS),
    *rows("skimage.filters.thresholding", "filters", "apply_hysteresis_threshold", *_PIXELS),
    *rows("skimage.filters._unsharp_mask", "filters", "unsharp_mask", channels_counted, *_PIXELS, bounds=_SUMS),
    *rows("skimage.filters._gaussian", "filters", "difference_of_gaussians", *_PIXELS, bounds=_SUMS),
    *rows("skimage.feature._canny", "filters", "canny", canny),
    *rows("skimage.feature.peak", "measure", "peak_local_max", peaks, *_PIXELS),
    *rows("skimage.morphology.grayreconstruct", "filters", "reconstruction", *_PIXELS),
    *rows("skimage.measure._regionprops", "measure", "regionprops_table", measured, bounds=(1e-7, 1e-7)),
]
