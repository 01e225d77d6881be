"""Made of the sources by tests/generate.py."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from .typing import Array, ArrayLike, HostArray, Ints

__all__ = [
    "watershed"
]

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
