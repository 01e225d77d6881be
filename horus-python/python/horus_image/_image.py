"""Lazy images."""

from __future__ import annotations

import builtins
import math
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from . import _horus
from ._along import Axes, along, cumulative, numbers_of, transposed
from ._dtype import CODES, HALF, is_native, ready, stored, truth
from ._foreign import DEFAULT_STREAM, DeviceArray, export, image_core, layout_of, on_host, read, read_beside, session_of
from ._moves import is_number
from ._operators import Operators, _binary, _core, _like, _logic, _made, _met, _operand
from ._session import Session, current
from ._show import page
from ._tiles import Tiles

if TYPE_CHECKING:
    from .typing import ArrayLike, Index

Array = np.ndarray[Any, Any]


class Image(Operators):
    """An image, or a volume, that is computed on demand.

    Operators and functions record; `compute`, ``numpy.asarray``, `save` and reductions such as `mean` compute everything that they need
    at once, fused, on the device of the image's session. Made by `asarray`, `open` and the functions of `horus_image.ndimage`.

    Types are integers of up to 32 bits, ``float32``, ``float64`` and ``bool``. Of two types that meet the result is NumPy's
    (``numpy.result_type``), but integers saturate instead of wrapping around. Masks combine by ``& | ^ ~``.

    Examples
    --------
    >>> import numpy as np
    >>> import horus_image as hi
    >>> image = hi.asarray(np.array([[10, 200], [30, 40]], np.uint8))
    >>> image
    <horus_image.Image 2x2 uint8>
    >>> (image + 100).compute()
    array([[110, 255],
           [130, 140]], dtype=uint8)
    >>> np.asarray(image > 35)
    array([[False,  True],
           [False,  True]])
    """

    __slots__ = ("__weakref__", "_lent")

    _lent: _horus.DeviceMemory

    def __init__(self) -> None:
        raise TypeError("images are made by horus_image.asarray and horus_image.open")

    @property
    def session(self) -> Session:
        """The session that the image belongs to."""
        return self._session

    @property
    def device(self) -> Session:
        """The session, under the name of the array API: images of several do not meet, as arrays of several devices do not."""
        return self._session

    def to_device(self, device: Session, *, stream: None = None) -> Image:
        """The image in another session; its pixels are evaluated and copied unless it belongs to that session.

        Metadata is copied, too.

        Examples
        --------
        >>> import horus_image as hi
        >>> image = hi.asarray([[1.0, 2.0]])
        >>> with hi.session(device="cpu") as session:
        ...     (image.to_device(session) + 1).compute()
        array([[2., 3.]])
        """
        if stream is not None:
            raise ValueError("to_device: sessions have no streams; stream must be None")
        if not isinstance(device, Session):
            raise TypeError(f"to_device: devices are sessions, not {type(device).__name__}")
        if device is self._session:
            return self
        pixels = self.compute()
        core = _horus.Image.of_array(device._core, ready(pixels).reshape(self._core.shape), CODES[pixels.dtype], True, False)
        return made(_horus.related(core, "to_device", [self._core], None), device, self._ndim, self._channels)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """The functions of the array API on images: `horus_image.array_api`."""
        from . import array_api

        if api_version is not None and api_version not in array_api.VERSIONS:
            raise ValueError(f"array_api follows versions {', '.join(array_api.VERSIONS)} of the standard, not {api_version}")
        return array_api

    def __array_function__(self, function: Callable[..., Any], types: Sequence[type], args: Any, kwargs: Any) -> Any:
        """Functions of NumPy: recorded where Horus has them, else NumPy's on the computed pixels; see `horus_image.array_api`."""
        from ._numpy import applied

        return applied(function, types, args, kwargs)

    def compute(self) -> Array:
        """Evaluate the image into a new array."""
        shape = self.shape
        if math.prod(shape) < SHARED:
            array: Array = self._core.to_array(list(shape))
            return array
        return np.asarray(in_memory(self._core, shape, True))

    def start(self) -> None:
        """Start to evaluate the image, and return; reading it waits."""
        self._core.start()

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        compression: str | None = None,
        tile: int | tuple[int, int] | None = None,
        sizes: int | None = None,
        resampling: str | None = None,
        pixel_size: float | tuple[float, ...] | None = None,
        depth: int | str = "auto",
        scaling: str = "auto",
        clipping: str = "warn",
        quality: int | None = None,
        nodata: float | None = None,
    ) -> None:
        """Evaluate the image and write a file or a store of it; see `horus_image.save`."""
        if tile is not None and not isinstance(tile, (tuple, list)):
            tile = (operator.index(tile), operator.index(tile))
        samples = {
            "depth": str(depth),
            "scaling": scaling,
            "clipping": clipping,
            "quality": quality,
            "resampling": resampling,
            "nodata": nodata,
        }
        if pixel_size is not None and not os.fspath(path).lower().endswith((".zarr", ".tif", ".tiff", ".png")):
            raise ValueError("pixel_size: only Zarr stores, TIFF and PNG files have one")
        image = self if pixel_size is None else self.with_pixel_size(pixel_size)
        image._core.save(os.fspath(path), compression, tile, sizes, samples)

    @property
    def pixel_size(self) -> tuple[float, ...] | None:
        """The side of a pixel along each axis but channels in micrometres, or None if it is not known.

        It is read from OME-Zarr stores, OME-TIFF files, stacks of ImageJ, TIFF files with a resolution in centimetres and PNG files with one in metres, follows
        what is cut out, turned or resized, and is written by `save`.

        Examples
        --------
        >>> import numpy as np
        >>> import horus_image as hi
        >>> image = hi.asarray(np.zeros((40, 60), np.uint8)).with_pixel_size((0.5, 0.25))
        >>> image[10:20, ::2].pixel_size
        (0.5, 0.5)
        >>> (image * 2).resize((20, 15)).pixel_size
        (1.0, 1.0)
        """
        size = self._core.pixel_size()
        if size is None:
            return None
        levels, rows, columns = size
        if self._ndim < 3:
            return (rows, columns)[2 - self._ndim :]
        return None if levels is None else (levels, rows, columns)

    def with_pixel_size(self, pixel_size: float | tuple[float, ...]) -> Image:
        """The same image with pixels of another size: micrometres, or one number for each axis but channels."""
        sides = tuple(pixel_size) if isinstance(pixel_size, (tuple, list)) else (pixel_size,) * self._ndim
        if len(sides) != self._ndim:
            raise ValueError(f"pixel_size has {len(sides)} numbers; the image has {self._ndim} axes")
        if not sides:
            return self
        rows, columns = ((*sides, sides[-1])[:2] if self._ndim < 2 else sides[-2:])
        levels = float(sides[0]) if self._ndim > 2 else None
        return self._with(self._core.with_pixel_size(levels, float(rows), float(columns)))

    def with_alpha(self, is_alpha: bool = True) -> Image:
        """The same image, whose last channel is alpha (not premultiplied), or is an ordinary channel.

        Files say which of their channels is alpha; arrays do not. What mixes neighbouring pixels weighs colours by alpha.

        Examples
        --------
        >>> import numpy as np
        >>> import horus_image as hi
        >>> red = hi.asarray(np.array([[[255, 0, 0, 128]]], np.uint8), channels=True).with_alpha()
        >>> red.luminance().compute().round(3)
        array([[0.299]], dtype=float32)
        """
        if not self._channels:
            raise ValueError("with_alpha: the image has no channels; see asarray(channels=True)")
        return self._with(self._core.with_alpha(bool(is_alpha)))

    def astype(self, dtype: npt.DTypeLike) -> Image:
        """The image in another type: exact where that can hold a value, else rounded to nearest (to even) and saturated."""
        kind = np.dtype(dtype)
        if kind.newbyteorder("=") not in CODES:
            raise TypeError(f"astype: images have no pixels of type {kind}; compute().astype makes an array of them")
        return self._with(_horus.convert(self._core, CODES[kind.newbyteorder("=")]))

    def clip(self, low: float | None, high: float | None, out: None = None) -> Image:
        """Pixels below `low` become that, and those above `high` become that; NaN stays. `None` is no limit.

        Examples
        --------
        >>> import numpy as np
        >>> import horus_image as hi
        >>> np.clip(hi.asarray([[1.0, np.nan, 9.0]]), 2, 3).compute()
        array([[ 2., nan,  3.]])
        """
        if out is not None:
            raise ValueError("clip: the result is an image; out must be None")
        core = self._numeric("clip")
        core = core if low is None else _horus.binary("maximum", core, float(low))
        return self._with(core if high is None else _horus.binary("minimum", core, float(high)))

    def resize(self, size: tuple[int, int], how: str = "triangle") -> Image:
        """The image in another size, of the same type; levels and channels are resized alike.

        Parameters
        ----------
        size : pair of int
            Rows and columns.
        how : str, optional
            Averages of all pixels under a kernel that widens as an axis shrinks: ``box``, ``triangle``, ``hamming``, ``cubic`` and
            ``lanczos`` (Pillow's ``BOX``, ``BILINEAR``, ``HAMMING``, ``BICUBIC`` and ``LANCZOS``), ``area`` (OpenCV's ``INTER_AREA``) or
            ``gaussian`` (a Gaussian, then linear, as ``skimage.transform.resize`` with ``anti_aliasing``). Or samples, so that shrinking
            leaves pixels out: ``nearest``, ``bilinear``, ``bicubic``. Integers are rounded once and saturate. Pillow and OpenCV round 8-bit
            pixels more than once, and differ by at most 1; by more where a kernel overshoots and Pillow saturates between its passes.

        Examples
        --------
        >>> import numpy as np
        >>> import horus_image as hi
        >>> hi.asarray(np.array([[1, 2, 3, 8]], np.uint8)).resize((1, 2), "area").compute()
        array([[2, 6]], dtype=uint8)
        """
        rows, columns = size
        return self._with(_horus.resize(self._numeric("resize"), (int(rows), int(columns)), how))

    def luminance(self) -> Image:
        """One channel of ``float32``, of integers 0 to 1: 0.299 R + 0.587 G + 0.114 B, ignoring the alpha of a file that has it."""
        image = self._with(self._core.luminance())
        image._channels = False
        return image

    def channel(self, index: int) -> Image:
        """One channel of several."""
        image = self._with(_horus.channel(self._core, index))
        image._channels = False
        return image

    @property
    def T(self) -> Image:
        """The image with its axes in reverse order."""
        return self.transpose()

    @property
    def mT(self) -> Image:
        """The image with its last two axes in each other's place: each matrix transposed."""
        if self.ndim < 2:
            raise ValueError(f"mT: matrices have two axes; the image has {self.ndim}")
        return self.swapaxes(-2, -1)

    def transpose(self, *axes: SupportsIndex | Sequence[SupportsIndex] | None) -> Image:
        """The image with its axes in another order, by default in reverse (``numpy.transpose``).

        Channels that do not stay the last axis are one like others: the result is a volume. Levels change places with rows or columns by
        sampling, which takes 12 bytes a pixel meanwhile.

        Examples
        --------
        >>> import numpy as np
        >>> import horus_image as hi
        >>> hi.asarray(np.zeros((2, 3, 4))).T.shape
        (4, 3, 2)
        >>> np.transpose(hi.asarray([[1.0, 2.0]])).compute()
        array([[1.],
               [2.]])
        """
        order: Any = axes[0] if len(axes) == 1 and not is_number(axes[0]) else axes or None
        return transposed(self, range(self.ndim)[::-1] if order is None else order)

    def swapaxes(self, axis1: int, axis2: int) -> Image:
        """The image with two axes in each other's place."""
        order = list(range(self.ndim))
        order[axis1], order[axis2] = order[axis2], order[axis1]
        return transposed(self, order)

    @overload
    def any(self, axis: None = None, out: None = None, *, keepdims: Literal[False] = False) -> np.bool_: ...

    @overload
    def any(self, axis: Axes, out: None = None, *, keepdims: bool = False) -> Image: ...

    @overload
    def any(self, axis: None = None, out: None = None, *, keepdims: Literal[True]) -> Image: ...

    def any(self, axis: Axes | None = None, out: None = None, *, keepdims: bool = False) -> np.bool_ | Image:
        """True if a pixel is not 0; along axes, a mask."""
        found: np.bool_ | Image = self._with(truth(self._core))._reduced("max", axis, keepdims, None, out)
        return found

    @overload
    def all(self, axis: None = None, out: None = None, *, keepdims: Literal[False] = False) -> np.bool_: ...

    @overload
    def all(self, axis: Axes, out: None = None, *, keepdims: bool = False) -> Image: ...

    @overload
    def all(self, axis: None = None, out: None = None, *, keepdims: Literal[True]) -> Image: ...

    def all(self, axis: Axes | None = None, out: None = None, *, keepdims: bool = False) -> np.bool_ | Image:
        """True if no pixel is 0; along axes, a mask."""
        found: np.bool_ | Image = self._with(truth(self._core))._reduced("min", axis, keepdims, None, out)
        return found

    @overload
    def min(self, axis: None = None, out: None = None, *, keepdims: Literal[False] = False) -> Any: ...

    @overload
    def min(self, axis: Axes, out: None = None, *, keepdims: bool = False) -> Image: ...

    @overload
    def min(self, axis: None = None, out: None = None, *, keepdims: Literal[True]) -> Image: ...

    def min(self, axis: Axes | None = None, out: None = None, *, keepdims: bool = False) -> Any:
        """The smallest pixel, ignoring NaN; along axes, an image of them."""
        return self._reduced("min", axis, keepdims, None, out)

    @overload
    def max(self, axis: None = None, out: None = None, *, keepdims: Literal[False] = False) -> Any: ...

    @overload
    def max(self, axis: Axes, out: None = None, *, keepdims: bool = False) -> Image: ...

    @overload
    def max(self, axis: None = None, out: None = None, *, keepdims: Literal[True]) -> Image: ...

    def max(self, axis: Axes | None = None, out: None = None, *, keepdims: bool = False) -> Any:
        """The largest pixel, ignoring NaN; along axes, an image of them."""
        return self._reduced("max", axis, keepdims, None, out)

    @overload
    def sum(self, axis: None = None, dtype: None = None, out: None = None, *, keepdims: Literal[False] = False) -> float: ...

    @overload
    def sum(self, axis: None = None, dtype: npt.DTypeLike | None = None, out: None = None, *, keepdims: Literal[False] = False) -> Any: ...

    @overload
    def sum(self, axis: Axes, dtype: npt.DTypeLike | None = None, out: None = None, *, keepdims: bool = False) -> Image: ...

    @overload
    def sum(self, axis: None = None, dtype: npt.DTypeLike | None = None, out: None = None, *, keepdims: Literal[True]) -> Image: ...

    def sum(
        self, axis: Axes | None = None, dtype: npt.DTypeLike | None = None, out: None = None, *, keepdims: bool = False
    ) -> Any:
        """The sum of all pixels, in ``float64``; of a mask, for how many it holds. Along axes, an image of the sums.

        Examples
        --------
        >>> import numpy as np
        >>> import horus_image as hi
        >>> image = hi.asarray(np.array([[1, 2, 3], [10, 20, 30]], np.uint8))
        >>> image.sum()
        66.0
        >>> np.sum(image, axis=0).compute()
        array([11., 22., 33.])
        >>> (image - image.min(axis=1, keepdims=True)).compute()
        array([[ 0,  1,  2],
               [ 0, 10, 20]], dtype=uint8)
        """
        return self._reduced("sum", axis, keepdims, dtype, out)

    @overload
    def mean(self, axis: None = None, dtype: None = None, out: None = None, *, keepdims: Literal[False] = False) -> float: ...

    @overload
    def mean(self, axis: None = None, dtype: npt.DTypeLike | None = None, out: None = None, *, keepdims: Literal[False] = False) -> Any: ...

    @overload
    def mean(self, axis: Axes, dtype: npt.DTypeLike | None = None, out: None = None, *, keepdims: bool = False) -> Image: ...

    @overload
    def mean(self, axis: None = None, dtype: npt.DTypeLike | None = None, out: None = None, *, keepdims: Literal[True]) -> Image: ...

    def mean(
        self, axis: Axes | None = None, dtype: npt.DTypeLike | None = None, out: None = None, *, keepdims: bool = False
    ) -> Any:
        """The mean of all pixels, in ``float64``; along axes, an image of the means, in NumPy's type."""
        return self._reduced("mean", axis, keepdims, dtype, out)

    @overload
    def var(self, axis: None = None, dtype: None = None, out: None = None, ddof: int = 0, *, keepdims: Literal[False] = False) -> float: ...

    @overload
    def var(
        self, axis: None = None, dtype: npt.DTypeLike | None = None, out: None = None, ddof: int = 0, *, keepdims: Literal[False] = False
    ) -> Any: ...

    @overload
    def var(self, axis: Axes, dtype: npt.DTypeLike | None = None, out: None = None, ddof: int = 0, *, keepdims: bool = False) -> Image: ...

    @overload
    def var(
        self, axis: None = None, dtype: npt.DTypeLike | None = None, out: None = None, ddof: int = 0, *, keepdims: Literal[True]
    ) -> Image: ...

    def var(
        self,
        axis: Axes | None = None,
        dtype: npt.DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        *,
        keepdims: bool = False,
    ) -> Any:
        """The variance of all pixels, in ``float64``, over their number less `ddof`; along axes, an image of the variances."""
        found = self._variance(axis, ddof, keepdims, out)
        return found if dtype is None else _in_type(found, dtype)

    @overload
    def std(self, axis: None = None, dtype: None = None, out: None = None, ddof: int = 0, *, keepdims: Literal[False] = False) -> float: ...

    @overload
    def std(
        self, axis: None = None, dtype: npt.DTypeLike | None = None, out: None = None, ddof: int = 0, *, keepdims: Literal[False] = False
    ) -> Any: ...

    @overload
    def std(self, axis: Axes, dtype: npt.DTypeLike | None = None, out: None = None, ddof: int = 0, *, keepdims: bool = False) -> Image: ...

    @overload
    def std(
        self, axis: None = None, dtype: npt.DTypeLike | None = None, out: None = None, ddof: int = 0, *, keepdims: Literal[True]
    ) -> Image: ...

    def std(
        self,
        axis: Axes | None = None,
        dtype: npt.DTypeLike | None = None,
        out: None = None,
        ddof: int = 0,
        *,
        keepdims: bool = False,
    ) -> Any:
        """The standard deviation, the root of `var`."""
        found = self._variance(axis, ddof, keepdims, out)
        found = np.sqrt(found) if isinstance(found, Image) else math.sqrt(found)
        return found if dtype is None else _in_type(found, dtype)

    def cumsum(self, axis: int | None, dtype: npt.DTypeLike | None = None, out: None = None) -> Image:
        """The running sums along an axis, in ``float64``: of each pixel and all before it.

        Examples
        --------
        >>> import horus_image as hi
        >>> hi.asarray([[1.0, 2.0, 3.0]]).cumsum(1).compute()
        array([[1., 3., 6.]])
        """
        if out is not None:
            raise ValueError("cumsum: the result is an image; out must be None")
        if axis is None:
            raise ValueError("cumsum: images have running sums along an axis")
        found = cumulative(self, operator.index(axis))
        return found if dtype is None else _in_type(found, dtype)

    def lookup(self, table: npt.ArrayLike) -> Image:
        """The entry of a table for each pixel, an integer of 8 or 16 bits: ``table[image]``, in the type of the table.

        The table has an entry for each value that a pixel may have, from the smallest on: 256 or 65536.

        Examples
        --------
        >>> import numpy as np
        >>> import horus_image as hi
        >>> image = hi.asarray(np.array([[0, 7, 255]], np.uint8))
        >>> image.lookup(np.sqrt(np.arange(256))).compute().round(2)
        array([[ 0.  ,  2.65, 15.97]])
        """
        entries = on_host(table)
        if entries.ndim != 1:
            raise ValueError(f"lookup: the table has {entries.ndim} axes; it has one")
        return self._with(_horus.lookup(self._numeric("lookup"), entries.astype(np.float64), native(entries.dtype)))

    def tiles(self, height: int, width: int) -> Tiles:
        """The image in tiles of so many rows and columns side by side, from the first pixel on, to be reduced separately
        (``skimage.measure.block_reduce``, without padding).

        Tiles at the last rows and columns have the pixels that there are; tiles larger than the image are the image.

        Parameters
        ----------
        height, width : int
            Rows and columns of a tile.

        Returns
        -------
        Tiles
            With methods `sum`, `mean`, `var`, `std`, `min` and `max`: an image each, with a pixel for each tile.

        Raises
        ------
        ValueError
            For tiles without pixels.

        Examples
        --------
        >>> import numpy as np
        >>> import horus_image as hi
        >>> image = hi.asarray(np.array([[1, 3, 5, 7, 20], [2, 4, 6, 8, 22]], np.uint8))
        >>> image.tiles(2, 2).mean().compute()
        array([[ 2.5,  6.5, 21. ]])
        >>> image.tiles(2, 2).max().compute()
        array([[ 4,  8, 22]], dtype=uint8)
        """
        rows, columns = operator.index(height), operator.index(width)
        if rows < 1 or columns < 1:
            raise ValueError(f"tiles: an image has no tiles of {rows}x{columns} pixels")
        return Tiles(self, rows, columns)

    def paste(self, other: ArrayLike, top: int, left: int) -> Image:
        """The image with another over it, whose first pixel is in this row and this column; parts beyond the edges are cut off.

        Parameters
        ----------
        other : Image or array_like
            Of the same type, and as many levels and channels as the image, or one, which is pasted on each.
        top, left : int
            The row and the column of its first pixel, which may lie outside: negative ones are not counted from the end.

        Returns
        -------
        Image
            Of the image's shape and type.

        Raises
        ------
        TypeError
            If `other` has pixels of another type: `astype` converts them.
        ValueError
            If it has another number of levels or channels, above one, or belongs to another session.

        Examples
        --------
        >>> import numpy as np
        >>> import horus_image as hi
        >>> canvas = hi.asarray(np.zeros((2, 4), np.uint8))
        >>> canvas.paste(np.array([[7, 8]], np.uint8), 1, -1).compute()
        array([[0, 0, 0, 0],
               [8, 0, 0, 0]], dtype=uint8)
        """
        if not isinstance(other, Image):
            pixels = read_beside(other, self._session)
            other = asarray(pixels, channels=self._channels and pixels.ndim == 3, session=self._session)
        if other.dtype != self.dtype:
            raise TypeError(f"paste: pixels of {other.dtype} over those of {self.dtype}; astype converts them")
        return self._with(_horus.paste(self._core, other._core, operator.index(top), operator.index(left)))

    def convert_colour(self, source: str, target: str) -> Image:
        """Three channels of ``float32`` from one colour space to another: ``rgb`` (sRGB, 0 to 1), ``hsv`` (0 to 1), ``lab`` (CIE L*a*b* under D65,
        L from 0 to 100) and ``ycbcr`` (JPEG's, 0 to 1). Integers are scaled to 0 to 1 first.

        Examples
        --------
        >>> import numpy as np
        >>> import horus_image as hi
        >>> orange = hi.asarray(np.array([[[255, 0, 0]]], np.uint8), channels=True)
        >>> orange.convert_colour("rgb", "hsv").compute()
        array([[[0., 1., 1.]]], dtype=float32)
        """
        core = self._numeric("convert_colour")
        if self.dtype.kind in "iu":
            core = _horus.binary("div", _horus.convert(core, "f32"), float(np.iinfo(self.dtype).max))
        return self._with(_horus.convert_colour(_horus.convert(core, "f32"), source, target))

    def _variance(self, axis: Axes | None, ddof: int, keepdims: bool, out: None) -> Any:
        count = self.size if axis is None else math.prod(self._core.shape[n] for n in numbers_of(self, axis, "var"))
        found = self._reduced("variance" if axis is None and not keepdims else "var", axis, keepdims, None, out)
        return found * (count / (count - ddof) if count > ddof else math.inf) if ddof != 0 else found

    def _reduced(self, name: str, axis: Axes | None, keepdims: bool, dtype: npt.DTypeLike | None, out: None) -> Any:
        if out is not None:
            raise TypeError(f"{name}: the result is an image or a number; out must be None")
        if axis is None and keepdims:
            axis = tuple(range(self.ndim))
        if axis is None:
            number = _horus.reduce(self._numbers(), name)
            if dtype is not None:
                return _in_type(number, dtype)
            return self.dtype.type(number) if name in ("min", "max") else number
        found = along(self, name, axis, keepdims)
        return found if dtype is None else _in_type(found, dtype)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("an image is computed into a new array; it cannot be had without a copy")
        array = self.compute()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Kind and number of the device that has the pixels, of DLPack; the image is evaluated if that is not known yet."""
        lent: _horus.DeviceMemory | None = getattr(self, "_lent", None)
        gpu = self._core.gpu() if lent is None else lent.gpu
        return (1, 0) if gpu is None else (2, gpu)

    def __dlpack__(
        self,
        *,
        stream: int | Any | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Evaluate the image; its pixels where they are, as a capsule of DLPack (array API standard 2024).

        Consumers of DLPack 1.0 share the pixels, and are told not to write; others get a copy. Later work of the `stream`, or of CUDA's
        default stream, finds them complete.

        Raises
        ------
        BufferError
            For another device than the image's and the host, or where ``copy=False`` cannot be.
        """
        return export(self, stream, max_version, dl_device, copy)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The pixels on a GPU, evaluated, as CUDA's array interface of version 3 tells of them. They are the image's: do not write.

        Raises
        ------
        AttributeError
            If the image is computed on the CPU, or on several devices.
        """
        if self._core.gpu() is None:
            raise AttributeError("the image is not on a GPU, and has no __cuda_array_interface__")
        # There are consumers that look at no stream.
        return self._core.on_gpu(*layout_of(self), False, None).interface

    def _on_gpu(self) -> _horus.DeviceMemory:
        """The pixels where they are on the GPU, as long as the image lives: work of CUDA's default stream from now on finds them, and may write
        the arrays that they are made of."""
        lent: _horus.DeviceMemory | None = getattr(self, "_lent", None)
        if lent is None:
            lent = self._lent = self._core.on_gpu(*layout_of(self), False, DEFAULT_STREAM)
        return lent

    def __getitem__(self, key: Index) -> Image:
        """A part: slices, and whole numbers; an axis of a whole number goes, and None adds one.

        Or single pixels, by whole numbers and images or arrays of them, one for each axis: as in NumPy, in the shape of these.

        Examples
        --------
        >>> import numpy as np
        >>> import horus_image as hi
        >>> image = hi.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        >>> image[:, ::-1].compute()
        array([[3., 2., 1.],
               [6., 5., 4.]])
        >>> image[np.array([0, 1]), 2].compute()
        array([3., 6.])
        """
        from ._index import indexed

        return indexed(self, key)

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError("images are not written to: horus_image.where(mask, value, image) and image.paste make one with other pixels")

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("an image without axes has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Image]:
        return (self[k] for k in range(len(self)))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("the truth value of an image of several pixels is ambiguous")
        return builtins.bool(self.compute().any())

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError("only an image of one integer, without axes, is an index")
        return int(self._number())

    def _number(self) -> Any:
        if self.size != 1:
            raise TypeError("only an image of one pixel is a number")
        return self.compute().item()

    def __repr__(self) -> str:
        spatial = self.shape[:-1] if self._channels else self.shape
        pixels = "x".join(map(str, spatial[-2:])) or "number"
        if self._ndim < 3 and not self._channels:
            return f"<horus_image.Image {pixels} {self.dtype.name}>"
        levels = f"{spatial[0]} levels of " if self._ndim == 3 else ""
        channels = f" of {self.shape[-1]} channels" if self._channels else ""
        return f"<horus_image.Image {levels}{pixels} pixels{channels}, {self.dtype.name}>"

    def _repr_html_(self) -> str:
        """The HTML that notebooks show: a picture, shape and type, and the plans of a session that keeps them."""
        return page(self)

    def __reduce__(self) -> tuple[Callable[..., Image], tuple[Array, bool]]:
        """Pixels are pickled, not the program: the other process may have another device."""
        return _restored, (self.compute(), self._channels)


SHARED: Final = 1 << 16
"""Pixels from which on an array has memory of Horus, which is used again when the array goes: new memory must be cleared first."""


def in_memory(core: _horus.Image, shape: tuple[int, ...], copied: bool = False) -> _horus.Memory:
    """The pixels, evaluated, in memory of Horus, which the image shares unless it is `copied`."""
    return core.memory(list(shape), [math.prod(shape[axis + 1 :]) for axis in range(len(shape))], copied)


def made(core: _horus.Image, session: Session, ndim: int, channels: bool = False, has_line: bool = False) -> Image:
    """An image of recorded operations, which are told their line of the user's program unless they have one."""
    return _made(Image, core, session, ndim, channels, has_line)


