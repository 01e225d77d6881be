"""Made of the sources by tests/generate.py."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from ._peaks import corner_peaks as corner_peaks, peak_local_max as peak_local_max
from ._tensors import corner_foerstner as corner_foerstner, hessian_matrix as hessian_matrix, structure_tensor as structure_tensor
from .typing import Array, ArrayLike, Border, Float, Floats, HostArray

__all__ = [
    "canny", "corner_foerstner", "corner_harris", "corner_kitchen_rosenfeld", "corner_peaks", "corner_shi_tomasi", "hessian_matrix",
    "hessian_matrix_eigvals", "match_template", "multiscale_basic_features", "peak_local_max", "shape_index", "structure_tensor",
    "structure_tensor_eigenvalues"
]

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
def corner_harris(image: Image, method: str = 'k', k: float = 0.05, eps: float = 1e-06, sigma: Floats = 1) -> Image: ...
@overload
def corner_harris(image: HostArray, method: str = 'k', k: float = 0.05, eps: float = 1e-06, sigma: Floats = 1) -> Array: ...
@overload
def corner_harris(image: ArrayLike, method: str = 'k', k: float = 0.05, eps: float = 1e-06, sigma: Floats = 1) -> Image | Any: ...
@overload
def corner_kitchen_rosenfeld(image: Image, mode: Border = 'constant', cval: float = 0) -> Image: ...
@overload
def corner_kitchen_rosenfeld(image: HostArray, mode: Border = 'constant', cval: float = 0) -> Array: ...
@overload
def corner_kitchen_rosenfeld(image: ArrayLike, mode: Border = 'constant', cval: float = 0) -> Image | Any: ...
@overload
def corner_shi_tomasi(image: Image, sigma: Floats = 1) -> Image: ...
@overload
def corner_shi_tomasi(image: HostArray, sigma: Floats = 1) -> Array: ...
@overload
def corner_shi_tomasi(image: ArrayLike, sigma: Floats = 1) -> Image | Any: ...
@overload
def hessian_matrix_eigvals(H_elems: Image) -> Image: ...
@overload
def hessian_matrix_eigvals(H_elems: HostArray) -> Array: ...
@overload
def hessian_matrix_eigvals(H_elems: Sequence[ArrayLike]) -> Image | Any: ...
@overload
def match_template(
    image: Image, template: npt.ArrayLike, pad_input: bool = False, mode: str = 'constant', constant_values: Float = 0
) -> Image: ...
@overload
def match_template(
    image: HostArray, template: npt.ArrayLike, pad_input: bool = False, mode: str = 'constant', constant_values: Float = 0
) -> Array: ...
@overload
def match_template(
    image: ArrayLike, template: npt.ArrayLike, pad_input: bool = False, mode: str = 'constant', constant_values: Float = 0
) -> Image | Any: ...
@overload
def multiscale_basic_features(
    image: Image, intensity: bool = True, edges: bool = True, texture: bool = True, sigma_min: Float = 0.5, sigma_max: Float = 16,
    num_sigma: int | None = None, workers: int | None = None, *, channel_axis: int | None = None
) -> Image: ...
@overload
def multiscale_basic_features(
    image: HostArray, intensity: bool = True, edges: bool = True, texture: bool = True, sigma_min: Float = 0.5, sigma_max: Float = 16,
    num_sigma: int | None = None, workers: int | None = None, *, channel_axis: int | None = None
) -> Array: ...
@overload
def multiscale_basic_features(
    image: ArrayLike, intensity: bool = True, edges: bool = True, texture: bool = True, sigma_min: Float = 0.5, sigma_max: Float = 16,
    num_sigma: int | None = None, workers: int | None = None, *, channel_axis: int | None = None
) -> Image | Any: ...
@overload
def shape_index(image: Image, sigma: Floats = 1, mode: Border = 'constant', cval: float = 0) -> Image: ...
@overload
def shape_index(image: HostArray, sigma: Floats = 1, mode: Border = 'constant', cval: float = 0) -> Array: ...
@overload
def shape_index(image: ArrayLike, sigma: Floats = 1, mode: Border = 'constant', cval: float = 0) -> Image | Any: ...
@overload
def structure_tensor_eigenvalues(A_elems: Image) -> Image: ...
@overload
def structure_tensor_eigenvalues(A_elems: HostArray) -> Array: ...
@overload
def structure_tensor_eigenvalues(A_elems: Sequence[ArrayLike]) -> Image | Any: ...
