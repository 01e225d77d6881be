"""Made of the sources by tests/generate.py."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from ._templates import gabor as gabor, gabor_kernel as gabor_kernel
from ._thresholds import threshold_isodata as threshold_isodata, threshold_li as threshold_li, threshold_mean as threshold_mean, threshold_minimum as threshold_minimum, threshold_multiotsu as threshold_multiotsu, threshold_otsu as threshold_otsu, threshold_triangle as threshold_triangle, threshold_yen as threshold_yen
from .typing import Array, ArrayLike, Border, Float, Floats, HostArray, Ints, Output

__all__ = [
    "apply_hysteresis_threshold", "canny", "conv2d", "convrot", "convuv", "correlate_sparse", "difference_of_gaussians", "farid", "farid_h",
    "farid_v", "frangi", "gabor", "gabor_kernel", "gaussian", "laplace", "median", "meijering", "prewitt", "prewitt_h", "prewitt_v",
    "reconstruction", "roberts", "roberts_neg_diag", "roberts_pos_diag", "sato", "scharr", "scharr_h", "scharr_v", "sobel", "sobel_h",
    "sobel_v", "threshold_isodata", "threshold_li", "threshold_local", "threshold_mean", "threshold_minimum", "threshold_multiotsu",
    "threshold_niblack", "threshold_otsu", "threshold_sauvola", "threshold_triangle", "threshold_yen", "unsharp_mask"
]

@overload
def apply_hysteresis_threshold(image: Image, low: ArrayLike, high: ArrayLike) -> Image: ...
@overload
def apply_hysteresis_threshold(image: HostArray, low: ArrayLike, high: ArrayLike) -> Array: ...
@overload
def apply_hysteresis_threshold(image: ArrayLike, low: ArrayLike, high: ArrayLike) -> Image | Any: ...
@overload
def canny(
    image: Image, sigma: Floats = 1.0, low_threshold: float | None = None, high_threshold: float | None = None,
    mask: ArrayLike | None = None, use_quantiles: bool = False, *, mode: Border = 'constant', cval: float = 0.0
) -> Image: ...
@overload
def canny(
    image: HostArray, sigma: Floats = 1.0, low_threshold: float | None = None, high_threshold: float | None = None,
    mask: ArrayLike | None = None, use_quantiles: bool = False, *, mode: Border = 'constant', cval: float = 0.0
) -> Array: ...
@overload
def canny(
    image: ArrayLike, sigma: Floats = 1.0, low_threshold: float | None = None, high_threshold: float | None = None,
    mask: ArrayLike | None = None, use_quantiles: bool = False, *, mode: Border = 'constant', cval: float = 0.0
) -> Image | Any: ...
@overload
def conv2d(
    image: Image, theta_step: float = 15.0, sigma_u: Sequence[float] = (3.0, 5.0, 7.0), sigma_v: Sequence[float] = (1.0, 2.0, 3.0)
) -> Image: ...
@overload
def conv2d(
    image: HostArray, theta_step: float = 15.0, sigma_u: Sequence[float] = (3.0, 5.0, 7.0), sigma_v: Sequence[float] = (1.0, 2.0, 3.0)
) -> Array: ...
@overload
def conv2d(
    image: ArrayLike, theta_step: float = 15.0, sigma_u: Sequence[float] = (3.0, 5.0, 7.0), sigma_v: Sequence[float] = (1.0, 2.0, 3.0)
) -> Image | Any: ...
@overload
def convrot(
    image: Image, theta_step: float = 15.0, sigma_u: Sequence[float] = (3.0, 5.0, 7.0), sigma_v: Sequence[float] = (1.0, 2.0, 3.0)
) -> Image: ...
@overload
def convrot(
    image: HostArray, theta_step: float = 15.0, sigma_u: Sequence[float] = (3.0, 5.0, 7.0), sigma_v: Sequence[float] = (1.0, 2.0, 3.0)
) -> Array: ...
@overload
def convrot(
    image: ArrayLike, theta_step: float = 15.0, sigma_u: Sequence[float] = (3.0, 5.0, 7.0), sigma_v: Sequence[float] = (1.0, 2.0, 3.0)
) -> Image | Any: ...
@overload
def convuv(
    image: Image, theta_step: float = 15.0, sigma_u: Sequence[float] = (3.0, 5.0, 7.0), sigma_v: Sequence[float] = (1.0, 2.0, 3.0)
) -> Image: ...
@overload
def convuv(
    image: HostArray, theta_step: float = 15.0, sigma_u: Sequence[float] = (3.0, 5.0, 7.0), sigma_v: Sequence[float] = (1.0, 2.0, 3.0)
) -> Array: ...
@overload
def convuv(
    image: ArrayLike, theta_step: float = 15.0, sigma_u: Sequence[float] = (3.0, 5.0, 7.0), sigma_v: Sequence[float] = (1.0, 2.0, 3.0)
) -> Image | Any: ...
@overload
def correlate_sparse(image: Image, kernel: npt.ArrayLike, mode: Border | Literal['valid'] = 'reflect') -> Image: ...
@overload
def correlate_sparse(image: HostArray, kernel: npt.ArrayLike, mode: Border | Literal['valid'] = 'reflect') -> Array: ...
@overload
def correlate_sparse(image: ArrayLike, kernel: npt.ArrayLike, mode: Border | Literal['valid'] = 'reflect') -> Image | Any: ...
@overload
def difference_of_gaussians(
    image: Image, low_sigma: Floats, high_sigma: Floats | None = None, *, mode: Border = 'nearest', cval: float = 0,
    channel_axis: int | None = None, truncate: float = 4.0
) -> Image: ...
@overload
def difference_of_gaussians(
    image: HostArray, low_sigma: Floats, high_sigma: Floats | None = None, *, mode: Border = 'nearest', cval: float = 0,
    channel_axis: int | None = None, truncate: float = 4.0
) -> Array: ...
@overload
def difference_of_gaussians(
    image: ArrayLike, low_sigma: Floats, high_sigma: Floats | None = None, *, mode: Border = 'nearest', cval: float = 0,
    channel_axis: int | None = None, truncate: float = 4.0
) -> Image | Any: ...
@overload
def farid(
    image: Image, mask: ArrayLike | None = None, *, axis: Ints | None = None, mode: Border = 'reflect', cval: float = 0.0
) -> Image: ...
@overload
def farid(
    image: HostArray, mask: ArrayLike | None = None, *, axis: Ints | None = None, mode: Border = 'reflect', cval: float = 0.0
) -> Array: ...
@overload
def farid(
    image: ArrayLike, mask: ArrayLike | None = None, *, axis: Ints | None = None, mode: Border = 'reflect', cval: float = 0.0
) -> Image | Any: ...
@overload
def farid_h(image: Image, mask: ArrayLike | None = None) -> Image: ...
@overload
def farid_h(image: HostArray, mask: ArrayLike | None = None) -> Array: ...
@overload
def farid_h(image: ArrayLike, mask: ArrayLike | None = None) -> Image | Any: ...
@overload
def farid_v(image: Image, mask: ArrayLike | None = None) -> Image: ...
@overload
def farid_v(image: HostArray, mask: ArrayLike | None = None) -> Array: ...
@overload
def farid_v(image: ArrayLike, mask: ArrayLike | None = None) -> Image | Any: ...
@overload
def frangi(
    image: Image, sigmas: Iterable[float] = range(1, 10, 2), scale_range: object = None, scale_step: object = None, alpha: float = 0.5,
    beta: float = 0.5, gamma: float | None = None, black_ridges: bool = True, mode: Border = 'reflect', cval: float = 0
) -> Image: ...
@overload
def frangi(
    image: HostArray, sigmas: Iterable[float] = range(1, 10, 2), scale_range: object = None, scale_step: object = None, alpha: float = 0.5,
    beta: float = 0.5, gamma: float | None = None, black_ridges: bool = True, mode: Border = 'reflect', cval: float = 0
) -> Array: ...
@overload
def frangi(
    image: ArrayLike, sigmas: Iterable[float] = range(1, 10, 2), scale_range: object = None, scale_step: object = None, alpha: float = 0.5,
    beta: float = 0.5, gamma: float | None = None, black_ridges: bool = True, mode: Border = 'reflect', cval: float = 0
) -> Image | Any: ...
@overload
def gaussian(
    image: Image, sigma: Floats = 1.0, *, mode: Border = 'nearest', cval: float = 0, preserve_range: bool = False, truncate: float = 4.0,
    channel_axis: int | None = None, out: None = None
) -> Image: ...
@overload
def gaussian(
    image: HostArray, sigma: Floats = 1.0, *, mode: Border = 'nearest', cval: float = 0, preserve_range: bool = False,
    truncate: float = 4.0, channel_axis: int | None = None, out: Array | None = None
) -> Array: ...
@overload
def gaussian(
    image: ArrayLike, sigma: Floats = 1.0, *, mode: Border = 'nearest', cval: float = 0, preserve_range: bool = False,
    truncate: float = 4.0, channel_axis: int | None = None, out: Array | None = None
) -> Image | Any: ...
@overload
def laplace(image: Image, ksize: int = 3, mask: ArrayLike | None = None) -> Image: ...
@overload
def laplace(image: HostArray, ksize: int = 3, mask: ArrayLike | None = None) -> Array: ...
@overload
def laplace(image: ArrayLike, ksize: int = 3, mask: ArrayLike | None = None) -> Image | Any: ...
@overload
def median(
    image: Image, footprint: npt.ArrayLike | None = None, out: None = None, mode: Border = 'nearest', cval: float = 0.0,
    behavior: str = 'ndimage'
) -> Image: ...
@overload
def median(
    image: HostArray, footprint: npt.ArrayLike | None = None, out: Output = None, mode: Border = 'nearest', cval: float = 0.0,
    behavior: str = 'ndimage'
) -> Array: ...
@overload
def median(
    image: ArrayLike, footprint: npt.ArrayLike | None = None, out: Output = None, mode: Border = 'nearest', cval: float = 0.0,
    behavior: str = 'ndimage'
) -> Image | Any: ...
@overload
def meijering(
    image: Image, sigmas: Iterable[float] = range(1, 10, 2), alpha: float | None = None, black_ridges: bool = True,
    mode: Border = 'reflect', cval: float = 0
) -> Image: ...
@overload
def meijering(
    image: HostArray, sigmas: Iterable[float] = range(1, 10, 2), alpha: float | None = None, black_ridges: bool = True,
    mode: Border = 'reflect', cval: float = 0
) -> Array: ...
@overload
def meijering(
    image: ArrayLike, sigmas: Iterable[float] = range(1, 10, 2), alpha: float | None = None, black_ridges: bool = True,
    mode: Border = 'reflect', cval: float = 0
) -> Image | Any: ...
@overload
def prewitt(
    image: Image, mask: ArrayLike | None = None, *, axis: Ints | None = None, mode: Border = 'reflect', cval: float = 0.0
) -> Image: ...
@overload
def prewitt(
    image: HostArray, mask: ArrayLike | None = None, *, axis: Ints | None = None, mode: Border = 'reflect', cval: float = 0.0
) -> Array: ...
@overload
def prewitt(
    image: ArrayLike, mask: ArrayLike | None = None, *, axis: Ints | None = None, mode: Border = 'reflect', cval: float = 0.0
) -> Image | Any: ...
@overload
def prewitt_h(image: Image, mask: ArrayLike | None = None) -> Image: ...
@overload
def prewitt_h(image: HostArray, mask: ArrayLike | None = None) -> Array: ...
@overload
def prewitt_h(image: ArrayLike, mask: ArrayLike | None = None) -> Image | Any: ...
@overload
def prewitt_v(image: Image, mask: ArrayLike | None = None) -> Image: ...
@overload
def prewitt_v(image: HostArray, mask: ArrayLike | None = None) -> Array: ...
@overload
def prewitt_v(image: ArrayLike, mask: ArrayLike | None = None) -> Image | Any: ...
@overload
def reconstruction(
    seed: Image, mask: ArrayLike, method: str = 'dilation', footprint: npt.ArrayLike | None = None, offset: Ints | None = None
) -> Image: ...
@overload
def reconstruction(
    seed: HostArray, mask: ArrayLike, method: str = 'dilation', footprint: npt.ArrayLike | None = None, offset: Ints | None = None
) -> Array: ...
@overload
def reconstruction(
    seed: ArrayLike, mask: ArrayLike, method: str = 'dilation', footprint: npt.ArrayLike | None = None, offset: Ints | None = None
) -> Image | Any: ...
@overload
def roberts(image: Image, mask: ArrayLike | None = None) -> Image: ...
@overload
def roberts(image: HostArray, mask: ArrayLike | None = None) -> Array: ...
@overload
def roberts(image: ArrayLike, mask: ArrayLike | None = None) -> Image | Any: ...
@overload
def roberts_neg_diag(image: Image, mask: ArrayLike | None = None) -> Image: ...
@overload
def roberts_neg_diag(image: HostArray, mask: ArrayLike | None = None) -> Array: ...
@overload
def roberts_neg_diag(image: ArrayLike, mask: ArrayLike | None = None) -> Image | Any: ...
@overload
def roberts_pos_diag(image: Image, mask: ArrayLike | None = None) -> Image: ...
@overload
def roberts_pos_diag(image: HostArray, mask: ArrayLike | None = None) -> Array: ...
@overload
def roberts_pos_diag(image: ArrayLike, mask: ArrayLike | None = None) -> Image | Any: ...
@overload
def sato(
    image: Image, sigmas: Iterable[float] = range(1, 10, 2), black_ridges: bool = True, mode: Border = 'reflect', cval: float = 0
) -> Image: ...
@overload
def sato(
    image: HostArray, sigmas: Iterable[float] = range(1, 10, 2), black_ridges: bool = True, mode: Border = 'reflect', cval: float = 0
) -> Array: ...
@overload
def sato(
    image: ArrayLike, sigmas: Iterable[float] = range(1, 10, 2), black_ridges: bool = True, mode: Border = 'reflect', cval: float = 0
) -> Image | Any: ...
@overload
def scharr(
    image: Image, mask: ArrayLike | None = None, *, axis: Ints | None = None, mode: Border = 'reflect', cval: float = 0.0
) -> Image: ...
@overload
def scharr(
    image: HostArray, mask: ArrayLike | None = None, *, axis: Ints | None = None, mode: Border = 'reflect', cval: float = 0.0
) -> Array: ...
@overload
def scharr(
    image: ArrayLike, mask: ArrayLike | None = None, *, axis: Ints | None = None, mode: Border = 'reflect', cval: float = 0.0
) -> Image | Any: ...
@overload
def scharr_h(image: Image, mask: ArrayLike | None = None) -> Image: ...
@overload
def scharr_h(image: HostArray, mask: ArrayLike | None = None) -> Array: ...
@overload
def scharr_h(image: ArrayLike, mask: ArrayLike | None = None) -> Image | Any: ...
@overload
def scharr_v(image: Image, mask: ArrayLike | None = None) -> Image: ...
@overload
def scharr_v(image: HostArray, mask: ArrayLike | None = None) -> Array: ...
@overload
def scharr_v(image: ArrayLike, mask: ArrayLike | None = None) -> Image | Any: ...
@overload
def sobel(
    image: Image, mask: ArrayLike | None = None, *, axis: Ints | None = None, mode: Border = 'reflect', cval: float = 0.0
) -> Image: ...
@overload
def sobel(
    image: HostArray, mask: ArrayLike | None = None, *, axis: Ints | None = None, mode: Border = 'reflect', cval: float = 0.0
) -> Array: ...
@overload
def sobel(
    image: ArrayLike, mask: ArrayLike | None = None, *, axis: Ints | None = None, mode: Border = 'reflect', cval: float = 0.0
) -> Image | Any: ...
@overload
def sobel_h(image: Image, mask: ArrayLike | None = None) -> Image: ...
@overload
def sobel_h(image: HostArray, mask: ArrayLike | None = None) -> Array: ...
@overload
def sobel_h(image: ArrayLike, mask: ArrayLike | None = None) -> Image | Any: ...
@overload
def sobel_v(image: Image, mask: ArrayLike | None = None) -> Image: ...
@overload
def sobel_v(image: HostArray, mask: ArrayLike | None = None) -> Array: ...
@overload
def sobel_v(image: ArrayLike, mask: ArrayLike | None = None) -> Image | Any: ...
@overload
def threshold_local(
    image: Image, block_size: Ints = 3, method: str = 'gaussian', offset: float = 0, mode: Border = 'reflect', param: Float | None = None,
    cval: float = 0
) -> Image: ...
@overload
def threshold_local(
    image: HostArray, block_size: Ints = 3, method: str = 'gaussian', offset: float = 0, mode: Border = 'reflect',
    param: Float | None = None, cval: float = 0
) -> Array: ...
@overload
def threshold_local(
    image: ArrayLike, block_size: Ints = 3, method: str = 'gaussian', offset: float = 0, mode: Border = 'reflect',
    param: Float | None = None, cval: float = 0
) -> Image | Any: ...
@overload
def threshold_niblack(image: Image, window_size: Ints = 15, k: float = 0.2) -> Image: ...
@overload
def threshold_niblack(image: HostArray, window_size: Ints = 15, k: float = 0.2) -> Array: ...
@overload
def threshold_niblack(image: ArrayLike, window_size: Ints = 15, k: float = 0.2) -> Image | Any: ...
@overload
def threshold_sauvola(image: Image, window_size: Ints = 15, k: float = 0.2, r: float | None = None) -> Image: ...
@overload
def threshold_sauvola(image: HostArray, window_size: Ints = 15, k: float = 0.2, r: float | None = None) -> Array: ...
@overload
def threshold_sauvola(image: ArrayLike, window_size: Ints = 15, k: float = 0.2, r: float | None = None) -> Image | Any: ...
@overload
def unsharp_mask(
    image: Image, radius: Floats = 1.0, amount: float = 1.0, preserve_range: bool = False, *, channel_axis: int | None = None
) -> Image: ...
@overload
def unsharp_mask(
    image: HostArray, radius: Floats = 1.0, amount: float = 1.0, preserve_range: bool = False, *, channel_axis: int | None = None
) -> Array: ...
@overload
def unsharp_mask(
    image: ArrayLike, radius: Floats = 1.0, amount: float = 1.0, preserve_range: bool = False, *, channel_axis: int | None = None
) -> Image | Any: ...