def asarray(array: ArrayLike | DeviceArray, *, channels: bool = False, session: Session | None = None, copy: bool = True) -> Image:
    """An image of the pixels of an array: of NumPy, of a library that speaks DLPack, or on a GPU.

    Parameters
    ----------
    array : array_like
        No axes: a number, as an image of one pixel. One: an image of one row. Two: rows and columns. Three: levels, rows and columns of a volume; with `channels`, rows, columns
        and channels. Arrays on a GPU (with ``__dlpack__`` or ``__cuda_array_interface__``) stay there, and the session computes on that
        GPU. An image is returned as it is.
    channels : bool, optional
        The last of three axes is that of channels, which filters treat separately.
    session : Session, optional
        The session of the image; by default that of the ``with`` statement around, else one opened at first use: for an array on a
        GPU, one on that GPU.
    copy : bool, optional
        By default pixels are copied once, whatever the strides, so that the array may change or go. With ``copy=False`` they are read
        where they lie: the image keeps the array, and nobody may write to it until all that was recorded on the image has been
        computed or is gone. What is computed of an array that changes meanwhile is undefined.

    Returns
    -------
    Image

    Raises
    ------
    TypeError
        For types that images do not have: other than integers of up to 32 bits, ``float32``, ``float64`` and ``bool``.
    ValueError
        For an array without pixels, or of more axes; with ``copy=False``, for one that cannot be read where it lies: whose pixels do not
        lie one after the other, in C order, aligned and in this machine's byte order; for one on a GPU that is not the session's, or is
        not contiguous.

    Examples
    --------
    >>> import numpy as np
    >>> import horus_image as hi
    >>> hi.asarray(np.zeros((480, 640, 3), np.uint8), channels=True)
    <horus_image.Image 480x640 pixels of 3 channels, uint8>
    >>> hi.asarray([[1.5, 2.5]]).dtype
    dtype('float64')
    """
    if isinstance(array, Image):
        return array
    pixels = read(array)
    if copy and pixels.dtype == HALF and isinstance(pixels, np.ndarray):
        pixels = pixels.astype(np.float32)
    code = native(pixels.dtype)
    if pixels.ndim > 3:
        raise ValueError(too_many(pixels.shape))
    if (pixels.ndim < 1 and isinstance(pixels, DeviceArray)) or (channels and pixels.ndim != 3):
        raise ValueError(f"an array of shape {pixels.shape} is no image; see asarray for the axes that images have")
    if isinstance(pixels, DeviceArray):
        session = session_of(pixels, session)
        core = image_core(pixels, session, channels, copy)
        core = _horus.convert(core, "bool") if code == "bool" else core
    else:
        session = session or current()
        if not copy:
            _check_in_place(pixels)
        found = ready(pixels)
        found = found if found.ndim else found.reshape(1)
        # A copy that has just been made is read where it lies.
        core = _horus.Image.of_array(session._core, found, code, channels, copy and np.may_share_memory(found, pixels))
    return made(core, session, 2 if channels else pixels.ndim, channels)


