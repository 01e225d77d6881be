"""Made of the sources by tests/generate.py."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from ._rolling import ball_kernel as ball_kernel, ellipsoid_kernel as ellipsoid_kernel
from .typing import Array, ArrayLike, Float, HostArray

__all__ = [
    "ball_kernel", "denoise_tv_chambolle", "ellipsoid_kernel", "richardson_lucy", "rolling_ball"
]

@overload
def denoise_tv_chambolle(
    image: Image, weight: Float = 0.1, eps: Float = 0.0002, max_num_iter: int = 200, *, channel_axis: int | None = None
) -> Image: ...
@overload
def denoise_tv_chambolle(
    image: HostArray, weight: Float = 0.1, eps: Float = 0.0002, max_num_iter: int = 200, *, channel_axis: int | None = None
) -> Array: ...
@overload
def denoise_tv_chambolle(
    image: ArrayLike, weight: Float = 0.1, eps: Float = 0.0002, max_num_iter: int = 200, *, channel_axis: int | None = None
) -> Image | Any: ...
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
@overload
def rolling_ball(
    image: Image, *, radius: Float = 100, kernel: npt.ArrayLike | None = None, nansafe: bool = False, workers: int | None = None
) -> Image: ...
@overload
def rolling_ball(
    image: HostArray, *, radius: Float = 100, kernel: npt.ArrayLike | None = None, nansafe: bool = False, workers: int | None = None
) -> Array: ...
@overload
def rolling_ball(
    image: ArrayLike, *, radius: Float = 100, kernel: npt.ArrayLike | None = None, nansafe: bool = False, workers: int | None = None
) -> Image | Any: ...
