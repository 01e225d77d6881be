"""Morphology of masks, with the rules of ``scipy.ndimage``."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import _horus
from ._colours import Colours, by_pixels
from ._dtype import NATIVE
from ._foreign import of_any_library, read
from ._image import Array, Image
from ._kept import kept
from ._order import extreme_under
from ._public import Terms, public
from ._session import Session
from ._splines import padded
from ._values import Value, axes_of, beside, enter, filtered, for_each, leave, of_each_channel, offsets_of, output_type, placed, widened
from .typing import ArrayLike, Ints, Output, Pixels

DType = np.dtype[Any]
_MASKS: Final = Terms("truths several_axes")
_BOOL: Final = NATIVE["bool"]
_MOST_AXES: Final = 15
_MOST_PIXELS: Final = 2**31 - 1
"""Of an image that grows within another in one operation."""
_MOST_STEPS: Final = 60
"""Steps that are recorded before it is looked at whether they changed anything; a multiple of the periods in which masks may repeat."""

_MOST_RECORDED: Final = 1000
"""Steps that are recorded without a look."""


@public("ndimage", rust="Footprint::cross", opencv="cv.getStructuringElement")
def generate_binary_structure(rank: int, connectivity: int) -> Array:
    """The pixels at most `connectivity` steps along axes from the centre of 3x3x.. pixels (``scipy.ndimage``'s).

    Examples
    --------
    >>> from horus_image.ndimage import generate_binary_structure
    >>> generate_binary_structure(2, 1).astype(int)
    array([[0, 1, 0],
           [1, 1, 1],
           [0, 1, 0]])
    """
    if rank < 1:
        return np.array(True, dtype=bool)
    if rank > _MOST_AXES:
        raise ValueError(f"a structure of {rank} axes, with 3 pixels along each; the limit is {_MOST_AXES}")
    away = functools.reduce(np.add.outer, [np.array([1, 0, 1], np.int8)] * rank)
    return np.asarray(away <= max(connectivity, 1))


@public("ndimage")
@of_any_library
def iterate_structure(structure: npt.ArrayLike, iterations: int, origin: Ints | None = None) -> Array | tuple[Array, list[int]]:
    """A structure dilated by itself (``scipy.ndimage.iterate_structure``)."""
    element = np.asarray(structure)
    if iterations < 2:
        return np.array(element)
    more = iterations - 1
    grown = np.zeros([size + more * (size - 1) for size in element.shape], bool)
    grown[tuple(slice(more * (size // 2), more * (size // 2) + size) for size in element.shape)] = element != 0
    dilated = np.asarray(binary_dilation(grown, element, iterations=more))
    if origin is None:
        return dilated
    return dilated, [iterations * at for at in for_each(origin, element.ndim)]


@functools.cache
def _cross(ndim: int) -> Array:
    """The pixels that share a face, not to be written to."""
    return generate_binary_structure(ndim, 1)


_MOST_KEPT: Final = 4096
"""Pixels of an element whose offsets are kept for the next call."""


@functools.lru_cache(maxsize=128)
def _offsets(
    shape: tuple[int, ...], flags: bytes, origins: tuple[int, ...], dilates: bool
) -> list[tuple[int, int, int]]:
    """The offsets of an element's pixels, turned for a dilation; not to be written to."""
    element = np.frombuffer(flags, bool).reshape(shape)
    if dilates:
        element = element[(slice(None, None, -1),) * len(shape)]
        origins = tuple(-at - (1 - size % 2) for at, size in zip(origins, shape, strict=True))
    if not all(0 <= size // 2 + at < size for size, at in zip(shape, origins, strict=True)):
        raise ValueError("invalid origin")
    return offsets_of(element, origins) if shape else [(0, 0, 0)]


class _Step:
    """An erosion, or a dilation, by an element; pixels outside the mask stay."""

    def __init__(
        self, ndim: int, structure: Any, mask: Value | None, border_value: Any, origin: Any, dilates: bool, axes: Any = None
    ) -> None:
        at = axes_of(axes, ndim)
        element = _cross(len(at)) if structure is None else np.asarray(structure, dtype=bool)
        element = widened(element, at, ndim, "structure")
        if element.size < 1:
            raise RuntimeError("structure must not be empty")
        origins = tuple(operator.index(one) for one in placed(origin, at, ndim, 0))
        found = _offsets if element.size <= _MOST_KEPT else _offsets.__wrapped__
        self.offsets = found(element.shape, element.tobytes(), origins, dilates)
        self.which = "max" if dilates else "min"
        self.beyond = 1.0 if border_value else 0.0
        self.mask = mask

    def apply(self, value: Value) -> Value:
        if self.offsets:
            found = extreme_under(value, self.offsets, "constant", self.beyond, self.which).core
        else:
            # Of no pixels, all are true, and none is.
            nothing = _horus.compare("lt", value.numbers(), 0.0)
            found = nothing if self.which == "max" else _horus.invert(nothing)
        if self.mask is not None:
            kept = _horus.logic("and", value.core, _horus.invert(self.mask.core))
            found = _horus.logic("or", _horus.logic("and", found, self.mask.core), kept)
        return value.like(found)

    def repeat(self, value: Value, iterations: int) -> Value:
        """Repeats the step `count` times; below 1, until nothing changes. Steps that would change nothing are skipped."""
        if 1 <= iterations <= _MOST_RECORDED:
            for _ in range(iterations):
                value = self.apply(value)
            return value
        around = neighbours_of(self.offsets) if iterations < 1 and (0, 0, 0) in self.offsets else None
        depth, height, width, _channels = value.core.shape
        if around is not None and depth * height * width <= _MOST_PIXELS:
            return self._settled(value, around)
        endless, left, steps = iterations < 1, iterations, 1
        while endless or left:
            before, taken = value, steps if endless else min(steps, left)
            for _ in range(taken):
                value = self.apply(value)
            left -= taken
            if _horus.equal(value.core, before.core):
                # From here on the mask repeats itself, after `taken` steps at most: what has no centre may go back and forth.
                if not endless:
                    left %= taken
                elif taken == 1 or _horus.equal(self.apply(value).core, value.core):
                    return value
                else:
                    raise ValueError("the mask changes back and forth, and never stays as it is; give a number of iterations")
            steps = min(2 * steps, _MOST_STEPS)
        return value

    def _settled(self, value: Value, around: list[bool]) -> Value:
        """The fixed point of the steps: reconstruction from the set pixels, within those that may change, with values beyond the edges."""
        grows, given = self.which == "max", value.core
        start = self.apply(value) if (self.beyond == 1.0) == grows else value
        changing = _horus.logic("or", given, _horus.invert(given)) if self.mask is None else self.mask.core
        if grows:
            limit = _horus.logic("or", given, changing)
        else:
            limit = _horus.logic("and", given, _horus.invert(changing))
        cores = [start.numbers(), value.like(limit).numbers()]
        found = of_each_channel(cores, lambda seed, within: _horus.reconstruct(seed, within, around, not grows))
        return value.like(_horus.compare("gt", found, 0.0))


def neighbours_of(offsets: Iterable[tuple[int, int, int]]) -> list[bool] | None:
    """Flags for the 27 pixels around one that are among offsets, if these are symmetric and not further away."""
    found = set(offsets)
    if any(max(map(abs, by)) > 1 or (-by[0], -by[1], -by[2]) not in found for by in found):
        return None
    return [by in found for by in itertools.product((-1, 0, 1), repeat=3)]


def _truths(input: Any) -> Any:
    """The input; of 64-bit integers, which `float64` does not hold all, where they are not 0."""
    if type(input) is Colours:
        return Colours(_truths(input.array))
    array = input if isinstance(input, Image) else read(input)
    wide = isinstance(array, np.ndarray) and array.dtype.kind in "iu" and array.dtype.itemsize == 8
    return array != 0 if wide else array


def _mask_of(mask: Any, given: Any, like: Value | None, output: Array | None, name: str) -> Value | None:
    if mask is None:
        return None
    mask = beside(mask, given)
    if isinstance(mask, np.ndarray):
        # An array that is read in place must not be written to meanwhile.
        mask = mask.copy() if output is not None and np.may_share_memory(mask, output) else mask
    if tuple(mask.shape) != tuple(given.shape):
        raise RuntimeError("mask and input must have equal sizes")
    if like is not None and like.channels and not (isinstance(mask, Image) and mask.channels):
        mask = Colours(mask.compute() if isinstance(mask, Image) else mask)
    value, _ = enter(_truths(mask), name, None if like is None else like.session)
    return None if value is None else value.cast(_BOOL)


def _steps(
    name: str,
    input: Any,
    structure: Any,
    iterations: Any,
    mask: Any,
    output: Any,
    border_value: Any,
    origin: Any,
    dilations: tuple[bool, ...],
    axes: Any,
) -> Pixels:
    try:
        count = operator.index(iterations)
    except TypeError as error:
        raise TypeError("iterations parameter should be an integer") from error
    if output is not None and np.iscomplexobj(output):
        raise TypeError("Complex output type not supported")
    # As in SciPy, a requested type is ignored: the result is a mask, converted only to the type of an array.
    into = output if isinstance(output, np.ndarray) else None
    value, given = enter(_truths(input), name)
    within = _mask_of(mask, given, value, into, name)
    if into is not None and into.shape != given.shape:
        raise RuntimeError("output shape not correct")
    ndim = given.ndim if value is None else value.ndim
    steps = [_Step(ndim, structure, within, border_value, origin, dilates, axes) for dilates in dilations]
    if value is None:
        return into if into is not None else np.zeros(given.shape, bool)
    value = value.cast(_BOOL)
    for step in steps:
        value = step.repeat(value, count)
    return leave(value if into is None else value.cast(output_type(into, _BOOL)), into, given, name, mask)


@public("ndimage", rust="erode", opencv="cv.erode", accel=_MASKS)
@kept
@by_pixels("structure")
def binary_erosion(
    input: ArrayLike,
    structure: npt.ArrayLike | None = None,
    iterations: int = 1,
    mask: ArrayLike | None = None,
    output: Output = None,
    border_value: int = 0,
    origin: Ints = 0,
    brute_force: bool = False,
    *,
    axes: Ints | None = None,
) -> Pixels:
    """True where a mask is true under all of an element (``scipy.ndimage.binary_erosion``).

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.ndimage import binary_erosion
    >>> binary_erosion(np.ones((3, 4), bool)).astype(int)
    array([[0, 0, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 0, 0]])
    """
    return _steps("binary_erosion", input, structure, iterations, mask, output, border_value, origin, (False,), axes)


@public("ndimage", rust="dilate", opencv="cv.dilate", accel=_MASKS)
@kept
@by_pixels("structure")
def binary_dilation(
    input: ArrayLike,
    structure: npt.ArrayLike | None = None,
    iterations: int = 1,
    mask: ArrayLike | None = None,
    output: Output = None,
    border_value: int = 0,
    origin: Ints = 0,
    brute_force: bool = False,
    *,
    axes: Ints | None = None,
) -> Pixels:
    """True where a mask is true somewhere under an element (``scipy.ndimage.binary_dilation``)."""
    return _steps("binary_dilation", input, structure, iterations, mask, output, border_value, origin, (True,), axes)


@public("ndimage", rust="opening", opencv="MORPH_OPEN", accel=_MASKS)
@kept
@by_pixels("structure")
def binary_opening(
    input: ArrayLike,
    structure: npt.ArrayLike | None = None,
    iterations: int = 1,
    output: Output = None,
    origin: Ints = 0,
    mask: ArrayLike | None = None,
    border_value: int = 0,
    brute_force: bool = False,
    *,
    axes: Ints | None = None,
) -> Pixels:
    """Erosions, then dilations (``scipy.ndimage.binary_opening``)."""
    return _steps("binary_opening", input, structure, iterations, mask, output, border_value, origin, (False, True), axes)


@public("ndimage", rust="closing", opencv="MORPH_CLOSE", accel=_MASKS)
@kept
@by_pixels("structure")
def binary_closing(
    input: ArrayLike,
    structure: npt.ArrayLike | None = None,
    iterations: int = 1,
    output: Output = None,
    origin: Ints = 0,
    mask: ArrayLike | None = None,
    border_value: int = 0,
    brute_force: bool = False,
    *,
    axes: Ints | None = None,
) -> Pixels:
    """Dilations, then erosions (``scipy.ndimage.binary_closing``)."""
    return _steps("binary_closing", input, structure, iterations, mask, output, border_value, origin, (True, False), axes)


@public("ndimage", rust="reconstruct", accel=_MASKS)
@kept
@by_pixels("structure")
def binary_propagation(
    input: ArrayLike,
    structure: npt.ArrayLike | None = None,
    mask: ArrayLike | None = None,
    output: Output = None,
    border_value: int = 0,
    origin: Ints = 0,
    *,
    axes: Ints | None = None,
) -> Pixels:
    """Dilations within a mask until nothing changes (``scipy.ndimage.binary_propagation``): one operation where the structure has its centre,
    is symmetric and has no pixels further away than its neighbours.

    Examples
    --------
    >>> from horus_image.ndimage import binary_propagation
    >>> binary_propagation([0, 1, 0, 0, 0], mask=[0, 1, 1, 0, 1]).astype(int)
    array([0, 1, 1, 0, 0])
    """
    return _steps("binary_propagation", input, structure, -1, mask, output, border_value, origin, (True,), axes)


@public("ndimage", rust="reconstruct", opencv="cv.floodFill", accel=_MASKS)
@kept
@by_pixels("structure")
def binary_fill_holes(
    input: ArrayLike, structure: npt.ArrayLike | None = None, output: Output = None, origin: Ints = 0, *, axes: Ints | None = None
) -> Pixels:
    """A mask without its holes (``scipy.ndimage.binary_fill_holes``): what is connected with the outside stays. With a structure
    that does not join what shares a face, or has pixels further away, what lies outside is dilated from the edges until nothing changes.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.ndimage import binary_fill_holes
    >>> binary_fill_holes(np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]])).all()
    np.True_
    """

    def record(value: Value, _dtype: DType) -> Value:
        background = value.like(_horus.invert(value.cast(_BOOL).core), _BOOL)
        around = _neighbours(value, structure, origin, axes)
        if around is not None:
            outer = of_each_channel([background.core], lambda core: _outside(Value(core, _BOOL, value.shape, value.session), around))
            filled = value.like(_horus.invert(outer), _BOOL)
            return filled if not isinstance(output, np.ndarray) else filled.cast(output.dtype)
        seed = value.like(_horus.logic("xor", background.core, background.core), _BOOL)
        outside = _Step(value.ndim, structure, background, 1, origin, True, axes).repeat(seed, -1)
        filled = outside.like(_horus.invert(outside.core))
        return filled if not isinstance(output, np.ndarray) else filled.cast(output.dtype)

    return filtered("binary_fill_holes", _truths(input), output if isinstance(output, np.ndarray) else _BOOL, record)


def _neighbours(value: Value, structure: Any, origin: Any, axes: Any) -> list[bool] | None:
    """Flags for the 27 pixels around one that a structure joins, if it joins those that share a face, of a plane or of a volume, and none
    further away."""
    at = axes_of(axes, value.ndim)
    element = _cross(len(at)) if structure is None else np.asarray(structure, dtype=bool)
    if value.ndim < 2 or element.ndim != len(at) or any(placed(origin, at, value.ndim, 0)):
        return None
    element = widened(element, at, value.ndim, "structure")
    joined = element.shape.count(3)
    if element.shape not in ((1,) * (value.ndim - 2) + (3, 3), (3,) * value.ndim):
        return None
    if not np.array_equal(element, np.flip(element)) or not element.reshape((3,) * joined)[_cross(joined)].all():
        return None
    around = np.zeros((3, 3, 3), bool)
    around[(1,) * (3 - joined)] = element
    return [bool(there) for there in around.ravel()]


def _outside(background: Value, around: list[bool]) -> _horus.Image:
    """The part of the background connected with the outside: of all components the one of the first pixel, in each level where none is joined
    with another."""
    levels = any(around[:9])
    wide = padded(background.like(background.numbers(), NATIVE["u8"]), 1, "constant", 1.0, levels)
    labels = _horus.label(wide.core, around)
    outside = _horus.compare("eq", labels, _horus.crop(labels, (0, 0, 0), (labels.shape[0], 1, 1)))
    depth, height, width, _ = background.core.shape
    return _horus.crop(outside, (int(levels), 1, 1), (depth, height, width))


@public("ndimage", opencv="MORPH_HITMISS", accel=_MASKS)
@kept
@by_pixels("structure1", "structure2")
def binary_hit_or_miss(
    input: ArrayLike,
    structure1: npt.ArrayLike | None = None,
    structure2: npt.ArrayLike | None = None,
    output: Output = None,
    origin1: Ints = 0,
    origin2: Ints | None = None,
    *,
    axes: Ints | None = None,
) -> Pixels:
    """True where one element fits into a mask and another into its complement (``scipy.ndimage.binary_hit_or_miss``)."""

    def record(value: Value, _dtype: DType) -> Value:
        mask = value.cast(_BOOL)
        count = len(axes_of(axes, value.ndim))
        first = generate_binary_structure(count, 1) if structure1 is None else np.asarray(structure1, dtype=bool)
        second = np.logical_not(first) if structure2 is None else np.asarray(structure2, dtype=bool)
        fits = _Step(value.ndim, first, None, 0, origin1, False, axes).apply(mask)
        around = mask.like(_horus.invert(mask.core))
        misses = _Step(value.ndim, second, None, 1, origin1 if origin2 is None else origin2, False, axes).apply(around)
        found = mask.like(_horus.logic("and", fits.core, misses.core))
        return found if not isinstance(output, np.ndarray) else found.cast(output.dtype)

    return filtered("binary_hit_or_miss", _truths(input), output if isinstance(output, np.ndarray) else _BOOL, record)
