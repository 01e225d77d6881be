"""Made of the sources by tests/generate.py."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from .typing import Array, ArrayLike, HostArray, Ints

__all__ = [
    "clear_border", "watershed"
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
