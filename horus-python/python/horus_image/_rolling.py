"""Backgrounds under which a ball rolls, with the rules of scikit-image 0.26."""

from __future__ import annotations

from collections.abc import Sequence


import numpy as np
import numpy.typing as npt

from ._dtype import NATIVE, cast, truth
from ._floats import Given, float_type, image_of
from ._foreign import of_any_library
from ._grey import grey_erosion
from ._image import Array
from ._public import Terms, public
from .typing import ArrayLike, Float, Pixels

_MODULE = "skimage.restoration._rolling_ball"


@public("restoration", module=_MODULE)
def ball_kernel(radius: Float, ndim: int) -> Array:
    """The upper half of a ball (``skimage.restoration.ball_kernel``): its height at each pixel, infinite beyond it.

    Examples
    --------
    >>> from horus_image.restoration import ball_kernel
    >>> ball_kernel(1, 1)
    array([0., 1., 0.])
    """
    side = np.arange(-np.ceil(radius), np.ceil(radius) + 1)
    squares: Array = np.sum(np.square(np.meshgrid(*[side] * ndim, indexing="ij")), axis=0)
    return np.where(squares > radius**2, np.inf, np.sqrt(np.maximum(radius**2 - squares, 0.0)))


@public("restoration", module=_MODULE)
def ellipsoid_kernel(shape: int | Sequence[int], intensity: Float) -> Array:
    """The upper half of an ellipsoid (``skimage.restoration.ellipsoid_kernel``): its height at each pixel, infinite beyond it.

    Parameters
    ----------
    shape : int or sequence of int
        Its extent along each axis, in pixels.
    intensity : float
        Its height at the centre.

    Examples
    --------
    >>> from horus_image.restoration import ellipsoid_kernel
    >>> ellipsoid_kernel((3, 3), 5.0)[1]
    array([0., 5., 0.])
    """
    extents = np.atleast_1d(shape)
    radii = np.maximum(extents // 2, 1)
    places = np.meshgrid(*[np.arange(-radius, radius + 1) for radius in radii], indexing="ij")
    rest = 1.0 - sum((place / radius) ** 2 for place, radius in zip(places, radii, strict=True))
    return np.where(rest < 0.0, np.inf, intensity * np.sqrt(np.maximum(rest, 0.0)))


@public("restoration", module=_MODULE, differs="no `nansafe`", accel=Terms("finite", (1e-6, 0.0)))
@of_any_library
def rolling_ball(
    image: ArrayLike, *, radius: Float = 100, kernel: npt.ArrayLike | None = None, nansafe: bool = False, workers: int | None = None
) -> Pixels:
    """The background that a ball touches which rolls under the image (``skimage.restoration.rolling_ball``): what is brighter and narrower than
    it is not of the background.

    Parameters
    ----------
    image : array_like or Image
        Without channels; the background is dark.
    radius : float, optional
        Of the ball, in pixels and in brightness.
    kernel : array_like, optional
        Heights instead, infinite where there are none, as of `ellipsoid_kernel`.
    nansafe : bool, optional
        True raises `NotImplementedError`.
    workers : int, optional
        Ignored: sessions have threads.

    Returns
    -------
    ndarray or Image
        In the type of the pixels; of integers floats are cut.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.restoration import rolling_ball
    >>> rolling_ball(np.array([2, 2, 9, 3, 3]), radius=1)
    array([2, 2, 3, 3, 3])
    """
    if nansafe:
        raise NotImplementedError("rolling_ball: nansafe=True; replace NaN by infinity, which is no background")
    given = Given("rolling_ball", image, (1, 2, 3))
    given.gray()
    kind = float_type(given.dtype)
    heights = (ball_kernel(radius, given.value.ndim) if kernel is None else np.asarray(kernel)).astype(kind)
    if heights.ndim != given.value.ndim or not heights.size:
        raise ValueError(f"rolling_ball: a kernel of shape {heights.shape} for an image of {given.value.ndim} axes")
    middle = heights[tuple(side // 2 for side in heights.shape)]
    there = np.isfinite(heights)
    # The distance of the ball from its highest point is added: an erosion subtracts its structure.
    structure = np.where(there, heights - middle, 0.0)
    found = image_of(grey_erosion(given.floats(), footprint=there, structure=structure, mode="constant", cval=np.inf))
    held = NATIVE["f64"] if given.dtype.kind in "iu" and given.dtype.itemsize == 8 else given.dtype
    core = truth(found._core) if held.kind == "b" else cast(found._core, kind, held)
    result = given.back(found._with(core))
    return result.astype(given.dtype) if isinstance(result, np.ndarray) else result
