"""Made of the sources by tests/generate.py."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from ._binary import generate_binary_structure as generate_binary_structure, iterate_structure as iterate_structure
from ._fourier import fourier_ellipsoid as fourier_ellipsoid, fourier_gaussian as fourier_gaussian, fourier_shift as fourier_shift, fourier_uniform as fourier_uniform
from ._measurements import find_objects as find_objects, histogram as histogram, value_indices as value_indices
from .typing import Array, ArrayLike, Border, Borders, Float, Floats, HostArray, Ints, Output, Scales

__all__ = [
    "affine_transform", "binary_closing", "binary_dilation", "binary_erosion", "binary_fill_holes", "binary_hit_or_miss", "binary_opening",
    "binary_propagation", "black_tophat", "center_of_mass", "convolve", "convolve1d", "correlate", "correlate1d", "distance_transform_cdt",
    "distance_transform_edt", "extrema", "find_objects", "fourier_ellipsoid", "fourier_gaussian", "fourier_shift", "fourier_uniform",
    "gaussian_filter", "gaussian_filter1d", "gaussian_gradient_magnitude", "gaussian_laplace", "generate_binary_structure",
    "geometric_transform", "grey_closing", "grey_dilation", "grey_erosion", "grey_opening", "histogram", "iterate_structure", "label",
    "laplace", "map_coordinates", "maximum", "maximum_filter", "maximum_filter1d", "maximum_position", "mean", "median", "median_filter",
    "minimum", "minimum_filter", "minimum_filter1d", "minimum_position", "morphological_gradient", "morphological_laplace",
    "percentile_filter", "prewitt", "rank_filter", "rotate", "shift", "sobel", "spline_filter", "spline_filter1d", "standard_deviation",
    "sum", "sum_labels", "uniform_filter", "uniform_filter1d", "value_indices", "variance", "white_tophat", "zoom"
]

@overload
def affine_transform(
    input: Image, matrix: npt.ArrayLike, offset: Floats = 0.0, output_shape: Sequence[int] | None = None,
    output: type | str | np.dtype[Any] | None = None, order: int = 3, mode: Border = 'constant', cval: float = 0.0, prefilter: bool = True,
    *, texture_memory: bool = False, float64_coords: bool = False
) -> Image: ...
@overload
def affine_transform(
    input: HostArray, matrix: npt.ArrayLike, offset: Floats = 0.0, output_shape: Sequence[int] | None = None, output: Output = None,
    order: int = 3, mode: Border = 'constant', cval: float = 0.0, prefilter: bool = True, *, texture_memory: bool = False,
    float64_coords: bool = False
) -> Array: ...
@overload
def affine_transform(
    input: ArrayLike, matrix: npt.ArrayLike, offset: Floats = 0.0, output_shape: Sequence[int] | None = None, output: Output = None,
    order: int = 3, mode: Border = 'constant', cval: float = 0.0, prefilter: bool = True, *, texture_memory: bool = False,
    float64_coords: bool = False
) -> Image | Any: ...
@overload
def binary_closing(
    input: Image, structure: npt.ArrayLike | None = None, iterations: int = 1, output: type | str | np.dtype[Any] | None = None,
    origin: Ints = 0, mask: ArrayLike | None = None, border_value: int = 0, brute_force: bool = False, *, axes: Ints | None = None
) -> Image: ...
@overload
def binary_closing(
    input: HostArray, structure: npt.ArrayLike | None = None, iterations: int = 1, output: Output = None, origin: Ints = 0,
    mask: ArrayLike | None = None, border_value: int = 0, brute_force: bool = False, *, axes: Ints | None = None
) -> Array: ...
@overload
def binary_closing(
    input: ArrayLike, structure: npt.ArrayLike | None = None, iterations: int = 1, output: Output = None, origin: Ints = 0,
    mask: ArrayLike | None = None, border_value: int = 0, brute_force: bool = False, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def binary_dilation(
    input: Image, structure: npt.ArrayLike | None = None, iterations: int = 1, mask: ArrayLike | None = None,
    output: type | str | np.dtype[Any] | None = None, border_value: int = 0, origin: Ints = 0, brute_force: bool = False, *,
    axes: Ints | None = None
) -> Image: ...
@overload
def binary_dilation(
    input: HostArray, structure: npt.ArrayLike | None = None, iterations: int = 1, mask: ArrayLike | None = None, output: Output = None,
    border_value: int = 0, origin: Ints = 0, brute_force: bool = False, *, axes: Ints | None = None
) -> Array: ...
@overload
def binary_dilation(
    input: ArrayLike, structure: npt.ArrayLike | None = None, iterations: int = 1, mask: ArrayLike | None = None, output: Output = None,
    border_value: int = 0, origin: Ints = 0, brute_force: bool = False, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def binary_erosion(
    input: Image, structure: npt.ArrayLike | None = None, iterations: int = 1, mask: ArrayLike | None = None,
    output: type | str | np.dtype[Any] | None = None, border_value: int = 0, origin: Ints = 0, brute_force: bool = False, *,
    axes: Ints | None = None
) -> Image: ...
@overload
def binary_erosion(
    input: HostArray, structure: npt.ArrayLike | None = None, iterations: int = 1, mask: ArrayLike | None = None, output: Output = None,
    border_value: int = 0, origin: Ints = 0, brute_force: bool = False, *, axes: Ints | None = None
) -> Array: ...
@overload
def binary_erosion(
    input: ArrayLike, structure: npt.ArrayLike | None = None, iterations: int = 1, mask: ArrayLike | None = None, output: Output = None,
    border_value: int = 0, origin: Ints = 0, brute_force: bool = False, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def binary_fill_holes(
    input: Image, structure: npt.ArrayLike | None = None, output: type | str | np.dtype[Any] | None = None, origin: Ints = 0, *,
    axes: Ints | None = None
) -> Image: ...
@overload
def binary_fill_holes(
    input: HostArray, structure: npt.ArrayLike | None = None, output: Output = None, origin: Ints = 0, *, axes: Ints | None = None
) -> Array: ...
@overload
def binary_fill_holes(
    input: ArrayLike, structure: npt.ArrayLike | None = None, output: Output = None, origin: Ints = 0, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def binary_hit_or_miss(
    input: Image, structure1: npt.ArrayLike | None = None, structure2: npt.ArrayLike | None = None,
    output: type | str | np.dtype[Any] | None = None, origin1: Ints = 0, origin2: Ints | None = None, *, axes: Ints | None = None
) -> Image: ...
@overload
def binary_hit_or_miss(
    input: HostArray, structure1: npt.ArrayLike | None = None, structure2: npt.ArrayLike | None = None, output: Output = None,
    origin1: Ints = 0, origin2: Ints | None = None, *, axes: Ints | None = None
) -> Array: ...
@overload
def binary_hit_or_miss(
    input: ArrayLike, structure1: npt.ArrayLike | None = None, structure2: npt.ArrayLike | None = None, output: Output = None,
    origin1: Ints = 0, origin2: Ints | None = None, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def binary_opening(
    input: Image, structure: npt.ArrayLike | None = None, iterations: int = 1, output: type | str | np.dtype[Any] | None = None,
    origin: Ints = 0, mask: ArrayLike | None = None, border_value: int = 0, brute_force: bool = False, *, axes: Ints | None = None
) -> Image: ...
@overload
def binary_opening(
    input: HostArray, structure: npt.ArrayLike | None = None, iterations: int = 1, output: Output = None, origin: Ints = 0,
    mask: ArrayLike | None = None, border_value: int = 0, brute_force: bool = False, *, axes: Ints | None = None
) -> Array: ...
@overload
def binary_opening(
    input: ArrayLike, structure: npt.ArrayLike | None = None, iterations: int = 1, output: Output = None, origin: Ints = 0,
    mask: ArrayLike | None = None, border_value: int = 0, brute_force: bool = False, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def binary_propagation(
    input: Image, structure: npt.ArrayLike | None = None, mask: ArrayLike | None = None, output: type | str | np.dtype[Any] | None = None,
    border_value: int = 0, origin: Ints = 0, *, axes: Ints | None = None
) -> Image: ...
@overload
def binary_propagation(
    input: HostArray, structure: npt.ArrayLike | None = None, mask: ArrayLike | None = None, output: Output = None, border_value: int = 0,
    origin: Ints = 0, *, axes: Ints | None = None
) -> Array: ...
@overload
def binary_propagation(
    input: ArrayLike, structure: npt.ArrayLike | None = None, mask: ArrayLike | None = None, output: Output = None, border_value: int = 0,
    origin: Ints = 0, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def black_tophat(
    input: Image, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *,
    axes: Ints | None = None
) -> Image: ...
@overload
def black_tophat(
    input: HostArray, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Array: ...
@overload
def black_tophat(
    input: ArrayLike, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def center_of_mass(input: ArrayLike, labels: ArrayLike | None = None, index: SupportsIndex | None = None) -> tuple[np.float64, ...]: ...
@overload
def center_of_mass(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> list[tuple[np.float64, ...]]: ...
@overload
def convolve(
    input: Image, weights: npt.ArrayLike, output: type | str | np.dtype[Any] | None = None, mode: Border = 'reflect', cval: float = 0.0,
    origin: Ints = 0, *, axes: Ints | None = None
) -> Image: ...
@overload
def convolve(
    input: HostArray, weights: npt.ArrayLike, output: Output = None, mode: Border = 'reflect', cval: float = 0.0, origin: Ints = 0, *,
    axes: Ints | None = None
) -> Array: ...
@overload
def convolve(
    input: ArrayLike, weights: npt.ArrayLike, output: Output = None, mode: Border = 'reflect', cval: float = 0.0, origin: Ints = 0, *,
    axes: Ints | None = None
) -> Image | Any: ...
@overload
def convolve1d(
    input: Image, weights: npt.ArrayLike, axis: int = -1, output: type | str | np.dtype[Any] | None = None, mode: Border = 'reflect',
    cval: float = 0.0, origin: int = 0
) -> Image: ...
@overload
def convolve1d(
    input: HostArray, weights: npt.ArrayLike, axis: int = -1, output: Output = None, mode: Border = 'reflect', cval: float = 0.0,
    origin: int = 0
) -> Array: ...
@overload
def convolve1d(
    input: ArrayLike, weights: npt.ArrayLike, axis: int = -1, output: Output = None, mode: Border = 'reflect', cval: float = 0.0,
    origin: int = 0
) -> Image | Any: ...
@overload
def correlate(
    input: Image, weights: npt.ArrayLike, output: type | str | np.dtype[Any] | None = None, mode: Border = 'reflect', cval: float = 0.0,
    origin: Ints = 0, *, axes: Ints | None = None
) -> Image: ...
@overload
def correlate(
    input: HostArray, weights: npt.ArrayLike, output: Output = None, mode: Border = 'reflect', cval: float = 0.0, origin: Ints = 0, *,
    axes: Ints | None = None
) -> Array: ...
@overload
def correlate(
    input: ArrayLike, weights: npt.ArrayLike, output: Output = None, mode: Border = 'reflect', cval: float = 0.0, origin: Ints = 0, *,
    axes: Ints | None = None
) -> Image | Any: ...
@overload
def correlate1d(
    input: Image, weights: npt.ArrayLike, axis: int = -1, output: type | str | np.dtype[Any] | None = None, mode: Border = 'reflect',
    cval: float = 0.0, origin: int = 0
) -> Image: ...
@overload
def correlate1d(
    input: HostArray, weights: npt.ArrayLike, axis: int = -1, output: Output = None, mode: Border = 'reflect', cval: float = 0.0,
    origin: int = 0
) -> Array: ...
@overload
def correlate1d(
    input: ArrayLike, weights: npt.ArrayLike, axis: int = -1, output: Output = None, mode: Border = 'reflect', cval: float = 0.0,
    origin: int = 0
) -> Image | Any: ...
@overload
def distance_transform_cdt(
    input: Image, metric: str = 'chessboard', return_distances: Literal[True] = True, return_indices: Literal[False] = False,
    distances: None = None, indices: Array | None = None
) -> Image: ...
@overload
def distance_transform_cdt(
    input: HostArray, metric: str = 'chessboard', return_distances: Literal[True] = True, return_indices: Literal[False] = False,
    distances: None = None, indices: Array | None = None
) -> Array: ...
@overload
def distance_transform_cdt(
    input: ArrayLike, metric: str = 'chessboard', return_distances: bool = True, return_indices: bool = False,
    distances: Array | None = None, indices: Array | None = None
) -> Image | Any: ...
@overload
def distance_transform_edt(
    input: Image, sampling: float | npt.ArrayLike | None = None, return_distances: Literal[True] = True,
    return_indices: Literal[False] = False, distances: None = None, indices: Array | None = None, *,
    block_params: tuple[int, int, int] | None = None, float64_distances: bool = True
) -> Image: ...
@overload
def distance_transform_edt(
    input: HostArray, sampling: float | npt.ArrayLike | None = None, return_distances: Literal[True] = True,
    return_indices: Literal[False] = False, distances: None = None, indices: Array | None = None, *,
    block_params: tuple[int, int, int] | None = None, float64_distances: bool = True
) -> Array: ...
@overload
def distance_transform_edt(
    input: ArrayLike, sampling: float | npt.ArrayLike | None = None, return_distances: bool = True, return_indices: bool = False,
    distances: Array | None = None, indices: Array | None = None, *, block_params: tuple[int, int, int] | None = None,
    float64_distances: bool = True
) -> Image | Any: ...
@overload
def extrema(
    input: ArrayLike, labels: ArrayLike | None = None, index: SupportsIndex | None = None
) -> tuple[Any, Any, tuple[np.int64, ...], tuple[np.int64, ...]]: ...
@overload
def extrema(
    input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None
) -> tuple[Array, Array, list[tuple[np.int64, ...]], list[tuple[np.int64, ...]]]: ...
@overload
def gaussian_filter(
    input: Image, sigma: Scales, order: Ints = 0, output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect',
    cval: float = 0.0, truncate: float = 4.0, radius: Ints | None = None, axes: Ints | None = None
) -> Image: ...
@overload
def gaussian_filter(
    input: HostArray, sigma: Scales, order: Ints = 0, output: Output = None, mode: Borders = 'reflect', cval: float = 0.0,
    truncate: float = 4.0, radius: Ints | None = None, axes: Ints | None = None
) -> Array: ...
@overload
def gaussian_filter(
    input: ArrayLike, sigma: Scales, order: Ints = 0, output: Output = None, mode: Borders = 'reflect', cval: float = 0.0,
    truncate: float = 4.0, radius: Ints | None = None, axes: Ints | None = None
) -> Image | Any: ...
@overload
def gaussian_filter1d(
    input: Image, sigma: Float | str, axis: int = -1, order: int = 0, output: type | str | np.dtype[Any] | None = None,
    mode: Border = 'reflect', cval: float = 0.0, truncate: float = 4.0, *, radius: int | None = None
) -> Image: ...
@overload
def gaussian_filter1d(
    input: HostArray, sigma: Float | str, axis: int = -1, order: int = 0, output: Output = None, mode: Border = 'reflect',
    cval: float = 0.0, truncate: float = 4.0, *, radius: int | None = None
) -> Array: ...
@overload
def gaussian_filter1d(
    input: ArrayLike, sigma: Float | str, axis: int = -1, order: int = 0, output: Output = None, mode: Border = 'reflect',
    cval: float = 0.0, truncate: float = 4.0, *, radius: int | None = None
) -> Image | Any: ...
@overload
def gaussian_gradient_magnitude(
    input: Image, sigma: Scales, output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0, *,
    axes: Ints | None = None, **kwargs: Any
) -> Image: ...
@overload
def gaussian_gradient_magnitude(
    input: HostArray, sigma: Scales, output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, *, axes: Ints | None = None,
    **kwargs: Any
) -> Array: ...
@overload
def gaussian_gradient_magnitude(
    input: ArrayLike, sigma: Scales, output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, *, axes: Ints | None = None,
    **kwargs: Any
) -> Image | Any: ...
@overload
def gaussian_laplace(
    input: Image, sigma: Scales, output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0, *,
    axes: Ints | None = None, **kwargs: Any
) -> Image: ...
@overload
def gaussian_laplace(
    input: HostArray, sigma: Scales, output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, *, axes: Ints | None = None,
    **kwargs: Any
) -> Array: ...
@overload
def gaussian_laplace(
    input: ArrayLike, sigma: Scales, output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, *, axes: Ints | None = None,
    **kwargs: Any
) -> Image | Any: ...
@overload
def geometric_transform(
    input: Image, mapping: Callable[..., Sequence[float]], output_shape: tuple[int, ...] | None = None,
    output: type | str | np.dtype[Any] | None = None, order: int = 3, mode: Border = 'constant', cval: float = 0.0, prefilter: bool = True,
    extra_arguments: tuple[object, ...] = (), extra_keywords: dict[str, object] | None = None
) -> Image: ...
@overload
def geometric_transform(
    input: HostArray, mapping: Callable[..., Sequence[float]], output_shape: tuple[int, ...] | None = None, output: Output = None,
    order: int = 3, mode: Border = 'constant', cval: float = 0.0, prefilter: bool = True, extra_arguments: tuple[object, ...] = (),
    extra_keywords: dict[str, object] | None = None
) -> Array: ...
@overload
def geometric_transform(
    input: ArrayLike, mapping: Callable[..., Sequence[float]], output_shape: tuple[int, ...] | None = None, output: Output = None,
    order: int = 3, mode: Border = 'constant', cval: float = 0.0, prefilter: bool = True, extra_arguments: tuple[object, ...] = (),
    extra_keywords: dict[str, object] | None = None
) -> Image | Any: ...
@overload
def grey_closing(
    input: Image, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *,
    axes: Ints | None = None
) -> Image: ...
@overload
def grey_closing(
    input: HostArray, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Array: ...
@overload
def grey_closing(
    input: ArrayLike, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def grey_dilation(
    input: Image, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *,
    axes: Ints | None = None
) -> Image: ...
@overload
def grey_dilation(
    input: HostArray, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Array: ...
@overload
def grey_dilation(
    input: ArrayLike, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def grey_erosion(
    input: Image, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *,
    axes: Ints | None = None
) -> Image: ...
@overload
def grey_erosion(
    input: HostArray, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Array: ...
@overload
def grey_erosion(
    input: ArrayLike, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def grey_opening(
    input: Image, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *,
    axes: Ints | None = None
) -> Image: ...
@overload
def grey_opening(
    input: HostArray, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Array: ...
@overload
def grey_opening(
    input: ArrayLike, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def label(input: Image, structure: npt.ArrayLike | None = None, output: type | str | np.dtype[Any] | None = None) -> tuple[Image, int]: ...
@overload
def label(
    input: HostArray, structure: npt.ArrayLike | None = None, output: type | str | np.dtype[Any] | None = None
) -> tuple[Array, int]: ...
@overload
def label(input: ArrayLike, structure: npt.ArrayLike | None = None, output: Output = None) -> tuple[Image | Any, int] | Any: ...
@overload
def laplace(
    input: Image, output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0, *,
    axes: Ints | None = None
) -> Image: ...
@overload
def laplace(
    input: HostArray, output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, *, axes: Ints | None = None
) -> Array: ...
@overload
def laplace(
    input: ArrayLike, output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def map_coordinates(
    input: Image, coordinates: ArrayLike | Sequence[ArrayLike], output: type | str | np.dtype[Any] | None = None, order: int = 3,
    mode: Border = 'constant', cval: float = 0.0, prefilter: bool = True
) -> Image: ...
@overload
def map_coordinates(
    input: HostArray, coordinates: ArrayLike | Sequence[ArrayLike], output: Output = None, order: int = 3, mode: Border = 'constant',
    cval: float = 0.0, prefilter: bool = True
) -> Array: ...
@overload
def map_coordinates(
    input: ArrayLike, coordinates: ArrayLike | Sequence[ArrayLike], output: Output = None, order: int = 3, mode: Border = 'constant',
    cval: float = 0.0, prefilter: bool = True
) -> Image | Any: ...
@overload
def maximum(input: ArrayLike, labels: ArrayLike | None = None, index: SupportsIndex | None = None) -> Any: ...
@overload
def maximum(input: ArrayLike, labels: ArrayLike, index: HostArray) -> Array: ...
@overload
def maximum(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Array | Any: ...
@overload
def maximum_filter(
    input: Image, size: Ints | None = None, footprint: npt.ArrayLike | None = None, output: type | str | np.dtype[Any] | None = None,
    mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, axes: Ints | None = None
) -> Image: ...
@overload
def maximum_filter(
    input: HostArray, size: Ints | None = None, footprint: npt.ArrayLike | None = None, output: Output = None, mode: Borders = 'reflect',
    cval: float = 0.0, origin: Ints = 0, axes: Ints | None = None
) -> Array: ...
@overload
def maximum_filter(
    input: ArrayLike, size: Ints | None = None, footprint: npt.ArrayLike | None = None, output: Output = None, mode: Borders = 'reflect',
    cval: float = 0.0, origin: Ints = 0, axes: Ints | None = None
) -> Image | Any: ...
@overload
def maximum_filter1d(
    input: Image, size: int, axis: int = -1, output: type | str | np.dtype[Any] | None = None, mode: Border = 'reflect', cval: float = 0.0,
    origin: int = 0
) -> Image: ...
@overload
def maximum_filter1d(
    input: HostArray, size: int, axis: int = -1, output: Output = None, mode: Border = 'reflect', cval: float = 0.0, origin: int = 0
) -> Array: ...
@overload
def maximum_filter1d(
    input: ArrayLike, size: int, axis: int = -1, output: Output = None, mode: Border = 'reflect', cval: float = 0.0, origin: int = 0
) -> Image | Any: ...
@overload
def maximum_position(input: ArrayLike, labels: ArrayLike | None = None, index: SupportsIndex | None = None) -> tuple[np.int64, ...]: ...
@overload
def maximum_position(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> list[tuple[np.int64, ...]]: ...
@overload
def mean(input: ArrayLike, labels: ArrayLike | None = None, index: SupportsIndex | None = None) -> Any: ...
@overload
def mean(input: ArrayLike, labels: ArrayLike, index: HostArray) -> Array: ...
@overload
def mean(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Array | Any: ...
@overload
def median(input: ArrayLike, labels: ArrayLike | None = None, index: SupportsIndex | None = None) -> Any: ...
@overload
def median(input: ArrayLike, labels: ArrayLike, index: HostArray) -> Array: ...
@overload
def median(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Array | Any: ...
@overload
def median_filter(
    input: Image, size: Ints | None = None, footprint: npt.ArrayLike | None = None, output: type | str | np.dtype[Any] | None = None,
    mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, axes: Ints | None = None
) -> Image: ...
@overload
def median_filter(
    input: HostArray, size: Ints | None = None, footprint: npt.ArrayLike | None = None, output: Output = None, mode: Borders = 'reflect',
    cval: float = 0.0, origin: Ints = 0, axes: Ints | None = None
) -> Array: ...
@overload
def median_filter(
    input: ArrayLike, size: Ints | None = None, footprint: npt.ArrayLike | None = None, output: Output = None, mode: Borders = 'reflect',
    cval: float = 0.0, origin: Ints = 0, axes: Ints | None = None
) -> Image | Any: ...
@overload
def minimum(input: ArrayLike, labels: ArrayLike | None = None, index: SupportsIndex | None = None) -> Any: ...
@overload
def minimum(input: ArrayLike, labels: ArrayLike, index: HostArray) -> Array: ...
@overload
def minimum(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Array | Any: ...
@overload
def minimum_filter(
    input: Image, size: Ints | None = None, footprint: npt.ArrayLike | None = None, output: type | str | np.dtype[Any] | None = None,
    mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, axes: Ints | None = None
) -> Image: ...
@overload
def minimum_filter(
    input: HostArray, size: Ints | None = None, footprint: npt.ArrayLike | None = None, output: Output = None, mode: Borders = 'reflect',
    cval: float = 0.0, origin: Ints = 0, axes: Ints | None = None
) -> Array: ...
@overload
def minimum_filter(
    input: ArrayLike, size: Ints | None = None, footprint: npt.ArrayLike | None = None, output: Output = None, mode: Borders = 'reflect',
    cval: float = 0.0, origin: Ints = 0, axes: Ints | None = None
) -> Image | Any: ...
@overload
def minimum_filter1d(
    input: Image, size: int, axis: int = -1, output: type | str | np.dtype[Any] | None = None, mode: Border = 'reflect', cval: float = 0.0,
    origin: int = 0
) -> Image: ...
@overload
def minimum_filter1d(
    input: HostArray, size: int, axis: int = -1, output: Output = None, mode: Border = 'reflect', cval: float = 0.0, origin: int = 0
) -> Array: ...
@overload
def minimum_filter1d(
    input: ArrayLike, size: int, axis: int = -1, output: Output = None, mode: Border = 'reflect', cval: float = 0.0, origin: int = 0
) -> Image | Any: ...
@overload
def minimum_position(input: ArrayLike, labels: ArrayLike | None = None, index: SupportsIndex | None = None) -> tuple[np.int64, ...]: ...
@overload
def minimum_position(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> list[tuple[np.int64, ...]]: ...
@overload
def morphological_gradient(
    input: Image, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *,
    axes: Ints | None = None
) -> Image: ...
@overload
def morphological_gradient(
    input: HostArray, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Array: ...
@overload
def morphological_gradient(
    input: ArrayLike, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def morphological_laplace(
    input: Image, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *,
    axes: Ints | None = None
) -> Image: ...
@overload
def morphological_laplace(
    input: HostArray, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Array: ...
@overload
def morphological_laplace(
    input: ArrayLike, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def percentile_filter(
    input: Image, percentile: float, size: Ints | None = None, footprint: npt.ArrayLike | None = None,
    output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0,
    axes: Ints | None = None
) -> Image: ...
@overload
def percentile_filter(
    input: HostArray, percentile: float, size: Ints | None = None, footprint: npt.ArrayLike | None = None, output: Output = None,
    mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, axes: Ints | None = None
) -> Array: ...
@overload
def percentile_filter(
    input: ArrayLike, percentile: float, size: Ints | None = None, footprint: npt.ArrayLike | None = None, output: Output = None,
    mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, axes: Ints | None = None
) -> Image | Any: ...
@overload
def prewitt(
    input: Image, axis: int = -1, output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0
) -> Image: ...
@overload
def prewitt(input: HostArray, axis: int = -1, output: Output = None, mode: Borders = 'reflect', cval: float = 0.0) -> Array: ...
@overload
def prewitt(input: ArrayLike, axis: int = -1, output: Output = None, mode: Borders = 'reflect', cval: float = 0.0) -> Image | Any: ...
@overload
def rank_filter(
    input: Image, rank: int, size: Ints | None = None, footprint: npt.ArrayLike | None = None,
    output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0,
    axes: Ints | None = None
) -> Image: ...
@overload
def rank_filter(
    input: HostArray, rank: int, size: Ints | None = None, footprint: npt.ArrayLike | None = None, output: Output = None,
    mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, axes: Ints | None = None
) -> Array: ...
@overload
def rank_filter(
    input: ArrayLike, rank: int, size: Ints | None = None, footprint: npt.ArrayLike | None = None, output: Output = None,
    mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, axes: Ints | None = None
) -> Image | Any: ...
@overload
def rotate(
    input: Image, angle: float, axes: tuple[int, int] = (1, 0), reshape: bool = True, output: type | str | np.dtype[Any] | None = None,
    order: int = 3, mode: Border = 'constant', cval: float = 0.0, prefilter: bool = True
) -> Image: ...
@overload
def rotate(
    input: HostArray, angle: float, axes: tuple[int, int] = (1, 0), reshape: bool = True, output: Output = None, order: int = 3,
    mode: Border = 'constant', cval: float = 0.0, prefilter: bool = True
) -> Array: ...
@overload
def rotate(
    input: ArrayLike, angle: float, axes: tuple[int, int] = (1, 0), reshape: bool = True, output: Output = None, order: int = 3,
    mode: Border = 'constant', cval: float = 0.0, prefilter: bool = True
) -> Image | Any: ...
@overload
def shift(
    input: Image, shift: Floats, output: type | str | np.dtype[Any] | None = None, order: int = 3, mode: Border = 'constant',
    cval: float = 0.0, prefilter: bool = True
) -> Image: ...
@overload
def shift(
    input: HostArray, shift: Floats, output: Output = None, order: int = 3, mode: Border = 'constant', cval: float = 0.0,
    prefilter: bool = True
) -> Array: ...
@overload
def shift(
    input: ArrayLike, shift: Floats, output: Output = None, order: int = 3, mode: Border = 'constant', cval: float = 0.0,
    prefilter: bool = True
) -> Image | Any: ...
@overload
def sobel(
    input: Image, axis: int = -1, output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0
) -> Image: ...
@overload
def sobel(input: HostArray, axis: int = -1, output: Output = None, mode: Borders = 'reflect', cval: float = 0.0) -> Array: ...
@overload
def sobel(input: ArrayLike, axis: int = -1, output: Output = None, mode: Borders = 'reflect', cval: float = 0.0) -> Image | Any: ...
@overload
def spline_filter(
    input: Image, order: int = 3, output: type | str | np.dtype[Any] | None = np.float64, mode: Border = 'mirror'
) -> Image: ...
@overload
def spline_filter(input: HostArray, order: int = 3, output: Output = np.float64, mode: Border = 'mirror') -> Array: ...
@overload
def spline_filter(input: ArrayLike, order: int = 3, output: Output = np.float64, mode: Border = 'mirror') -> Image | Any: ...
@overload
def spline_filter1d(
    input: Image, order: int = 3, axis: int = -1, output: type | str | np.dtype[Any] | None = np.float64, mode: Border = 'mirror'
) -> Image: ...
@overload
def spline_filter1d(input: HostArray, order: int = 3, axis: int = -1, output: Output = np.float64, mode: Border = 'mirror') -> Array: ...
@overload
def spline_filter1d(
    input: ArrayLike, order: int = 3, axis: int = -1, output: Output = np.float64, mode: Border = 'mirror'
) -> Image | Any: ...
@overload
def standard_deviation(input: ArrayLike, labels: ArrayLike | None = None, index: SupportsIndex | None = None) -> Any: ...
@overload
def standard_deviation(input: ArrayLike, labels: ArrayLike, index: HostArray) -> Array: ...
@overload
def standard_deviation(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Array | Any: ...
@overload
def sum(input: ArrayLike, labels: ArrayLike | None = None, index: SupportsIndex | None = None) -> Any: ...
@overload
def sum(input: ArrayLike, labels: ArrayLike, index: HostArray) -> Array: ...
@overload
def sum(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Array | Any: ...
@overload
def sum_labels(input: ArrayLike, labels: ArrayLike | None = None, index: SupportsIndex | None = None) -> Any: ...
@overload
def sum_labels(input: ArrayLike, labels: ArrayLike, index: HostArray) -> Array: ...
@overload
def sum_labels(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Array | Any: ...
@overload
def uniform_filter(
    input: Image, size: Ints = 3, output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0,
    origin: Ints = 0, axes: Ints | None = None
) -> Image: ...
@overload
def uniform_filter(
    input: HostArray, size: Ints = 3, output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0,
    axes: Ints | None = None
) -> Array: ...
@overload
def uniform_filter(
    input: ArrayLike, size: Ints = 3, output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0,
    axes: Ints | None = None
) -> Image | Any: ...
@overload
def uniform_filter1d(
    input: Image, size: int, axis: int = -1, output: type | str | np.dtype[Any] | None = None, mode: Border = 'reflect', cval: float = 0.0,
    origin: int = 0
) -> Image: ...
@overload
def uniform_filter1d(
    input: HostArray, size: int, axis: int = -1, output: Output = None, mode: Border = 'reflect', cval: float = 0.0, origin: int = 0
) -> Array: ...
@overload
def uniform_filter1d(
    input: ArrayLike, size: int, axis: int = -1, output: Output = None, mode: Border = 'reflect', cval: float = 0.0, origin: int = 0
) -> Image | Any: ...
@overload
def variance(input: ArrayLike, labels: ArrayLike | None = None, index: SupportsIndex | None = None) -> Any: ...
@overload
def variance(input: ArrayLike, labels: ArrayLike, index: HostArray) -> Array: ...
@overload
def variance(input: ArrayLike, labels: ArrayLike | None = None, index: ArrayLike | None = None) -> Array | Any: ...
@overload
def white_tophat(
    input: Image, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: type | str | np.dtype[Any] | None = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *,
    axes: Ints | None = None
) -> Image: ...
@overload
def white_tophat(
    input: HostArray, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Array: ...
@overload
def white_tophat(
    input: ArrayLike, size: Ints | None = None, footprint: npt.ArrayLike | None = None, structure: npt.ArrayLike | None = None,
    output: Output = None, mode: Borders = 'reflect', cval: float = 0.0, origin: Ints = 0, *, axes: Ints | None = None
) -> Image | Any: ...
@overload
def zoom(
    input: Image, zoom: Floats, output: type | str | np.dtype[Any] | None = None, order: int = 3, mode: Border = 'constant',
    cval: float = 0.0, prefilter: bool = True, *, grid_mode: bool = False
) -> Image: ...
@overload
def zoom(
    input: HostArray, zoom: Floats, output: Output = None, order: int = 3, mode: Border = 'constant', cval: float = 0.0,
    prefilter: bool = True, *, grid_mode: bool = False
) -> Array: ...
@overload
def zoom(
    input: ArrayLike, zoom: Floats, output: Output = None, order: int = 3, mode: Border = 'constant', cval: float = 0.0,
    prefilter: bool = True, *, grid_mode: bool = False
) -> Image | Any: ...
