"""Morphology with flat footprints, and by distances, with the rules of scikit-image 0.26."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from . import _horus
from ._binary import generate_binary_structure
from ._distances import _background, _pixel_size
from ._dtype import NATIVE
from ._elements import mirror_footprint, pad_footprint, parts_of
from ._foreign import of_any_library
from ._grey import _Element, _without
from ._image import Array
from ._public import public
from ._values import Value, filtered, leave, limits
from .typing import ArrayLike, Float, Floats, Footprints, Pixels

DType = np.dtype[Any]
_MODES: Final = ("reflect", "constant", "nearest", "mirror", "wrap", "max", "min", "ignore")
_Step = Callable[[Value], Value]


def _steps(value: Value, footprint: Any, mode: str, cval: float) -> tuple[_Step, _Step, _Step, _Step]:
    """Erosion and dilation by a footprint, and by the mirrored one."""
    if mode not in _MODES:
        raise ValueError(f"unsupported mode, got {mode!r}")
    parts = parts_of(generate_binary_structure(value.ndim, 1) if footprint is None else footprint)
    parts = [(pad_footprint(part, pad_end=False), times) for part, times in parts]

    def step(dilates: bool, mirrored: bool) -> _Step:
        border, beyond = _border(value.dtype, mode, cval, dilates)
        # SciPy's dilation mirrors the footprint once more.
        elements = [(_Element(None, mirror_footprint(part) if mirrored else part, None, border, beyond, 0, None), times) for part, times in parts]

        def taken(found: Value) -> Value:
            for element, times in elements:
                for _ in range(times):
                    found = (element.dilate if dilates else element.erode)(found, found.dtype)
            return found

        return taken

    return step(False, False), step(True, True), step(False, True), step(True, False)


def _border(dtype: DType, mode: str, cval: float, dilates: bool) -> tuple[str, float]:
    """SciPy's border mode: pixels beyond the edge that are never the smallest, or the largest, are constants."""
    end = {"ignore": "min" if dilates else "max"}.get(mode, mode)
    if end not in ("min", "max"):
        return mode, cval
    low, high = (-np.inf, np.inf) if dtype.kind == "f" else limits(dtype)
    return "constant", float(low if end == "min" else high)


def _flat(name: str, image: Any, footprint: Any, out: Any, mode: str, cval: float, record: Callable[[Value, Any, DType], Value]) -> Pixels:
    return filtered(name, image, out, lambda value, dtype: record(value, _steps(value, footprint, mode, cval), dtype))


def _listed(rust: str, opencv: str) -> Callable[..., Any]:
    return public("morphology", module="skimage.morphology.gray", rust=rust, opencv=opencv)


@_listed("erode", "cv.erode")
@of_any_library
def erosion(image: ArrayLike, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = "reflect", cval: float = 0.0) -> Pixels:
    """The smallest pixel under a footprint (``skimage.morphology.erosion``).

    Parameters
    ----------
    image : array_like or Image
        Pixels keep their type.
    footprint : array_like, optional
        The pixels around; by default those that share a face. Of an even side it has one pixel more after its centre than before. Or a sequence
        of pairs of a footprint and a number, which are applied one after the other.
    out : ndarray, optional
        Takes the result of an array.
    mode : str, optional
        Border mode, as in `horus_image.ndimage`; or ``"max"``, ``"min"``, the greatest and the least number of the type beyond the edges, or
        ``"ignore"``, nothing.
    cval : float, optional
        Of ``"constant"``.

    Returns
    -------
    ndarray or Image

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.morphology import erosion, footprint_rectangle
    >>> erosion(np.array([[5, 7, 8, 2]], np.uint8), footprint_rectangle((1, 3)))
    array([[5, 5, 2, 2]], dtype=uint8)
    """
    return _flat("erosion", image, footprint, out, mode, cval, lambda value, steps, dtype: steps[0](value).cast(dtype))


@_listed("dilate", "cv.dilate")
@of_any_library
def dilation(image: ArrayLike, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = "reflect", cval: float = 0.0) -> Pixels:
    """The largest pixel under a footprint (``skimage.morphology.dilation``). Arguments are those of `erosion`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.morphology import dilation, footprint_rectangle
    >>> dilation(np.array([[5, 7, 8, 2]], np.uint8), footprint_rectangle((1, 3)))
    array([[7, 8, 8, 8]], dtype=uint8)
    """
    return _flat("dilation", image, footprint, out, mode, cval, lambda value, steps, dtype: steps[1](value).cast(dtype))


def _opened(value: Value, steps: Any, dtype: DType) -> Value:
    found: Value = steps[3](steps[0](value))
    return found.cast(dtype)


def _closed(value: Value, steps: Any, dtype: DType) -> Value:
    found: Value = steps[2](steps[1](value))
    return found.cast(dtype)


_NOTHING: Final = _Element(1, None, None, "constant", 0.0, 0, None)
"""An element of which nothing is known that would order results."""


@_listed("opening", "MORPH_OPEN")
@of_any_library
def opening(image: ArrayLike, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = "reflect", cval: float = 0.0) -> Pixels:
    """An erosion, then a dilation by the mirrored footprint: without what is bright and narrow (``skimage.morphology.opening``). Arguments are
    those of `erosion`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.morphology import footprint_rectangle, opening
    >>> opening(np.array([[1, 9, 1, 5, 5, 5]], np.uint8), footprint_rectangle((1, 3)))
    array([[1, 1, 1, 5, 5, 5]], dtype=uint8)
    """
    return _flat("opening", image, footprint, out, mode, cval, _opened)


