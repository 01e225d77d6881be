"""Line detectors by oriented anisotropic Gaussians: those of Horus's programs, operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from . import _horus
from ._dtype import NATIVE
from ._floats import Given
from ._foreign import of_any_library
from ._image import Image
from ._public import public
from ._tolerance import tolerance
from .typing import ArrayLike, Pixels

_DARK: Final = 1e-3
"""Brightness of the smoothed image below which no contrast is measured."""

_MOST_DIRECTIONS: Final = 3600

_Contrast = Callable[[float, float, float], _horus.Image]


def _orientations(step: float) -> Iterator[float]:
    if not step > 0.0:
        raise ValueError(f"theta_step is {step}; it must be positive")
    if not 180.0 / step <= _MOST_DIRECTIONS:
        raise ValueError(f"theta_step is {step}; the limit is {_MOST_DIRECTIONS} directions")
    count = 0
    while count * step < 180.0:
        yield count * step
        count += 1


def _contrast(core: _horus.Image, how: str, theta: float, su: float, sv: float) -> _horus.Image:
    """The second derivative across the line over the smoothed image, on the scale of the filter."""
    across = _horus.oriented(core, how, theta, (su, sv), (0, 2), tolerance())
    smooth = _horus.oriented(core, how, theta, (su, sv), (0, 0), tolerance())
    # The factor is a float of 32 bits, as that of the programs.
    return _horus.binary("mul", _horus.absdiv(across, smooth, _DARK), float(np.float32(su * sv)))


def _entered(name: str, image: Any) -> tuple[Given, _horus.Image]:
    given = Given(name, image, (2,))
    wide = given.dtype == NATIVE["f64"] and given.dtype.kind == "f"
    return given, given.unit(NATIVE["f64" if wide else "f32"])._core


def _largest(zero: _horus.Image, found: Iterator[_horus.Image]) -> _horus.Image:
    result = zero
    for response in found:
        result = _horus.binary("max", result, response)
    return result


def _turning_filters(
    name: str, how: str, image: Any, theta_step: float, sigma_u: Sequence[float], sigma_v: Sequence[float]
) -> Pixels:
    given, core = _entered(name, image)
    angles = _orientations(float(theta_step))
    found = (_contrast(core, how, theta, su, sv) for theta in angles for su in sigma_u for sv in sigma_v)
    return _finished(given, _largest(_zeros(given, core), found))


def _zeros(given: Given, core: _horus.Image) -> _horus.Image:
    depth, height, width, _ = core.shape
    return _horus.Image.filled(given.value.session._core, core.dtype, (depth, height, width), 0.0)


def _finished(given: Given, core: _horus.Image) -> Pixels:
    result: Image = given.image._with(core)
    return given.back(result)


@public("filters", module="", rust="the programs of these names", differs="not there")
@of_any_library
def convrot(
    image: ArrayLike,
    theta_step: float = 15.0,
    sigma_u: Sequence[float] = (3.0, 5.0, 7.0),
    sigma_v: Sequence[float] = (1.0, 2.0, 3.0),
) -> Pixels:
    """Lines of all directions and several widths: the image is turned, filtered along its axes, and the response turned back.

    Parameters
    ----------
    image : array_like or Image
        Of rows and columns. Integers become ``float32`` from 0 to 1; floats should be in that range.
    theta_step : float, optional
        Degrees between orientations, which are its multiples below 180.
    sigma_u, sigma_v : sequence of float, optional
        Scales along and across a line, in pixels.

    Returns
    -------
    ndarray or Image
        The largest ``abs(second derivative across / smoothed) * sigma_u * sigma_v`` of all orientations and scales; of ``float64`` if
        the input is, else of ``float32``. It has the bits of the programs ``convrot``, ``conv2d`` and ``convuv``.

    See Also
    --------
    conv2d : turns the filters: dense kernels, the most work.
    convuv : decomposes the filters along and across the line, sampling between pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.filters import convrot
    >>> image = np.full((32, 32), 0.5, np.float32)
    >>> image[16] = 1.0
    >>> lines = convrot(image, 45.0, [3.0], [1.0])
    >>> int(lines[:, 16].argmax())
    16
    """
    given, core = _entered("convrot", image)
    zero = _zeros(given, core)

    def turned(theta: float) -> _horus.Image:
        # Mirrored beyond its edges, the picture has no frame that would be its strongest line.
        rotated = _horus.rotate(core, theta, "mirror", 0.0)
        found = (_contrast(rotated, "xy", 0.0, su, sv) for su in sigma_u for sv in sigma_v)
        return _horus.rotate(_largest(zero, found), -theta, "constant", 0.0)

    return _finished(given, _largest(zero, (turned(theta) for theta in _orientations(float(theta_step)))))


@public("filters", module="", rust="the programs of these names", differs="not there")
@of_any_library
def conv2d(
    image: ArrayLike,
    theta_step: float = 15.0,
    sigma_u: Sequence[float] = (3.0, 5.0, 7.0),
    sigma_v: Sequence[float] = (1.0, 2.0, 3.0),
) -> Pixels:
    """Lines of all directions and several widths, by turned two-dimensional kernels. Arguments and result are those of `convrot`."""
    return _turning_filters("conv2d", "2d", image, theta_step, sigma_u, sigma_v)


@public("filters", module="", rust="the programs of these names", differs="not there")
@of_any_library
def convuv(
    image: ArrayLike,
    theta_step: float = 15.0,
    sigma_u: Sequence[float] = (3.0, 5.0, 7.0),
    sigma_v: Sequence[float] = (1.0, 2.0, 3.0),
) -> Pixels:
    """Lines of all directions and several widths, by filters along and across the line that sample between pixels. Arguments and
    result are those of `convrot`."""
    return _turning_filters("convuv", "uv", image, theta_step, sigma_u, sigma_v)