def too_many(shape: tuple[int, ...]) -> str:
    """What is to be done with an array of more axes than images have."""
    axes = "levels, rows and columns, or, as asarray(channels=True), rows, columns and channels"
    return f"an array of {len(shape)} axes, of shape {shape}: images have up to three, which are {axes}; take one of its first axis (array[0])"


def _check_in_place(pixels: Array) -> None:
    if not (pixels.flags.c_contiguous and pixels.flags.aligned and pixels.dtype.isnative):
        raise ValueError("the array cannot be read where it lies: images are contiguous, in C order and aligned")


def _in_type(found: Any, dtype: npt.DTypeLike) -> Any:
    """A number, or an image, in a type, cut as NumPy cuts."""
    if not isinstance(found, Image):
        return np.dtype(dtype).type(found)
    target = native(np.dtype(dtype))
    return found._with((_horus.cast if target not in ("f32", "f64", "bool") else _horus.convert)(found._core, target))


def minimum(a: ArrayLike, b: ArrayLike) -> Image:
    """The smaller of both, pixel by pixel, as ``numpy.minimum``: NaN if either is; ``numpy.fmin`` ignores NaN. One of both is an image."""
    return _binary("minimum", a, b)


def maximum(a: ArrayLike, b: ArrayLike) -> Image:
    """The larger of both, pixel by pixel, as ``numpy.maximum``: NaN if either is; ``numpy.fmax`` ignores NaN. One of both is an image."""
    return _binary("maximum", a, b)


