"""Templates found in images, and filters with given weights, with the rules of scikit-image 0.26."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from . import _horus
from ._deconvolution import NEAR
from ._floats import Given, applied, float_type, image_of
from ._foreign import of_any_library, read
from ._image import Array, Image, get_all, where
from ._linear import convolve, correlate, dense
from ._public import public
from ._resizing import border_of
from ._tolerance import tolerance, within
from ._values import edge
from .typing import ArrayLike, Border, Float, Pixels


@public(
    "feature", module="skimage.feature.template", rust="examples/template_matching.rs", opencv="cv.matchTemplate", differs="of planes"
)
@of_any_library
def match_template(
    image: ArrayLike, template: npt.ArrayLike, pad_input: bool = False, mode: str = "constant", constant_values: Float = 0
) -> Pixels:
    """How much each window of an image is like a template: their correlation, from -1 to 1 (``skimage.feature.match_template``).

    Sums of products are computed within a tolerance, 1e-4 in ``float32`` and 1e-10 in ``float64`` unless `horus_image.within` gives one.

    Parameters
    ----------
    image : array_like or Image
        Of rows and columns; pixels are taken as they are.
    template : array_like
        Not larger than the image.
    pad_input : bool, optional
        The result has the shape of the image, each pixel being the middle of a window; by default it has a pixel for each window that lies
        within the image, at its first pixel.
    mode, constant_values : optional
        Beyond the edges with `pad_input`: ``constant``, ``edge``, ``symmetric``, ``reflect`` or ``wrap``.

    Returns
    -------
    ndarray or Image
        0 where all pixels of a window are equal. Of ``float32`` if the image is, else of ``float64``.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.feature import match_template
    >>> image = np.zeros((6, 6))
    >>> image[1, 3] = image[2, 2] = 1
    >>> match_template(image, np.array([[0, 1], [1, 0]])).argmax() == 1 * 5 + 2
    np.True_
    """
    given = Given("match_template", image, (2,))
    given.gray()
    kind = float_type(given.dtype)
    taps = np.asarray(read(template), np.float64)
    shape = given.value.shape
    if taps.ndim != 2 or any(side > extent for side, extent in zip(taps.shape, shape, strict=True)):
        raise ValueError(f"Image must be larger than template. match_template: a template of shape {taps.shape} in an image of shape {shape}")
    height, width = taps.shape
    away = taps - taps.mean()
    border = edge(border_of("match_template", mode))
    pixels = given.image.astype(np.float64)
    core = pixels._core
    with within(tolerance() or NEAR["f32" if kind == np.float32 else "f64"]):
        product = pixels._with(dense(core, away, [0, 0], border, float(constant_values)))
    # The mean of the squares of distances from the mean, of a window whose own mean is subtracted first.
    spread = pixels._with(_horus.box_variance(core, (height, width), (height // 2, width // 2), border, float(constant_values)))
    size = applied("sqrt", where(spread > 0.0, spread, 0.0) * (taps.size * float((away * away).sum())))
    found = where(size > float(np.finfo(kind).eps), product / size, 0.0)
    if not pad_input:
        found = found[height // 2 : shape[0] - height + 1 + height // 2, width // 2 : shape[1] - width + 1 + width // 2]
    return given.back(found.astype(kind), moved=not pad_input)


@public("filters", module="skimage.filters._gabor", opencv="cv.getGaborKernel")
def gabor_kernel(
    frequency: Float,
    theta: Float = 0,
    bandwidth: Float = 1,
    sigma_x: Float | None = None,
    sigma_y: Float | None = None,
    n_stds: Float = 3,
    offset: Float = 0,
    dtype: npt.DTypeLike = np.complex128,
) -> Array:
    """A Gaussian times a complex wave (``skimage.filters.gabor_kernel``).

    Parameters
    ----------
    frequency : float
        Of the wave, in turns a pixel.
    theta : float, optional
        Its direction, in radians.
    bandwidth : float, optional
        That of the filter in octaves, from which sigmas are made.
    sigma_x, sigma_y : float, optional
        Of the Gaussian, along the direction of the wave and across.
    n_stds : float, optional
        Cut the kernel at so many sigma.
    offset : float, optional
        The phase of the wave, in radians.
    dtype : type, optional
        A complex one.

    Examples
    --------
    >>> from horus_image.filters import gabor_kernel
    >>> gabor_kernel(0.2).shape, round(float(abs(gabor_kernel(0.2)).sum()), 2)
    ((19, 19), 1.0)
    """
    if np.dtype(dtype).kind != "c":
        raise ValueError("dtype must be complex")
    factor = 1.0 / np.pi * math.sqrt(math.log(2) / 2.0) * (2.0**bandwidth + 1) / (2.0**bandwidth - 1)
    along, across = (factor / frequency if sigma is None else sigma for sigma in (sigma_x, sigma_y))
    cosine, sine = math.cos(theta), math.sin(theta)
    width = math.ceil(max(abs(n_stds * along * cosine), abs(n_stds * across * sine), 1))
    height = math.ceil(max(abs(n_stds * across * cosine), abs(n_stds * along * sine), 1))
    y, x = np.ogrid[-height : height + 1, -width : width + 1]
    ahead, beside = x * cosine + y * sine, -x * sine + y * cosine
    bell = -0.5 * (ahead**2 / along**2 + beside**2 / across**2)
    return np.asarray(np.exp(bell + 1j * (2 * np.pi * frequency * ahead + offset)) / (2 * np.pi * along * across), dtype)


@public("filters", module="skimage.filters._gabor", rust="`correlate`", opencv="cv.filter2D")
@of_any_library
def gabor(
    image: ArrayLike,
    frequency: Float,
    theta: Float = 0,
    bandwidth: Float = 1,
    sigma_x: Float | None = None,
    sigma_y: Float | None = None,
    n_stds: Float = 3,
    offset: Float = 0,
    mode: Border = "reflect",
    cval: Float = 0,
) -> tuple[Pixels, Pixels]:
    """The image convolved with the real and with the imaginary part of `gabor_kernel` (``skimage.filters.gabor``).

    Parameters
    ----------
    image : array_like or Image
        Of rows and columns. Pixels keep their type: sums of integers are cut, as SciPy cuts them.
    frequency, theta, bandwidth, sigma_x, sigma_y, n_stds, offset
        As of `gabor_kernel`.
    mode, cval : optional
        Border mode, as in `horus_image.ndimage`.

    Returns
    -------
    tuple of two ndarray or Image

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.filters import gabor
    >>> lines = np.tile(np.cos(2 * np.pi * 0.2 * np.arange(40)), (40, 1))
    >>> [bool(abs(gabor(lines, 0.2, theta)[0]).max() > 0.4) for theta in (0, np.pi / 2)]
    [True, False]
    """
    given = Given("gabor", image, (2,))
    given.gray()
    kernel = gabor_kernel(frequency, theta, bandwidth, sigma_x, sigma_y, n_stds, offset, np.complex64 if given.dtype == np.float32 else np.complex128)
    parts = [image_of(convolve(given.image, part, mode=mode, cval=float(cval))) for part in (kernel.real, kernel.imag)]
    real, imaginary = [given.back(part) for part in parts] if given.array is None else get_all(*parts)
    return real, imaginary


@public(
    "filters", module="skimage.filters._sparse", rust="Filter::sparse", opencv="cv.filter2D", differs="weights of odd sides with every mode"
)
@of_any_library
def correlate_sparse(image: ArrayLike, kernel: npt.ArrayLike, mode: Border | Literal["valid"] = "reflect") -> Pixels:
    """The correlation with weights of which most are 0 (``skimage.filters.correlate_sparse``).

    Parameters
    ----------
    image : array_like or Image
        Of as many axes; pixels are taken as they are.
    kernel : array_like
        Of odd sides.
    mode : str, optional
        Border mode, as in `horus_image.ndimage`, or ``"valid"``: only windows that lie within the image.

    Returns
    -------
    ndarray or Image
        Of ``float32`` if the image is, else of ``float64``.

    Examples
    --------
    >>> from horus_image.filters import correlate_sparse
    >>> correlate_sparse([1.0, 2.0, 4.0, 8.0], [1, 0, -1], mode="valid")
    array([-3., -6.])
    """
    given = Given("correlate_sparse", image, (1, 2, 3))
    given.gray()
    weights = np.asarray(kernel)
    if weights.ndim != given.value.ndim:
        raise ValueError(f"correlate_sparse: weights of {weights.ndim} axes for an image of {given.value.ndim}")
    if any(side % 2 == 0 for side in weights.shape):
        raise ValueError(f"Window size must not be even on any dimension. correlate_sparse: weights of shape {weights.shape}")
    inside = mode == "valid"
    found: Image = image_of(correlate(given.floats(), weights, mode="constant" if mode == "valid" else mode))
    if inside:
        found = found[tuple(slice(side // 2, extent - side // 2) for side, extent in zip(weights.shape, found.shape, strict=True))]
    return given.back(found, moved=inside)
