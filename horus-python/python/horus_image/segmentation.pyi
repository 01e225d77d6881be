"""Made of the sources by tests/generate.py."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from ._labels import join_segmentations as join_segmentations, relabel_sequential as relabel_sequential
from ._level_sets import checkerboard_level_set as checkerboard_level_set, disk_level_set as disk_level_set
from .typing import Array, ArrayLike, Float, HostArray, Ints

__all__ = [
    "checkerboard_level_set", "clear_border", "disk_level_set", "expand_labels", "find_boundaries", "flood", "flood_fill",
    "inverse_gaussian_gradient", "join_segmentations", "mark_boundaries", "morphological_chan_vese",
    "morphological_geodesic_active_contour", "relabel_sequential", "watershed"
]

@overload
def clear_border(labels: Image, buffer_size: int = 0, bgval: float = 0, mask: ArrayLike | None = None, *, out: None = None) -> Image: ...
@overload
def clear_border(
    labels: HostArray, buffer_size: int = 0, bgval: float = 0, mask: ArrayLike | None = None, *, out: Array | None = None
) -> Array: ...
@overload
def clear_border(
    labels: ArrayLike, buffer_size: int = 0, bgval: float = 0, mask: ArrayLike | None = None, *, out: Array | None = None
) -> Image | Any: ...
@overload
def expand_labels(label_image: Image, distance: float = 1, spacing: float | npt.ArrayLike = 1) -> Image: ...
@overload
def expand_labels(label_image: HostArray, distance: float = 1, spacing: float | npt.ArrayLike = 1) -> Array: ...
@overload
def expand_labels(label_image: ArrayLike, distance: float = 1, spacing: float | npt.ArrayLike = 1) -> Image | Any: ...
@overload
def find_boundaries(label_img: Image, connectivity: int = 1, mode: str = 'thick', background: int = 0) -> Image: ...
@overload
def find_boundaries(label_img: HostArray, connectivity: int = 1, mode: str = 'thick', background: int = 0) -> Array: ...
@overload
def find_boundaries(label_img: ArrayLike, connectivity: int = 1, mode: str = 'thick', background: int = 0) -> Image | Any: ...
@overload
def flood(
    image: Image, seed_point: int | Sequence[int], *, footprint: npt.ArrayLike | None = None, connectivity: int | None = None,
    tolerance: Float | None = None
) -> Image: ...
@overload
def flood(
    image: HostArray, seed_point: int | Sequence[int], *, footprint: npt.ArrayLike | None = None, connectivity: int | None = None,
    tolerance: Float | None = None
) -> Array: ...
@overload
def flood(
    image: ArrayLike, seed_point: int | Sequence[int], *, footprint: npt.ArrayLike | None = None, connectivity: int | None = None,
    tolerance: Float | None = None
) -> Image | Any: ...
@overload
def flood_fill(
    image: Image, seed_point: int | Sequence[int], new_value: Float, *, footprint: npt.ArrayLike | None = None,
    connectivity: int | None = None, tolerance: Float | None = None, in_place: bool = False
) -> Image: ...
@overload
def flood_fill(
    image: HostArray, seed_point: int | Sequence[int], new_value: Float, *, footprint: npt.ArrayLike | None = None,
    connectivity: int | None = None, tolerance: Float | None = None, in_place: bool = False
) -> Array: ...
@overload
def flood_fill(
    image: ArrayLike, seed_point: int | Sequence[int], new_value: Float, *, footprint: npt.ArrayLike | None = None,
    connectivity: int | None = None, tolerance: Float | None = None, in_place: bool = False
) -> Image | Any: ...
@overload
def inverse_gaussian_gradient(image: Image, alpha: Float = 100.0, sigma: Float = 5.0) -> Image: ...
@overload
def inverse_gaussian_gradient(image: HostArray, alpha: Float = 100.0, sigma: Float = 5.0) -> Array: ...
@overload
def inverse_gaussian_gradient(image: ArrayLike, alpha: Float = 100.0, sigma: Float = 5.0) -> Image | Any: ...
@overload
def mark_boundaries(
    image: Image, label_img: ArrayLike, color: Sequence[Float] = (1, 1, 0), outline_color: Sequence[Float] | None = None,
    mode: str = 'outer', background_label: int = 0
) -> Image: ...
@overload
def mark_boundaries(
    image: HostArray, label_img: ArrayLike, color: Sequence[Float] = (1, 1, 0), outline_color: Sequence[Float] | None = None,
    mode: str = 'outer', background_label: int = 0
) -> Array: ...
@overload
def mark_boundaries(
    image: ArrayLike, label_img: ArrayLike, color: Sequence[Float] = (1, 1, 0), outline_color: Sequence[Float] | None = None,
    mode: str = 'outer', background_label: int = 0
) -> Image | Any: ...
@overload
def morphological_chan_vese(
    image: Image, num_iter: int, init_level_set: str | ArrayLike = 'checkerboard', smoothing: int = 1, lambda1: Float = 1,
    lambda2: Float = 1, iter_callback: Callable[[Array], Any] | None = None
) -> Image: ...
@overload
def morphological_chan_vese(
    image: HostArray, num_iter: int, init_level_set: str | ArrayLike = 'checkerboard', smoothing: int = 1, lambda1: Float = 1,
    lambda2: Float = 1, iter_callback: Callable[[Array], Any] | None = None
) -> Array: ...
@overload
def morphological_chan_vese(
    image: ArrayLike, num_iter: int, init_level_set: str | ArrayLike = 'checkerboard', smoothing: int = 1, lambda1: Float = 1,
    lambda2: Float = 1, iter_callback: Callable[[Array], Any] | None = None
) -> Image | Any: ...
@overload
def morphological_geodesic_active_contour(
    gimage: Image, num_iter: int, init_level_set: str | ArrayLike = 'disk', smoothing: int = 1, threshold: Float | str = 'auto',
    balloon: Float = 0, iter_callback: Callable[[Array], Any] | None = None
) -> Image: ...
@overload
def morphological_geodesic_active_contour(
    gimage: HostArray, num_iter: int, init_level_set: str | ArrayLike = 'disk', smoothing: int = 1, threshold: Float | str = 'auto',
    balloon: Float = 0, iter_callback: Callable[[Array], Any] | None = None
) -> Array: ...
@overload
def morphological_geodesic_active_contour(
    gimage: ArrayLike, num_iter: int, init_level_set: str | ArrayLike = 'disk', smoothing: int = 1, threshold: Float | str = 'auto',
    balloon: Float = 0, iter_callback: Callable[[Array], Any] | None = None
) -> Image | Any: ...
@overload
def watershed(
    image: Image, markers: ArrayLike | None = None, connectivity: npt.ArrayLike = 1, offset: Ints | None = None,
    mask: ArrayLike | None = None, compactness: float = 0, watershed_line: bool = False
) -> Image: ...
@overload
def watershed(
    image: HostArray, markers: ArrayLike | None = None, connectivity: npt.ArrayLike = 1, offset: Ints | None = None,
    mask: ArrayLike | None = None, compactness: float = 0, watershed_line: bool = False
) -> Array: ...
@overload
def watershed(
    image: ArrayLike, markers: ArrayLike | None = None, connectivity: npt.ArrayLike = 1, offset: Ints | None = None,
    mask: ArrayLike | None = None, compactness: float = 0, watershed_line: bool = False
) -> Image | Any: ...