def where(mask: ArrayLike, a: ArrayLike, b: ArrayLike) -> Image:
    """The pixels of `a` where the mask holds, else those of `b`; one of the three is an image.

    Examples
    --------
    >>> import horus_image as hi
    >>> image = hi.asarray([[1.0, 5.0]])
    >>> hi.where(image > 2, image, 0.0).compute()
    array([[0., 5.]])
    """
    first = next((value for value in (a, b, mask) if isinstance(value, Image)), None)
    if first is None:
        raise TypeError("where: one of the three must be a horus_image.Image")
    mask = _operand(mask, first)
    if not isinstance(mask, Image) or mask.dtype.kind != "b":
        raise TypeError("where: the mask is an image or an array of bool, which comparisons and astype(bool) make")
    if not isinstance(a, Image) and not isinstance(b, Image):
        a = _filled(mask, a, b)
    a, b = _met("where", a, b)
    kinds = {value.dtype.kind if hasattr(value, "dtype") else type(value) for value in (a, b)}
    if kinds <= {"b", builtins.bool}:
        return _logic("or", _logic("and", mask, a), _logic("and", ~mask, b))
    chosen = _horus.select(mask._core, _core(a), _core(b))
    return _like(chosen, mask, _like(chosen, a, b))


def stack(images: Sequence[Image], axis: int = 0) -> Image:
    """Images of rows and columns as the levels of a volume (`axis` 0), or as channels (`axis` 2 or -1).

    Examples
    --------
    >>> import numpy as np
    >>> import horus_image as hi
    >>> red, green, blue = (hi.asarray(np.full((4, 6), v, np.uint8)) for v in (200, 100, 0))
    >>> hi.stack([red, green, blue], axis=-1)
    <horus_image.Image 4x6 pixels of 3 channels, uint8>
    """
    images = list(images)
    if not images or not all(isinstance(image, Image) for image in images):
        raise TypeError("stack: expected one or more horus_image.Image")
    if any(image._ndim != 2 or image._channels for image in images) or axis not in (0, 2, -1):
        raise ValueError("stack: images of two axes become levels (axis=0) or channels (axis=-1)")
    channels = axis != 0
    core = _horus.stack([image._core for image in images], channels)
    return made(core, images[0]._session, 2 if channels else 3, channels)


