"""Made of the sources by tests/generate.py."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from .typing import Array, ArrayLike, HostArray

__all__ = [
    "richardson_lucy"
]

@overload
def richardson_lucy(
    image: Image, psf: npt.ArrayLike, num_iter: int = 50, clip: bool = True, filter_epsilon: float | None = None
) -> Image: ...
@overload
def richardson_lucy(
    image: HostArray, psf: npt.ArrayLike, num_iter: int = 50, clip: bool = True, filter_epsilon: float | None = None
) -> Array: ...
@overload
def richardson_lucy(
    image: ArrayLike, psf: npt.ArrayLike, num_iter: int = 50, clip: bool = True, filter_epsilon: float | None = None
) -> Image | Any: ...
