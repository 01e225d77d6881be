"""The Hough transform, as scikit-image computes it."""

from __future__ import annotations

import math
import numpy as np

from . import _horus
from ._dtype import truth
from ._foreign import of_any_library
from ._image import Array
from ._public import public
from ._values import enter, shape_of
from .typing import ArrayLike


@public("transform", rust="hough_line", opencv="cv.HoughLines")
@of_any_library
def hough_line(image: ArrayLike, theta: ArrayLike | None = None) -> tuple[Array, Array, Array]:
    """The number of pixels on each straight line (``skimage.transform.hough_line``), which the host counts.

    Parameters
    ----------
    image : array_like or Image
        Pixels that are not 0 count.
    theta : array_like, optional
        Angles of the lines' normals in radians, by default 180 from -pi/2 on.

    Returns
    -------
    hspace : ndarray of uint64
        A row of counts for each distance, a column for each angle.
    angles : ndarray
        The angles.
    distances : ndarray
        The distances of the lines from the first pixel.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.transform import hough_line
    >>> hspace, angles, distances = hough_line(np.eye(200))
    >>> line = np.unravel_index(hspace.argmax(), hspace.shape)
    >>> int(hspace[line]), float(np.degrees(angles[line[1]])), float(distances[line[0]])
    (200, -45.0, 0.0)
    """
    shape = shape_of(image)
    if len(shape) != 2:
        raise ValueError("The input image `image` must be 2D.")
    angles = np.linspace(-np.pi / 2, np.pi / 2, 180, endpoint=False) if theta is None else np.asarray(theta, dtype=np.float64)
    if angles.ndim != 1:
        raise ValueError(f"hough_line: theta has {angles.ndim} axes; it has one")
    value, _ = enter(image, "hough_line")
    reach = math.ceil(math.sqrt(shape[0] * shape[0] + shape[1] * shape[1]))
    if value is None or not angles.size:
        counts = np.zeros((angles.size, 2 * reach + 1), np.uint64)
    else:
        # Cosines and sines of NumPy, which decide about halves.
        counts = _horus.hough_line(truth(value.core), np.stack([np.cos(angles), np.sin(angles)], axis=1).tolist())
    return counts.T, angles, np.linspace(-reach, reach, 2 * reach + 1)
