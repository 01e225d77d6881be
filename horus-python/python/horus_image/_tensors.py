"""Structure tensors, Hessians and corners, with the rules of scikit-image 0.26."""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from . import _eigen
from ._floats import Given, applied, gaussian, image_of
from ._foreign import of_any_library, on_host
from ._image import Image, asarray, get_all, stack, where
from ._linear import correlate1d
from ._linear import sobel as differences
from ._public import public
from .typing import ArrayLike, Border, Floats, Pixels

_T = TypeVar("_T")
_STEP: Final = (-0.5, 0.0, 0.5)
_listed = functools.partial(public, "feature", module="skimage.feature.corner", rust="examples/harris.rs")


def _slopes(image: Image, mode: Border, cval: float) -> list[Image]:
    """Sobel's differences along each axis, as SciPy takes them."""
    return [image_of(differences(image, axis, mode=mode, cval=cval)) for axis in range(image.ndim)]


def _products(parts: Sequence[_T], order: str) -> list[tuple[_T, _T]]:
    """The pairs of a symmetric matrix's upper triangle, row by row; ``"xy"`` begins with columns."""
    if order not in ("rc", "xy"):
        raise ValueError(f'order {order} is invalid. Must be either "rc" or "xy"')
    if order == "xy" and len(parts) > 2:
        raise ValueError('Only "rc" order is supported for dim > 2.')
    return list(itertools.combinations_with_replacement(parts if order == "rc" else parts[::-1], 2))


def _tensor(image: Image, sigma: Floats, mode: Border = "constant", cval: float = 0.0, order: str = "rc") -> list[Image]:
    return [gaussian(a * b, sigma, 0, mode, cval) for a, b in _products(_slopes(image, mode, cval), order)]


def _given(name: str, image: Any, axes: tuple[int, ...] = (2, 3)) -> Given:
    given = Given(name, image, axes)
    given.gray()
    return given


def _all_back(given: Given, results: Sequence[Image]) -> list[Pixels]:
    """Results for the caller, those of an array evaluated together."""
    return [given.back(one) for one in results] if given.array is None else list(get_all(*results))


@_listed(opencv="cv.cornerEigenValsAndVecs")
@of_any_library
def structure_tensor(image: ArrayLike, sigma: Floats = 1, mode: Border = "constant", cval: float = 0, order: str = "rc") -> list[Pixels]:
    """The products of Sobel's differences, smoothed (``skimage.feature.structure_tensor``).

    Parameters
    ----------
    image : array_like or Image
        A plane or a volume; integers become floats from 0 to 1, or -1 to 1.
    sigma : float or sequence of float, optional
        Of the Gaussian that smooths them.
    mode, cval : optional
        Border mode, as in `horus_image.ndimage`.
    order : {'rc', 'xy'}, optional
        Begin with rows, or, of a plane, with columns.

    Returns
    -------
    list of ndarray or Image
        The upper triangle of the symmetric matrix, row by row: of a plane Arr, Arc and Acc.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.feature import structure_tensor
    >>> square = np.zeros((5, 5))
    >>> square[2, 2] = 1
    >>> structure_tensor(square, sigma=0.1)[0].round(1).astype(int)
    array([[0, 0, 0, 0, 0],
           [0, 1, 4, 1, 0],
           [0, 0, 0, 0, 0],
           [0, 1, 4, 1, 0],
           [0, 0, 0, 0, 0]])
    """
    given = _given("structure_tensor", image)
    return _all_back(given, _tensor(given.unit(), sigma, mode, cval, order))


def gradient(image: Image, axis: int) -> Image:
    """Half the difference of both neighbours, and at the ends the difference to the only one, as ``numpy.gradient``."""
    last = image.shape[axis] - 1
    if last < 1:
        raise ValueError(f"gradient: {last + 1} pixels along axis {axis}; there are at least two")
    found = image_of(correlate1d(image, _STEP, axis, mode="nearest"))
    ends = np.zeros([last + 1 if at == axis else 1 for at in range(image.ndim)], bool)
    ends[tuple([0, -1] if at == axis else 0 for at in range(image.ndim))] = True
    return where(asarray(ends, session=image.session), found * 2.0, found)


def _hessian(image: Image, sigma: Floats, mode: Border, cval: float, order: str, by_derivatives: bool = False) -> list[Image]:
    count, smooth = image.ndim, image
    slope: Callable[[Image, int], Image] = gradient
    if by_derivatives:
        scales = [float(one) / math.sqrt(2.0) for one in (sigma if np.iterable(sigma) else [sigma] * count)]
        truncate = 8.0 if all(one > math.sqrt(0.5) for one in scales) else 100.0

        def derivative(of: Image, axis: int) -> Image:
            return gaussian(of, scales, [int(at == axis) for at in range(count)], mode, cval, truncate)

        slope = derivative
    else:
        smooth = gaussian(image, sigma, 0, mode, cval)
    slopes = [slope(smooth, axis) for axis in range(count)]
    return [slope(slopes[a], b) for a, b in _products(range(count), order)]


