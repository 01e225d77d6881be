"""Made of the sources by tests/generate.py."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from .typing import Array, ArrayLike, HostArray

__all__ = [
    "remove_small_holes", "remove_small_objects"
]

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
