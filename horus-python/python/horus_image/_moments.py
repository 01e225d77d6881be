"""Moments of images, with the rules of scikit-image 0.26."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._floats import Given, float_type
from ._foreign import of_any_library
from ._image import Array, Image, asarray, get_all
from ._public import public
from .typing import ArrayLike, Float

_listed = functools.partial(public, "measure", module="skimage.measure._moments", opencv="cv.moments", rust="`shapes` of `by_label`")


def _powers(extent: int, centre: float, side: float, order: int) -> Array:
    """The powers of the distances from a centre along an axis, a row each."""
    powers: Array = (np.arange(extent) * side - centre) ** np.arange(order + 1.0)[:, np.newaxis]
    return powers


def _moments(pixels: Image, centre: Sequence[float], order: int, sides: Sequence[float]) -> Array:
    """The moments in `float64`: sums along the first axis by Horus, of each power at once, and those of what is left on the host."""
    first, *rest = (_powers(*given, order) for given in zip(pixels.shape, centre, sides, strict=True))
    across = (1,) * len(rest)
    weighed = (pixels * asarray(row.reshape(-1, *across), session=pixels.session) for row in first)
    found = np.stack(get_all(*(one.sum(axis=0) if rest else one.sum(keepdims=True) for one in weighed)))
    found = found if rest else found.reshape(-1)
    for powers in rest:
        # The sum over the axis that comes next; that of its powers is the last.
        found = np.tensordot(found, powers, axes=([1], [1]))
    return found


def _entered(name: str, image: Any, order: int, spacing: Any) -> tuple[Given, list[float]]:
    given = Given(name, image, (1, 2, 3))
    given.gray()
    if operator.index(order) < 0:
        raise ValueError(f"{name}: order is {order}; it is at least 0")
    count = given.value.ndim
    sides = [1.0] * count if spacing is None else [float(one) for one in spacing]
    if len(sides) != count:
        raise ValueError(f"{name}: spacing of {len(sides)} axes, of an image of {count}")
    return given, sides


@_listed()
@of_any_library
def moments(image: ArrayLike, order: int = 3, *, spacing: Sequence[Float] | None = None) -> Array:
    """The sums of pixels times powers of their positions (``skimage.measure.moments``).

    Parameters
    ----------
    image : array_like or Image
        Without channels. It is computed at the call; sums are of ``float64``.
    order : int, optional
        The highest power along each axis.
    spacing : sequence of float, optional
        Distances of pixels along each axis.

    Returns
    -------
    ndarray
        ``m[i, j]`` is that of the power `i` of rows and `j` of columns; ``float32`` of that, else ``float64``.

    Examples
    --------
    >>> from horus_image.measure import moments
    >>> moments([[0, 0, 0], [0, 1, 3]], order=1)
    array([[4., 7.],
           [4., 7.]])
    """
    given, sides = _entered("moments", image, order, spacing)
    found = _moments(given.image.astype(np.float64), [0.0] * len(sides), order, sides)
    return found.astype(float_type(given.dtype))


@_listed(differs="about the centre itself, where there moments about the origin are combined, which cancel")
@of_any_library
def moments_central(
    image: ArrayLike, center: Sequence[Float] | None = None, order: int = 3, *, spacing: Sequence[Float] | None = None
) -> Array:
    """The moments about a centre, by default that of the image (``skimage.measure.moments_central``). Other arguments and the result are those
    of `moments`.

    Examples
    --------
    >>> from horus_image.measure import moments_central
    >>> moments_central([[0, 1, 0, 3]], order=2)[0]
    array([4., 0., 3.])
    """
    given, sides = _entered("moments_central", image, order, spacing)
    pixels = given.image.astype(np.float64)
    return _central(pixels, center, order, sides).astype(float_type(given.dtype))


def _central(pixels: Image, centre: Any, order: int, sides: Sequence[float]) -> Array:
    count = len(sides)
    if centre is None:
        raw = _moments(pixels, [0.0] * count, 1, sides)
        with np.errstate(invalid="ignore", divide="ignore"):
            centre = raw[tuple(np.eye(count, dtype=int))] / raw.flat[0]
        found = _moments(pixels, centre, order, sides)
        # As there, only powers whose sum is up to the order are measured; first moments about the centre are 0 but for a rounding.
        for powers in np.ndindex(found.shape):
            if sum(powers) == 1 or sum(powers) > order:
                found[powers] *= 0.0
        return found
    if len(centre) != count:
        raise ValueError(f"moments_central: a centre of {len(centre)} numbers, of an image of {count} axes")
    return _moments(pixels, [float(one) for one in centre], order, sides)


@_listed(opencv="-", rust="-")
@of_any_library
def moments_normalized(mu: npt.ArrayLike, order: int = 3, spacing: Sequence[Float] | None = None) -> Array:
    """Central moments that no scale changes (``skimage.measure.moments_normalized``); NaN below the second order.

    Parameters
    ----------
    mu : array_like
        Of `moments_central`, up to the order.
    order : int, optional
        The highest power.
    spacing : sequence of float, optional
        Distances of pixels along each axis, of which the least counts.

    Examples
    --------
    >>> from horus_image.measure import moments_central, moments_normalized
    >>> float(moments_normalized(moments_central([[1, 1], [1, 1]]))[2, 0])
    0.0625
    """
    given = np.asarray(mu)
    if any(side <= order for side in given.shape):
        raise ValueError("Shape of image moments must be >= `order`")
    scale = min([1.0] * given.ndim if spacing is None else spacing)
    found = np.zeros_like(given, float_type(given.dtype))
    for powers in itertools.product(range(order + 1), repeat=given.ndim):
        total = sum(powers)
        found[powers] = np.nan if total < 2 else given[powers] / scale**total / given.flat[0] ** (total / given.ndim + 1)
    return found


@_listed(opencv="cv.HuMoments", rust="-")
@of_any_library
def moments_hu(nu: npt.ArrayLike) -> Array:
    """Hu's seven numbers of normalized moments of a plane, which no scale and no turn changes (``skimage.measure.moments_hu``).

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.measure import moments_central, moments_hu, moments_normalized
    >>> image = np.zeros((20, 20))
    >>> image[13:17, 13:17] = 1
    >>> moments_hu(moments_normalized(moments_central(image))).round(4)[:2]
    array([0.1562, 0.    ])
    """
    given = np.asarray(nu)
    n = given.astype(np.float64)
    # The sums and differences of third moments, rows first.
    a, b = n[3, 0] + n[1, 2], n[2, 1] + n[0, 3]
    c, d = n[3, 0] - 3 * n[1, 2], 3 * n[2, 1] - n[0, 3]
    apart, cross = n[2, 0] - n[0, 2], n[1, 1]
    one, other = a**2 - 3 * b**2, 3 * a**2 - b**2
    found = [
        n[2, 0] + n[0, 2],
        apart**2 + 4 * cross**2,
        c**2 + d**2,
        a**2 + b**2,
        c * a * one + d * b * other,
        apart * (a**2 - b**2) + 4 * cross * a * b,
        d * a * one - c * b * other,
    ]
    return np.array(found, float_type(given.dtype))


@_listed(opencv="-")
@of_any_library
def inertia_tensor(image: ArrayLike, mu: npt.ArrayLike | None = None, *, spacing: Sequence[Float] | None = None) -> Array:
    """The inertia of pixels as heavy as they are bright, over their sum (``skimage.measure.inertia_tensor``).

    Parameters
    ----------
    image : array_like or Image
        Without channels. It is computed at the call.
    mu : array_like, optional
        Its central moments, up to the second order, which are computed by default.
    spacing : sequence of float, optional
        Distances of pixels along each axis.

    Returns
    -------
    ndarray
        A symmetric matrix, of a row for each axis.

    Examples
    --------
    >>> from horus_image.measure import inertia_tensor
    >>> inertia_tensor([[1, 0, 1]]) + 0.0
    array([[1., 0.],
           [0., 0.]])
    """
    given, sides = _entered("inertia_tensor", image, 2, spacing)
    moments = _central(given.image.astype(np.float64), None, 2, sides) if mu is None else np.asarray(mu)
    kind = float_type(given.dtype) if mu is None else moments.dtype
    count = moments.ndim
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = moments[tuple(2 * np.eye(count, dtype=int))]
        found = np.diag((squares.sum() - squares) / moments.flat[0])
        for pair in itertools.combinations(range(count), 2):
            across = -moments[tuple(int(axis in pair) for axis in range(count))] / moments.flat[0]
            found[pair] = found[pair[::-1]] = across
    return found.astype(kind)


@_listed(opencv="-")
@of_any_library
def inertia_tensor_eigvals(
    image: ArrayLike, mu: npt.ArrayLike | None = None, T: npt.ArrayLike | None = None, *, spacing: Sequence[Float] | None = None
) -> list[np.floating[Any]]:
    """The eigenvalues of the inertia tensor, from the largest on (``skimage.measure.inertia_tensor_eigvals``). Arguments are those of
    `inertia_tensor`; `T` is the tensor, if it is known.

    Examples
    --------
    >>> from horus_image.measure import inertia_tensor_eigvals
    >>> [float(one) for one in inertia_tensor_eigvals([[1, 0, 1]])]
    [1.0, 0.0]
    """
    tensor = inertia_tensor(image, mu, spacing=spacing) if T is None else np.asarray(T)
    return sorted(np.maximum(np.linalg.eigvalsh(tensor), 0), reverse=True)
