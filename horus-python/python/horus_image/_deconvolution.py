"""Deconvolution, with the rules of scikit-image 0.26."""

from __future__ import annotations

import operator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ._floats import Given, float_type
from ._foreign import of_any_library, read
from ._image import Image, maximum, minimum, where
from ._linear import dense
from ._moves import filled
from ._programs import iterate
from ._public import public
from ._tolerance import tolerance, within
from .typing import ArrayLike, Pixels

NEAR: Final = {"f32": 1e-4, "f64": 1e-10}
"""The tolerance of filters of both types of floats unless `horus_image.within` gives one."""
_LEAST: Final = 1e-12
"""What scikit-image adds to a blurred image before it divides by it."""


@public("restoration", module="skimage.restoration.deconvolution", rust="examples/richardson_lucy.rs")
@of_any_library
def richardson_lucy(
    image: ArrayLike, psf: npt.ArrayLike, num_iter: int = 50, clip: bool = True, filter_epsilon: float | None = None
) -> Pixels:
    """The most likely source of a blurred image, of a plane or a volume (``skimage.restoration.richardson_lucy``).

    The image is dark beyond its edges. Filters are computed within a tolerance, 1e-4 in ``float32`` and 1e-10 in ``float64`` unless
    `horus_image.within` gives one: scikit-image's have no bound. Nothing but the estimates is kept between the steps, which run on the GPU
    or the ranks that the session has.

    Parameters
    ----------
    image : array_like or Image
        The blurred image. Pixels are taken as they are.
    psf : array_like
        The point spread function, with as many axes.
    num_iter : int, optional
        Number of steps.
    clip : bool, optional
        Limit the result to -1 to 1.
    filter_epsilon : float, optional
        Where the blurred estimate is smaller, it says nothing about the source.

    Returns
    -------
    ndarray or Image
        Of ``float32`` if the input is, else of ``float64``.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image import ndimage
    >>> from horus_image.restoration import richardson_lucy
    >>> beads = np.zeros((16, 32, 32), np.float32)
    >>> beads[8, 10, 12] = beads[8, 10, 16] = 1
    >>> psf = np.ones((3, 5, 5), np.float32) / 75
    >>> blurred = ndimage.convolve(beads, psf, mode="constant")
    >>> sharp = richardson_lucy(blurred, psf, num_iter=30)
    >>> bool(blurred.max() < 0.03), bool(sharp[8, 10, 12] > 0.5)
    (True, True)
    """
    given = Given("richardson_lucy", image, (1, 2, 3))
    given.gray()
    kind = float_type(given.dtype)
    taps = np.asarray(read(psf)).astype(kind)
    if taps.ndim != given.value.ndim or taps.size == 0:
        raise ValueError(f"richardson_lucy: a point spread function of shape {taps.shape} for an image of {given.value.ndim} axes")
    steps = operator.index(num_iter)
    if steps < 0:
        raise ValueError(f"richardson_lucy: {steps} steps")
    blurred, mirrored = given.floats(), np.flip(taps)

    def step(estimate: Image) -> Image:
        # A convolution is a correlation with the mirrored taps.
        again = _correlated(estimate, mirrored) + _LEAST
        ratio = blurred / again
        if filter_epsilon:
            ratio = where(again < filter_epsilon, 0.0, ratio)
        return estimate * _correlated(ratio, taps)

    with within(tolerance() or NEAR[blurred._core.dtype]):
        found = iterate(step, filled(blurred.session, "richardson_lucy", blurred.shape, kind, 0.5), steps).state
    return given.back(maximum(minimum(found, 1.0), -1.0) if clip else found)


def _correlated(image: Image, taps: np.ndarray[Any, Any]) -> Image:
    """The correlation in the image's own type, dark beyond its edges."""
    return image._with(dense(image._core, taps, [0] * taps.ndim, "constant", 0.0))
