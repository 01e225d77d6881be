"""Operands of the functions of `horus_image.filters`: lazy images of floats, with scikit-image's rules of types."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from . import _horus
from ._colours import Colours
from ._dtype import NATIVE
from ._gaussian import smoothed
from ._foreign import DeviceArray, read
from ._image import Array, Image, made
from ._operators import larger
from ._values import Value, axis_of, enter, leave, related
from .typing import Pixels

DType = np.dtype[Any]
_SINGLE: Final = (np.dtype(np.float32), np.dtype(np.float16))

# Taps of a Gaussian further out than so many sigma change no bit of a sum: they are below 2^-28 and 2^-70 of the largest.
_REACH: Final = {"f32": 6.5, "f64": 10.0}


def float_type(dtype: DType) -> DType:
    """The type of floats that scikit-image computes in: ``float32`` of it and of ``float16``, else ``float64``."""
    return NATIVE["f32"] if dtype in _SINGLE else NATIVE["f64"]


class Given:
    """The input of a function: a lazy image of it, the type that the caller's has, and how a result goes back."""

    def __init__(self, name: str, image: Any, axes: tuple[int, ...], channel_axis: Any = None) -> None:
        self.name = name
        self.array: Array | None = None
        self.axis: int | None = None
        self.on_gpu = False
        given = image if isinstance(image, Image) else read(image)
        if isinstance(given, DeviceArray):
            if channel_axis is not None:
                raise NotImplementedError(f"{name}: channels of an array on a GPU; make an image of it, by asarray(channels=True)")
            self.on_gpu = True
        elif not isinstance(given, Image):
            if given.dtype == np.float16:
                given = given.astype(np.float32)
            if given.size == 0:
                raise ValueError(f"{name}: an array of shape {given.shape} has no pixels")
            self.array = given
            if channel_axis is not None:
                self.axis = axis_of(channel_axis, given.ndim)
                if given.ndim == 1:
                    raise ValueError(f"{name}: an array of one axis, which is that of channels, has no pixels")
        if isinstance(given, Image) and channel_axis is not None and not (image.channels and channel_axis in (-1, image.ndim - 1)):
            raise ValueError(f"{name}: channel_axis is {channel_axis}, and channels of an image are its last axis, if it has any")
        value = self._entered(given)
        if value.ndim not in axes:
            numbers = " or ".join(map(str, axes))
            raise ValueError(f"{name}: an image of {value.ndim} axes; the filter is of {numbers}")
        self.value = value
        self.dtype = value.dtype
        self.image = made(value.core, value.session, value.ndim, value.channels)

    def _entered(self, given: Any) -> Value:
        value, _ = enter(given if self.axis is None else Colours(np.moveaxis(given, self.axis, -1)), self.name)
        if value is None:
            raise ValueError(f"{self.name}: an image without pixels")
        return value

    def gray(self) -> None:
        """Refuses channels, where a function looks at all pixels of an image at once."""
        if self.value.channels:
            raise NotImplementedError(f"{self.name} of an image with channels; take one by channel(), or luminance()")

    def floats(self) -> Image:
        """The pixels as they are, in scikit-image's type of floats."""
        return _as(self.image, float_type(self.dtype))

    def unit(self, dtype: DType | None = None) -> Image:
        """The pixels as ``skimage.util.img_as_float`` gives them: integers divided by the largest of their type, from -1 on."""
        floats = _as(self.image, dtype or float_type(self.dtype))
        if self.dtype.kind not in "iu":
            return floats
        scaled = floats * (1.0 / float(np.iinfo(self.dtype).max))
        return scaled if self.dtype.kind == "u" else larger(scaled, -1.0)

    def back(self, result: Image, *others: Any, moved: bool = False) -> Pixels:
        """The lazy image where one was given, else its pixels, with channels where they were; of an array on a GPU an image that is computed
        there, as it may change when this returns. `others` are further images of the function. Pixels that are `moved` lie where the
        operations of the result tell."""
        if self.array is None:
            if self.on_gpu:
                result._on_gpu()
                return result
            return result if moved else result._with(related(result._core, self.name, (self.image, *others)))
        if self.axis == 0 and result._core.shape[0] == 1:
            # Planes, one after the other.
            planes = [_horus.channel(result._core, k) for k in range(result._core.shape[3])]
            levels = made(_horus.stack(planes, False), result.session, 3).compute()
            found: Array = levels.reshape(len(planes), *result.shape[:-1])
            return found
        pixels = result.compute()
        return pixels if self.axis is None else np.ascontiguousarray(np.moveaxis(pixels, -1, self.axis))


def _as(image: Image, dtype: DType) -> Image:
    return image if image.dtype == dtype else image.astype(dtype)


def gaussian(
    image: Image, sigma: Any, order: Any = 0, mode: str = "nearest", cval: float = 0.0, truncate: float = 4.0
) -> Image:
    """SciPy's Gaussian filter of a lazy image of floats, without taps that change no bit."""
    value, _ = enter(image, "gaussian")
    assert value is not None, "a lazy image has pixels"
    count = value.ndim
    scales = [float(s) for s in sigma] if isinstance(sigma, Iterable) else [float(sigma)] * count
    if len(scales) != count:
        raise ValueError(f"{len(scales)} sigmas for {count} axes")
    for scale in scales:
        if not (scale >= 0.0 and math.isfinite(scale)):
            raise ValueError("Sigma values less than zero are not valid")
    most = _REACH[value.core.dtype]
    radii = [min(int(truncate * s + 0.5), math.ceil(most * s)) for s in scales]
    found = smoothed(value, scales, order, value.dtype, mode, float(cval), radius=radii)
    return image_of(leave(found, None, image, "gaussian"))


def image_of(pixels: Pixels) -> Image:
    """The result of a function of a lazy image."""
    assert isinstance(pixels, Image), "a function of an image returns one"
    return pixels


def applied(name: str, image: Image) -> Image:
    """An operation on each pixel of floats: ``sqrt``, ``exp``."""
    return image._with(_horus.unary(name, image._core))


def extreme(image: Image, name: str) -> Image:
    """The smallest or largest pixel (``min``, ``max``) as an image of one pixel, which operators repeat; nothing is computed."""
    return made(_horus.extreme_value(image._core, name), image.session, image._ndim)


def zeros_like(image: Image) -> Image:
    """Zeros of the image's type, rows and columns; nothing is stored."""
    depth, height, width, _ = image._core.shape
    core = _horus.Image.filled(image.session._core, image._core.dtype, (depth, height, width), 0.0)
    return made(core, image.session, 3 if depth > 1 else 2)