@_listed("closing", "MORPH_CLOSE")
@of_any_library
def closing(image: ArrayLike, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = "reflect", cval: float = 0.0) -> Pixels:
    """A dilation, then an erosion by the mirrored footprint: without what is dark and narrow (``skimage.morphology.closing``). Arguments are
    those of `erosion`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.morphology import closing, footprint_rectangle
    >>> closing(np.array([[9, 1, 9, 5, 5, 5]], np.uint8), footprint_rectangle((1, 3)))
    array([[9, 9, 9, 5, 5, 5]], dtype=uint8)
    """
    return _flat("closing", image, footprint, out, mode, cval, _closed)


@_listed("top_hat", "MORPH_TOPHAT")
@of_any_library
def white_tophat(image: ArrayLike, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = "reflect", cval: float = 0.0) -> Pixels:
    """What `opening` removes (``skimage.morphology.white_tophat``): of masks, where both differ. Arguments are those of `erosion`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.morphology import footprint_rectangle, white_tophat
    >>> white_tophat(np.array([[1, 9, 1, 5, 5, 5]], np.uint8), footprint_rectangle((1, 3)))
    array([[0, 8, 0, 0, 0, 0]], dtype=uint8)
    """
    return _flat("white_tophat", image, footprint, out, mode, cval, lambda v, steps, t: _without(_NOTHING, v, _opened(v, steps, t), t))


@_listed("black_hat", "MORPH_BLACKHAT")
@of_any_library
def black_tophat(image: ArrayLike, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = "reflect", cval: float = 0.0) -> Pixels:
    """What `closing` adds (``skimage.morphology.black_tophat``): of masks, where both differ. Arguments are those of `erosion`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.morphology import black_tophat, footprint_rectangle
    >>> black_tophat(np.array([[9, 1, 9, 5, 5, 5]], np.uint8), footprint_rectangle((1, 3)))
    array([[0, 8, 0, 0, 0, 0]], dtype=uint8)
    """
    return _flat("black_tophat", image, footprint, out, mode, cval, lambda v, steps, t: _without(_NOTHING, _closed(v, steps, t), v, t))


def _isotropic(name: str, image: Any, radius: Float, out: Any, spacing: Any, dilations: tuple[bool, ...]) -> Pixels:
    """Pixels of a mask further than a radius from the background, or up to it from the mask, one after the other."""
    value, given = _background(image, name)
    if value is None:
        return np.zeros(np.shape(given), bool) if out is None else out
    size = _pixel_size(spacing, value.ndim)
    core = value.core
    for dilates in dilations:
        distances = _horus.distances(_horus.invert(core) if dilates else core, "euclidean", size)
        core = _horus.compare("le" if dilates else "gt", distances, float(radius))
    return leave(value.like(core, NATIVE["bool"]), out, given, name)


_by_distance = public(
    "morphology", module="skimage.morphology.isotropic", rust="distances", opencv="cv.distanceTransform",
    differs="a mask without background stays, and an empty one empty; there distances are to a pixel outside"
)


@_by_distance
@of_any_library
def isotropic_erosion(image: ArrayLike, radius: Float, out: Array | None = None, spacing: Floats | None = None) -> Pixels:
    """The pixels of a mask further than a radius from the background (``skimage.morphology.isotropic_erosion``).

    Parameters
    ----------
    image : array_like or Image
        A mask: pixels that are not 0.
    radius : float
        In the units of `spacing`.
    out : ndarray of bool, optional
        Takes the result of an array.
    spacing : float or sequence of float, optional
        The size of pixels along each axis, by default 1.

    Returns
    -------
    ndarray or Image of bool
        The time does not depend on the radius.

    Examples
    --------
    >>> from horus_image.morphology import isotropic_erosion
    >>> isotropic_erosion([[1, 1, 1, 1, 0]], 2).astype(int)
    array([[1, 1, 0, 0, 0]])
    """
    return _isotropic("isotropic_erosion", image, radius, out, spacing, (False,))


@_by_distance
@of_any_library
def isotropic_dilation(image: ArrayLike, radius: Float, out: Array | None = None, spacing: Floats | None = None) -> Pixels:
    """The pixels up to a radius from a mask (``skimage.morphology.isotropic_dilation``). Arguments are those of `isotropic_erosion`.

    Examples
    --------
    >>> from horus_image.morphology import isotropic_dilation
    >>> isotropic_dilation([[1, 0, 0, 0, 0]], 2).astype(int)
    array([[1, 1, 1, 0, 0]])
    """
    return _isotropic("isotropic_dilation", image, radius, out, spacing, (True,))


@_by_distance
@of_any_library
def isotropic_opening(image: ArrayLike, radius: Float, out: Array | None = None, spacing: Floats | None = None) -> Pixels:
    """`isotropic_erosion`, then `isotropic_dilation` (``skimage.morphology.isotropic_opening``)."""
    return _isotropic("isotropic_opening", image, radius, out, spacing, (False, True))


@_by_distance
@of_any_library
def isotropic_closing(image: ArrayLike, radius: Float, out: Array | None = None, spacing: Floats | None = None) -> Pixels:
    """`isotropic_dilation`, then `isotropic_erosion` (``skimage.morphology.isotropic_closing``)."""
    return _isotropic("isotropic_closing", image, radius, out, spacing, (True, False))
