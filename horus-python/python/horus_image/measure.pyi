"""Made of the sources by tests/generate.py."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from ._colocalization import intersection_coeff as intersection_coeff, manders_coloc_coeff as manders_coloc_coeff, manders_overlap_coeff as manders_overlap_coeff
from ._moments import inertia_tensor as inertia_tensor, inertia_tensor_eigvals as inertia_tensor_eigvals, moments as moments, moments_central as moments_central, moments_hu as moments_hu, moments_normalized as moments_normalized
from ._peaks import peak_local_max as peak_local_max
from ._perimeters import euler_number as euler_number, perimeter as perimeter, perimeter_crofton as perimeter_crofton
from ._regions import regionprops as regionprops, regionprops_table as regionprops_table
from ._summaries import blur_effect as blur_effect, centroid as centroid, profile_line as profile_line, shannon_entropy as shannon_entropy
from .typing import Array, ArrayLike, Float, HostArray, Ints

__all__ = [
    "block_reduce", "blur_effect", "centroid", "euler_number", "inertia_tensor", "inertia_tensor_eigvals", "intersection_coeff", "label",
    "manders_coloc_coeff", "manders_overlap_coeff", "moments", "moments_central", "moments_hu", "moments_normalized", "peak_local_max",
    "perimeter", "perimeter_crofton", "profile_line", "regionprops", "regionprops_table", "shannon_entropy"
]

@overload
def block_reduce(
    image: Image, block_size: Ints = 2, func: Callable[..., object] = np.sum, cval: Float = 0, func_kwargs: dict[str, object] | None = None
) -> Image: ...
@overload
def block_reduce(
    image: HostArray, block_size: Ints = 2, func: Callable[..., object] = np.sum, cval: Float = 0,
    func_kwargs: dict[str, object] | None = None
) -> Array: ...
@overload
def block_reduce(
    image: ArrayLike, block_size: Ints = 2, func: Callable[..., object] = np.sum, cval: Float = 0,
    func_kwargs: dict[str, object] | None = None
) -> Image | Any: ...
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
