"""Connected components of masks, and of labels, with the rules of scikit-image 0.26."""

from __future__ import annotations

import functools
import warnings
from typing import Any, Final

import numpy as np

from . import _horus
from ._binary import _mask_of, _outside, generate_binary_structure
from ._dtype import NATIVE, truth
from ._foreign import DeviceArray, of_any_library, on_host, read, session_of
from ._image import Array, Image, asarray
from ._measurements import label as components
from ._public import Terms, public
from ._reconstruction import around
from ._values import Value, beside, enter, leave, related
from .typing import ArrayLike, Components, Pixels

_BOOL: Final = NATIVE["bool"]
_LABEL: Final = NATIVE["i32"]
_MOST: Final = np.iinfo(np.int32).max
_NEGATIVE: Final = (
    "Negative value labels are not supported. Try relabeling the input with `scipy.ndimage.label` or `skimage.morphology.label`."
)
_DEPRECATED: Final = (
    "Parameter `{0}` is deprecated since version 0.26.0 and will be removed in 2.0.0 (or later). To avoid this warning, please use the "
    "parameter `max_size` instead. For more details, see the documentation of `{1}`. Note that the new threshold removes objects smaller "
    "than **or equal to** its value, while the previous parameter only removed smaller ones."
)
_OLD: Final = "the deprecated parameter is for what is smaller, as documented; that of 0.26.0 is for what is as large, too (its issue 8001)"


def returned(name: str, found: Array, given: Any) -> Pixels:
    """Labels that were computed on the host: of an image or of an array on a GPU an image, in a type that images have."""
    if not isinstance(given, (Image, DeviceArray)):
        return found
    session = given.session if isinstance(given, Image) else session_of(given, None)
    image = asarray(found.astype(np.int32) if found.dtype == np.int64 else found, session=session, copy=False)
    return image._with(related(image._core, name, (given,)))


def one_channel(name: str, given: Any) -> Value | None:
    """The value of an array or an image; none of one without pixels."""
    if isinstance(given, Image) and given.channels:
        raise TypeError(f"{name}: an image of channels; take one of them")
    return enter(given, name)[0]


def _check_axes(ndim: int) -> None:
    if not 1 <= ndim <= 3:
        raise NotImplementedError(f"Only for images of dimension 1-3 are supported, got a {ndim}D one")


def _of_objects(ar: Any) -> Any:
    """An image or an array of integers or truth values."""
    given = ar if isinstance(ar, Image) else read(ar)
    if given.dtype.kind not in "iub":
        raise TypeError(f"Only bool or integer image types are supported. Got {given.dtype}.")
    return given


def _stored(name: str, given: Any, out: Array | None) -> Any:
    """An image or an array, or what `out` holds of it."""
    if out is None:
        return given
    if not isinstance(given, np.ndarray):
        raise TypeError(f"{name}: a lazy image is not written into an array; compute it, or give an array")
    out[...] = given
    return out


def _largest(name: str, old: str, least: float | None, most: float) -> float:
    """The size up to which parts are removed, by the new parameter or the old one."""
    if least is None:
        return most
    # Of the caller of a function for arrays of any library.
    warnings.warn(_DEPRECATED.format(old, name), FutureWarning, stacklevel=4)
    if most != 64:
        raise ValueError(
            f"Both deprecated parameter `{old}` and new parameter `max_size` are used. Use only the latter to avoid conflicting values."
        )
    return float(np.ceil(least)) - 1


def _sizes(name: str, value: Value, core: _horus.Image, connectivity: int) -> _horus.Image:
    """The number of pixels of each pixel's component of a mask."""
    return _horus.component_sizes(core, around(name, value.ndim, generate_binary_structure(value.ndim, connectivity), None))


