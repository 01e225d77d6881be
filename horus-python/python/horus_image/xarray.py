"""Functions of Horus as methods of xarray's arrays: ``import horus_image.xarray`` gives them an attribute ``horus``.

Needs xarray (``pip install 'horus-image[xarray]'``).

>>> import numpy as np
>>> import xarray
>>> import horus_image.xarray
>>> elevations = xarray.DataArray(
...     np.add.outer([30.0, 0.0, 0.0], [0.0, 10.0, 20.0]), dims=("y", "x"), coords={"y": [20, 10, 0], "x": [0, 10, 20]}
... )
>>> round(float(elevations.horus.slope().sel(y=10, x=10)), 2)
60.98
>>> elevations.horus.gaussian(2).dims
('y', 'x')
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

try:
    import xarray
except ImportError as error:
    raise ImportError("horus_image.xarray needs xarray: pip install 'horus-image[xarray]'") from error

from . import exposure, filters, morphology, ndimage, raster, segmentation
from ._focal import STATISTICS as FOCAL
from ._image import Array, Image, asarray
from ._public import FUNCTIONS
from ._zonal import STATISTICS as ZONAL

__all__ = ["Accessor"]

_AREAS: Final = (raster, filters, exposure, morphology, segmentation, ndimage)
"""Modules whose functions are methods; of functions of one name the first one."""

_UNEVEN: Final = 1e-2
"""How far steps of coordinates may differ, as a share of a step: coordinates of ``float32`` are rounded."""


@functools.cache
def _methods() -> dict[str, Callable[..., Any]]:
    """The functions of an image that return one."""
    areas = [area.__name__.rpartition(".")[2] for area in reversed(_AREAS)]
    rows = sorted((row for row in FUNCTIONS if row.area in areas), key=lambda row: areas.index(row.area))
    return {row.name: row.function for row in rows if inspect.signature(row.function).return_annotation == "Pixels"}


@dataclass(frozen=True)
class _Call:
    """A call of a function, but for its image; tasks of Dask get it."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def takes_nodata(self) -> bool:
        """Returns true for a function whose results have NaN for missing cells."""
        return "nodata" in self.kwargs

    def __call__(self, image: Any) -> Any:
        return _methods()[self.name](image, *self.args, **self.kwargs)


