"""Made of the sources by tests/generate.py."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from ._hough import hough_line as hough_line
from ._pyramids import pyramid_gaussian as pyramid_gaussian, pyramid_laplacian as pyramid_laplacian
from ._resizing import integrate as integrate
from .typing import Array, ArrayLike, Float, Floats, HostArray, Ints, Transform

__all__ = [
    "downscale_local_mean", "hough_line", "integral_image", "integrate", "pyramid_expand", "pyramid_gaussian", "pyramid_laplacian",
    "pyramid_reduce", "rescale", "resize", "rotate", "swirl", "warp", "warp_polar"
]

@overload
def downscale_local_mean(image: Image, factors: Ints, cval: Float = 0, clip: bool = True) -> Image: ...
@overload
def downscale_local_mean(image: HostArray, factors: Ints, cval: Float = 0, clip: bool = True) -> Array: ...
@overload
def downscale_local_mean(image: ArrayLike, factors: Ints, cval: Float = 0, clip: bool = True) -> Image | Any: ...
@overload
def integral_image(image: Image, *, dtype: npt.DTypeLike | None = None) -> Image: ...
@overload
def integral_image(image: HostArray, *, dtype: npt.DTypeLike | None = None) -> Array: ...
@overload
def integral_image(image: ArrayLike, *, dtype: npt.DTypeLike | None = None) -> Image | Any: ...
@overload
def pyramid_expand(
    image: Image, upscale: Float = 2, sigma: Float | None = None, order: int = 1, mode: str = 'reflect', cval: Float = 0,
    preserve_range: bool = False, *, channel_axis: int | None = None
) -> Image: ...
@overload
def pyramid_expand(
    image: HostArray, upscale: Float = 2, sigma: Float | None = None, order: int = 1, mode: str = 'reflect', cval: Float = 0,
    preserve_range: bool = False, *, channel_axis: int | None = None
) -> Array: ...
@overload
def pyramid_expand(
    image: ArrayLike, upscale: Float = 2, sigma: Float | None = None, order: int = 1, mode: str = 'reflect', cval: Float = 0,
    preserve_range: bool = False, *, channel_axis: int | None = None
) -> Image | Any: ...
@overload
def pyramid_reduce(
    image: Image, downscale: Float = 2, sigma: Float | None = None, order: int = 1, mode: str = 'reflect', cval: Float = 0,
    preserve_range: bool = False, *, channel_axis: int | None = None
) -> Image: ...
@overload
def pyramid_reduce(
    image: HostArray, downscale: Float = 2, sigma: Float | None = None, order: int = 1, mode: str = 'reflect', cval: Float = 0,
    preserve_range: bool = False, *, channel_axis: int | None = None
) -> Array: ...
@overload
def pyramid_reduce(
    image: ArrayLike, downscale: Float = 2, sigma: Float | None = None, order: int = 1, mode: str = 'reflect', cval: Float = 0,
    preserve_range: bool = False, *, channel_axis: int | None = None
) -> Image | Any: ...
@overload
def rescale(
    image: Image, scale: Floats, order: int | None = None, mode: str = 'reflect', cval: Float = 0, clip: bool = True,
    preserve_range: bool = False, anti_aliasing: bool | None = None, anti_aliasing_sigma: Floats | None = None, *,
    channel_axis: int | None = None
) -> Image: ...
@overload
def rescale(
    image: HostArray, scale: Floats, order: int | None = None, mode: str = 'reflect', cval: Float = 0, clip: bool = True,
    preserve_range: bool = False, anti_aliasing: bool | None = None, anti_aliasing_sigma: Floats | None = None, *,
    channel_axis: int | None = None
) -> Array: ...
@overload
def rescale(
    image: ArrayLike, scale: Floats, order: int | None = None, mode: str = 'reflect', cval: Float = 0, clip: bool = True,
    preserve_range: bool = False, anti_aliasing: bool | None = None, anti_aliasing_sigma: Floats | None = None, *,
    channel_axis: int | None = None
) -> Image | Any: ...
@overload
def resize(
    image: Image, output_shape: Ints, order: int | None = None, mode: str = 'reflect', cval: Float = 0, clip: bool = True,
    preserve_range: bool = False, anti_aliasing: bool | None = None, anti_aliasing_sigma: Floats | None = None
) -> Image: ...
@overload
def resize(
    image: HostArray, output_shape: Ints, order: int | None = None, mode: str = 'reflect', cval: Float = 0, clip: bool = True,
    preserve_range: bool = False, anti_aliasing: bool | None = None, anti_aliasing_sigma: Floats | None = None
) -> Array: ...
@overload
def resize(
    image: ArrayLike, output_shape: Ints, order: int | None = None, mode: str = 'reflect', cval: Float = 0, clip: bool = True,
    preserve_range: bool = False, anti_aliasing: bool | None = None, anti_aliasing_sigma: Floats | None = None
) -> Image | Any: ...
@overload
def rotate(
    image: Image, angle: Float, resize: bool = False, center: Sequence[Float] | None = None, order: int | None = None,
    mode: str = 'constant', cval: Float = 0, clip: bool = True, preserve_range: bool = False
) -> Image: ...
@overload
def rotate(
    image: HostArray, angle: Float, resize: bool = False, center: Sequence[Float] | None = None, order: int | None = None,
    mode: str = 'constant', cval: Float = 0, clip: bool = True, preserve_range: bool = False
) -> Array: ...
@overload
def rotate(
    image: ArrayLike, angle: Float, resize: bool = False, center: Sequence[Float] | None = None, order: int | None = None,
    mode: str = 'constant', cval: Float = 0, clip: bool = True, preserve_range: bool = False
) -> Image | Any: ...
@overload
def swirl(
    image: Image, center: Sequence[Float] | None = None, strength: Float = 1, radius: Float = 100, rotation: Float = 0,
    output_shape: Ints | None = None, order: int | None = None, mode: str = 'reflect', cval: Float = 0, clip: bool = True,
    preserve_range: bool = False
) -> Image: ...
@overload
def swirl(
    image: HostArray, center: Sequence[Float] | None = None, strength: Float = 1, radius: Float = 100, rotation: Float = 0,
    output_shape: Ints | None = None, order: int | None = None, mode: str = 'reflect', cval: Float = 0, clip: bool = True,
    preserve_range: bool = False
) -> Array: ...
@overload
def swirl(
    image: ArrayLike, center: Sequence[Float] | None = None, strength: Float = 1, radius: Float = 100, rotation: Float = 0,
    output_shape: Ints | None = None, order: int | None = None, mode: str = 'reflect', cval: Float = 0, clip: bool = True,
    preserve_range: bool = False
) -> Image | Any: ...
@overload
def warp(
    image: Image, inverse_map: npt.ArrayLike | Transform, map_args: None = None, output_shape: Ints | None = None, order: int | None = None,
    mode: str = 'constant', cval: Float = 0.0, clip: bool = True, preserve_range: bool = False
) -> Image: ...
@overload
def warp(
    image: HostArray, inverse_map: npt.ArrayLike | Transform, map_args: None = None, output_shape: Ints | None = None,
    order: int | None = None, mode: str = 'constant', cval: Float = 0.0, clip: bool = True, preserve_range: bool = False
) -> Array: ...
@overload
def warp(
    image: ArrayLike, inverse_map: npt.ArrayLike | Transform, map_args: None = None, output_shape: Ints | None = None,
    order: int | None = None, mode: str = 'constant', cval: Float = 0.0, clip: bool = True, preserve_range: bool = False
) -> Image | Any: ...
@overload
def warp_polar(
    image: Image, center: Sequence[Float] | None = None, *, radius: Float | None = None, output_shape: Ints | None = None,
    scaling: str = 'linear', channel_axis: int | None = None, order: int | None = None, mode: str = 'constant', cval: Float = 0.0,
    clip: bool = True, preserve_range: bool = False
) -> Image: ...
@overload
def warp_polar(
    image: HostArray, center: Sequence[Float] | None = None, *, radius: Float | None = None, output_shape: Ints | None = None,
    scaling: str = 'linear', channel_axis: int | None = None, order: int | None = None, mode: str = 'constant', cval: Float = 0.0,
    clip: bool = True, preserve_range: bool = False
) -> Array: ...
@overload
def warp_polar(
    image: ArrayLike, center: Sequence[Float] | None = None, *, radius: Float | None = None, output_shape: Ints | None = None,
    scaling: str = 'linear', channel_axis: int | None = None, order: int | None = None, mode: str = 'constant', cval: Float = 0.0,
    clip: bool = True, preserve_range: bool = False
) -> Image | Any: ...