@public(
    "morphology", module="skimage.morphology.misc", rust="remove_small", opencv="cv.filterSpeckles", differs=_OLD, accel=Terms("masks")
)
@of_any_library
def remove_small_objects(
    ar: ArrayLike, min_size: float | None = None, connectivity: int = 1, *, max_size: float = 64, out: Array | None = None
) -> Pixels:
    """A mask, or labels, without objects of a few pixels (``skimage.morphology.remove_small_objects``).

    Parameters
    ----------
    ar : array_like or Image
        A mask, whose objects are its connected components, or labels from 0 on, each of which is an object. Labels are counted at the call.
    min_size : int, optional
        Smaller objects are removed. It is deprecated in scikit-image, and warns.
    connectivity : int, optional
        The neighbours of a pixel of a mask: along how many axes they differ at most.
    max_size : int, optional
        Objects of so many pixels, or fewer, are removed.
    out : ndarray, optional
        An array that takes the result; it may be `ar`.

    Returns
    -------
    ndarray or Image
        In the type of `ar`. Masks that are images, or on a GPU, stay lazy.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.morphology import remove_small_objects
    >>> remove_small_objects(np.array([[0, 0, 1, 0], [1, 1, 0, 1]], bool), max_size=1).astype(int)
    array([[0, 0, 0, 0],
           [1, 1, 0, 0]])
    >>> remove_small_objects([[1, 0, 2], [3, 0, 2]], max_size=1)
    array([[0, 0, 2],
           [0, 0, 2]])
    """
    name = "remove_small_objects"
    most = _largest(name, "min_size", min_size, max_size)
    given = _stored(name, _of_objects(ar), out)
    if given.dtype.kind != "b":
        found = _without_small(on_host(given), most)
        if out is None:
            return returned(name, found, given)
        out[...] = found
        return out
    value = one_channel(name, given)
    if value is None:
        return given.copy() if out is None else out
    limit = float(np.clip(np.floor(most), 0, _MOST))
    core = _horus.compare("gt", _sizes(name, value, value.core, connectivity), limit)
    return leave(value.like(core), out, given, name)


def _without_small(labels: Array, most: float) -> Array:
    """Labels of more pixels than so many; others are 0."""
    found: Array = labels.copy()
    if most == 0:
        return found
    if labels.size and labels.min() < 0:
        raise ValueError(_NEGATIVE)
    counts = np.bincount(labels.ravel().astype(np.intp, copy=False))
    if len(counts) == 2:
        text = "Only one label was provided to `remove_small_objects`. Did you mean to use a boolean array?"
        warnings.warn(text, stacklevel=4)
    if labels.size:
        found[(counts <= most)[labels]] = 0
    return found


@public(
    "morphology", module="skimage.morphology.misc", rust="fill_small", differs=_OLD, accel=Terms("masks")
)
@of_any_library
def remove_small_holes(
    ar: ArrayLike, area_threshold: float | None = None, connectivity: int = 1, *, max_size: float = 64, out: Array | None = None
) -> Pixels:
    """A mask without holes of a few pixels (``skimage.morphology.remove_small_holes``): components of the background, at the edges, too.

    Parameters
    ----------
    ar : array_like or Image
        A mask; of labels, which warn, the mask of all of them.
    area_threshold : int, optional
        Smaller holes are filled. It is deprecated in scikit-image, and warns.
    connectivity : int, optional
        The neighbours of a pixel of a hole: along how many axes they differ at most.
    max_size : int, optional
        Holes of so many pixels, or fewer, are filled.
    out : ndarray of bool, optional
        An array that takes the result; it may be `ar`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.morphology import remove_small_holes
    >>> remove_small_holes(np.array([[1, 1, 1, 0], [1, 0, 1, 0]], bool), max_size=1).astype(int)
    array([[1, 1, 1, 0],
           [1, 1, 1, 0]])
    """
    name = "remove_small_holes"
    most = _largest(name, "area_threshold", area_threshold, max_size)
    given = _of_objects(ar)
    if given.dtype.kind != "b":
        text = "Any labeled images will be returned as a boolean array. Did you mean to use a boolean array?"
        warnings.warn(text, UserWarning, stacklevel=3)
    if out is not None and out.dtype != bool:
        raise TypeError("out dtype must be bool")
    given = _stored(name, given, out)
    if isinstance(given, np.ndarray):
        given = given.astype(bool, copy=False)
    value = one_channel(name, given)
    if value is None:
        return given.copy() if out is None else out
    value = value.like(truth(value.core), _BOOL)
    limit = float(np.clip(np.floor(most), 0, _MOST))
    # Where there is no hole the size is 0.
    core = _horus.compare("le", _sizes(name, value, _horus.invert(value.core), connectivity), limit)
    return leave(value.like(core), out, given, name)


