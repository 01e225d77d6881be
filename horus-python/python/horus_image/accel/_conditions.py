"""Calls of SciPy's and scikit-image's functions whose results are the library's own: `horus_image.accel` serves these and no others."""

from __future__ import annotations

import functools
import importlib
import inspect
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

ALONE: Final = "a result that hangs on roundings: what the original calls is not served, either"
"""A reason for the original alone."""


class Call:
    """The arguments of a call by name."""

    __slots__ = ("_defaults", "given", "image")

    def __init__(self, image: Array, given: dict[str, Any], defaults: dict[str, Any]) -> None:
        self.image = image
        self.given = given
        """Arguments of the caller beside the image, other than defaults."""
        self._defaults = defaults

    def __getitem__(self, name: str) -> Any:
        """An argument, or its default; nothing if this version of the library has no such parameter."""
        return self.given[name] if name in self.given else self._defaults.get(name)

    @property
    def result(self) -> np.dtype[Any]:
        """The type of the result that `output` asks for, by default the image's."""
        output = self["output"]
        found: np.dtype[Any] = self.image.dtype
        if output is not None:
            found = output.dtype if isinstance(output, np.ndarray) else np.dtype(output)
        return found


Condition = Callable[[Call], "str | None"]
"""Says why a call is not served, or nothing."""


WORDS: Final[dict[str, str]] = {}
"""Of a condition, by its name, when it refuses a call, for the book."""


def unless(words: str) -> Callable[[Condition], Condition]:
    """A condition that the book lists."""

    def listed(condition: Condition) -> Condition:
        WORDS[condition.__name__] = words
        return condition

    return listed


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


@unless("the result is of integers")
def floats(call: Call) -> str | None:
    """Integers are cut: where a number is whole but for a rounding, to one or the other."""
    return None if _is_floating(call.result) else f"a result of {call.result}, which roundings may change"


@unless("integers have more than 16 bits, or sums more than 31; one of image and result is of integers and the other of floats; masks")
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


@unless("the result has another type than the image")
def same_type(call: Call) -> str | None:
    """Pixels are ordered, not computed."""
    return None if call.result == call.image.dtype else f"{call.image.dtype} into {call.result}"


@unless("a `structure` of heights")
def no_heights(call: Call) -> str | None:
    """Heights are added another way."""
    return None if call["structure"] is None else "a structure of heights"


def one_window(call: Call) -> str | None:
    """A footprint or a size, at which the library does not warn."""
    return "a size and a footprint" if call["size"] is not None and call["footprint"] is not None else None


@unless("a footprint of one axis")
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


@unless("integers of 64 bits")
def narrow(call: Call) -> str | None:
    """Differences, which are exact."""
    return _WIDE if call.image.dtype.kind in "iu" and call.image.dtype.itemsize > 4 else None


@unless("`order` other than 1 and 3")
def bilinear_or_bicubic(call: Call) -> str | None:
    """Kernels, not splines, between pixels of planes."""
    return None if call["order"] in (None, 1, 3) else f"order={call['order']}"


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


@unless("masks and outputs are of other types than truth values")
def truths(call: Call) -> str | None:
    """Masks, into masks."""
    for name in ("mask", "output"):
        value = call[name]
        if value is not None and not (type(value) is np.ndarray and value.dtype.kind == "b"):
            return f"{name} that is no array of truth values"
    return None


@unless("`order=0`; splines beyond edges for which SciPy approximates")
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


@unless(_ON_THE_EDGE)
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


@unless(_ON_THE_EDGE)
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


@unless("a constant beyond the range of the image, to which results are limited")
def limited(call: Call) -> str | None:
    """Limits that do not depend on whether a pixel lies beyond the edge but for a rounding."""
    if call["mode"] != "constant" or not call["clip"]:
        return None
    image = call.image
    largest = np.iinfo(image.dtype).max if image.dtype.kind in "iu" and not call["preserve_range"] else 1
    within = image.min() / largest <= call["cval"] <= image.max() / largest
    return None if within else "results limited to the range of an image that lacks cval"


@unless(_ON_THE_EDGE)
def shifted(call: Call) -> str | None:
    """Translations, as `mapped`."""
    fraction = np.abs(np.asarray(call["shift"]) % 1.0)
    near = (fraction != 0) & ((fraction < _NEAR) | (fraction > 1 - _NEAR))
    return _ON_THE_EDGE if call["mode"] in _ENDING and near.any() else None


@unless(_ON_THE_EDGE)
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


@unless("no background")
def background(call: Call) -> str | None:
    """In planes and volumes, and not without any background."""
    if call.image.ndim not in {2, 3}:
        return "distances in other than two or three axes"
    if call["distances"] is not None or call["indices"] is not None:
        return "arrays for the results"
    return "no background" if call.image.all() else None