@xarray.register_dataarray_accessor("horus")  # type: ignore[no-untyped-call]
class Accessor:
    """The functions of `horus_image.raster`, `filters`, `exposure`, `morphology`, `segmentation` and `ndimage` that
    make an image of an image, as methods of an array of xarray: ``array.horus.gaussian(2)``. Of several functions of a
    name the method is the first in this order.

    The last two dimensions are rows and columns; dimensions before these hold other images. Results keep dimensions,
    coordinates, name and attributes, also ``units`` that are no longer true. Results of functions that take ``nodata``
    have no attribute ``_FillValue``: there missing cells are NaN. Arrays of Dask stay lazy, by
    `horus_image.dask.map_overlap`; those on a GPU stay there; others are computed at the call.

    Two arguments have other defaults than in `horus_image.raster`: ``cell_size`` is that of the coordinates, and
    ``nodata`` the attribute ``_FillValue``.
    """

    def __init__(self, array: xarray.DataArray) -> None:
        self._array = array

    @property
    def cell_size(self) -> tuple[float, float]:
        """Height and width of a cell, of the coordinates of the last two dimensions; 1 without coordinates.

        The height is negative where coordinates of rows ascend, so that rows go north.

        Raises
        ------
        ValueError
            For coordinates that are no numbers, or are not evenly spaced.
        """
        rows, columns = self._dims()
        return -self._step(rows, -1.0), self._step(columns, 1.0)

    def apply(self, program: Callable[[Image], Image]) -> xarray.DataArray:
        """A program of an image of rows and columns, such as a function of `horus_image.jit`, applied to the array.

        Examples
        --------
        >>> import numpy as np
        >>> import xarray
        >>> import horus_image.xarray
        >>> array = xarray.DataArray(np.arange(3.0).reshape(1, 3), dims=("y", "x"))
        >>> array.horus.apply(lambda image: image * 2 + 1).values
        array([[1., 3., 5.]])
        """
        return self._applied(program, lambda pixels: program(asarray(pixels)))

    def focal_statistics(
        self, kernel: npt.ArrayLike = 3, statistics: str | Iterable[str] = FOCAL, *, nodata: float | None = None
    ) -> xarray.DataArray:
        """Statistics of the cells around each cell; several along a dimension ``statistics``. See
        `horus_image.raster.focal_statistics`."""
        names = statistics if isinstance(statistics, str) else list(statistics)
        call = self._call("focal_statistics", kernel, names, nodata=self._nodata() if nodata is None else nodata)
        return self._applied(call, call, () if isinstance(names, str) else names)

    def zonal_statistics(
        self, zones: Any, statistics: str | Iterable[str] = ZONAL, *, zone_ids: npt.ArrayLike | None = None, nodata: float | None = None
    ) -> xarray.Dataset:
        """Statistics of the cells of each zone, along a dimension ``zone``. See `horus_image.raster.zonal_statistics`.

        They are computed at the call, of Dask in bands of rows. An array of xarray as `zones` has the same coordinates.
        """
        array, nodata = self._array, self._nodata() if nodata is None else nodata
        self._dims()
        if isinstance(zones, xarray.DataArray):
            xarray.align(array, zones, join="exact")
            zones = zones.transpose(*array.dims).data
        measure = raster.zonal_statistics
        if any(hasattr(pixels, "__dask_graph__") for pixels in (array.data, zones)):
            from .dask import zonal_statistics as measure
        found = measure(array.data, zones, statistics, zone_ids=zone_ids, nodata=nodata)
        ids = found.pop("zone")
        return xarray.Dataset({name: ("zone", values) for name, values in found.items()}, {"zone": ids}, self._attrs(takes_nodata=True))

    def __getattr__(self, name: str) -> Callable[..., xarray.DataArray]:
        if name not in _methods():
            raise AttributeError(f"horus_image has no function {name!r} that makes an image of an image")

        @functools.wraps(_methods()[name])
        def method(*args: Any, **kwargs: Any) -> xarray.DataArray:
            call = self._call(name, *args, **kwargs)
            return self._applied(call, call)

        return method

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_methods()})

    def _call(self, name: str, *args: Any, **kwargs: Any) -> _Call:
        """A call with what the array knows itself."""
        signature = inspect.signature(_methods()[name])
        given = signature.bind_partial(None, *args, **kwargs).arguments
        for known, find in (("cell_size", lambda: self.cell_size), ("nodata", self._nodata)):
            if known in signature.parameters and known not in given:
                kwargs[known] = find()
        return _Call(name, args, kwargs)

    def _dims(self) -> tuple[Any, Any]:
        """The dimensions of rows and of columns."""
        dims = self._array.dims
        if len(dims) < 2:
            raise ValueError(f"horus: an array of dimensions {dims}; the last two are rows and columns")
        if {"y", "x"} <= set(dims) and dims[-2:] != ("y", "x"):
            raise ValueError(f"horus: dimensions {dims}, of which the last two are rows and columns; use transpose(..., 'y', 'x')")
        return dims[-2], dims[-1]

    def _step(self, dim: Any, unknown: float) -> float:
        """The step of coordinates along a dimension."""
        array = self._array
        if dim not in array.coords or array.sizes[dim] < 2:
            return unknown
        numbers = array.coords[dim].values
        if numbers.dtype.kind not in "iuf":
            raise ValueError(f"horus: coordinates {dim!r} are of type {numbers.dtype}, and have no cell size; give cell_size")
        steps = np.diff(numbers.astype(np.float64))
        step = float(steps.mean())
        if not (math.isfinite(step) and step and (abs(steps - step) <= _UNEVEN * abs(step)).all()):
            raise ValueError(f"horus: coordinates {dim!r} are not evenly spaced; give cell_size")
        return step

    def _nodata(self) -> float | None:
        """The value of missing cells that attributes tell of."""
        value = self._array.attrs.get("_FillValue")
        return float(value) if isinstance(value, (int, float, np.number)) and not np.isnan(value) else None

    def _attrs(self, takes_nodata: bool) -> dict[Any, Any]:
        """Attributes of a result; of a function that takes ``nodata``, without a value of missing cells, which are NaN."""
        return {name: value for name, value in self._array.attrs.items() if not (takes_nodata and name == "_FillValue")}

    def _applied(self, program: Any, on_array: Callable[[Any], Any], levels: Sequence[str] = ()) -> xarray.DataArray:
        """The results of a program, or of a function that takes arrays as well; levels of them are a dimension of their
        own."""
        array = self._array
        attrs = self._attrs(isinstance(program, _Call) and program.takes_nodata)
        self._dims()
        before, shape = array.shape[:-2], (*((len(levels),) if levels else ()), *array.shape[-2:])
        pixels = array.data
        found: Any
        if hasattr(pixels, "__dask_graph__"):
            from .dask import map_overlap

            found = map_overlap(program, pixels)
        elif 0 in before:
            raise ValueError(f"horus: an array of shape {array.shape} has no pixels")
        elif before:
            parts = [_array_of(on_array(pixels[at]), pixels) for at in np.ndindex(before)]
            found = _library_of(pixels).stack(parts)
            found = found.reshape(before + found.shape[1:])
        else:
            found = _array_of(on_array(pixels), pixels)
        if found.shape != before + shape:
            raise ValueError(f"horus: a result of shape {found.shape} of an array of shape {array.shape}, whose coordinates it cannot keep")
        if not levels:
            same: xarray.DataArray = array.copy(data=found)
            same.attrs = attrs
            return same
        dims = (*array.dims[:-2], "statistics", *array.dims[-2:])
        return xarray.DataArray(found, {**array.coords, "statistics": list(levels)}, dims, array.name, attrs)


def _array_of(result: Any, like: Any) -> Any:
    """A result as an array of the library of another array."""
    if isinstance(result, Image):
        return result.compute() if isinstance(like, np.ndarray) else _library_of(like).from_dlpack(result)
    if not isinstance(result, np.ndarray):
        raise TypeError(f"horus: the program returned {type(result).__name__}, not an image")
    return result


def _library_of(array: Any) -> Any:
    return importlib.import_module(type(array).__module__.partition(".")[0])