@public("morphology", module="skimage.morphology", rust="label", opencv="cv.connectedComponents")
@public("measure", module="skimage.measure._label", rust="label", opencv="cv.connectedComponents")
@of_any_library
def label(
    label_image: ArrayLike, background: int | None = None, return_num: bool = False, connectivity: int | None = None
) -> Components:
    """Connected components of equal pixels (``skimage.measure.label``), numbered in the order of their first pixels.

    Parameters
    ----------
    label_image : array_like or Image
        A mask, or integers, of which different ones are of different components. Images of integers are evaluated at the call.
    background : int, optional
        The pixels that are of none, and become 0; by default 0. By 1 a mask is inverted.
    return_num : bool, optional
        Also return the number of components; to count those of an image evaluates it.
    connectivity : int, optional
        The neighbours of a pixel: along how many axes they differ at most; by default all that touch it.

    Returns
    -------
    ndarray or Image
        ``int32`` of a mask, ``int64`` of integers; images are ``int32``.

    Examples
    --------
    >>> from horus_image.measure import label
    >>> label([[1, 1, 0, 7], [0, 5, 5, 0]], return_num=True)
    (array([[1, 1, 0, 2],
           [0, 3, 3, 0]]), 3)
    """
    given = label_image if isinstance(label_image, Image) else read(label_image)
    ndim = given.ndim
    _check_axes(ndim)
    if connectivity is None:
        connectivity = ndim
    if not 1 <= connectivity <= ndim:
        raise ValueError(f"Connectivity for {ndim}D image should be in [1, ..., {ndim}]. Got {connectivity}.")
    structure = generate_binary_structure(ndim, connectivity)
    labels: Pixels
    if given.dtype.kind != "b":
        if given.dtype.kind not in "iuf":
            raise TypeError(f"label: {given.dtype} type not supported")
        numbered, count = of_values(on_host(given), 0 if background is None else background, structure)
        labels = returned("label", numbered, given)
        return (labels, count) if return_num else labels
    if isinstance(given, np.ndarray):
        numbered, count = _of_mask(~given if background == 1 else given, structure)
        return (numbered, count) if return_num else numbered
    value = one_channel("label", given)
    assert value is not None, "an image has pixels"
    core = _horus.invert(value.core) if background == 1 else value.core
    found = value.like(_horus.label(core, around("label", ndim, structure, None)), _LABEL)
    labels = leave(found, None, given, "label")
    return (labels, int(_horus.reduce(found.core, "max"))) if return_num else labels


def _of_mask(mask: Array, structure: Array) -> tuple[Array, int]:
    """The components of a mask that is an array, and their number."""
    found: Any = components(mask, structure)
    labels, count = found
    return labels, count


def of_values(image: Array, background: int, structure: Array) -> tuple[Array, int]:
    """The components of equal pixels of an array, and their number."""
    image = image.astype(np.intp) if image.dtype.kind == "f" else image
    inside = image != background
    if not inside.any():
        return np.zeros(image.shape, np.intp), 0
    near = [_shifted(by, image.shape) for by in np.argwhere(structure) - 1 if tuple(by) > (0,) * image.ndim]
    if not any((inside[one] & inside[other] & (image[one] != image[other])).any() for one, other in near):
        # No values touch.
        found, count = _of_mask(inside, structure)
        return found.astype(np.intp), count
    # Runs of equal pixels along the last axis are joined with those beside them.
    begins = np.ones(image.shape, bool)
    begins[..., 1:] = image[..., 1:] != image[..., :-1]
    runs = begins.cumsum().reshape(image.shape) - 1
    pairs = []
    for one, other in near:
        same = inside[one] & (image[one] == image[other])
        pair = np.stack([runs[one][same], runs[other][same]])
        new = np.ones(pair.shape[1], bool)
        new[1:] = (pair[:, 1:] != pair[:, :-1]).any(axis=0)
        pairs.append(pair[:, new])
    roots = _joined(int(runs.flat[-1]) + 1, np.concatenate(pairs, axis=1))
    first = (roots == np.arange(len(roots))) & inside[begins]
    numbers = np.where(inside[begins], first.cumsum()[roots], 0)
    return numbers[runs], int(first.sum())


