"""Made of the sources by tests/generate.py."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from ._labels import relabel_sequential as relabel_sequential
from .typing import Array, ArrayLike, HostArray, Ints

__all__ = [
    "clear_border", "expand_labels", "find_boundaries", "relabel_sequential", "watershed"
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
