"""Geometry with the rules of ``scipy.ndimage``.

Affine maps of planes, to the nearest pixel and linearly, are an operation of Horus. Everything else is sampled at positions that are images:
splines, whose prefilter is a filter, maps across the levels of a volume, and what wraps around with a period of a pixel less.
"""

from __future__ import annotations

import bisect
import functools
import math
import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import _horus
from ._colours import FEW, Colours, by_pixels, of_pixels
from ._complex import by_parts
from ._dtype import NATIVE, rounded
from ._image import Image
from ._kept import kept, refuse
from ._public import POSITIONS, Terms, public
from ._sampling import interpolated_singly, is_held, mapped, sampled
from ._splines import coefficients, prefiltered, spline_mode, spline_order, weights
from ._values import Value, correlated, edge, filtered, for_each, number, of_each_channel, place, shape_of
from .typing import ArrayLike, Border, Floats, Output, Pixels

DType = np.dtype[Any]
_TIE: Final = 2.0**-20
"""By how much of a pixel positions are moved up before the nearest pixel is taken."""
_FARTHEST: Final = 1 << 20
"""Pixels up to which an image is shifted by an affine map."""


@public("ndimage", rust="translate", opencv="cv.warpAffine", accel=Terms("floats interpolated shifted finite", POSITIONS))
@kept
@by_parts
@by_pixels("shift")
def shift(
    input: ArrayLike,
    shift: Floats,
    output: Output = None,
    order: int = 3,
    mode: Border = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Pixels:
    """Shift by any number of pixels, by splines of order 0 to 5 (``scipy.ndimage.shift``).

    Examples
    --------
    >>> from horus_image.ndimage import shift
    >>> shift([1.0, 2.0, 3.0, 4.0], 1, order=1)
    array([0., 1., 2., 3.])
    """
    degree = spline_order(order)

    def record(value: Value, dtype: DType) -> Value:
        if value.ndim < 1:
            raise RuntimeError("input and output rank must be > 0")
        by = [-float(step) for step in for_each(shift, value.ndim)]
        border = edge(mode)
        fill = number(cval)
        moved = value
        unit, offset = np.eye(value.ndim), np.asarray(by)
        if mode == "wrap" or (degree > 1 and mode in ("nearest", "grid-constant")):
            # SciPy extends the image before the prefilter.
            return affine("shift", value, unit, offset, value.shape, dtype, degree, mode, fill, prefilter)
        parts = any(not step.is_integer() for step in by) and max(map(abs, by)) < _FARTHEST
        planes = value.ndim < 3 or by[0] == 0.0
        if degree == 1 and planes and parts and interpolated_singly(value, degree, dtype, fill):
            scaled = [(1.0, step) for step in by]
            return affine("shift", value, unit, offset, value.shape, dtype, degree, mode, fill, prefilter, scaled)
        # Along an axis that stays, a spline has the numbers that it goes through.
        along = tuple(axis for axis, step in enumerate(by) if step)
        if prefilter and degree > 1:
            moved = coefficients(value, degree, along, spline_mode(mode))
        else:
            moved = value.like(value.floats(), NATIVE["f64"])
        # Only splines read beyond the edges in this mode, where SciPy mirrors.
        beyond = "mirror" if mode == "constant" else border
        for axis in along if prefilter else range(value.ndim):
            step = by[axis]
            whole = math.floor(step)
            first, taps = weights(degree, step - whole)
            if taps == [1.0] and first + whole == 0:
                continue
            moved = value.like(_gathered(moved, axis, whole + first, taps, beyond, fill), NATIVE["f64"])
        core = moved.core
        if mode == "constant":
            core = _inside(value, core, [(axis, step) for axis, step in enumerate(by)], fill)
        result = value.like(rounded(core, dtype), dtype)
        result.place = place(unit, offset)
        return result

    return filtered("shift", input, output, record)


def _gathered(value: Value, axis: int, first: int, taps: list[float], mode: str, cval: float) -> _horus.Image:
    """The sum of weighed pixels from `first` pixels on along an axis."""
    while len(taps) > 1 and taps[-1] == 0.0:
        taps = taps[:-1]
    if len(taps) > 1:
        # The filter stays near the pixel, and what is left is a shift by whole pixels.
        anchor = min(max(-first, 0), len(taps) - 1)
        core = correlated(value, tuple(taps), anchor, axis, mode, cval, "f64")
        if first + anchor == 0:
            return core
        return _far(value, axis, first, tuple(taps), mode, cval)
    return _moved(value, value.core, axis, first, mode, cval)


def _far(value: Value, axis: int, first: int, taps: tuple[float, ...], mode: str, cval: float) -> _horus.Image:
    """Weighted distant pixels: each is shifted, so that all follow the border mode."""
    total = None
    for k, tap in enumerate(taps):
        part = _horus.binary("mul", _moved(value, value.core, axis, first + k, mode, cval), tap)
        total = part if total is None else _horus.binary("add", total, part)
    assert total is not None
    return total


def _moved(value: Value, core: _horus.Image, axis: int, first: int, mode: str, cval: float) -> _horus.Image:
    by = [0, 0, 0]
    by[axis + 3 - value.ndim] = -first
    return _horus.shift(core, (by[0], by[1], by[2]), mode, cval) if first else core


def _inside(value: Value, core: _horus.Image, moves: list[tuple[int, float]], fill: float) -> _horus.Image:
    """Samples at positions ``i + move`` of axes of the input, and a constant beyond its edges."""
    depth, height, width, _ = core.shape
    inside = None
    lead = 3 - value.ndim
    for axis, move in moves:
        extent, last = (depth, height, width)[axis + lead], value.shape[axis] - 1
        # Rounded positions rise: those inside are one run.
        first = bisect.bisect_left(range(extent), 0.0, key=lambda i: i + move)
        end = bisect.bisect_right(range(extent), float(last), key=lambda i: i + move)
        at = _horus.index(value.session._core, (depth, height, width), axis + lead)
        limits = [("ge", float(first))] if first else []
        limits += [("lt", float(end))] if end < extent else []
        for relation, limit in limits:
            here = _horus.compare(relation, at, limit)
            inside = here if inside is None else _horus.logic("and", inside, here)
    return core if inside is None else _horus.select(inside, core, fill)


def affine(
    name: str, value: Value, matrix: np.ndarray[Any, Any], offset: np.ndarray[Any, Any], *rest: Any, **more: Any
) -> Value:
    """The affine map from positions of the result to those of the input; see `_affine`."""
    result = _affine(name, value, matrix, offset, *rest, **more)
    result.place = place(matrix, offset)
    return result


def _affine(
    name: str,
    value: Value,
    matrix: np.ndarray[Any, Any],
    offset: np.ndarray[Any, Any],
    shape: tuple[int, ...],
    dtype: DType,
    order: int,
    mode: Any,
    cval: float,
    prefilter: bool,
    scaled: list[tuple[float, float]] | None = None,
    by_plane: bool = False,
) -> Value:
    """The affine map from positions of the result to those of the input; `scaled` are scale and shift of each axis if it is no more, and
    a map `by_plane` is one of each level, not of a volume."""
    border = edge(mode)
    if 0 in shape:
        raise NotImplementedError(f"{name}: a result without pixels, of shape {shape}")
    if len(shape) > 3:
        raise NotImplementedError(f"{name}: a result of {len(shape)} axes; images have up to three")
    # Pixels that are moved and not weighed stay what they are.
    integers = order == 0 and value.dtype == dtype and dtype.kind in "iu" and dtype.itemsize < 8 and math.isfinite(cval)
    if integers:
        cval = float(min(max(math.copysign(math.floor(abs(cval) + 0.5), cval), np.iinfo(dtype).min), np.iinfo(dtype).max))
    single = interpolated_singly(value, order, dtype, cval)
    core, pad = value.core if integers else value.floats("f32" if single else "f64"), 0
    # Shifted levels wrap around with a period of their number.
    planes = _in_planes(value, matrix, offset, shape) and (mode != "wrap" or value.ndim < 3 or offset[0] == 0.0)
    # Splines through other numbers than the pixels weigh levels, too.
    planes = planes and (order < 2 or prefilter or by_plane or value.ndim < 3)
    if planes and value.ndim == 3 and offset[0] != 0.0:
        core = _horus.shift(core, (-int(offset[0]), 0, 0), border, cval)
    if order > 1 or mode == "wrap" or not planes:
        # Levels that stay apart are sampled alike, one by one.
        apart = 1 if planes and value.ndim == 3 else 0
        if order > 1 and prefilter:
            axes = tuple(range(apart, value.ndim))
            core, pad = prefiltered(value.like(core, NATIVE["f64"]), order, axes, mode, cval)
        kept = None if scaled is None else scaled[apart:]
        at = _affine_positions(value, matrix[apart:, apart:], offset[apart:], shape[apart:], kept)
        found = sampled(value, core, at, order, mode, cval, pad)
        found = found if integers else rounded(found, dtype)
        return Value(found, dtype, shape, value.session, value.channels)
    whole = np.eye(3)
    whole[3 - value.ndim :, 3 - value.ndim :] = matrix
    moved = np.zeros(3)
    moved[3 - value.ndim :] = offset
    (yy, yx), (xy, xx) = whole[1, 1:], whole[2, 1:]
    height, width = (1, *shape)[-2:]
    # Halves round up, as SciPy's do, although positions are held to 2^-32 of a pixel and steps of them add up.
    up = 0.0 if order else _TIE
    entries = [float(v) for v in (xx, xy, moved[2] + up, yx, yy, moved[1] + up)]
    how = "bilinear" if order else "nearest"
    along = [_along(value, axis, whole, moved, scaled) for axis in (1, 2)] if mode == "constant" else None

    def moved_by(core: _horus.Image) -> _horus.Image:
        return _horus.affine(core, entries, (height, width), how, border, cval, along)

    # Horus weighs colours by alpha that their picture has, which one channel by itself has not.
    found = of_each_channel([core], moved_by) if order and value.may_have_alpha() else moved_by(core)
    if along and value.ndim == 3 and offset[0] != 0.0:
        found = _inside(value, found, [(0, float(offset[0]))], cval)
    result = Value(found, value.dtype, shape, value.session, value.channels)
    return result if integers else result.like(rounded(result.core, dtype, is_held(value, order, dtype, cval)), dtype)


def _in_planes(
    value: Value, matrix: np.ndarray[Any, Any], offset: np.ndarray[Any, Any], shape: tuple[int, ...]
) -> bool:
    """Returns true if each level of the result comes from one level of the input."""
    if value.ndim != len(shape):
        return False
    if value.ndim < 3:
        return True
    apart = matrix[0].tolist() == [1.0, 0.0, 0.0] and not matrix[1:, 0].any()
    return bool(apart and offset[0] == int(offset[0]) and shape[0] == value.shape[0])


def _affine_positions(
    value: Value,
    matrix: np.ndarray[Any, Any],
    offset: np.ndarray[Any, Any],
    shape: tuple[int, ...],
    scaled: list[tuple[float, float]] | None,
) -> list[_horus.Image]:
    """Source positions of the result's pixels, along each axis of the input."""
    lead = 3 - len(shape)
    extents = (1,) * lead + tuple(shape)
    at = [_horus.index(value.session._core, (extents[0], extents[1], extents[2]), axis + lead) for axis in range(len(shape))]
    found = []
    for axis in range(len(matrix)):
        if scaled is not None:
            scale, move = scaled[axis]
            moved = _horus.binary("add", at[axis], move) if move else at[axis]
            found.append(_horus.binary("mul", moved, scale) if scale != 1.0 else moved)
            continue
        # What adds nothing costs a pass over all positions.
        factors = [(k, factor) for k, factor in enumerate(matrix[axis].tolist()) if factor] or [(0, 0.0)]
        parts = [_horus.binary("mul", at[k], factor) if factor != 1.0 else at[k] for k, factor in factors]
        total = functools.reduce(lambda total, part: _horus.binary("add", total, part), parts)
        found.append(_horus.binary("add", total, float(offset[axis])) if offset[axis] else total)
    return found


def _along(
    value: Value,
    axis: int,
    matrix: np.ndarray[Any, Any],
    offset: np.ndarray[Any, Any],
    scaled: list[tuple[float, float]] | None,
) -> list[float]:
    """SciPy's positions along the rows (1) or columns (2) of the input, by which it tells which are inside."""
    lead = 3 - value.ndim
    last = float(value.shape[axis - lead] - 1) if axis >= lead else 0.0
    if scaled is None or axis < lead:
        return [0.0, 0.0, float(matrix[axis, 1]), float(matrix[axis, 2]), float(offset[axis]), last]
    scale, move = scaled[axis - lead]
    return [move, 0.0, scale, 0.0, 0.0, last] if axis == 1 else [0.0, move, 0.0, scale, 0.0, last]


@public("ndimage", rust="affine", opencv="cv.warpAffine", accel=Terms("floats interpolated mapped finite", POSITIONS))
@kept
@by_parts
def affine_transform(
    input: ArrayLike,
    matrix: npt.ArrayLike,
    offset: Floats = 0.0,
    output_shape: Sequence[int] | None = None,
    output: Output = None,
    order: int = 3,
    mode: Border = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
    *,
    texture_memory: bool = False,
    float64_coords: bool = False,
) -> Pixels:
    """Sample an affine map (``scipy.ndimage.affine_transform``).

    `texture_memory` and `float64_coords` are those of ``cupyx.scipy.ndimage``, and change nothing: positions are as exact either way.
    """
    degree = spline_order(order)
    if output_shape is None and isinstance(output, np.ndarray):
        output_shape = output.shape

    def record(value: Value, dtype: DType, shape: tuple[int, ...]) -> Value:
        map_, ndim, move = np.asarray(matrix, dtype=np.float64), value.ndim, offset
        if map_.ndim not in (1, 2) or map_.shape[0] < 1:
            raise RuntimeError("no proper affine matrix provided")
        if map_.ndim == 2 and map_.shape[1] == ndim + 1 and map_.shape[0] in (ndim, ndim + 1):
            if map_.shape[0] == ndim + 1 and map_[ndim].tolist() != [0.0] * ndim + [1.0]:
                raise ValueError(
                    f"Expected homogeneous transformation matrix with shape {map_.shape} for image shape {value.shape}, "
                    f"but bottom row was not equal to {[0] * ndim + [1]}"
                )
            map_, move = map_[:ndim, :ndim], map_[:ndim, ndim]
        if map_.shape[0] != ndim:
            raise RuntimeError("affine matrix has wrong number of rows")
        if map_.ndim == 2 and map_.shape[1] != len(shape):
            raise RuntimeError("affine matrix has wrong number of columns")
        if map_.ndim == 1 and len(shape) != ndim:
            raise RuntimeError("input and output must have the same rank where the matrix is a diagonal")
        by = np.asarray(for_each(move, ndim), dtype=np.float64)
        if by.ndim != 1 or by.shape[0] < 1:
            raise RuntimeError("no proper offset provided")
        scaled = None
        if map_.ndim == 1:
            # SciPy warns of a change that its version 0.18 made; who comes here today never knew the older meaning.
            scaled = [(float(s), float(o) / float(s) if s else 0.0) for s, o in zip(map_, by, strict=True)]
            map_ = np.diag(map_)
        return affine("affine_transform", value, map_, by, shape, dtype, degree, mode, number(cval), prefilter, scaled)

    return mapped("affine_transform", input, output, output_shape, record)


@public("ndimage", rust="resize", opencv="cv.resize", accel=Terms("floats interpolated zoomed finite", POSITIONS))
@kept
@by_parts
@by_pixels("zoom")
def zoom(
    input: ArrayLike,
    zoom: Floats,
    output: Output = None,
    order: int = 3,
    mode: Border = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Pixels:
    """Sample more or less closely (``scipy.ndimage.zoom``).

    Examples
    --------
    >>> from horus_image.ndimage import zoom
    >>> zoom([1.0, 2.0, 3.0], 5 / 3, order=1)
    array([1. , 1.5, 2. , 2.5, 3. ])
    """
    degree = spline_order(order)
    spatial = input.shape[:-1] if isinstance(input, Image) and input.channels else shape_of(input)
    factors = for_each(zoom, len(spatial))
    shape = tuple(round(extent * float(factor)) for extent, factor in zip(spatial, factors, strict=True))

    # The image itself, as in SciPy 1.17, unless it holds the coefficients of splines.
    alike = bool(prefilter) and all(factor == 1 for factor in factors)
    if grid_mode and not alike and mode in ("constant", "wrap"):
        refuse()
        warnings.warn(f"It is recommended to use mode = grid-{mode} instead of {mode} when grid_mode is True.", stacklevel=4)

    def record(value: Value, dtype: DType, extents: tuple[int, ...]) -> Value:
        if alike:
            return value.cast(dtype)
        less = 0 if grid_mode else 1
        pairs = list(zip(value.shape, extents, strict=True))
        scales = [(have - less) / (want - less) if want != less else 1.0 for have, want in pairs]
        by = [0.5 * scale - 0.5 if grid_mode else 0.0 for scale in scales]
        scaled = None if grid_mode else [(scale, 0.0) for scale in scales]
        return affine(
            "zoom", value, np.diag(scales), np.asarray(by), extents, dtype, degree, mode, number(cval), prefilter, scaled
        )

    return mapped("zoom", input, output, shape, record)


@public("ndimage", rust="rotate", opencv="cv.warpAffine", accel=Terms("floats interpolated rotated finite", POSITIONS))
@kept
@by_parts
def rotate(
    input: ArrayLike,
    angle: float,
    axes: tuple[int, int] = (1, 0),
    reshape: bool = True,
    output: Output = None,
    order: int = 3,
    mode: Border = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Pixels:
    """Rotate in the plane of rows and columns (``scipy.ndimage.rotate``)."""
    return _rotate(input, angle, axes, reshape, output, order, mode, cval, prefilter)


def _rotate(
    input: Any, angle: float, axes: Any, reshape: bool, output: Any, order: int, mode: Any, cval: float, prefilter: bool
) -> Pixels:
    degree = spline_order(order)
    spatial = input.shape[:-1] if isinstance(input, Image) and input.channels else shape_of(input)
    ndim = len(spatial)
    if ndim < 2:
        raise ValueError("input array should be at least 2D")
    plane = list(axes)
    if len(plane) != 2:
        raise ValueError("axes should contain exactly two values")
    if not all(float(axis).is_integer() for axis in plane):
        raise ValueError("axes should contain only integer values")
    plane = sorted(int(axis) + ndim if axis < 0 else int(axis) for axis in plane)
    if plane[0] < 0 or plane[1] >= ndim:
        raise ValueError("invalid rotation plane specified")
    elsewhere = plane != [ndim - 2, ndim - 1]
    if elsewhere and plane == [ndim - 3, ndim - 2] and of_pixels(input, FEW):
        return _rotate(Colours(input), angle, (-2, -1), reshape, output, order, mode, cval, prefilter)
    if elsewhere and ndim == 3 and not isinstance(input, Image):
        # Planes of an array are rows and columns of another view of it.
        apart = 3 - plane[0] - plane[1]
        turned = np.moveaxis(np.asarray(input), apart, 0)
        within = np.moveaxis(output, apart, 0) if isinstance(output, np.ndarray) else output
        found = np.moveaxis(np.asarray(rotate(turned, angle, (2, 1), reshape, within, order, mode, cval, prefilter)), 0, apart)
        return output if isinstance(output, np.ndarray) else found
    turn = math.radians(angle % 360.0)
    exact = {0.0: (1.0, 0.0), 90.0: (0.0, 1.0), 180.0: (-1.0, 0.0), 270.0: (0.0, -1.0)}
    cosine, sine = exact.get(angle % 360.0, (math.cos(turn), math.sin(turn)))
    matrix = np.array([[cosine, sine], [-sine, cosine]])
    have = np.array([spatial[axis] for axis in plane])
    extents = have
    if reshape:
        rows, columns = have
        corners = matrix @ [[0, 0, rows, rows], [0, columns, 0, columns]]
        extents = (np.ptp(corners, axis=1) + 0.5).astype(int)
    offset = (have - 1) / 2 - matrix @ ((extents - 1) / 2)
    shape = list(spatial)
    shape[plane[0]], shape[plane[1]] = (int(extent) for extent in extents)

    def record(value: Value, dtype: DType, wanted: tuple[int, ...]) -> Value:
        whole, move = np.eye(ndim), np.zeros(ndim)
        whole[np.ix_(plane, plane)] = matrix
        move[plane] = offset
        return affine("rotate", value, whole, move, wanted, dtype, degree, mode, number(cval), prefilter, by_plane=True)

    return mapped("rotate", input, output, tuple(shape), record)