def _shifted(by: Array, shape: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The pixels that have a neighbour at an offset, and these neighbours."""
    one, other = (tuple(slice(max(0, d), n + min(0, d)) for d, n in zip(way, shape, strict=True)) for way in (-by, by))
    return one, other


def _joined(count: int, pairs: Array) -> Array:
    """The first of the set of each of a number of things, of which pairs are of one set."""
    roots = np.arange(count)
    while True:
        found = roots[pairs]
        apart = found[0] != found[1]
        if not apart.any():
            return roots
        pairs, found = pairs[:, apart], found[:, apart]
        np.minimum.at(roots, found.max(axis=0), found.min(axis=0))
        while (roots != (above := roots[roots])).any():
            roots = above


@public(
    "segmentation", module="skimage.segmentation._clear_border", rust="clear_border",
    differs="`out` may hold anything before; there its own pixels are cleared", accel=Terms("masks")
)
@of_any_library
def clear_border(
    labels: ArrayLike, buffer_size: int = 0, bgval: float = 0, mask: ArrayLike | None = None, *, out: Array | None = None
) -> Pixels:
    """A mask, or labels, without components that touch the border (``skimage.segmentation.clear_border``).

    Components are those of `horus_image.measure.label`: of equal pixels that touch, the background among them. Of labels they are found at
    the call; masks that are images, or on a GPU, stay lazy.

    Parameters
    ----------
    labels : array_like or Image
        A mask or integers.
    buffer_size : int, optional
        The width of the border, less one.
    bgval : number, optional
        What cleared pixels become.
    mask : array_like or Image of bool, optional
        The pixels that are not border, in place of a border along the edges.
    out : ndarray, optional
        An array that takes the result; it may be `labels`.

    Examples
    --------
    >>> from horus_image.segmentation import clear_border
    >>> clear_border([[0, 0, 0, 0, 0], [4, 0, 7, 7, 0], [4, 0, 0, 0, 0]])
    array([[0, 0, 0, 0, 0],
           [0, 0, 7, 7, 0],
           [0, 0, 0, 0, 0]])
    """
    name = "clear_border"
    given = labels if isinstance(labels, Image) else read(labels)
    if mask is None and any(buffer_size >= extent for extent in given.shape):
        raise ValueError("buffer size may not be greater than labels size")
    _check_axes(given.ndim)
    given = _stored(name, given, out)
    kept = None if mask is None else beside(mask, given)
    if kept is not None:
        if tuple(kept.shape) != tuple(given.shape):
            raise ValueError(f"labels and mask should have the same shape but are {tuple(given.shape)} and {tuple(kept.shape)}")
        if kept.dtype != bool:
            raise TypeError("mask should be of type bool.")
    if given.dtype.kind != "b":
        found = _cleared(on_host(given), buffer_size, bgval, kept)
        if out is None:
            return returned(name, found, given)
        out[...] = found
        return out
    value = one_channel(name, given)
    if value is None:
        return given.copy() if out is None else out
    inside = _mask_of(kept, given, value, out, name)
    borders = _borders(value, buffer_size) if inside is None else _horus.invert(inside.core)
    neighbours = around(name, value.ndim, None, None)
    if bgval:
        # Only the background changes, if it is at the border.
        beyond = _horus.convert(_horus.logic("and", borders, _horus.invert(value.core)), "u8")
        core = _horus.logic("or", value.core, _horus.compare("gt", _horus.reduced(beyond, "max"), 0.0))
    elif inside is None and value.ndim > 1:
        # What touches the border is one component with the outside and all but the innermost pixels of the border.
        wide = _horus.logic("or", value.core, _borders(value, buffer_size - 1)) if buffer_size > 0 else value.core
        core = _horus.logic("and", value.core, _horus.invert(_outside(value.like(wide), neighbours)))
    else:
        start = _horus.convert(_horus.logic("and", borders, value.core), "u8")
        touching = _horus.reconstruct(start, value.numbers(), neighbours, False)
        core = _horus.logic("and", value.core, _horus.compare("eq", touching, 0.0))
    return leave(value.like(core), out, given, name, kept)


def _borders(value: Value, buffer_size: int) -> _horus.Image:
    """A mask of the pixels along the edges."""
    edges = []
    for axis, extent in enumerate(value.shape):
        at = value.positions(axis)
        edges += [_horus.compare("le", at, float(buffer_size)), _horus.compare("ge", at, float(extent - 1 - buffer_size))]
    return functools.reduce(lambda a, b: _horus.logic("or", a, b), edges)


def _cleared(labels: Array, buffer_size: int, bgval: float, mask: Any) -> Array:
    """Labels of which components at the border have a value."""
    if mask is None:
        borders = np.ones(labels.shape, bool)
        borders[tuple(slice(buffer_size + 1, extent - buffer_size - 1) for extent in labels.shape)] = False
    else:
        borders = ~on_host(mask)
    numbers, count = of_values(labels, 0, generate_binary_structure(labels.ndim, labels.ndim))
    touching = np.zeros(count + 1, bool)
    touching[numbers[borders]] = True
    found: Array = labels.copy()
    found[touching[numbers]] = bgval
    return found
