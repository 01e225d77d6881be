"""Labels of images with the rules of scikit-image 0.26: numbered anew, grown, and outlined."""

from __future__ import annotations

from typing import Any, Final, Literal, overload

import numpy as np
import numpy.typing as npt

from . import _horus
from ._binary import generate_binary_structure
from ._components import one_channel, returned
from ._distances import _pixel_size
from ._dtype import NATIVE, truth
from ._foreign import of_any_library, on_host, read
from ._image import Array, Image
from ._measurements import FEW_LABELS
from ._order import extreme_under
from ._public import Terms, public
from ._values import Value, leave, limits, offsets_of
from .typing import ArrayLike, HostArray, Pixels

_BOOL: Final = NATIVE["bool"]


class ArrayMap:
    """A map of labels that is indexed like an array of the values of all, without the memory of one (``skimage.util.ArrayMap``).

    >>> import numpy as np
    >>> ArrayMap(np.array([0, 10]), np.array([0, 3]))[np.array([10, 10, 0])]
    array([3, 3, 0])
    """

    def __init__(self, in_values: Array, out_values: Array) -> None:
        self.in_values = in_values
        self.out_values = out_values

    def __len__(self) -> int:
        """One more than the largest label."""
        return int(self.in_values.max()) + 1

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """The values of all labels up to the largest, 0 of those that are not in the map."""
        found = np.zeros(len(self), self.dtype if dtype is None else dtype)
        found[self.in_values] = self.out_values
        return found

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        found: np.dtype[Any] = self.out_values.dtype
        return found

    def __repr__(self) -> str:
        """The labels and their values."""
        return f"ArrayMap({self.in_values!r}, {self.out_values!r})"

    def __call__(self, labels: Any) -> Any:
        """The values of labels."""
        return self[labels]

    def __getitem__(self, labels: Any) -> Any:
        """The values of labels, of a slice of them, or of those that a mask marks."""
        given = np.arange(*labels.indices(len(self))) if isinstance(labels, slice) else on_host(labels)
        if given.dtype.kind == "b":
            given = np.flatnonzero(given)
        if given.dtype.kind not in "iu":
            raise TypeError("The dtype of an array to be remapped should be integer.")
        at = np.minimum(np.searchsorted(self.in_values, given), len(self.in_values) - 1)
        found = np.where(self.in_values[at] == given, self.out_values[at], self.dtype.type(0))
        return found if found.ndim else found[()]


@overload
def relabel_sequential(label_field: Image, offset: int = 1) -> tuple[Image, ArrayMap, ArrayMap]: ...
@overload
def relabel_sequential(label_field: HostArray, offset: int = 1) -> tuple[Array, ArrayMap, ArrayMap]: ...
@overload
def relabel_sequential(label_field: ArrayLike, offset: int = 1) -> tuple[Image | Any, ArrayMap, ArrayMap]: ...
@public("segmentation", module="skimage.segmentation._join", rust="`counts` of `by_label`, `lookup`", differs="its maps are not written to")
@of_any_library
def relabel_sequential(label_field: ArrayLike, offset: int = 1) -> tuple[Image | Any, ArrayMap, ArrayMap]:
    """Labels numbered one after the other, in their order (``skimage.segmentation.relabel_sequential``); 0 stays 0.

    Parameters
    ----------
    label_field : array_like or Image
        Integers from 0 on. They are read at the call.
    offset : int, optional
        The first label.

    Returns
    -------
    relabeled : ndarray or Image
        In the type of the labels, or a larger one that holds all.
    forward_map, inverse_map : ArrayMap
        The new labels of the old ones, and the reverse, which are indexed by labels; ``numpy.array`` makes an array of one.

    Examples
    --------
    >>> from horus_image.segmentation import relabel_sequential
    >>> relabeled, forward, inverse = relabel_sequential([1, 1, 5, 8, 99, 0])
    >>> relabeled
    array([1, 1, 2, 3, 4, 0])
    >>> inverse[relabeled]
    array([ 1,  1,  5,  8, 99,  0])
    """
    if offset <= 0:
        raise ValueError("Offset must be strictly positive.")
    offset = int(offset)
    given = label_field if isinstance(label_field, Image) else read(label_field)
    labels = on_host(given)
    if labels.min() < 0:
        raise ValueError("Cannot relabel array that contains negative values.")
    if labels.dtype.kind not in "iu":
        raise TypeError("label_field must have an integer dtype")
    most = int(labels.max())
    few = most < max(FEW_LABELS, labels.size)
    if few:
        there = np.zeros(most + 1, bool)
        there[labels] = True
        known = np.flatnonzero(there).astype(labels.dtype)
    else:
        known = np.unique(labels)
    numbers = np.arange(offset, offset + len(known))
    if known[0] == 0:
        numbers = np.concatenate([[0], numbers[:-1]])
    needed = np.min_scalar_type(int(numbers[-1]))
    fits = labels.dtype.itemsize >= needed.itemsize and numbers[-1] < np.iinfo(labels.dtype).max
    numbers = numbers.astype(labels.dtype if fits else needed)
    forward, inverse = ArrayMap(known, numbers), ArrayMap(numbers, known)
    found = np.asarray(forward)[labels] if few else numbers[np.searchsorted(known, labels)]
    return returned("relabel_sequential", found, given), forward, inverse