@unless("labels of another type than `int32`")
def label_types(call: Call) -> str | None:
    """Labels of the default type."""
    output = call["output"]
    return None if output is None or call.result == np.int32 else f"labels of {call.result}"


@unless("no labels")
def labelled(call: Call) -> str | None:
    """By whole labels: without any, NumPy's are as fast."""
    if call["labels"] is None or call["index"] is None:
        return "no labels"
    kinds = {np.asarray(call[name]).dtype.kind for name in ("labels", "index")}
    return None if kinds <= {"i", "u"} else "labels that are no integers"


@unless("labels")
def unlabelled(call: Call) -> str | None:
    """All pixels: of several labels, SciPy's sort says which of equal pixels is the first, and of one it is as fast."""
    return "labels" if call["labels"] is not None or call["index"] is not None else None


@unless("floats; labels")
def counted(call: Call) -> str | None:
    """Whole numbers, which no rounding takes across the edge of a bin, of all pixels."""
    if call["labels"] is not None or call["index"] is not None:
        return "labels"
    return None if call.image.dtype.kind in "iu" else f"bins of {call.image.dtype}"


@unless("`float32`")
def double(call: Call) -> str | None:
    """Integers and ``float64``."""
    return None if call.image.dtype.char != "f" else "an image of float32"


@unless("anything but integers without sign")
def integers(call: Call) -> str | None:
    """Integers without sign, not all alike, of which each has its own bin."""
    if call.image.dtype.kind != "u":
        return f"a histogram of {call.image.dtype}"
    if call.image.ndim > 2 and call.image.shape[-1] in (3, 4):
        return "an image of channels"
    return "an image of one number" if call.image.min() == call.image.max() else None


@unless("integers of more than 16 bits")
def tabled(call: Call) -> str | None:
    """Floats, and integers that a table is made of: others are cut, which a rounding may change."""
    return _WIDE if call.image.dtype.kind in "iu" and call.image.dtype.itemsize > 2 else None


@unless("floats and masks; integers of 64 bits; three axes of which the last is below 4")
def counts_of_integers(call: Call) -> str | None:
    """Integers, of which each has its own bin, and at whose shape the library does not warn."""
    if call.image.dtype.kind not in "iu":
        return f"a histogram of {call.image.dtype}"
    if call.image.ndim == 3 and call.image.shape[-1] < 4 and call["channel_axis"] is None:
        return "an image of channels"
    return narrow(call)


@unless("an `initial_guess`")
def unguided(call: Call) -> str | None:
    """A guess makes the library's iteration one in integers."""
    return None if call["initial_guess"] is None else "an initial_guess"


def numbers(call: Call) -> str | None:
    """Numbers, not truth values, of two or three axes."""
    if call.image.ndim < 2:
        return "an image of one axis"
    return "an image of truth values" if call.image.dtype.kind == "b" else None


@unless("volumes")
def ridges(call: Call) -> str | None:
    """Planes whose pixels differ: of others the result, as large as any, may be that of roundings."""
    if call.image.ndim != 2 or call.image.dtype.kind == "b":
        return ALONE
    return ALONE if call.image.min() == call.image.max() else None


@unless("volumes; `float32`")
def ridges_in_float64(call: Call) -> str | None:
    """Ridges in ``float64``: those of ``float32`` hang on the sign of what is nearly 0."""
    return ALONE if call.image.dtype.char == "f" else ridges(call)


def never(_call: Call) -> str | None:
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


@unless("a negative `channel_axis`, which scikit-image 0.26 takes for the first axis, so that it leaves most of the result unwritten (its issue 7264)")
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


@unless("properties that Horus does not have; `intensity_std`; `orientation`, which jumps half a turn; intensities of `float32`")
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


@unless("labels, not masks; deprecated arguments; `out`")
def masks(call: Call) -> str | None:
    """Masks, into new ones."""
    if call.image.dtype.kind != "b":
        return f"labels of {call.image.dtype}"
    told = [name for name in ("min_size", "area_threshold", "out") if name in call.given]
    return ", ".join(told) or None


@unless("hues below 0")
def hues(call: Call) -> str | None:
    """Hues whose sixth the library holds in 8 bits."""
    if call.image.dtype.kind == "u":
        return None
    return None if call.image.min() >= 0 and call.image.max() < 42 else "hues below 0 or far above 1"


@unless("floats; `outer` of 64-bit integers, whose largest SciPy's erosion does not hold")
def outlined(call: Call) -> str | None:
    """Labels and masks."""
    if call.image.dtype.kind not in "iub":
        return f"labels of {call.image.dtype}"
    return _WIDE if call["mode"] == "outer" and call.image.dtype.itemsize == 8 else None
