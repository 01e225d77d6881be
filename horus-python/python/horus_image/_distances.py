"""Distances to the background with the rules of ``scipy.ndimage``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from . import _horus
from ._dtype import truth
from ._foreign import DeviceArray, of_any_library, read
from ._image import Array, Image, get_all, made
from ._public import Terms, public
from ._values import Value, enter, leave, shape_of
from .typing import ArrayLike, Distances, Pixels

_STEPS = {"taxicab": "taxicab", "cityblock": "taxicab", "manhattan": "taxicab", "chessboard": "chessboard"}


@public("ndimage", rust="distances", opencv="cv.distanceTransform(DIST_MASK_PRECISE)", accel=Terms("background", (0.0, 1e-12)))
@of_any_library
def distance_transform_edt(
    input: ArrayLike,
    sampling: float | npt.ArrayLike | None = None,
    return_distances: bool = True,
    return_indices: bool = False,
    distances: Array | None = None,
    indices: Array | None = None,
    *,
    block_params: tuple[int, int, int] | None = None,
    float64_distances: bool = True,
) -> Distances:
    """The length of the straight line from each nonzero pixel to the nearest zero (``scipy.ndimage.distance_transform_edt``): exact.

    Of images of one to three axes; `sampling` is the size of pixels. Without any zero distances are infinite and indices -1, where SciPy measures to a pixel outside.
    `block_params` and `float64_distances` are those of ``cupyx.scipy.ndimage``: the first changes nothing, without the second distances are
    ``float32``.

    Examples
    --------
    >>> from horus_image.ndimage import distance_transform_edt
    >>> distance_transform_edt([[0, 1, 1], [1, 1, 1]])
    array([[0.        , 1.        , 2.        ],
           [1.        , 1.41421356, 2.23606798]])
    >>> distance_transform_edt([[[0, 1]], [[1, 1]]], sampling=(3, 1, 4))
    array([[[0., 4.]],
    <BLANKLINE>
           [[3., 5.]]])
    """
    if not (return_distances or return_indices):
        raise RuntimeError("distance_transform_edt: request distances, indices or both")
    value, given = _background(input, "distance_transform_edt")
    size = _pixel_size(sampling, np.ndim(given) if value is None else max(value.ndim, 1))
    dtype = np.dtype(np.float64 if float64_distances else np.float32)
    _check_array("distances", distances, return_distances, np.shape(given), dtype.type)
    _check_array("indices", indices, return_indices, (np.ndim(given), *np.shape(given)), np.int32)
    if value is None:
        found: Pixels = np.zeros(np.shape(given), dtype) if distances is None else distances
        places = np.empty((np.ndim(given), *np.shape(given)), np.int32) if indices is None else indices
    elif not return_indices:
        core = _horus.distances(value.core, "euclidean", size)
        found = leave(value.like(core, np.dtype(np.float64)).cast(dtype), distances, given, "distance_transform_edt")
    else:
        if isinstance(given, (Image, DeviceArray)):
            raise NotImplementedError("distance_transform_edt: indices of an array only; compute the image")
        cores = list(_horus.nearest(value.core, size)[3 - given.ndim :])
        if return_distances:
            cores.append(_horus.distances(value.core, "euclidean", size))
        # What they have in common is computed once.
        *axes, last = get_all(*(made(core, value.session, given.ndim, False) for core in cores))
        if return_distances:
            found = np.asarray(last).astype(dtype, copy=False) if distances is None else distances
            if distances is not None:
                distances[...] = last
        else:
            axes.append(last)
        places = np.stack(axes, out=indices)
    results: list[Any] = []
    if return_distances and distances is None:
        results.append(found)
    if return_indices and indices is None:
        results.append(places)
    if not results:
        return None
    return results[0] if len(results) == 1 else tuple(results)


@public("ndimage", rust="distances", opencv="cv.distanceTransform")
@of_any_library
def distance_transform_cdt(
    input: ArrayLike,
    metric: str = "chessboard",
    return_distances: bool = True,
    return_indices: bool = False,
    distances: Array | None = None,
    indices: Array | None = None,
) -> Distances:
    """The fewest steps from each nonzero pixel to a zero (``scipy.ndimage.distance_transform_cdt``); -1 without any.

    Of images of one to three axes, by ``"chessboard"`` steps, diagonal ones among them, or ``"taxicab"`` ones; without indices.

    Examples
    --------
    >>> from horus_image.ndimage import distance_transform_cdt
    >>> distance_transform_cdt([[0, 1, 1], [1, 1, 1]], metric="taxicab")
    array([[0, 1, 2],
           [1, 2, 3]], dtype=int32)
    """
    if return_indices or indices is not None:
        raise NotImplementedError("distance_transform_cdt: indices are not supported; distance_transform_edt has them")
    if not return_distances:
        raise RuntimeError("distance_transform_cdt: distances must be requested")
    value, given = _background(input, "distance_transform_cdt")
    if not shape_of(input):
        raise TypeError("distance_transform_cdt: a number has no axes")
    steps = _steps(metric)
    _check_array("distances", distances, True, np.shape(given), np.int32, ValueError)
    if value is None:
        return np.zeros(np.shape(given), np.int32) if distances is None else None
    core = _horus.distances(value.core, steps, [1.0] * 3)
    found = leave(value.like(core, np.dtype(np.int32)), distances, given, "distance_transform_cdt")
    return found if distances is None else None


def _background(input: Any, name: str) -> tuple[Value | None, Any]:
    """Where pixels are not zero, and the array or image itself."""
    given: Any = input if isinstance(input, Image) else read(input)
    if isinstance(given, np.ndarray):
        given = np.atleast_1d(given)
    if isinstance(given, (Image, DeviceArray)):
        value, given = enter(given, name)
        assert value is not None
        return value.like(truth(value.core), np.dtype(bool)), given
    # Only the distinction of zero and nonzero counts, whatever the type.
    value, _ = enter(given != 0, name)
    return value, given


def _pixel_size(sampling: float | npt.ArrayLike | None, ndim: int) -> list[float]:
    sizes = np.ones(ndim) if sampling is None else np.asarray(sampling, np.float64)
    if sizes.ndim == 0:
        sizes = np.full(ndim, float(sizes))
    if sizes.shape != (ndim,):
        raise RuntimeError("sequence argument must have length equal to input rank")
    if not (np.isfinite(sizes).all() and (sizes > 0).all()):
        raise ValueError(f"distance_transform_edt: pixels of a size of {sizes.tolist()}; sizes must be positive and finite")
    return [1.0] * (3 - ndim) + [float(size) for size in sizes]


def _steps(metric: Any) -> str:
    if not isinstance(metric, str):
        raise NotImplementedError('distance_transform_cdt: "chessboard" or "taxicab", not a structure')
    if metric not in _STEPS:
        raise ValueError("invalid metric provided")
    return _STEPS[metric]


def _check_array(
    name: str, array: Array | None, used: bool, shape: tuple[int, ...], dtype: type, error: type[Exception] = RuntimeError
) -> None:
    if array is None:
        return
    if not used:
        raise RuntimeError(f"{name} are given but not requested")
    if array.dtype != dtype:
        raise error(f"{name} array must be {np.dtype(dtype)}")
    if array.shape != shape:
        raise RuntimeError(f"{name} array has wrong shape")