@overload
def join_segmentations(s1: ArrayLike, s2: ArrayLike, return_mapping: Literal[False] = False) -> Image | Any: ...
@overload
def join_segmentations(s1: ArrayLike, s2: ArrayLike, return_mapping: Literal[True]) -> tuple[Image | Any, ArrayMap, ArrayMap]: ...
@public("segmentation", module="skimage.segmentation._join", rust="`a * n + b`", differs="sums of small integers do not overflow")
@of_any_library
def join_segmentations(
    s1: ArrayLike, s2: ArrayLike, return_mapping: bool = False
) -> Image | Any | tuple[Image | Any, ArrayMap, ArrayMap]:
    """A label for each pair of labels that lie over each other (``skimage.segmentation.join_segmentations``), in their order.

    Parameters
    ----------
    s1, s2 : array_like or Image
        Integers from 0 on, of one shape. They are read at the call.
    return_mapping : bool, optional
        Also return the labels of both that those of the result come from.

    Returns
    -------
    ndarray or Image, or tuple of it and two ArrayMap

    Examples
    --------
    >>> from horus_image.segmentation import join_segmentations
    >>> join_segmentations([[0, 0, 1], [2, 2, 1]], [[0, 1, 1], [0, 1, 1]])
    array([[0, 1, 2],
           [3, 4, 2]])
    """
    first, second = (on_host(one) for one in (s1, s2))
    if first.shape != second.shape:
        raise ValueError(f"Cannot join segmentations of different shape. s1.shape: {first.shape}, s2.shape: {second.shape}")
    of_first, of_second = relabel_sequential(first), relabel_sequential(second)
    # In a type that holds all sums of small integers, and that of both otherwise.
    kind = np.result_type(first.dtype, second.dtype, np.min_scalar_type((int(of_first[0].max()) + 1) * (int(second.max()) + 1)))
    factor = kind.type(int(second.max()) + 1)
    sums = factor * of_first[0].astype(kind) + of_second[0].astype(kind)
    joined, _, back = relabel_sequential(sums)
    lazy = next((one for one in (s1, s2) if isinstance(one, Image)), None)
    found = joined if lazy is None else returned("join_segmentations", joined, lazy)
    if not return_mapping:
        return found
    pairs = np.divmod(back.out_values, factor)
    return found, *(ArrayMap(back.in_values, of[2][part]) for of, part in zip((of_first, of_second), pairs, strict=True))