@_listed()
@of_any_library
def hessian_matrix(
    image: ArrayLike,
    sigma: Floats = 1,
    mode: Border = "constant",
    cval: float = 0,
    order: str = "rc",
    use_gaussian_derivatives: bool | None = None,
) -> list[Pixels]:
    """The second derivatives of the smoothed image (``skimage.feature.hessian_matrix``).

    Parameters
    ----------
    image : array_like or Image
        A plane or a volume; integers become floats from 0 to 1, or -1 to 1.
    sigma : float or sequence of float, optional
        Of the Gaussian.
    mode, cval : optional
        Border mode, as in `horus_image.ndimage`.
    order : {'rc', 'xy'}, optional
        Begin with rows, or, of a plane, with columns.
    use_gaussian_derivatives : bool, optional
        Convolve with derivatives of Gaussians, instead of differences of neighbours after one. As in scikit-image, leaving it out means False and
        warns.

    Returns
    -------
    list of ndarray or Image
        The upper triangle of the symmetric matrix, row by row: of a plane Hrr, Hrc and Hcc.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.feature import hessian_matrix
    >>> bowl = np.add.outer(np.arange(9.0) ** 2, np.zeros(9))
    >>> hessian_matrix(bowl, 0.5, "nearest", use_gaussian_derivatives=False)[0][4].round(2).tolist()
    [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    """
    if use_gaussian_derivatives is None:
        warnings.warn(
            "use_gaussian_derivatives currently defaults to False, but will change to True in a future version. Please specify this "
            "argument explicitly to maintain the current behavior",
            FutureWarning,
            stacklevel=3,
        )
    given = _given("hessian_matrix", image)
    return _all_back(given, _hessian(given.unit(), sigma, mode, cval, order, bool(use_gaussian_derivatives)))


def _eigenvalues(name: str, elements: Sequence[Any]) -> Pixels:
    """The eigenvalues of a symmetric matrix of images, from the largest on."""
    if len(elements) not in (3, 6):
        raise ValueError(f"{name}: {len(elements)} elements; the upper triangle of a matrix of 2 or 3 axes has 3 or 6")
    lazy = next((one for one in elements if isinstance(one, Image)), None)
    if lazy is not None and len(elements) == 6:
        raise NotImplementedError(f"{name}: of volumes that are images, a result of four axes; compute them, and give the arrays")
    images = [one if isinstance(one, Image) else asarray(on_host(one), session=None if lazy is None else lazy.session) for one in elements]
    found = _eigen._of_two(images) if len(images) == 3 else _eigen._of_three(images)
    return stack(found) if lazy is not None else np.stack(get_all(*found))


@_listed(differs="of volumes within half the digits of `float64` where two are nearly equal", opencv="cv.cornerEigenValsAndVecs")
@of_any_library
def structure_tensor_eigenvalues(A_elems: Sequence[ArrayLike]) -> Pixels:
    """The eigenvalues of a structure tensor (``skimage.feature.structure_tensor_eigenvalues``).

    Parameters
    ----------
    A_elems : sequence of array_like or Image
        The upper triangle, as `structure_tensor` returns it.

    Returns
    -------
    ndarray or Image
        Of one axis more, the first: from the largest eigenvalue to the smallest.

    Examples
    --------
    >>> from horus_image.feature import structure_tensor_eigenvalues
    >>> structure_tensor_eigenvalues([[[2.0]], [[1.0]], [[2.0]]]).ravel()
    array([3., 1.])
    """
    return _eigenvalues("structure_tensor_eigenvalues", A_elems)


@_listed(differs="as `structure_tensor_eigenvalues`")
@of_any_library
def hessian_matrix_eigvals(H_elems: Sequence[ArrayLike]) -> Pixels:
    """The eigenvalues of a Hessian (``skimage.feature.hessian_matrix_eigvals``). Argument and result are those of `structure_tensor_eigenvalues`."""
    return _eigenvalues("hessian_matrix_eigvals", H_elems)


@_listed()
@of_any_library
def shape_index(image: ArrayLike, sigma: Floats = 1, mode: Border = "constant", cval: float = 0) -> Pixels:
    """The shape of the surface at each pixel, from -1, a cup, by 0, a saddle, to 1, a cap (``skimage.feature.shape_index``).

    Parameters
    ----------
    image : array_like or Image
        Of rows and columns; integers become floats from 0 to 1, or -1 to 1.
    sigma : float or sequence of float, optional
        Of the Gaussian that smooths it.
    mode, cval : optional
        Border mode, as in `horus_image.ndimage`.

    Returns
    -------
    ndarray or Image
        NaN where the surface is flat.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.feature import shape_index
    >>> square = np.zeros((5, 5))
    >>> square[2, 2] = 4
    >>> float(shape_index(square, sigma=0.1)[2, 2])
    -1.0
    """
    given = _given("shape_index", image, (2,))
    large, small = _eigen._of_two(_hessian(given.unit(), sigma, mode, cval, "rc"))
    angle: Any = np.arctan((small + large) / (small - large))
    return given.back(angle * (2.0 / math.pi))


