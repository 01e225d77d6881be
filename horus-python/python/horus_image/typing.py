"""Types of arguments and results, for annotations.

The functions of `horus_image.ndimage`, `horus_image.filters`, `horus_image.exposure` and `horus_image.segmentation` return an `Image` of an
`Image`, and an array of an array: type checkers and editors know which, from the stubs beside these modules.

>>> import numpy as np
>>> from horus_image import Image, ndimage
>>> from horus_image.typing import Border
>>> def smooth(image: Image, mode: Border = "mirror") -> Image:
...     return ndimage.gaussian_filter(image, 2.0, mode=mode)
"""

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from ._image import Array, Image

__all__ = [
    "Array",
    "ArrayLike",
    "Border",
    "Borders",
    "DTypeLike",
    "Float",
    "Floats",
    "Footprints",
    "HostArray",
    "Index",
    "Ints",
    "Output",
    "Pixels",
    "Scales",
    "SupportsArray",
    "SupportsCudaArray",
    "SupportsDLPack",
    "Transform",
]


class SupportsArray(Protocol):
    """What NumPy makes an array of."""

    def __array__(self) -> Array:
        """The array."""


class SupportsDLPack(Protocol):
    """An array of a library that speaks DLPack, on the host or on a GPU."""

    def __dlpack__(self) -> object:
        """A capsule of its pixels."""


class SupportsCudaArray(Protocol):
    """An array on a GPU with CUDA's array interface."""

    @property
    def __cuda_array_interface__(self) -> Any:
        """Where its pixels are."""


class Transform(Protocol):
    """A transform of scikit-image, as ``AffineTransform``, ``EuclideanTransform`` and ``SimilarityTransform``."""

    @property
    def params(self) -> Any:
        """Its matrix, 3 by 3, of columns and rows."""


DTypeLike: TypeAlias = npt.DTypeLike
"""What names a type of pixels, as of NumPy."""

_Pixel: TypeAlias = complex | np.generic
_Row: TypeAlias = Sequence[_Pixel | np.ndarray[Any, Any]]
_Plane: TypeAlias = Sequence[_Row]

HostArray: TypeAlias = np.ndarray[Any, Any] | _Pixel | _Row | _Plane | Sequence[_Plane]
"""Arrays of NumPy, and what it makes arrays of: numbers, and sequences of these. Functions return arrays of them."""

ArrayLike: TypeAlias = Image | HostArray | SupportsArray | SupportsDLPack | SupportsCudaArray
"""What functions take: images, arrays, and objects of other libraries that become arrays or are on a GPU."""

Pixels: TypeAlias = Image | Array
"""What functions return: an image of an image or of an array on a GPU, and an array of other arrays. The stubs say which."""

Output: TypeAlias = Array | npt.DTypeLike | None
"""Where the result of an array goes: into an array, or into a new one of a type; by default of the type of the input."""

Border: TypeAlias = Literal["reflect", "grid-mirror", "mirror", "nearest", "wrap", "grid-wrap", "constant", "grid-constant"]
"""Border modes, with the names of ``scipy.ndimage``."""

Borders: TypeAlias = Border | Sequence[Border]
"""A border mode, or one for each axis."""

Float: TypeAlias = float | np.floating[Any] | np.integer[Any]
"""A number of Python or of NumPy."""

Floats: TypeAlias = Float | Sequence[Float] | np.ndarray[Any, Any]
"""A number, or one for each axis."""

Scales: TypeAlias = Float | str | Sequence[Float | str] | np.ndarray[Any, Any]
"""A standard deviation in pixels, or a length with a unit (``"2.5um"``) beside pixels of a known size; or one for each axis."""

Ints: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | np.ndarray[Any, Any]
"""A whole number, or one for each axis."""

Footprints: TypeAlias = npt.ArrayLike | Sequence[tuple[npt.ArrayLike, int]]
"""A footprint, or several that are applied one after the other, each so many times."""

_Key: TypeAlias = slice | SupportsIndex | EllipsisType | np.ndarray[Any, Any] | None

Index: TypeAlias = _Key | tuple[_Key, ...]
"""What indexes images: slices, whole numbers, None for a new axis, and arrays of whole numbers."""

# Results that depend on other arguments than the first. The stubs have a signature for each.
Labelled: TypeAlias = tuple[Pixels, int] | int
Components: TypeAlias = Pixels | tuple[Pixels, int]
Distances: TypeAlias = Pixels | tuple[Array, ...] | None
Maxima: TypeAlias = Pixels | tuple[Array, ...]
Measured: TypeAlias = np.generic | Array
Centres: TypeAlias = tuple[np.float64, ...] | list[tuple[np.float64, ...]]
Positions: TypeAlias = tuple[np.int64, ...] | list[tuple[np.int64, ...]]
Extrema: TypeAlias = tuple[Measured, Measured, Positions, Positions]
