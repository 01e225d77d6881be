"""Made of the sources by tests/generate.py."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from .typing import Array, ArrayLike, HostArray, Ints

__all__ = [
    "equalize_adapthist", "equalize_hist", "match_histograms"
]

@overload
def equalize_adapthist(image: Image, kernel_size: Ints | None = None, clip_limit: float = 0.01, nbins: int = 256) -> Image: ...
@overload
def equalize_adapthist(image: HostArray, kernel_size: Ints | None = None, clip_limit: float = 0.01, nbins: int = 256) -> Array: ...
@overload
def equalize_adapthist(image: ArrayLike, kernel_size: Ints | None = None, clip_limit: float = 0.01, nbins: int = 256) -> Image | Any: ...
@overload
def equalize_hist(image: Image, nbins: int = 256, mask: ArrayLike | None = None) -> Image: ...
@overload
def equalize_hist(image: HostArray, nbins: int = 256, mask: ArrayLike | None = None) -> Array: ...
@overload
def equalize_hist(image: ArrayLike, nbins: int = 256, mask: ArrayLike | None = None) -> Image | Any: ...
@overload
def match_histograms(image: Image, reference: ArrayLike, *, channel_axis: int | None = None) -> Image: ...
@overload
def match_histograms(image: HostArray, reference: ArrayLike, *, channel_axis: int | None = None) -> Array: ...
@overload
def match_histograms(image: ArrayLike, reference: ArrayLike, *, channel_axis: int | None = None) -> Image | Any: ...
