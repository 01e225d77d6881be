"""Programs of one picture that are computed for many pictures at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _horus
from ._dtype import HALF, ready
from ._foreign import DeviceArray, layout_of, read, session_of
from ._image import Array, Image, made, native
from ._moves import reshaped
from ._session import Session, current
from .typing import ArrayLike


def map(program: Callable[[Image], Any], arrays: ArrayLike | Sequence[ArrayLike], *, channels: bool = False) -> Any:
    """Apply a program to many pictures, computed together: pictures of one shape and type are the levels of one volume.

    On a GPU, thousands of small pictures take a few launches. Results have the bits of the program applied to each picture.
    A program that cannot be computed level by level (labels, histograms, filters of volumes, one that looks at values) is called and
    computed for each picture; with ``explain=True`` the session tells so.

    Parameters
    ----------
    program : callable
        Of an image; returns an image, or a tuple or list of images. It is called once for each shape and type, and must depend on nothing
        but its image.
    arrays : array_like, or sequence of these
        One array whose first axis counts the pictures, also on a GPU; or a list or tuple of pictures, of any shapes and types.
    channels : bool, optional
        The last axis of a picture is that of channels, as in `asarray`.

    Returns
    -------
    ndarray or list
        For one array, an array whose first axis counts the results: for an array on a GPU, an image there. For a sequence, a list of the
        result of each picture, in order. Results of a program that returns a tuple or a list are in a tuple or a list.

    Raises
    ------
    TypeError
        For types that images do not have, a program that returns anything but images, or a sequence of arrays on a GPU: stack them.
    ValueError
        For arrays that are no pictures.

    Examples
    --------
    >>> import numpy as np
    >>> import horus_image as hi
    >>> from horus_image import ndimage
    >>> pictures = np.random.default_rng(0).random((1000, 64, 64), np.float32)
    >>> smooth = hi.map(lambda picture: ndimage.gaussian_filter(picture, 2.0), pictures)
    >>> smooth.shape
    (1000, 64, 64)
    >>> bool((smooth[7] == ndimage.gaussian_filter(pictures[7], 2.0)).all())
    True
    >>> [half.shape for half in hi.map(lambda picture: picture / 2, [np.zeros((3, 4)), np.ones((5, 6)), np.ones((3, 4))])]
    [(3, 4), (5, 6), (3, 4)]
    """
    if not isinstance(arrays, (list, tuple)):
        return _mapped(program, read(arrays), channels)
    given = [read(array) for array in arrays]
    pictures = [picture for picture in given if not isinstance(picture, DeviceArray)]
    if len(pictures) < len(given):
        raise TypeError("map: arrays on a GPU are given as one, whose first axis counts them; stack them by their library")
    kinds: dict[tuple[tuple[int, ...], np.dtype[Any]], list[int]] = {}
    for number, picture in enumerate(pictures):
        kinds.setdefault((picture.shape, picture.dtype), []).append(number)
    results: list[Any] = [None] * len(pictures)
    for numbers in kinds.values():
        found = _mapped(program, np.stack([pictures[number] for number in numbers]), channels)
        for level, number in enumerate(numbers):
            results[number] = type(found)(part[level] for part in found) if isinstance(found, (tuple, list)) else found[level]
    return results


def _mapped(program: Callable[[Image], Any], arrays: Array | DeviceArray, channels: bool) -> Any:
    """The results for pictures of one shape, stacked."""
    ndim = len(arrays.shape) - 1 - channels
    if ndim not in (1, 2) or (channels and ndim == 1):
        raise ValueError(f"map: an array of shape {tuple(arrays.shape)} does not count pictures of {'three axes' if channels else 'one or two axes'}")
    count = arrays.shape[0]
    session = session_of(arrays, None) if isinstance(arrays, DeviceArray) else current()
    volume = _volume(arrays if count else np.zeros((1, *arrays.shape[1:]), arrays.dtype), channels, session)
    extents = volume.shape

    def level(z: int) -> Image:
        return made(_horus.crop(volume, (z, 0, 0), (1, extents[1], extents[2])), session, ndim, channels)

    first = level(0)
    recording = _horus.Recording(session._core, [first._core])
    kind, results = _images(program, made(recording.images()[0], session, ndim, channels))
    cores = recording.stacked(session._core, [image._core for image in results], volume)
    if cores is None:
        found = _one_by_one(program, [level(z) for z in range(count)])
    elif isinstance(arrays, DeviceArray):
        found = [_levels(core, session, image) for core, image in zip(cores, results, strict=True)]
        for image in found:
            image._on_gpu()  # the array may change when this returns
    else:
        shapes = [(extents[0], *image.shape) for image in results]
        layouts = [(list(shape), [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]) for shape in shapes]
        found = [np.asarray(memory)[:count] for memory in _horus.get_all(session._core, cores, layouts)]
    return found[0] if kind is None else kind(found)


def _levels(core: _horus.Image, session: Session, image: Image) -> Image:
    """The levels of a volume as an image whose first axis counts images like this one."""
    if image._ndim == 2:
        return made(core, session, 3, image._channels, True)
    return reshaped(made(core, session, 3), (core.shape[0], *image.shape))


def _volume(arrays: Array | DeviceArray, channels: bool, session: Session) -> _horus.Image:
    """Pictures as the levels of a volume, read where they are."""
    *extents, last = arrays.shape if channels else (*arrays.shape, 1)
    count, height, width = extents if len(extents) == 3 else (extents[0], 1, extents[1])
    if isinstance(arrays, DeviceArray):
        if not arrays.contiguous:
            raise ValueError("map: an array on a GPU must be contiguous, in C order; make a contiguous copy")
        core = _horus.Image.of_device(session._core, arrays, (count, height, width, last), False)
        return _horus.convert(core, "bool") if arrays.dtype.kind == "b" else core
    pixels = arrays.astype(np.float32) if arrays.dtype == HALF else arrays
    code = native(pixels.dtype)
    return _horus.Image.of_array(session._core, ready(pixels).reshape(count, height, width, last), code, False, False)


def _images(program: Callable[[Image], Any], picture: Image) -> tuple[type | None, list[Image]]:
    """The results of a program, and their sequence if there may be several."""
    results = program(picture)
    several = list(results) if isinstance(results, (tuple, list)) else [results]
    if not several or not all(isinstance(image, Image) for image in several):
        raise TypeError("map: the program must return an image, or a tuple of images")
    return (type(results) if isinstance(results, (tuple, list)) else None), several


def _one_by_one(program: Callable[[Image], Any], pictures: Sequence[Image]) -> list[Any]:
    """The results of a program that is called and computed for each picture, stacked."""
    found = []
    for number, picture in enumerate(pictures):
        try:
            images = _images(program, picture)[1]
            cores, layouts = [image._core for image in images], [layout_of(image) for image in images]
            found.append([np.asarray(memory) for memory in _horus.get_all(picture._session._core, cores, layouts)])
        except Exception as error:
            if hasattr(error, "add_note"):
                error.add_note(f"map: of picture {number}")
            raise
    return [np.stack(parts) for parts in zip(*found, strict=True)]
