"""Measurements of images and of their labels, with the rules of ``scipy.ndimage``. They are evaluated at the call."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import _horus
from ._binary import generate_binary_structure
from ._dtype import LARGEST, NATIVE, is_native
from ._foreign import DeviceArray, of_any_library, on_host, read, session_of
from ._image import Array, Image, made
from ._jit import jit
from ._kept import kept, of_session
from ._public import Terms, public
from ._session import Session, current, of_parts
from ._values import Value, beside, enter, read_out
from .typing import ArrayLike, Centres, Extrema, Labelled, Measured, Output, Positions

_LABELS: Final = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.int32))
FEW_LABELS: Final = 1 << 18
"""Labels from which on they are numbered anew, where there are more of them than pixels."""


@kept
def _of_all(input: Any, name: str) -> Any:
    """A measure of all pixels, as the only element of an array."""
    value, _ = enter(input, name)
    assert value is not None
    core = _horus.reduced(value.numbers(), name)
    return read_out(Value(core, NATIVE[core.dtype], (1,), value.session))


_FIRST: Final = np.zeros(1, np.int64)
"""The index of the only group."""


class Groups:
    """The pixels of each group that is asked for: all, those with a label, those with one of some labels."""

    def __init__(self, name: str, input: Any, labels: Any, index: Any) -> None:
        self.single = labels is None or index is None or bool(np.isscalar(index)) or np.ndim(index) == 0
        if labels is None and index is not None and name == "histogram":
            raise ValueError("index without defined labels")
        if labels is not None:
            input = input if isinstance(input, Image) else read(input)
            labels = beside(labels, input)
            if isinstance(input, np.ndarray):
                input, labels = np.broadcast_arrays(input, on_host(labels))
        if isinstance(input, Image) and input.channels:
            raise TypeError(f"{name}: an image of channels; take one of them")
        self.name = name
        self.given = input if isinstance(input, Image) else read(input)
        self.empty = 0 in self.given.shape
        self.shape = np.shape(index) if not self.single else ()
        self.labels: _horus.Image | None = None
        self.count, self.places = 1, _FIRST
        if labels is not None and not self.empty and not self._marked(labels, index):
            self._number(on_host(labels), index)

    def _marked(self, given: Array | DeviceArray | Image, index: Any) -> bool:
        """Takes labels as they are, wherever they are, if all that are asked for are numbers of their type; returns false if not."""
        wanted = np.asarray(0 if index is None else index).ravel()
        if given.dtype not in _LABELS or wanted.dtype.kind not in "iu" or not wanted.size or given.shape != self.pixels.shape:
            return False
        low, high = int(wanted.min()), int(wanted.max())
        few = self.single or high - low < max(FEW_LABELS, self.given.size)
        if low < 0 or high > np.iinfo(given.dtype).max or not few:
            return False
        value, _ = enter(given, self.name)
        assert value is not None
        core = value.core
        if value.session is not self.pixels.session:
            return False
        if self.single:
            own = _horus.compare("gt", core, 0.0) if index is None else _horus.compare("eq", core, float(low))
            self.labels, self.count, self.places = _horus.convert(own, "u8"), 2, np.ones(1, np.int64)
        else:
            # Pixels of labels below the first that is asked for, such as a background of 0, do not count.
            self.labels = _horus.binary("sub", _horus.convert(core, "i32"), float(low)) if low else core
            self.count, self.places = high - low + 1, wanted.astype(np.int64) - low
        return True

    def _number(self, given: Array, index: Any) -> None:
        """Labels from 0 on, and the indices of the requested ones among them, -1 for a label without pixels."""
        if given.shape != self.pixels.shape:
            given = np.broadcast_to(given, self.pixels.shape)
        if self.single:
            own = (given > 0) if index is None else np.broadcast_to(given == index, given.shape)
            numbered, self.count, self.places = own.astype(np.int32), 2, np.ones(1, np.int64)
        else:
            wanted = np.asarray(index).ravel()
            small = given.dtype.kind in "iub" and given.size > 0
            if small and given.dtype.kind != "b" and given.min() >= 0 and given.max() <= given.size:
                wanted = wanted.astype(np.int64)  # as SciPy does, which counts such labels
            if small and int(given.min()) >= 0 and int(given.max()) < max(FEW_LABELS, given.size):
                numbered, self.count = given.astype(np.int32), int(given.max()) + 1
                found = (wanted >= 0) & (wanted < self.count) & (wanted == np.floor(wanted))
                self.places = np.where(found, wanted, -1).astype(np.int64)
            else:
                known, inverse = np.unique(given, return_inverse=True)
                numbered, self.count = inverse.reshape(given.shape).astype(np.int32), len(known)
                held = np.ones(wanted.shape, bool)
                if {known.dtype.kind, wanted.dtype.kind} == {"i", "u"}:
                    # The common type of both is one of floats, which does not hold all.
                    limits = np.iinfo(known.dtype)
                    held = (wanted >= limits.min) & (wanted <= limits.max)
                    wanted = np.where(held, wanted, 0).astype(known.dtype)
                at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
                self.places = np.where(held & (known[at] == wanted), at, -1).astype(np.int64)
        session = self.pixels.session
        pixels = numbered.reshape(1) if numbered.ndim == 0 else numbered
        self.labels = _horus.Image.of_array(session._core, np.ascontiguousarray(pixels), "i32", False)

    @functools.cached_property
    def pixels(self) -> Value:
        value, _ = enter(self.given, self.name)
        assert value is not None
        return value

    def of(self, name: str, core: _horus.Image | None = None) -> Array:
        """A measure of each requested label, NaN for labels without pixels: of the pixels, or of an image of their extent."""
        if self.labels is None and core is None:
            found: Array = _of_all(self.given, name)
            return found.astype(np.float64, copy=False)
        core = self.pixels.numbers() if core is None else core
        if self.labels is None:
            return np.array([_horus.reduce(core, name)])
        return self._picked(_horus.by_label(core, self.labels, self.count, name))

    def counts(self) -> Array:
        """The number of pixels of each requested label."""
        if self.labels is None:
            return np.array([self.given.size])
        return np.nan_to_num(self._picked(_horus.label_counts(self.labels, self.count).astype(np.float64))).astype(np.int64)

    def centres(self) -> list[Array]:
        """The mean position of each requested label along each axis, weighted by pixels."""
        pixels = self.pixels.floats()
        with np.errstate(divide="ignore", invalid="ignore"):
            total = self.of("sum", pixels)
            moments = [_horus.binary("mul", pixels, _horus.convert(self.pixels.positions(i), "f64")) for i in range(self.pixels.ndim)]
            return [self.of("sum", moment) / total for moment in moments]

    def firsts(self, name: str) -> tuple[Array, list[tuple[np.int64, ...]]]:
        """The extreme of each requested label, and the position of the first pixel that has it; 0 of labels without pixels."""
        extremes, at = self._first(name) if self.single else self._first_of_each(name)
        places = _indices(at, self.given.shape)
        return extremes, list(zip(*places, strict=True)) if places else [()] * len(at)

    def _first(self, name: str) -> tuple[Array, Array]:
        """The extreme of the only group, and its first position: in the first row that has it."""
        core = self.pixels.numbers()
        if self.labels is not None:
            own = _horus.compare("eq", self.labels, 1.0)
            core = _horus.select(own, self.pixels.floats(), math.inf if name == "min" else -math.inf)
        depth, rows, columns, _ = core.shape
        of_rows = _horus.reduce_along(core, name, [2]).to_array([depth * rows])
        row = int(of_rows.argmin() if name == "min" else of_rows.argmax())
        there = _horus.crop(core, (row // rows, row % rows, 0), (1, 1, columns)).to_array([columns])
        return of_rows[row : row + 1], np.array([row * columns + int((there == of_rows[row]).argmax())])

    def _first_of_each(self, name: str) -> tuple[Array, Array]:
        core, session = self.pixels.numbers(), self.pixels.session
        depth, rows, columns, _ = core.shape
        levels, down, along = (_horus.convert(_horus.index(session._core, (depth, rows, columns), axis), "f64") for axis in range(3))
        numbers = _horus.binary("add", _horus.binary("mul", _horus.binary("add", _horus.binary("mul", levels, rows), down), columns), along)
        assert self.labels is not None
        of_label = _horus.by_label(core, self.labels, self.count, name)
        # A row with the extreme of each label, sampled at the labels.
        row, _ = enter(of_label, self.name, session)
        assert row is not None
        none = _horus.binary("mul", along, 0.0)
        spread = _horus.remap(row.core, [none, none, _horus.convert(self.labels, "f64")], 0, "nearest", 0.0)
        there = _horus.compare("eq", _horus.convert(core, "f64"), spread)
        first = _horus.by_label(_horus.select(there, numbers, math.inf), self.labels, self.count, "min")
        extremes, at = (np.where(self.counts() > 0, self._picked(values), 0.0) for values in (of_label, first))
        return extremes, np.where(np.isfinite(at), at, 0.0).astype(np.int64)

    def _picked(self, values: Array) -> Array:
        return np.where(self.places >= 0, values[self.places], np.nan)

    def shaped(self, values: Array) -> Measured:
        """One number, or one per requested label."""
        found: Measured = values.reshape(-1)[0] if self.single else values.reshape(self.shape)
        return found


@public("ndimage", rust="by_label")
@of_any_library
def sum_labels(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Measured:
    """The sum of the pixels of each label (``scipy.ndimage.sum_labels``); exact before it is rounded once.

    Examples
    --------
    >>> from horus_image.ndimage import sum_labels
    >>> sum_labels([1.0, 2.0, 3.0], labels=[1, 1, 2], index=[1, 2])
    array([3., 3.])
    """
    return _sums(input, labels, index)


def _sums(input: Any, labels: Any, index: Any) -> Measured:
    groups = Groups("sum", input, labels, index)
    if groups.empty:
        none: np.generic = groups.given.dtype.type(0).sum()
        return none if groups.single else np.zeros(groups.shape)
    sums = groups.of("sum")
    if groups.labels is not None and np.isnan(sums).any():
        sums = np.where(groups.counts() > 0, sums, 0.0)
    kind = groups.given.dtype.kind
    if groups.single and kind in "iub":
        total = float(sums[0])
        if abs(total) > LARGEST:
            raise ValueError("sum: integers are summed in float64, and the sum is above 2^53")
        whole: np.generic = np.uint64(total) if kind == "u" else np.int64(total)
        return whole
    if groups.single:
        only: np.generic = groups.given.dtype.type(sums[0])
        return only
    return groups.shaped(sums)


@public("ndimage", rust="over")
@of_any_library
def sum(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Measured:
    """The sum of the pixels of each label (``scipy.ndimage.sum``)."""
    return _sums(input, labels, index)


@public("ndimage", rust="over", opencv="cv.mean")
@of_any_library
def mean(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Measured:
    """The mean of the pixels of each label (``scipy.ndimage.mean``); NaN without pixels."""
    return _moment("mean", input, labels, index)


@public("ndimage", rust="over", opencv="cv.meanStdDev")
@of_any_library
def variance(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Measured:
    """The population variance of the pixels of each label (``scipy.ndimage.variance``); NaN without pixels."""
    return _moment("variance", input, labels, index)


@public("ndimage", rust="over", opencv="cv.meanStdDev")
@of_any_library
def standard_deviation(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Measured:
    """The population standard deviation of the pixels of each label (``scipy.ndimage.standard_deviation``)."""
    found: Measured = np.sqrt(variance(input, labels, index))
    return found


def _moment(name: str, input: Any, labels: Any, index: Any) -> Measured:
    groups = Groups(name, input, labels, index)
    if groups.empty:
        return groups.shaped(np.full(max(1, len(groups.places)), np.nan)) if groups.single else np.full(groups.shape, np.nan)
    return groups.shaped(groups.of(name))


@public("ndimage", rust="`median` of `by_label`")
@of_any_library
def median(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Measured:
    """The median of the pixels of each label (``scipy.ndimage.median``); NaN without pixels.

    Of an even number of pixels it is half the sum of the two in the middle. The host orders the pixels, on all its threads.

    Examples
    --------
    >>> from horus_image.ndimage import median
    >>> median([1.0, 2.0, 7.0, 4.0], labels=[1, 1, 1, 2], index=[1, 2])
    array([2., 4.])
    """
    wanted: Any = index
    if labels is None or index is None or np.ndim(wanted) == 0:
        pixels = on_host(input)
        if labels is not None:
            pixels, marked = np.broadcast_arrays(pixels, on_host(labels))
            pixels = pixels[marked > 0 if index is None else marked == wanted]
        middle: np.generic = np.median(pixels)
        return middle
    groups = Groups("median", input, labels, index)
    if groups.empty:
        return np.full(groups.shape, np.nan)
    core = groups.pixels.numbers()
    if groups.pixels.dtype.kind != "f":
        return groups.shaped(groups.of("median", core))
    numbers = _horus.compare("eq", core, core)
    whole = _horus.reduce(_horus.convert(numbers, "u8"), "min") == 1.0
    medians = groups.of("median", core if whole else _horus.select(numbers, core, math.inf))
    if not whole:
        # NaN come last in SciPy's order.
        medians[groups.of("sum", _horus.convert(numbers, "u8")) <= groups.counts() // 2] = np.nan
    return groups.shaped(medians.astype(groups.pixels.dtype))


@public("ndimage", rust="`shapes` of `by_label`", opencv="cv.moments")
@of_any_library
def center_of_mass(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Centres:
    """The mean position of the pixels of each label, weighted by their values (``scipy.ndimage.center_of_mass``).

    Examples
    --------
    >>> from horus_image.ndimage import center_of_mass
    >>> center_of_mass([[1.0, 0.0], [0.0, 3.0]])
    (np.float64(0.75), np.float64(0.75))
    """
    groups = Groups("center_of_mass", input, labels, index)
    if len(groups.given.shape) == 0:
        raise ValueError("center_of_mass: a number has no axes")
    if groups.empty:
        count = max(1, len(groups.places)) if groups.single else math.prod(groups.shape)
        centres = [np.full(count, np.nan)] * len(groups.given.shape)
    else:
        centres = groups.centres()
    if groups.single:
        return tuple(centre[0] for centre in centres)
    return [tuple(v) for v in np.array([centre.reshape(groups.shape) for centre in centres]).T]


@public("ndimage", rust="over", opencv="cv.minMaxLoc", accel=Terms("labelled finite"))
@of_any_library
def minimum(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Measured:
    """The smallest pixel of each label (``scipy.ndimage.minimum``); 0 of a label that no pixel has.

    Examples
    --------
    >>> from horus_image.ndimage import minimum
    >>> minimum([3.0, 2.0, 5.0], labels=[1, 1, 2], index=[1, 2])
    array([2., 5.])
    """
    return _extreme("min", input, labels, index)


@public("ndimage", rust="over", opencv="cv.minMaxLoc", accel=Terms("labelled finite"))
@of_any_library
def maximum(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Measured:
    """The largest pixel of each label (``scipy.ndimage.maximum``); 0 of a label that no pixel has."""
    return _extreme("max", input, labels, index)


def _with_pixels(name: str, input: Any, labels: Any, index: Any) -> Groups:
    """The groups of an extreme: the only one has pixels."""
    groups = Groups(name, input, labels, index)
    if groups.empty or (groups.single and groups.labels is not None and groups.counts()[0] == 0):
        raise ValueError("zero-size array to reduction operation has no identity")
    return groups


def _extreme(name: str, input: Any, labels: Any, index: Any) -> Measured:
    groups = _with_pixels(name, input, labels, index)
    values = groups.of(name)
    if groups.labels is not None and not groups.single:
        values = np.where(groups.counts() > 0, values, 0.0)
    return groups.shaped(values.astype(groups.given.dtype))


@public("ndimage", rust="argmin", opencv="cv.minMaxLoc", accel=Terms("unlabelled finite", times=16))
@of_any_library
def minimum_position(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Positions:
    """The position of the first smallest pixel of each label (``scipy.ndimage.minimum_position``); the first pixel for a label that no pixel has.

    Pixels that are NaN are ignored; of nothing else, the position is that of the first. SciPy raises `IndexError`, or orders NaN last of a label.

    Examples
    --------
    >>> from horus_image.ndimage import minimum_position
    >>> minimum_position([[3.0, 2.0], [5.0, 2.0]])
    (np.int64(0), np.int64(1))
    """
    return _position("min", input, labels, index)


@public("ndimage", rust="argmax", opencv="cv.minMaxLoc", accel=Terms("unlabelled finite", times=16))
@of_any_library
def maximum_position(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Positions:
    """The position of the first largest pixel of each label (``scipy.ndimage.maximum_position``), as `minimum_position`, also with NaN.

    Examples
    --------
    >>> from horus_image.ndimage import maximum_position
    >>> maximum_position([3.0, 2.0, 5.0], labels=[1, 1, 2], index=[1, 2])
    [(np.int64(0),), (np.int64(2),)]
    """
    return _position("max", input, labels, index)


def _position(name: str, input: Any, labels: Any, index: Any) -> Positions:
    groups = _with_pixels(name, input, labels, index)
    _, places = groups.firsts(name)
    return places[0] if groups.single else places


@public("ndimage", rust="over", opencv="cv.minMaxLoc", accel=Terms("unlabelled finite", times=16))
@of_any_library
def extrema(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Extrema:
    """The smallest and the largest pixel of each label, and their first positions (``scipy.ndimage.extrema``).

    Pixels that are NaN are ignored, as by `minimum_position`; of nothing else, the extremes are infinity and minus infinity.

    Examples
    --------
    >>> from horus_image.ndimage import extrema
    >>> extrema([3.0, 2.0, 5.0])
    (np.float64(2.0), np.float64(5.0), (np.int64(1),), (np.int64(2),))
    """
    groups = _with_pixels("extrema", input, labels, index)
    (low, at_low), (high, at_high) = map(groups.firsts, ("min", "max"))
    least, most = (groups.shaped(values.astype(groups.given.dtype)) for values in (low, high))
    return (least, most, at_low[0], at_high[0]) if groups.single else (least, most, at_low, at_high)


def _indices(positions: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """The indices along each axis of positions in C order."""
    return np.unravel_index(positions, shape) if shape else ()


@public("ndimage")
@of_any_library
def value_indices(arr: ArrayLike, *, ignore_value: int | None = None) -> dict[Any, tuple[Array, ...]]:
    """The places of the pixels of each value, as indices along each axis, in the order of values (``scipy.ndimage.value_indices``).

    Parameters
    ----------
    arr : array
        Integers.
    ignore_value : int, optional
        A value that is left out.

    Examples
    --------
    >>> from horus_image.ndimage import value_indices
    >>> value_indices([7, 3, 7])
    {np.int64(3): (array([1]),), np.int64(7): (array([0, 2]),)}
    """
    pixels = on_host(arr)
    if pixels.dtype.kind not in "iu":
        raise ValueError(f"Parameter 'arr' must be an integer array, not one of {pixels.dtype}")
    flat = pixels.ravel()
    if not flat.size:
        return {}
    # NumPy sorts few distinct numbers without comparisons.
    few = int(flat.max()) - int(flat.min()) < 1 << 16
    order = (np.subtract(flat, flat.min()).astype(np.uint16) if few else flat).argsort(kind="stable")
    ordered = flat[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    places = [np.split(along, starts[1:]) for along in _indices(order, pixels.shape)]
    found = dict(zip(ordered[starts], zip(*places, strict=True) if places else [()], strict=True))
    if ignore_value is not None:
        found.pop(pixels.dtype.type(ignore_value), None)
    return found


@public("ndimage", rust="histogram", opencv="cv.calcHist", accel=Terms("counted"))
@of_any_library
def histogram(
    input: ArrayLike, min: float, max: float, bins: int, labels: ArrayLike | None = None, index: ArrayLike | None = None
) -> Array | Any:
    """The number of pixels of each label in equal parts of a range (``scipy.ndimage.histogram``).

    Examples
    --------
    >>> from horus_image.ndimage import histogram
    >>> histogram([0.0, 0.2, 0.2, 0.9], 0, 1, 4)
    array([3, 0, 0, 1])
    """
    if not min <= max:
        raise ValueError(f"histogram: from {min} to {max}; the range begins before it ends")
    groups = Groups("histogram", input, labels, index)
    if groups.empty:
        return np.zeros(bins, np.int64) if groups.single else np.full(groups.shape, None)
    # Bytes are counted before their parts are found.
    core = groups.pixels.numbers() if groups.pixels.core.dtype in ("u8", "bool") else groups.pixels.floats()
    low, high = float(min), float(max)
    if groups.labels is None:
        return _horus.histogram(core, bins, low, high).astype(np.int64)
    rows = _horus.histogram_by_label(core, groups.labels, groups.count, bins, (low, high)).astype(np.int64)
    if groups.single:
        return rows[groups.places[0]] if index is None or groups.counts()[0] else None
    found = np.empty(len(groups.places), object)
    counts = groups.counts()
    for i, place in enumerate(groups.places.tolist()):
        found[i] = rows[place] if place >= 0 and counts[i] else None
    return found.reshape(groups.shape)


@public("ndimage", opencv="cv.connectedComponentsWithStats")
@of_any_library
def find_objects(input: ArrayLike, max_label: int = 0) -> list[tuple[slice, ...] | None]:
    """The rectangle, or box, around each label from 1 on (``scipy.ndimage.find_objects``).

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.ndimage import find_objects
    >>> find_objects(np.array([[0, 1, 1], [0, 0, 2]]))
    [(slice(0, 1, None), slice(1, 3, None)), (slice(1, 2, None), slice(2, 3, None))]
    """
    most = operator.index(max_label)
    there = input if isinstance(input, Image) else read(input)
    if isinstance(there, (Image, DeviceArray)) and there.dtype in _LABELS:
        value, _ = enter(there, "find_objects")
        assert value is not None
        return _boxes(value, most if most > 0 else int(_horus.reduce(value.core, "max")))
    given = on_host(there)
    if np.iscomplexobj(given):
        raise TypeError("Complex type not supported")
    if given.dtype.kind not in "iub":
        raise TypeError("find_objects: labels are integers")
    if most < 1:
        most = int(given.max()) if given.size else 0
    if most > np.iinfo(np.int32).max:
        raise ValueError(f"find_objects: a label of {most}, and the result has an entry for each label up to it; number the labels anew")
    if most < 1 or not given.size:
        return [None] * max(most, 0)
    if given.ndim == 0:
        return [() if label == int(given) else None for label in range(1, most + 1)]
    # Labels below 0 and above the largest do not count.
    labels = given if given.dtype in _LABELS else np.where((given > 0) & (given <= most), given, 0).astype(np.int32)
    value, _ = enter(labels, "find_objects")
    assert value is not None
    return _boxes(value, most)


def _boxes(value: Value, most: int) -> list[tuple[slice, ...] | None]:
    """The boxes around the labels from 1 on."""
    if most < 1:
        return []
    ends = _horus.label_boxes(value.core, most + 1, value.ndim)[:, 1:]
    there = np.isfinite(ends[0])  # infinite without pixels
    ends[1::2] += 1
    whole = np.where(there, ends, 0).astype(np.int64).tolist()
    sides = [map(slice, low, high) for low, high in zip(whole[::2], whole[1::2], strict=True)]
    boxes: list[tuple[slice, ...] | None] = list(zip(*sides, strict=True))
    for lacking in np.flatnonzero(~there).tolist():
        boxes[lacking] = None
    return boxes


@public("ndimage", rust="label", opencv="cv.connectedComponents", accel=Terms("label_types"))
@of_any_library
def label(input: ArrayLike, structure: npt.ArrayLike | None = None, output: Output = None) -> Labelled:
    """The connected components of nonzero pixels (``scipy.ndimage.label``): their labels, and their number.

    Labels of an image, or of an array on a GPU, are an image of ``int32``; to count them evaluates it. In a program of
    `horus_image.dask.map_overlap` their number is an image of one pixel, as the parts of an array do not tell it.

    Raises
    ------
    RuntimeError
        If `output` does not hold every label; truth values hold one.

    Examples
    --------
    >>> from horus_image.ndimage import label
    >>> label([1, 1, 0, 5, 0])
    (array([1, 1, 0, 2, 0], dtype=int32), 2)
    """
    if isinstance(input, Image):
        return _lazy_labels(input, structure, output)
    given = read(input)
    if isinstance(given, DeviceArray):
        if isinstance(output, np.ndarray):
            raise TypeError(_NOT_WRITTEN)
        if not is_native(given.dtype):
            raise TypeError(f"label: {given.dtype} type not supported on a GPU")
        labels, largest = _labelled(given, session_of(given, None), _structure(structure, given.ndim))
        return _as_asked(labels, output, int(float(largest)))
    if np.iscomplexobj(given):
        raise TypeError("Complex type not supported")
    if output is not None and np.dtype(output.dtype if isinstance(output, np.ndarray) else output).kind not in "biuf":
        raise TypeError("label: labels are numbers, and no complex ones")
    neighbours = _structure(structure, given.ndim)
    if isinstance(output, np.ndarray) and output.shape != given.shape:
        raise ValueError("output shape not correct")
    if given.size:
        # Only the distinction of zero and nonzero counts, whatever the type.
        # Bytes are read where they are; of other pixels, bytes are made.
        in_place = is_native(given.dtype) and given.itemsize == 1 and given.flags.c_contiguous
        labels, largest = _labelled(np.ascontiguousarray(given if in_place else given != 0), current(), neighbours)
        found, count = labels.reshape(given.shape), int(largest[0])
    else:
        found, count = np.zeros(given.shape, np.int32), 0
    if output is not None:
        _check_bits(output.dtype if isinstance(output, np.ndarray) else output, count)
    if isinstance(output, np.ndarray):
        output[...] = found
        return count
    return found if output is None else found.astype(output), count


def _check_bits(output: Any, count: int) -> None:
    """Refuses a type that does not hold every label up to this one."""
    dtype = np.dtype(output)
    most = 1 if dtype.kind == "b" else np.iinfo(dtype).max if dtype.kind in "iu" else 2 ** (np.finfo(dtype).nmant + 1)
    if count > most:
        raise RuntimeError("insufficient bit-depth in requested output type")


_NOT_WRITTEN: Final = "a lazy image is not written into an array; compute it, or give an array"


def _labelled(pixels: Array | DeviceArray, session: Session, neighbours: list[bool]) -> Any:
    """The labels of an array, and the largest as the only element of another, by a program that is kept."""

    def record(image: Image) -> tuple[Image, Image]:
        core = _horus.label(image._core, neighbours)
        return made(core, image.session, image.ndim), made(_horus.reduced(core, "max"), image.session, 1)

    return of_session(session, ("label", tuple(neighbours)), lambda: jit(record))(pixels)


def _lazy_labels(image: Image, structure: npt.ArrayLike | None, output: Any) -> tuple[Image, Any]:
    if image.channels:
        raise TypeError("label: an image of channels; take one of them")
    if isinstance(output, np.ndarray):
        raise TypeError(_NOT_WRITTEN)
    labels = made(_horus.label(image._core, _structure(structure, image.ndim)), image.session, image.ndim)
    if of_parts():
        largest = made(_horus.reduced(labels._core, "max"), image.session, 1)
        return labels if output is None else labels.astype(output), largest
    return _as_asked(labels, output, int(_horus.reduce(labels._core, "max")))


def _as_asked(labels: Image, output: Any, count: int) -> tuple[Image, int]:
    if output is None:
        return labels, count
    _check_bits(output, count)
    return labels.astype(output), count


def _structure(structure: npt.ArrayLike | None, ndim: int) -> list[bool]:
    """Flags for the 27 pixels around one that are its neighbours."""
    given = generate_binary_structure(ndim, 1) if structure is None else np.asarray(structure, dtype=bool)
    if given.ndim != ndim:
        raise RuntimeError("structure and input must have equal rank")
    if any(extent != 3 for extent in given.shape):
        raise ValueError("structure dimensions must be equal to 3")
    if ndim > 3:
        raise NotImplementedError(f"label: an array of {ndim} axes; images have up to three")
    if not np.array_equal(given, np.flip(given)):
        raise ValueError("structure must be symmetric")
    around = np.zeros((3, 3, 3), bool)
    around[(1,) * (3 - ndim)] = given
    return [bool(there) for there in around.ravel()]
