"""Made of the sources by tests/generate.py."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from ._zonal import zonal_statistics as zonal_statistics
from .typing import Array, ArrayLike, Floats, HostArray

__all__ = [
    "aspect", "focal_statistics", "hillshade", "slope", "zonal_statistics"
]

@overload
def aspect(
    image: Image, cell_size: Floats = 1.0, *, flat: float = -1.0, method: Literal['horn', 'zevenbergen_thorne'] = 'horn',
    edges: bool = False, nodata: float | None = None
) -> Image: ...
@overload
def aspect(
    image: HostArray, cell_size: Floats = 1.0, *, flat: float = -1.0, method: Literal['horn', 'zevenbergen_thorne'] = 'horn',
    edges: bool = False, nodata: float | None = None
) -> Array: ...
@overload
def aspect(
    image: ArrayLike, cell_size: Floats = 1.0, *, flat: float = -1.0, method: Literal['horn', 'zevenbergen_thorne'] = 'horn',
    edges: bool = False, nodata: float | None = None
) -> Image | Any: ...
@overload
def focal_statistics(
    image: Image, kernel: npt.ArrayLike = 3, statistics: str | Iterable[str] = ('mean', 'max', 'min', 'range', 'std', 'var', 'sum'), *,
    nodata: float | None = None
) -> Image: ...
@overload
def focal_statistics(
    image: HostArray, kernel: npt.ArrayLike = 3, statistics: str | Iterable[str] = ('mean', 'max', 'min', 'range', 'std', 'var', 'sum'), *,
    nodata: float | None = None
) -> Array: ...
@overload
def focal_statistics(
    image: ArrayLike, kernel: npt.ArrayLike = 3, statistics: str | Iterable[str] = ('mean', 'max', 'min', 'range', 'std', 'var', 'sum'), *,
    nodata: float | None = None
) -> Image | Any: ...
@overload
def hillshade(
    image: Image, cell_size: Floats = 1.0, *, azimuth: float = 315.0, altitude: float = 45.0, z_factor: float = 1.0,
    scale: Literal['gdal', 'xarray-spatial'] = 'gdal', method: Literal['horn', 'zevenbergen_thorne'] = 'horn', edges: bool = False,
    nodata: float | None = None
) -> Image: ...
@overload
def hillshade(
    image: HostArray, cell_size: Floats = 1.0, *, azimuth: float = 315.0, altitude: float = 45.0, z_factor: float = 1.0,
    scale: Literal['gdal', 'xarray-spatial'] = 'gdal', method: Literal['horn', 'zevenbergen_thorne'] = 'horn', edges: bool = False,
    nodata: float | None = None
) -> Array: ...
@overload
def hillshade(
    image: ArrayLike, cell_size: Floats = 1.0, *, azimuth: float = 315.0, altitude: float = 45.0, z_factor: float = 1.0,
    scale: Literal['gdal', 'xarray-spatial'] = 'gdal', method: Literal['horn', 'zevenbergen_thorne'] = 'horn', edges: bool = False,
    nodata: float | None = None
) -> Image | Any: ...
@overload
def slope(
    image: Image, cell_size: Floats = 1.0, *, units: Literal['degrees', 'percent'] = 'degrees', z_factor: float = 1.0,
    method: Literal['horn', 'zevenbergen_thorne'] = 'horn', edges: bool = False, nodata: float | None = None
) -> Image: ...
@overload
def slope(
    image: HostArray, cell_size: Floats = 1.0, *, units: Literal['degrees', 'percent'] = 'degrees', z_factor: float = 1.0,
    method: Literal['horn', 'zevenbergen_thorne'] = 'horn', edges: bool = False, nodata: float | None = None
) -> Array: ...
@overload
def slope(
    image: ArrayLike, cell_size: Floats = 1.0, *, units: Literal['degrees', 'percent'] = 'degrees', z_factor: float = 1.0,
    method: Literal['horn', 'zevenbergen_thorne'] = 'horn', edges: bool = False, nodata: float | None = None
) -> Image | Any: ...
