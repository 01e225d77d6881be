"""Affine warps and rotations, with the rules of scikit-image 0.26."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import _horus
from ._floats import Given, image_of
from ._foreign import of_any_library
from ._image import Array, Image
from ._interpolation import affine_transform
from ._public import Terms, public
from ._resizing import border_of, clipped, order_of, whole
from ._values import edge, place, related, shape_of
from .typing import ArrayLike, Float, Ints, Pixels, Transform


_KERNELS: Final = {1: "bilinear", 3: "bicubic"}


def _matrix_of(name: str, inverse_map: Any) -> Array:
    """The matrix of an affine map from columns and rows of the result to those of the image."""
    given = getattr(inverse_map, "params", inverse_map)
    if callable(given):
        raise NotImplementedError(f"{name}: functions of Python are not called for each pixel; see ndimage.map_coordinates")
    matrix: Array = np.asarray(given, dtype=np.float64)
    if matrix.shape != (3, 3):
        raise NotImplementedError(f"{name}: inverse_map of shape {matrix.shape}, not a matrix of 3x3; see ndimage.map_coordinates for positions")
    if not np.isfinite(matrix).all() or matrix[2, 2] == 0:
        raise ValueError(f"{name}: inverse_map has numbers that are not finite, or a last one of 0")
    matrix = matrix / matrix[2, 2]
    if matrix[2, :2].any():
        raise NotImplementedError(f"{name}: inverse_map is projective; its last row must be 0, 0, 1")
    return matrix


def _warped(
    name: str, image: Any, matrix: Array, output_shape: Any, order: int | None, mode: str, cval: Float, clip: bool, preserve_range: bool
) -> Pixels:
    shape = shape_of(image)
    if len(shape) == 3 and isinstance(image, Image) and not image.channels:
        raise ValueError(f"{name}: a volume, of shape {shape}; images are planes, with or without channels")
    given = Given(name, image, (2,), -1 if len(shape) == 3 else None)
    extents = [int(extent) for extent in (shape if output_shape is None else output_shape)]
    if len(extents) not in (2, len(shape)) or extents[2:] != list(shape[2:])[: len(extents) - 2]:
        raise ValueError(f"{name}: output_shape is {extents}, of an image of shape {shape}; channels stay")
    height, width = extents[:2]
    degree, border, fill = order_of(name, order, given.dtype), border_of(name, mode), float(cval)
    pixels = given.image if not degree else given.floats() if preserve_range else given.unit()
    # Of rows and columns.
    by, offset = matrix[1::-1, 1::-1], matrix[1::-1, 2]
    if degree in _KERNELS:
        entries = matrix[:2].ravel().tolist()
        core = _horus.affine(pixels._core, entries, (height, width), _KERNELS[degree], edge(border), fill, None)
        found = pixels._with(related(core, name, (pixels,), place(by, offset)))
    else:
        found = image_of(affine_transform(pixels, by, offset, (height, width), None, degree, border, fill))
    found = clipped(pixels, found, mode, fill) if clip and degree and (degree > 1 or mode == "constant") else found
    return whole(given, degree, given.back(found, moved=True))


_WARPED: Final = Terms("numbers double finite bilinear_or_bicubic limited", (0.0, 1e-6))


@public(
    "transform", module="skimage.transform._warps", rust="affine", opencv="cv.warpAffine", differs="of affine maps; positions of `float32` are not rounded",
    accel=_WARPED
)
@of_any_library
def warp(
    image: ArrayLike,
    inverse_map: npt.ArrayLike | Transform,
    map_args: None = None,
    output_shape: Ints | None = None,
    order: int | None = None,
    mode: str = "constant",
    cval: Float = 0.0,
    clip: bool = True,
    preserve_range: bool = False,
) -> Pixels:
    """The image sampled by an affine map (``skimage.transform.warp``).

    Parameters
    ----------
    image : array_like or Image
        Of rows and columns, and of channels as the last axis. Integers become floats from 0 to 1, or -1 to 1.
    inverse_map : array_like or transform
        A matrix of 3x3 that maps column, row and 1 of the result to those of the image; its last row is 0, 0, 1. Also what has such `params`:
        ``AffineTransform``, ``EuclideanTransform`` and ``SimilarityTransform`` of scikit-image, and their `inverse`.
    map_args : None
        Not supported.
    output_shape : pair of int, optional
        Rows and columns of the result; by default those of the image.
    order : int, optional
        0, the nearest pixel; 1, linear; 3, by a cubic kernel; or 2, 4 and 5, splines. By default 1, of masks 0.
    mode : str, optional
        What lies beyond the edges: ``constant``, ``edge``, ``symmetric``, ``reflect`` or ``wrap``.
    cval, clip, preserve_range : optional
        As of `resize`.

    Returns
    -------
    ndarray or Image
        As of `resize`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.transform import warp
    >>> warp([[1.0, 2.0, 3.0]], np.array([[1, 0, 0.5], [0, 1, 0], [0, 0, 1]]), mode="edge")
    array([[1.5, 2.5, 3. ]])
    """
    if map_args:
        raise NotImplementedError("warp: map_args are of functions of Python, which are not called")
    return _warped("warp", image, _matrix_of("warp", inverse_map), output_shape, order, mode, cval, clip, preserve_range)


def _moving(x: float, y: float) -> Array:
    """The matrix of a translation."""
    return np.array([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]])


@public(
    "transform", module="skimage.transform._warps", rust="rotate", opencv="cv.warpAffine", differs="positions of `float32` are not rounded", accel=_WARPED
)
@of_any_library
def rotate(
    image: ArrayLike,
    angle: Float,
    resize: bool = False,
    center: Sequence[Float] | None = None,
    order: int | None = None,
    mode: str = "constant",
    cval: Float = 0,
    clip: bool = True,
    preserve_range: bool = False,
) -> Pixels:
    """The image rotated in its plane (``skimage.transform.rotate``).

    Parameters
    ----------
    image : array_like or Image
        As of `warp`.
    angle : float
        Degrees, counter-clockwise.
    resize : bool, optional
        Make the result as large as the rotated image.
    center : pair of float, optional
        Column and row of the point that stays; by default the middle.
    order, mode, cval, clip, preserve_range : optional
        As of `warp`.

    Returns
    -------
    ndarray or Image
        As of `resize`.

    Examples
    --------
    >>> from horus_image.transform import rotate
    >>> rotate([[1.0, 2.0], [3.0, 4.0]], 90, mode="edge").round(6)
    array([[2., 4.],
           [1., 3.]])
    """
    shape = shape_of(image)
    if len(shape) not in (2, 3):
        raise ValueError(f"rotate: an image of {len(shape)} axes; images are planes, with or without channels")
    rows, columns = shape[:2]
    x, y = (columns / 2.0 - 0.5, rows / 2.0 - 0.5) if center is None else (float(along) for along in center)
    turn = np.deg2rad(float(angle))
    turned = np.array([[np.cos(turn), -np.sin(turn), 0.0], [np.sin(turn), np.cos(turn), 0.0], [0.0, 0.0, 1.0]])
    matrix, output_shape = _moving(x, y) @ turned @ _moving(-x, -y), None
    if resize:
        corners = np.linalg.inv(matrix) @ [[0, 0, columns - 1, columns - 1], [0, rows - 1, rows - 1, 0], [1, 1, 1, 1]]
        left, top = corners[:2].min(axis=1)
        right, bottom = corners[:2].max(axis=1)
        output_shape = np.around((bottom - top + 1, right - left + 1)).astype(int)
        matrix = matrix @ _moving(left, top)
    return _warped("rotate", image, matrix, output_shape, order, mode, cval, clip, preserve_range)
