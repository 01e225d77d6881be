"""Contours that move by morphological steps, with the rules of scikit-image 0.26."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ._binary import binary_dilation, binary_erosion, generate_binary_structure
from ._floats import Given, applied, image_of
from ._foreign import of_any_library
from ._gaussian import gaussian_gradient_magnitude
from ._image import Array, Image, asarray, where
from ._programs import iterate
from ._public import public
from ._tensors import gradient
from .typing import ArrayLike, Float, Pixels

_listed = functools.partial(public, "segmentation", module="skimage.segmentation.morphsnakes")
_DIFFERS: Final = "smooths from outside first at each call, where there calls go on alternating; a rounding may decide about a pixel"


@_listed()
def disk_level_set(image_shape: Sequence[int], *, center: Sequence[float] | None = None, radius: float | None = None) -> Array:
    """1 within a disk or a ball, else 0 (``skimage.segmentation.disk_level_set``).

    Parameters
    ----------
    image_shape : sequence of int
    center : sequence of float, optional
        By default the middle.
    radius : float, optional
        By default 3/8 of the shortest side.

    Examples
    --------
    >>> from horus_image.segmentation import disk_level_set
    >>> disk_level_set((3, 4), radius=1.5)
    array([[0, 1, 1, 1],
           [0, 1, 1, 1],
           [0, 1, 1, 1]], dtype=int8)
    """
    middle = [side // 2 for side in image_shape] if center is None else center
    squares = [np.square(np.arange(side) - at) for side, at in zip(image_shape, middle, strict=True)]
    most = min(image_shape) * 3.0 / 8.0 if radius is None else radius
    return np.asarray(np.sqrt(functools.reduce(np.add.outer, squares)) < most, np.int8)


@_listed()
def checkerboard_level_set(image_shape: Sequence[int], square_size: int = 5) -> Array:
    """Squares of 0 and 1 by turns (``skimage.segmentation.checkerboard_level_set``).

    Examples
    --------
    >>> from horus_image.segmentation import checkerboard_level_set
    >>> checkerboard_level_set((2, 4), 2)
    array([[0, 0, 1, 1],
           [0, 0, 1, 1]], dtype=int8)
    """
    return np.asarray(functools.reduce(np.bitwise_xor.outer, [np.arange(side) // square_size & 1 for side in image_shape]), np.int8)


@_listed(rust="`gauss_derivative`")
@of_any_library
def inverse_gaussian_gradient(image: ArrayLike, alpha: Float = 100.0, sigma: Float = 5.0) -> Pixels:
    """Small at edges, where the contours of `morphological_geodesic_active_contour` stop, and 1 where the image is even
    (``skimage.segmentation.inverse_gaussian_gradient``).

    Parameters
    ----------
    image : array_like or Image
        The gradient of integers is one of integers, as SciPy takes it.
    alpha : float, optional
        The steepness of the fall.
    sigma : float, optional
        Of the Gaussian's derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.segmentation import inverse_gaussian_gradient
    >>> inverse_gaussian_gradient(np.repeat([0.0, 1.0], 20), sigma=2).round(2)[[0, 19, 20]]
    array([1.  , 0.22, 0.22])
    """
    given = Given("inverse_gaussian_gradient", image, (1, 2, 3))
    given.gray()
    steepness = image_of(gaussian_gradient_magnitude(given.image, sigma, mode="nearest"))
    return given.back(1.0 / applied("sqrt", steepness * float(alpha) + 1.0))


@functools.cache
def _lines(ndim: int) -> list[Array]:
    """The lines through a pixel of a plane, or the planes through one of a volume, which hold its centre and go through its neighbours."""
    places = np.stack(np.meshgrid(*[(-1, 0, 1)] * ndim, indexing="ij"))
    normals = np.eye(ndim, dtype=int).tolist() + [
        [1 if axis == a else sign if axis == b else 0 for axis in range(ndim)] for a in range(ndim) for b in range(a + 1, ndim) for sign in (1, -1)
    ]
    return [np.tensordot(normal, places, 1) == 0 for normal in normals]


def _smoothed(mask: Image, outside_first: bool) -> Image:
    """A mask without sharp corners: what some line lies in, of what all lines meet; or the other way round."""

    def inner(one: Image) -> Image:
        return functools.reduce(Image.__or__, [image_of(binary_erosion(one, line)) for line in _lines(one.ndim)])

    def outer(one: Image) -> Image:
        return functools.reduce(Image.__and__, [image_of(binary_dilation(one, line)) for line in _lines(one.ndim)])

    return inner(outer(mask)) if outside_first else outer(inner(mask))


_Move = Callable[[Image], Image]


def _evolved(given: Given, num_iter: int, start: Any, smoothing: int, callback: Any, move: _Move) -> Pixels:
    """A level set after so many moves, each followed by steps of smoothing."""
    shape = given.value.shape
    if isinstance(start, str):
        if start not in ("checkerboard", "disk"):
            raise ValueError("`init_level_set` not in ['checkerboard', 'disk']")
        start = checkerboard_level_set(shape) if start == "checkerboard" else disk_level_set(shape)
    state = start if isinstance(start, Image) else asarray(np.asarray(start) > 0, session=given.value.session)
    if state.ndim != len(shape):
        raise ValueError("The dimensions of the initial level set do not match the dimensions of the image.")
    if state.shape != shape:
        raise ValueError(f"{given.name}: a level set of shape {state.shape} for an image of shape {shape}")
    mask = state if state.dtype.kind == "b" else state > 0

    def step(one: Image, first: int) -> Image:
        one = move(one)
        for k in range(smoothing):
            one = _smoothed(one, (first + k) % 2 == 0)
        return one

    def as_numbers(one: Image) -> Image:
        return one.astype(np.int8)

    steps = operator.index(num_iter)
    if callback is not None:
        callback(as_numbers(mask).compute())
        for k in range(steps):
            mask = asarray(step(mask, k * smoothing).compute(), session=mask.session)
            callback(as_numbers(mask).compute())
    else:
        # Two moves are one step, after which smoothing alternates as before.
        twice = iterate(lambda one: as_numbers(step(step(one > 0, 0), smoothing)), as_numbers(mask), steps // 2).state if steps > 1 else as_numbers(mask)
        mask = step(twice > 0, 0) if steps % 2 else twice > 0
    return given.back(as_numbers(mask))


def _edges(mask: Image) -> list[Image]:
    """The differences of a mask along each axis, as ``numpy.gradient``."""
    numbers = mask.astype(np.float64)
    return [gradient(numbers, axis) for axis in range(mask.ndim)]


@_listed(differs=_DIFFERS)
@of_any_library
def morphological_chan_vese(
    image: ArrayLike,
    num_iter: int,
    init_level_set: str | ArrayLike = "checkerboard",
    smoothing: int = 1,
    lambda1: Float = 1,
    lambda2: Float = 1,
    iter_callback: Callable[[Array], Any] | None = None,
) -> Pixels:
    """A level set that parts the image into two regions, each as even as can be (``skimage.segmentation.morphological_chan_vese``).

    Parameters
    ----------
    image : array_like or Image
        A plane or a volume. Steps are made at the call.
    num_iter : int
        Number of steps.
    init_level_set : {'checkerboard', 'disk'} or array_like or Image
        The initial level set: above 0 is inside.
    smoothing : int, optional
        How often each step smooths the contour.
    lambda1, lambda2 : float, optional
        The weights of the regions inside and outside: the larger is the more even one.
    iter_callback : callable, optional
        Called with the level set before the first step and after each.

    Returns
    -------
    ndarray or Image of int8
        1 inside, else 0.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.segmentation import morphological_chan_vese
    >>> image = np.zeros((30, 30))
    >>> image[8:20, 10:24] = 1
    >>> found = morphological_chan_vese(image, 30, "disk")
    >>> bool((found == image).mean() > 0.98)
    True
    """
    given = Given("morphological_chan_vese", image, (2, 3))
    given.gray()
    pixels = given.image.astype(np.float64)

    def move(mask: Image) -> Image:
        inside = mask.astype(np.float64)
        outside = 1.0 - inside
        dark, bright = ((pixels * part).sum(keepdims=True) / (part.sum(keepdims=True) + 1e-8) for part in (outside, inside))
        edge = functools.reduce(Image.__add__, map(abs, _edges(mask)))
        force = edge * ((pixels - bright) * (pixels - bright) * float(lambda1) - (pixels - dark) * (pixels - dark) * float(lambda2))
        return (force < 0.0) | (mask & ~(force > 0.0))

    return _evolved(given, num_iter, init_level_set, smoothing, iter_callback, move)


@_listed(differs=_DIFFERS)
@of_any_library
def morphological_geodesic_active_contour(
    gimage: ArrayLike,
    num_iter: int,
    init_level_set: str | ArrayLike = "disk",
    smoothing: int = 1,
    threshold: Float | str = "auto",
    balloon: Float = 0,
    iter_callback: Callable[[Array], Any] | None = None,
) -> Pixels:
    """A level set whose contour moves to where an image is dark (``skimage.segmentation.morphological_geodesic_active_contour``).

    Parameters
    ----------
    gimage : array_like or Image
        A plane or a volume, dark at edges, as `inverse_gaussian_gradient` makes it. Steps are made at the call.
    num_iter : int
        Number of steps.
    init_level_set : {'disk', 'checkerboard'} or array_like or Image
        The initial level set: above 0 is inside.
    smoothing : int, optional
        How often each step smooths the contour.
    threshold : float, optional
        Of the image, where the balloon stops, times `balloon`; by default its percentile 40.
    balloon : float, optional
        Above 0 the contour grows where the image is not dark, below 0 it shrinks.
    iter_callback : callable, optional
        Called with the level set before the first step and after each.

    Returns
    -------
    ndarray or Image of int8
        1 inside, else 0.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.segmentation import disk_level_set, inverse_gaussian_gradient, morphological_geodesic_active_contour
    >>> image = np.zeros((40, 40))
    >>> image[10:28, 12:30] = 1
    >>> edges = inverse_gaussian_gradient(image, sigma=1.5)
    >>> found = morphological_geodesic_active_contour(edges, 40, disk_level_set((40, 40), radius=18), balloon=-1, threshold=0.5)
    >>> bool((found == image).mean() > 0.95)
    True
    """
    given = Given("morphological_geodesic_active_contour", gimage, (2, 3))
    given.gray()
    pixels = given.image.astype(np.float64)
    slopes = [gradient(pixels, axis) for axis in range(pixels.ndim)]
    grows = None
    if balloon:
        limit = np.percentile(pixels.compute(), 40) if isinstance(threshold, str) else threshold
        grows = pixels > float(limit) / abs(float(balloon))
    box = generate_binary_structure(pixels.ndim, pixels.ndim)

    def move(mask: Image) -> Image:
        if grows is not None:
            mask = where(grows, image_of((binary_dilation if balloon > 0 else binary_erosion)(mask, box)), mask)
        pull = functools.reduce(Image.__add__, [a * b for a, b in zip(slopes, _edges(mask), strict=True)])
        return (pull > 0.0) | (mask & ~(pull < 0.0))

    return _evolved(given, num_iter, init_level_set, smoothing, iter_callback, move)