def get_all(*images: Image) -> tuple[Array, ...]:
    """Several images as new arrays, evaluated together: what they have in common is computed once.

    Parameters
    ----------
    *images : Image
        Of one session. Reductions with ``keepdims=True`` are images, too.

    Returns
    -------
    tuple of ndarray
        An array for each, in order, as `Image.compute` returns it.

    Raises
    ------
    TypeError
        For anything but an `Image`.
    ValueError
        If the images belong to several sessions.

    Examples
    --------
    >>> import horus_image as hi
    >>> from horus_image import ndimage
    >>> smooth = ndimage.gaussian_filter(hi.asarray([[1.0, 2.0, 9.0]]), 1.0)
    >>> pixels, largest = hi.get_all(smooth, smooth.max(keepdims=True))
    >>> bool(pixels.max() == largest)
    True
    """
    for image in images:
        if not isinstance(image, Image):
            raise TypeError(f"get_all: expected horus_image.Image, not {type(image).__name__}")
    if not images:
        return ()
    session = images[0]._session
    if any(image._session is not session for image in images):
        raise ValueError("get_all: the images belong to several sessions")
    cores, layouts = [image._core for image in images], list(map(layout_of, images))
    return tuple(np.asarray(memory) for memory in _horus.get_all(session._core, cores, layouts))


def _filled(mask: Image, a: Any, b: Any) -> Any:
    """The first of two values, as an image: of numbers, one of one pixel in the type of both."""
    if isinstance(_operand(a, mask), Image):
        return _operand(a, mask)
    kinds = [value if isinstance(value, (builtins.bool, int, float)) else np.asarray(value) for value in (a, b)]
    dtype = np.result_type(*kinds)
    return asarray(np.full((), a, np.int32 if dtype == np.int64 else dtype), session=mask._session)


def _restored(array: Array, channels: bool) -> Image:
    return asarray(array, channels=channels)


def native(dtype: np.dtype[Any]) -> str:
    code = CODES.get(dtype)
    if code is not None:
        return code
    code = stored(dtype)
    if not is_native(dtype.newbyteorder("=")):
        raise TypeError(f"images have no pixels of type {dtype}: use astype(numpy.int32) or astype(numpy.float64), or call a function of horus_image.ndimage with the array")
    return code