@public(
    "segmentation", module="skimage.segmentation._expand_labels", rust="`nearest` of `distances`, `remap`",
    differs="of labels that are as near, another may win"
)
@of_any_library
def expand_labels(label_image: ArrayLike, distance: float = 1, spacing: float | npt.ArrayLike = 1) -> Pixels:
    """Labels grown over the background up to a distance, each where it is nearest (``skimage.segmentation.expand_labels``).

    Parameters
    ----------
    label_image : array_like or Image
        Labels, 0 for the background. Images stay lazy.
    distance : float, optional
        How far they grow, along a straight line.
    spacing : float or sequence of float, optional
        The size of pixels along each axis.

    Examples
    --------
    >>> from horus_image.segmentation import expand_labels
    >>> expand_labels([0, 1, 0, 0, 0, 0, 2], 2)
    array([1, 1, 1, 1, 2, 2, 2])
    """
    name = "expand_labels"
    given = label_image if isinstance(label_image, Image) else read(label_image)
    value = one_channel(name, given)
    if value is None:
        return np.zeros_like(given)
    size = _pixel_size(spacing, max(value.ndim, 1))
    numbers = value.numbers()
    background = _horus.compare("eq", numbers, 0.0)
    nearest = [_horus.convert(at, "f64") for at in _horus.nearest(background, size)]
    grown = _horus.remap(numbers, nearest if value.ndim == 3 else nearest[1:], 0, "nearest", 0.0)
    near = _horus.compare("le", _horus.distances(background, "euclidean", size), float(distance))
    core = _horus.select(near, grown, 0.0)
    return leave(value.like(truth(core) if value.dtype.kind == "b" else core), None, given, name)


@public(
    "segmentation", module="skimage.segmentation.boundaries", rust="`dilate` `erode` `ne`",
    differs="no mode `subpixel`; `outer` of 64-bit integers is as of others", accel=Terms("outlined")
)
@of_any_library
def find_boundaries(label_img: ArrayLike, connectivity: int = 1, mode: str = "thick", background: int = 0) -> Pixels:
    """A mask of the pixels beside one of another label (``skimage.segmentation.find_boundaries``).

    Parameters
    ----------
    label_img : array_like or Image
        Labels, or a mask. Images stay lazy.
    connectivity : int, optional
        The neighbours of a pixel: along how many axes they differ at most.
    mode : {'thick', 'inner', 'outer'}, optional
        All such pixels; those of the objects; those of the background, and both of objects that touch. ``"subpixel"`` raises
        `NotImplementedError`.
    background : int, optional
        The label of the background.

    Examples
    --------
    >>> from horus_image.segmentation import find_boundaries
    >>> find_boundaries([[0, 0, 5, 5, 5, 7]], mode="inner").astype(int)
    array([[0, 0, 1, 0, 1, 1]])
    """
    name = "find_boundaries"
    if mode == "subpixel":
        raise NotImplementedError("find_boundaries: a mode between pixels")
    given = label_img if isinstance(label_img, Image) else read(label_img)
    value = one_channel(name, given)
    if value is None:
        return np.zeros(given.shape, bool)
    dtype = NATIVE["u8"] if value.dtype.kind == "b" else value.dtype
    labels = value.like(value.numbers(), dtype)
    core = _horus.compare("ne", _extreme(labels, connectivity, "max"), _extreme(labels, connectivity, "min"))
    if mode in ("inner", "outer"):
        outside = _horus.compare("eq", labels.core, float(background))
        if mode == "inner":
            core = _horus.logic("and", core, _horus.invert(outside))
        else:
            # The background is above all labels.
            above = float("inf") if labels.core.dtype in ("f32", "f64") else float(limits(dtype)[1])
            others = labels.like(_horus.select(outside, above, labels.core))
            beside = _horus.compare("ne", _extreme(labels, value.ndim, "max"), _extreme(others, value.ndim, "min"))
            core = _horus.logic("and", core, _horus.logic("or", outside, beside))
    return leave(value.like(core, _BOOL), None, given, name)


def _extreme(value: Value, connectivity: int, which: str) -> _horus.Image:
    """The smallest or the largest of a pixel and its neighbours."""
    element = generate_binary_structure(value.ndim, connectivity)
    return extreme_under(value, offsets_of(element, [0] * value.ndim), "nearest", 0.0, which).core
