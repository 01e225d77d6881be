"""Slope, aspect and shaded relief of elevations, with the formulas of GDAL's ``gdaldem``."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

import numpy as np

from . import _horus
from ._floats import Given, applied
from ._foreign import of_any_library
from ._image import Image, made, where
from ._operators import _binary
from ._public import public
from .typing import ArrayLike, Floats, Pixels

_NAN: Final = float("nan")
_BELOW: Final = 360.0 - 2.0**-16
"""Degrees above which those of ``float32`` are 360."""

_Cells = dict[tuple[int, int], Image]
"""The neighbours of each cell, by rows down and columns to the right."""


def recorded(name: str, image: Any, nodata: float | None, record: Callable[[Image], Image]) -> Pixels:
    """What is recorded on the cells of a raster: ``float64``, NaN where there are none. The result has the type of
    those of GDAL and xarray-spatial, ``float32``, unless the cells are of ``float64``."""
    given = Given(name, image, (2,))
    given.gray()
    return given.back(_in_type(given, nodata, record))


def _in_type(given: Given, nodata: float | None, record: Callable[[Image], Image]) -> Image:
    """A function of its own, so that the cells are freed before the result is computed: an image that is referenced then is
    computed, too."""
    cells = given.image.astype(np.float64)
    if nodata is not None:
        # A number that ``float32`` does not have is, as a cell, the nearest that it has.
        missing = float(np.float32(nodata)) if given.dtype == np.float32 else float(nodata)
        cells = where(cells == missing, _NAN, cells)
    return record(cells).astype(np.float64 if given.dtype == np.float64 else np.float32)


def _sides(name: str, cell_size: Any) -> tuple[float, float]:
    """Height and width of a cell."""
    if isinstance(cell_size, (str, bytes)):
        raise TypeError(f"{name}: cell_size is {cell_size!r}; it is a number, or the height and the width of a cell")
    sides = [float(side) for side in cell_size] if isinstance(cell_size, Iterable) else [float(cell_size)] * 2
    if len(sides) != 2:
        raise ValueError(f"{name}: cell_size has {len(sides)} numbers; it is one, or the height and the width of a cell")
    if not all(math.isfinite(side) and side for side in sides):
        raise ValueError(f"{name}: cell_size is {cell_size}; sides are finite, and not 0")
    return sides[0], sides[1]


def shifted(cells: Image, row: int, column: int, mode: str, cval: float = _NAN) -> Image:
    """The cell that is so many rows down and columns to the right of each."""
    return cells._with(_horus.shift(cells._core, (0, -row, -column), mode, cval)) if row or column else cells


def _neighbours(cells: Image) -> _Cells:
    """The neighbours of each cell, NaN beyond the edges."""
    return {(y, x): shifted(cells, y, x, "constant") for y in (-1, 0, 1) for x in (-1, 0, 1)}


def _extrapolated(cells: Image) -> _Cells:
    """The neighbours of each cell as gdaldem has them with ``-compute_edges``: beyond the edges a line goes on through
    the two cells before, and a neighbour that is missing is the cell itself. At the corners columns are repeated
    instead."""
    height, width = cells.shape
    numbers = [made(_horus.index(cells.session._core, (1, height, width), axis), cells.session, 2) for axis in (1, 2)]
    rows, columns = numbers
    ends = {-1: rows == 0.0, 1: rows == height - 1.0}
    between = ~(ends[-1] | ends[1])
    sides = {-1: (columns == 0.0) & between, 1: (columns == width - 1.0) & between}

    def at(row: int, column: int) -> Image:
        return shifted(cells, row, column, "nearest")

    found = {}
    for row in (-1, 0, 1):
        for column in (-1, 0, 1):
            there = at(row, column)
            if column:
                there = where(sides[column], at(row, 0) * 2.0 - at(row, -column), there)
            if row:
                there = where(ends[row], at(0, column) * 2.0 - at(-row, column), there)
            found[row, column] = where(there == there, there, cells)
    return found


def _gradient(name: str, cells: Image, cell_size: Any, method: str, edges: bool) -> tuple[Image, Image]:
    """Rise to the east and to the south, in units of elevation per unit of length; NaN where gdaldem has no result."""
    height, width = _sides(name, cell_size)
    around = _extrapolated(cells) if edges and min(cells.shape) > 1 else _neighbours(cells)
    if method == "horn":
        weights, rest = {-1: 1.0, 0: 2.0, 1: 1.0}, [cells]
    elif method == "zevenbergen_thorne":
        weights, rest = {0: 1.0}, [cells, *(around[y, x] for y in (-1, 1) for x in (-1, 1))]
    else:
        raise ValueError(f"{name}: method is {method!r}; it is 'horn' or 'zevenbergen_thorne'")
    total = 2.0 * sum(weights.values())

    def rise(ahead: list[Image], side: float) -> Image:
        return functools.reduce(operator.add, ahead) * (1.0 / (total * side))

    east = rise([(around[i, 1] - around[i, -1]) * w for i, w in weights.items()], width)
    south = rise([(around[1, i] - around[-1, i]) * w for i, w in weights.items()], height)
    # Cells that the differences leave out count, too.
    every = functools.reduce(operator.add, rest)
    return where(every == every, east, _NAN), south


def _root(cells: Image) -> Image:
    return applied("sqrt", cells)


def _angle(ordinate: Image, abscissa: Image | float) -> Image:
    """Degrees from the axis of abscissas to a point."""
    return _binary("atan2", ordinate, abscissa) * (180.0 / math.pi)


@public("raster", module="")
@of_any_library
def slope(
    image: ArrayLike,
    cell_size: Floats = 1.0,
    *,
    units: Literal["degrees", "percent"] = "degrees",
    z_factor: float = 1.0,
    method: Literal["horn", "zevenbergen_thorne"] = "horn",
    edges: bool = False,
    nodata: float | None = None,
) -> Pixels:
    """The steepness of each cell of a raster of elevations (``gdaldem slope``, ``xrspatial.slope``).

    Parameters
    ----------
    image : array_like or Image
        Elevations: rows and columns, of any type. NaN are missing cells.
    cell_size : float or pair of float, optional
        The side of a cell, or its height and its width, in the unit of elevations. The sign of a side does not matter
        here.
    units : {'degrees', 'percent'}, optional
        Degrees from 0 to 90, or 100 times the rise per unit of length (``-p``).
    z_factor : float, optional
        By which elevations are multiplied; of gdaldem's ``-s`` it is the reciprocal: for cells in degrees and
        elevations in metres ``1 / 111120``.
    method : {'horn', 'zevenbergen_thorne'}, optional
        Differences of the eight neighbours, the four next ones twice; or of these four alone, for smooth landscapes
        (``-alg``).
    edges : bool, optional
        Give cells at the edges and beside missing cells a result (``-compute_edges``): beyond the edges a line goes on
        through the two cells before, and a missing neighbour has the elevation of the cell. By default they are NaN, as
        in both libraries.
    nodata : float, optional
        The elevation of missing cells, which are NaN in the result.

    Returns
    -------
    ndarray or Image
        Of ``float64`` if the input is, else of ``float32``; computed in ``float64``. Of ``float32`` GDAL adds
        elevations in ``float32``: where they are large, it has fewer digits. As in GDAL a missing cell has no slope;
        xarray-spatial, which does not read the cell itself, gives one if its neighbours are there.

    Raises
    ------
    ValueError
        For cells without sides, an unknown method or unknown units, and images of other axes.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image import raster
    >>> elevations = np.arange(3.0) * np.ones((3, 1))
    >>> raster.slope(elevations, cell_size=1.0).round(3)
    array([[nan, nan, nan],
           [nan, 45., nan],
           [nan, nan, nan]])
    >>> raster.slope(elevations, cell_size=10.0, units="percent", edges=True)[1].round(3)
    array([10., 10., 10.])
    """
    if units not in ("degrees", "percent"):
        raise ValueError(f"slope: units are {units!r}; they are 'degrees' or 'percent'")

    def record(cells: Image) -> Image:
        east, south = _gradient("slope", cells, cell_size, method, edges)
        rise = _root(east * east + south * south) * abs(float(z_factor))
        return rise * 100.0 if units == "percent" else _angle(rise, 1.0)

    return recorded("slope", image, nodata, record)


@public("raster", module="", differs="cells of any sides; flat ones are -1, of GDAL -9999")
@of_any_library
def aspect(
    image: ArrayLike,
    cell_size: Floats = 1.0,
    *,
    flat: float = -1.0,
    method: Literal["horn", "zevenbergen_thorne"] = "horn",
    edges: bool = False,
    nodata: float | None = None,
) -> Pixels:
    """The direction in which each cell of a raster of elevations falls (``gdaldem aspect``, ``xrspatial.aspect``).

    Parameters
    ----------
    image, method, edges, nodata : optional
        As of `slope`.
    cell_size : float or pair of float, optional
        The side of a cell, or its height and its width; only their ratio and their signs matter. GDAL and
        xarray-spatial take cells for square. Rows go south; a negative height says that they go north, and a negative
        width that columns go west.
    flat : float, optional
        Of cells that do not fall. By default that of xarray-spatial; of gdaldem it is -9999.

    Returns
    -------
    ndarray or Image
        Degrees clockwise from north, from 0 to below 360, in the types of `slope`.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image import raster
    >>> west = np.arange(3.0) * np.ones((3, 1))
    >>> [float(raster.aspect(falling)[1, 1]) for falling in (west, west.T, -west, -west.T, np.ones((3, 3)))]
    [270.0, 0.0, 90.0, 180.0, -1.0]
    """

    def record(cells: Image) -> Image:
        east, south = _gradient("aspect", cells, cell_size, method, edges)
        # Taken from 0, a rise of 0 has no sign that would turn north to south.
        angle = _angle(0.0 - east, south)
        angle = where(angle < 0.0, angle + 360.0, angle)
        # An angle next to 360 would become it in ``float32``.
        angle = where(angle > _BELOW, 0.0, angle)
        return where((east == 0.0) & (south == 0.0), float(flat), angle)

    return recorded("aspect", image, nodata, record)


@public("raster", module="", differs="not rounded to bytes, as GDAL's")
@of_any_library
def hillshade(
    image: ArrayLike,
    cell_size: Floats = 1.0,
    *,
    azimuth: float = 315.0,
    altitude: float = 45.0,
    z_factor: float = 1.0,
    scale: Literal["gdal", "xarray-spatial"] = "gdal",
    method: Literal["horn", "zevenbergen_thorne"] = "horn",
    edges: bool = False,
    nodata: float | None = None,
) -> Pixels:
    """The brightness of each cell of a raster of elevations that is lit from one side (``gdaldem hillshade``).

    The brightness is the cosine of the angle between the light and the normal of the cell. Cells cast no shadows.

    Parameters
    ----------
    image, z_factor, method, edges, nodata : optional
        As of `slope`.
    cell_size : float or pair of float, optional
        The side of a cell, or its height and its width, in the unit of elevations. Rows go south; a negative height
        says that they go north, and a negative width that columns go west.
    azimuth, altitude : float, optional
        Where the light comes from: degrees clockwise from north, and above the horizon.
    scale : {'gdal', 'xarray-spatial'}, optional
        GDAL's numbers are 1 for a cosine up to 0, and 255 for 1; it rounds them to bytes, where 0 is a missing cell.
        Those of xarray-spatial are 0 for -1, and 1 for 1: ``xrspatial.hillshade`` is that with
        ``method="zevenbergen_thorne"``, an azimuth of 225, an altitude of 25, and cells of side 1.

    Returns
    -------
    ndarray or Image
        In the types of `slope`; NaN for missing cells.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image import raster
    >>> falling_west = np.arange(3.0) * np.ones((3, 1))
    >>> [round(float(raster.hillshade(falling_west, azimuth=azimuth)[1, 1]), 1) for azimuth in (270, 0, 90)]
    [255.0, 128.0, 1.0]
    """
    if scale not in ("gdal", "xarray-spatial"):
        raise ValueError(f"hillshade: scale is {scale!r}; it is 'gdal' or 'xarray-spatial'")
    turn, height = math.radians(azimuth), math.radians(altitude)

    def record(cells: Image) -> Image:
        east, south = _gradient("hillshade", cells, cell_size, method, edges)
        towards = (east * math.sin(turn) - south * math.cos(turn)) * (float(z_factor) * math.cos(height))
        cosine = (math.sin(height) - towards) / _root((east * east + south * south) * float(z_factor) ** 2 + 1.0)
        return where(cosine <= 0.0, 1.0, cosine * 254.0 + 1.0) if scale == "gdal" else (cosine + 1.0) * 0.5

    return recorded("hillshade", image, nodata, record)