@_listed(opencv="cv.preCornerDetect")
@of_any_library
def corner_kitchen_rosenfeld(image: ArrayLike, mode: Border = "constant", cval: float = 0) -> Pixels:
    """The curvature of lines of equal brightness times the gradient (``skimage.feature.corner_kitchen_rosenfeld``).

    Parameters
    ----------
    image : array_like or Image
        Of rows and columns, taken as it is.
    mode, cval : optional
        Border mode, as in `horus_image.ndimage`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.feature import corner_kitchen_rosenfeld
    >>> corner = np.zeros((6, 6))
    >>> corner[:3, :3] = 1
    >>> np.unravel_index(corner_kitchen_rosenfeld(corner, mode="nearest").argmin(), (6, 6)) == (np.int64(2), np.int64(2))
    True
    """
    given = _given("corner_kitchen_rosenfeld", image, (2,))
    down, right = _slopes(given.floats(), mode, cval)
    across, right_right = _slopes(right, mode, cval)
    down_down = image_of(differences(down, 0, mode=mode, cval=cval))
    numerator = right_right * (down * down) + down_down * (right * right) - 2.0 * across * right * down
    return given.back(_quotient(numerator, right * right + down * down))


def _quotient(a: Image, b: Image) -> Image:
    """A quotient, 0 where the divisor is."""
    return where(b == 0.0, 0.0, a / b)


def _corner(name: str, image: Any, sigma: Floats, measure: Callable[[Image, Image, Image], Sequence[Image]]) -> list[Pixels]:
    """Measures of the structure tensor of a plane."""
    given = _given(name, image, (2,))
    rows, across, columns = _tensor(given.unit(), sigma)
    return _all_back(given, measure(rows, across, columns))


@_listed(opencv="cv.cornerHarris")
@of_any_library
def corner_harris(image: ArrayLike, method: str = "k", k: float = 0.05, eps: float = 1e-6, sigma: Floats = 1) -> Pixels:
    """Harris' measure of corners (``skimage.feature.corner_harris``): determinant and trace of the structure tensor.

    Parameters
    ----------
    image : array_like or Image
        Of rows and columns; integers become floats from 0 to 1, or -1 to 1.
    method : {'k', 'eps'}, optional
        The determinant less `k` times the square of the trace, or twice the determinant over the trace and `eps`.
    k, eps : float, optional
    sigma : float or sequence of float, optional
        Of the Gaussian that smooths the tensor.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.feature import corner_harris, peak_local_max
    >>> square = np.zeros((10, 10))
    >>> square[2:8, 2:8] = 1
    >>> sorted(peak_local_max(corner_harris(square)).tolist())
    [[2, 2], [2, 7], [7, 2], [7, 7]]
    """

    def measure(rows: Image, across: Image, columns: Image) -> list[Image]:
        determinant, trace = rows * columns - across * across, rows + columns
        return [determinant - trace * trace * float(k) if method == "k" else 2.0 * determinant / (trace + float(eps))]

    return _corner("corner_harris", image, sigma, measure)[0]


@_listed(opencv="cv.cornerMinEigenVal")
@of_any_library
def corner_shi_tomasi(image: ArrayLike, sigma: Floats = 1) -> Pixels:
    """The smaller eigenvalue of the structure tensor (``skimage.feature.corner_shi_tomasi``). Arguments are those of `corner_harris`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.feature import corner_shi_tomasi, peak_local_max
    >>> square = np.zeros((10, 10))
    >>> square[2:8, 2:8] = 1
    >>> sorted(peak_local_max(corner_shi_tomasi(square)).tolist())
    [[2, 2], [2, 7], [7, 2], [7, 7]]
    """

    def measure(rows: Image, across: Image, columns: Image) -> list[Image]:
        apart = rows - columns
        return [((rows + columns) - applied("sqrt", apart * apart + 4.0 * (across * across))) * 0.5]

    return _corner("corner_shi_tomasi", image, sigma, measure)[0]


@_listed()
@of_any_library
def corner_foerstner(image: ArrayLike, sigma: Floats = 1) -> tuple[Pixels, Pixels]:
    """Foerstner's measures of corners (``skimage.feature.corner_foerstner``): the size of the ellipse of errors, and its roundness from 0 to 1.
    Arguments are those of `corner_harris`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.feature import corner_foerstner
    >>> square = np.zeros((10, 10))
    >>> square[2:8, 2:8] = 1
    >>> size, roundness = corner_foerstner(square)
    >>> bool(size.argmax() in (22, 27, 72, 77)), bool(roundness.max() <= 1)
    (True, True)
    """

    def measure(rows: Image, across: Image, columns: Image) -> list[Image]:
        determinant, trace = rows * columns - across * across, rows + columns
        return [_quotient(determinant, trace), _quotient(4.0 * determinant, trace * trace)]

    size, roundness = _corner("corner_foerstner", image, sigma, measure)
    return size, roundness
