"""Made of the sources by tests/generate.py."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from ._elements import ball as ball, diamond as diamond, disk as disk, footprint_rectangle as footprint_rectangle, mirror_footprint as mirror_footprint, octahedron as octahedron, pad_footprint as pad_footprint
from .typing import Array, ArrayLike, Float, Floats, Footprints, HostArray, Ints

__all__ = [
    "ball", "black_tophat", "closing", "diamond", "dilation", "disk", "erosion", "flood", "flood_fill", "footprint_rectangle", "h_maxima",
    "h_minima", "isotropic_closing", "isotropic_dilation", "isotropic_erosion", "isotropic_opening", "label", "local_maxima",
    "local_minima", "mirror_footprint", "octahedron", "opening", "pad_footprint", "reconstruction", "remove_small_holes",
    "remove_small_objects", "white_tophat"
]

@overload
def black_tophat(
    image: Image, footprint: Footprints | None = None, out: None = None, *, mode: str = 'reflect', cval: float = 0.0
) -> Image: ...
@overload
def black_tophat(
    image: HostArray, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = 'reflect', cval: float = 0.0
) -> Array: ...
@overload
def black_tophat(
    image: ArrayLike, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = 'reflect', cval: float = 0.0
) -> Image | Any: ...
@overload
def closing(image: Image, footprint: Footprints | None = None, out: None = None, *, mode: str = 'reflect', cval: float = 0.0) -> Image: ...
@overload
def closing(
    image: HostArray, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = 'reflect', cval: float = 0.0
) -> Array: ...
@overload
def closing(
    image: ArrayLike, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = 'reflect', cval: float = 0.0
) -> Image | Any: ...
@overload
def dilation(image: Image, footprint: Footprints | None = None, out: None = None, *, mode: str = 'reflect', cval: float = 0.0) -> Image: ...
@overload
def dilation(
    image: HostArray, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = 'reflect', cval: float = 0.0
) -> Array: ...
@overload
def dilation(
    image: ArrayLike, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = 'reflect', cval: float = 0.0
) -> Image | Any: ...
@overload
def erosion(image: Image, footprint: Footprints | None = None, out: None = None, *, mode: str = 'reflect', cval: float = 0.0) -> Image: ...
@overload
def erosion(
    image: HostArray, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = 'reflect', cval: float = 0.0
) -> Array: ...
@overload
def erosion(
    image: ArrayLike, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = 'reflect', cval: float = 0.0
) -> Image | Any: ...
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
def h_maxima(image: Image, h: Float, footprint: npt.ArrayLike | None = None) -> Image: ...
@overload
def h_maxima(image: HostArray, h: Float, footprint: npt.ArrayLike | None = None) -> Array: ...
@overload
def h_maxima(image: ArrayLike, h: Float, footprint: npt.ArrayLike | None = None) -> Image | Any: ...
@overload
def h_minima(image: Image, h: Float, footprint: npt.ArrayLike | None = None) -> Image: ...
@overload
def h_minima(image: HostArray, h: Float, footprint: npt.ArrayLike | None = None) -> Array: ...
@overload
def h_minima(image: ArrayLike, h: Float, footprint: npt.ArrayLike | None = None) -> Image | Any: ...
@overload
def isotropic_closing(image: Image, radius: Float, out: None = None, spacing: Floats | None = None) -> Image: ...
@overload
def isotropic_closing(image: HostArray, radius: Float, out: Array | None = None, spacing: Floats | None = None) -> Array: ...
@overload
def isotropic_closing(image: ArrayLike, radius: Float, out: Array | None = None, spacing: Floats | None = None) -> Image | Any: ...
@overload
def isotropic_dilation(image: Image, radius: Float, out: None = None, spacing: Floats | None = None) -> Image: ...
@overload
def isotropic_dilation(image: HostArray, radius: Float, out: Array | None = None, spacing: Floats | None = None) -> Array: ...
@overload
def isotropic_dilation(image: ArrayLike, radius: Float, out: Array | None = None, spacing: Floats | None = None) -> Image | Any: ...
@overload
def isotropic_erosion(image: Image, radius: Float, out: None = None, spacing: Floats | None = None) -> Image: ...
@overload
def isotropic_erosion(image: HostArray, radius: Float, out: Array | None = None, spacing: Floats | None = None) -> Array: ...
@overload
def isotropic_erosion(image: ArrayLike, radius: Float, out: Array | None = None, spacing: Floats | None = None) -> Image | Any: ...
@overload
def isotropic_opening(image: Image, radius: Float, out: None = None, spacing: Floats | None = None) -> Image: ...
@overload
def isotropic_opening(image: HostArray, radius: Float, out: Array | None = None, spacing: Floats | None = None) -> Array: ...
@overload
def isotropic_opening(image: ArrayLike, radius: Float, out: Array | None = None, spacing: Floats | None = None) -> Image | Any: ...
@overload
def label(
    label_image: Image, background: int | None = None, return_num: Literal[False] = False, connectivity: int | None = None
) -> Image: ...
@overload
def label(
    label_image: HostArray, background: int | None = None, return_num: Literal[False] = False, connectivity: int | None = None
) -> Array: ...
@overload
def label(
    label_image: ArrayLike, background: int | None = None, return_num: Literal[False] = False, connectivity: int | None = None
) -> Image | Any: ...
@overload
def label(
    label_image: ArrayLike, background: int | None = None, return_num: bool = False, connectivity: int | None = None
) -> tuple[Image | Any, int] | Any: ...
@overload
def local_maxima(
    image: Image, footprint: npt.ArrayLike | None = None, connectivity: int | None = None, indices: Literal[False] = False,
    allow_borders: bool = True
) -> Image: ...
@overload
def local_maxima(
    image: HostArray, footprint: npt.ArrayLike | None = None, connectivity: int | None = None, indices: Literal[False] = False,
    allow_borders: bool = True
) -> Array: ...
@overload
def local_maxima(
    image: ArrayLike, footprint: npt.ArrayLike | None = None, connectivity: int | None = None, indices: bool = False,
    allow_borders: bool = True
) -> Image | Any: ...
@overload
def local_minima(
    image: Image, footprint: npt.ArrayLike | None = None, connectivity: int | None = None, indices: Literal[False] = False,
    allow_borders: bool = True
) -> Image: ...
@overload
def local_minima(
    image: HostArray, footprint: npt.ArrayLike | None = None, connectivity: int | None = None, indices: Literal[False] = False,
    allow_borders: bool = True
) -> Array: ...
@overload
def local_minima(
    image: ArrayLike, footprint: npt.ArrayLike | None = None, connectivity: int | None = None, indices: bool = False,
    allow_borders: bool = True
) -> Image | Any: ...
@overload
def opening(image: Image, footprint: Footprints | None = None, out: None = None, *, mode: str = 'reflect', cval: float = 0.0) -> Image: ...
@overload
def opening(
    image: HostArray, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = 'reflect', cval: float = 0.0
) -> Array: ...
@overload
def opening(
    image: ArrayLike, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = 'reflect', cval: float = 0.0
) -> Image | Any: ...
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
def remove_small_holes(
    ar: Image, area_threshold: float | None = None, connectivity: int = 1, *, max_size: float = 64, out: None = None
) -> Image: ...
@overload
def remove_small_holes(
    ar: HostArray, area_threshold: float | None = None, connectivity: int = 1, *, max_size: float = 64, out: Array | None = None
) -> Array: ...
@overload
def remove_small_holes(
    ar: ArrayLike, area_threshold: float | None = None, connectivity: int = 1, *, max_size: float = 64, out: Array | None = None
) -> Image | Any: ...
@overload
def remove_small_objects(
    ar: Image, min_size: float | None = None, connectivity: int = 1, *, max_size: float = 64, out: None = None
) -> Image: ...
@overload
def remove_small_objects(
    ar: HostArray, min_size: float | None = None, connectivity: int = 1, *, max_size: float = 64, out: Array | None = None
) -> Array: ...
@overload
def remove_small_objects(
    ar: ArrayLike, min_size: float | None = None, connectivity: int = 1, *, max_size: float = 64, out: Array | None = None
) -> Image | Any: ...
@overload
def white_tophat(
    image: Image, footprint: Footprints | None = None, out: None = None, *, mode: str = 'reflect', cval: float = 0.0
) -> Image: ...
@overload
def white_tophat(
    image: HostArray, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = 'reflect', cval: float = 0.0
) -> Array: ...
@overload
def white_tophat(
    image: ArrayLike, footprint: Footprints | None = None, out: Array | None = None, *, mode: str = 'reflect', cval: float = 0.0
) -> Image | Any: ...
