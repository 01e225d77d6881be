"""Rasters: gdaldem and xarray-spatial, planes of known slope, and windows of NumPy are the oracles."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import dask
import dask.array as da
import numpy as np
import pytest

import horus_image as hi
from horus_image import raster
from horus_image.dask import map_overlap

Array = np.ndarray[Any, Any]

GOLDENS: Final = Path(__file__).parents[2] / "tests" / "goldens" / "rasters"
CELL: Final = (3.0, 2.0)
WAYS: Final = [(method, edges) for method in ("horn", "zevenbergen_thorne") for edges in (False, True)]
FOCAL: Final = ["mean", "max", "min", "range", "std", "var", "sum"]
ZONAL: Final = ["mean", "max", "min", "sum", "std", "var", "count"]
DISC: Final = np.hypot(*np.mgrid[-2:3, -2:3]) <= 2


def golden(name: str) -> Array:
    found: Array = np.load(GOLDENS / f"{name}.npy")
    return found


def missing(values: Array, nodata: float) -> Array:
    return np.where(values == nodata, np.nan, values)


def quarters() -> Array:
    """The elevations that xarray-spatial had."""
    return (missing(golden("elevations"), -9999) / 4).astype(np.float32)


def check(found: Array, expected: Array, rtol: float = 1e-6, atol: float = 0.0) -> None:
    """Compares numbers, and where there are none."""
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol, atol)


@pytest.mark.parametrize("way", range(4))
def test_gdaldem_has_these_numbers(way: int) -> None:
    method, edges = WAYS[way]
    options: dict[str, Any] = {"method": method, "edges": edges, "nodata": -9999}
    elevations = golden("elevations")
    check(raster.slope(elevations, CELL, **options), missing(golden("gdal_slope")[way], -9999))
    # gdaldem takes cells for square, and its number for flat ones is that of missing ones.
    aspects = raster.aspect(elevations, flat=-9999, **options)
    assert (aspects == -9999).any()
    # Angles of float32 are rounded at 360, whatever they are.
    check(np.nan_to_num(aspects, nan=-9999), golden("gdal_aspect")[way], atol=4e-5)
    shades = raster.hillshade(elevations, CELL, **options)
    assert shades.dtype == np.float32
    np.testing.assert_array_equal(np.nan_to_num(np.floor(shades + 0.5)), golden("gdal_hillshade")[way])


def test_gdaldem_has_these_numbers_in_other_units_and_light() -> None:
    elevations = golden("elevations")
    percent = raster.slope(elevations, CELL, units="percent", z_factor=1 / 7, nodata=-9999)
    check(percent, missing(golden("gdal_slope_percent"), -9999))
    shades = raster.hillshade(elevations, CELL, azimuth=100, altitude=20, z_factor=2, nodata=-9999)
    np.testing.assert_array_equal(np.nan_to_num(np.floor(shades + 0.5)), golden("gdal_hillshade_lit"))


def test_xarray_spatial_has_these_numbers() -> None:
    cells = quarters()
    light: dict[str, Any] = {"azimuth": 225, "altitude": 25, "scale": "xarray-spatial", "method": "zevenbergen_thorne"}
    for name, found in {
        "slope": raster.slope(cells, CELL),
        "aspect": raster.aspect(cells),
        "hillshade": raster.hillshade(cells, **light),
    }.items():
        expected = golden(f"xrspatial_{name}")
        there = ~np.isnan(found)
        # It has numbers where a cell, or a neighbour that it does not need, is missing.
        assert there.sum() > 100 and not np.isnan(expected[there]).any()
        np.testing.assert_allclose(found[there], expected[there], 1e-6)


def test_xarray_spatial_has_these_statistics() -> None:
    cells, zones = quarters(), golden("zones")
    for kernel, expected in zip((np.ones((3, 5)), DISC), golden("xrspatial_focal"), strict=True):
        check(raster.focal_statistics(cells, kernel, FOCAL), expected)
    ids, *expected = golden("xrspatial_zonal")
    found = raster.zonal_statistics(cells, zones, [name for name in ZONAL if name != "count"] + ["count"])
    assert found["zone"].tolist() == ids.tolist() and found["zone"].dtype == zones.dtype
    for name, values in zip(("mean", "max", "min", "std", "var", "sum", "count"), expected, strict=True):
        check(found[name], values)


PLANES: Final = [(0.3, 0.0), (0.0, -2.0), (-1.0, 1.0), (5.0, 0.01), (0.0, 0.0)]


@pytest.mark.parametrize(("east", "north"), PLANES)
@pytest.mark.parametrize(("method", "edges"), WAYS)
def test_of_a_plane(east: float, north: float, method: Any, edges: bool) -> None:
    """Rows and columns may go either way."""
    y, x = np.mgrid[:5, :6]
    options: dict[str, Any] = {"method": method, "edges": edges}
    rise = math.hypot(east, north)
    facing = math.degrees(math.atan2(-east, -north)) % 360 if rise else -1.0
    light = np.array([0.5, -0.5, math.sqrt(0.5)])
    cosine = float(light @ np.array([-east, -north, 1.0])) / math.hypot(rise, 1.0)
    inner = (slice(1, -1), slice(1, -1)) if not edges else (slice(1, -1), slice(None))
    for height, width in ((10.0, 4.0), (-10.0, 4.0), (10.0, -4.0)):
        elevations = 1e3 + east * width * x - north * height * y
        size = (height, width)
        where = {
            "slope": (raster.slope(elevations, size, **options), math.degrees(math.atan(rise))),
            "percent": (raster.slope(elevations, size, units="percent", z_factor=-3, **options), 300 * rise),
            "aspect": (raster.aspect(elevations, size, **options), facing),
            "hillshade": (raster.hillshade(elevations, size, azimuth=135, **options), 1 + 254 * max(cosine, 0.0)),
            "signed": (raster.hillshade(elevations, size, azimuth=135, scale="xarray-spatial", **options), (cosine + 1) / 2),
        }
        for name, (found, expected) in where.items():
            assert found.dtype == np.float64, name
            np.testing.assert_allclose(found[inner], expected, 1e-10, 1e-10, err_msg=name)
            edge = found.copy()
            edge[inner] = np.nan
            assert np.isnan(edge).all() != edges, name


def test_angles_are_below_360() -> None:
    """A cell that falls north, and a little west: no float of 32 bits next to 360 is as near as 0."""
    y, x = np.mgrid[:3, :3]
    for dtype, east in ((np.float64, 1e-9), (np.float64, 1e-20), (np.float64, -1e-9)):
        found = raster.aspect((y + east * x).astype(dtype))[1, 1]
        assert 0 <= found < 1e-7 and np.signbit(found) == 0
    assert raster.aspect((y * 2**22 + x).astype(np.float32))[1, 1] == 0


def windows(cells: Array, kernel: Array, name: str) -> Array:
    """A statistic of the cells under a kernel, one window after the other."""
    height, width = (side // 2 for side in kernel.shape)
    around = np.pad(cells.astype(np.float64), ((height, height), (width, width)), constant_values=np.nan)
    functions = {"sum": np.nansum, "min": np.nanmin, "max": np.nanmax, "mean": np.nanmean, "var": np.nanvar, "std": np.nanstd}
    found = np.empty(cells.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # windows without cells
        for y, x in np.ndindex(cells.shape):
            window = around[y : y + kernel.shape[0], x : x + kernel.shape[1]][kernel == 1]
            found[y, x] = functions[name](window) if name in functions else np.nanmax(window) - np.nanmin(window)
    return found


KERNELS: dict[str, Any] = {
    "square": 3,
    "rectangle": (3, 7),
    "large": (9, 1),
    "the next": [[0, 0, 1]],
    "disc": DISC,
    "ring": DISC & (np.hypot(*np.mgrid[-2:3, -2:3]) > 1),
    "beside": [[0, 0, 0, 0, 1], [0, 0, 0, 0, 0], [1, 0, 2, 0, 0]],
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=list(KERNELS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_statistics_of_windows(kernel: Any, dtype: Any) -> None:
    rng = np.random.default_rng(7)
    # Deviations are small next to means: squares of float64 minus others would have no digit left.
    cells = (rng.normal(0, 1, (9, 13)) * (1 if dtype == np.float64 else 50) + (1e7 if dtype == np.float64 else 1e4)).astype(dtype)
    nodata = None
    if dtype == np.int16:
        cells[2:6, 3:9], nodata = -1, -1
    else:
        cells[2:6, 3:9] = np.nan
    marks = np.ones(np.broadcast_to(kernel, 2), int) if np.size(kernel) <= 2 else np.asarray(kernel).astype(int)
    found = raster.focal_statistics(cells, kernel, FOCAL, nodata=nodata)
    assert found.dtype == (np.float64 if dtype == np.float64 else np.float32)
    expected = np.where(cells == -1, np.nan, cells.astype(np.float64))
    for name, level in zip(FOCAL, found, strict=True):
        # Means of 1e7 are rounded to 2e-9, and with them what the means of parts differ by.
        check(level, windows(expected, marks, name), 1e-6 if dtype != np.float64 else 1e-7, 1e-12)
        assert (raster.focal_statistics(cells, kernel, name, nodata=nodata) == level)[~np.isnan(level)].all()


def test_infinite_cells_are_cells() -> None:
    nan, inf = np.nan, np.inf
    found = raster.focal_statistics([[1.0, inf, inf, nan, 3.0]], 3, FOCAL)[:, 0]
    expected = {
        "mean": [inf, inf, inf, inf, 3], "max": [inf, inf, inf, inf, 3], "min": [1, 1, inf, 3, 3], "range": [inf, inf, nan, inf, 0],
        "std": [nan, nan, nan, nan, 0], "var": [nan, nan, nan, nan, 0], "sum": [inf, inf, inf, inf, 3],
    }  # fmt: skip
    for name, values in zip(FOCAL, found, strict=True):
        np.testing.assert_array_equal(values, expected[name], name)


ZONES: dict[str, Callable[[Any], Array]] = {
    "integers": lambda rng: rng.integers(-3, 40, (1100, 7)),
    "bytes": lambda rng: rng.integers(0, 9, (1100, 7)).astype(np.uint8),
    "far apart": lambda rng: rng.integers(-2, 3, (1100, 7)) * 10**12,
    "halves": lambda rng: np.where(rng.random((1100, 7)) < 0.3, np.nan, rng.integers(0, 9, (1100, 7)) * 0.5),
    "whole floats": lambda rng: np.where(rng.random((1100, 7)) < 0.3, np.inf, rng.integers(0, 9, (1100, 7)) + 1e6),
    "in some bands": lambda rng: np.arange(1100 * 7).reshape(1100, 7) // 2000 + rng.integers(0, 2, (1100, 7)) * 5,
    "none": lambda rng: np.full((600, 3), np.nan),
}


def by_zone(cells: Array, zones: Array, nodata: float | None) -> dict[str, list[float]]:
    ids = np.unique(zones[np.isfinite(zones)])
    found: dict[str, list[float]] = {name: [] for name in ZONAL}
    for zone in ids:
        these = cells[(zones == zone) & np.isfinite(cells) & (cells != nodata)].astype(np.float64)
        found["count"].append(len(these))
        for name in ZONAL[:-1]:
            found[name].append(float(getattr(np, name)(these)) if len(these) else np.nan)
    return {"zone": ids.tolist(), **found}


@pytest.mark.parametrize("kind", ZONES)
def test_statistics_of_zones(kind: str) -> None:
    """Of more rows than a band has."""
    rng = np.random.default_rng(3)
    zones = ZONES[kind](rng)
    cells = (rng.normal(0, 1, zones.shape) + 1e4).astype(np.float32)
    cells[rng.random(zones.shape) < 0.1] = np.nan
    cells[5, 2] = np.inf
    cells[zones == zones[-1, -1]] = np.nan  # a zone without cells
    nodata = float(cells[0, 0]) if np.isfinite(cells[0, 0]) else None
    found = raster.zonal_statistics(cells, zones, nodata=nodata)
    expected = by_zone(cells, zones, nodata)
    assert list(found) == list(expected)
    assert found["zone"].dtype == zones.dtype and found["count"].dtype == np.int64
    for name, values in found.items():
        check(values, np.array(expected[name]), 1e-9)
    some = expected["zone"][1:3]
    assert raster.zonal_statistics(cells, zones, "count", zone_ids=[*some, 77])["zone"].tolist() == some


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "slope": lambda image: raster.slope(image, CELL),
    "slope to the edges": lambda image: raster.slope(image, CELL, method="zevenbergen_thorne", edges=True),
    "aspect": lambda image: raster.aspect(image, CELL, edges=True),
    "hillshade": raster.hillshade,
    "statistics": lambda image: raster.focal_statistics(image, DISC, FOCAL),
    "a statistic": lambda image: raster.focal_statistics(image, (3, 5), "var"),
}


def rough(shape: tuple[int, int], dtype: Any = np.float32) -> Array:
    cells = np.random.default_rng(9).normal(1000, 30, shape).astype(dtype)
    if dtype == np.float32:
        cells[shape[0] // 2, 3:9] = np.nan
    return cells


@pytest.mark.filterwarnings("ignore:map_overlap:dask.array.PerformanceWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_images_and_chunks_have_the_bytes_of_an_array(name: str) -> None:
    program = PROGRAMS[name]
    for dtype, chunks in ((np.float32, (7, 11)), (np.int16, ((1, 18, 4), 5))):
        cells = rough((23, 19), dtype)
        expected = program(cells)
        image = program(hi.asarray(cells))
        assert isinstance(image, hi.Image) and image.compute().tobytes() == expected.tobytes()
        with dask.config.set(scheduler="threads", num_workers=2):
            found = map_overlap(program, da.from_array(cells, chunks=chunks))
            assert found.dtype == expected.dtype and found.compute().tobytes() == expected.tobytes()


def test_chunks_have_the_statistics_of_zones_of_an_array() -> None:
    rng = np.random.default_rng(4)
    cells, zones = rough((1300, 9)), rng.integers(0, 5, (1300, 9)) + np.arange(1300)[:, None] // 400
    expected = raster.zonal_statistics(cells, zones)
    images = raster.zonal_statistics(hi.asarray(cells), hi.asarray(zones.astype(np.int32)))
    with dask.config.set(scheduler="threads", num_workers=2):
        parts = da.from_array(cells, chunks=(101, 4)), da.from_array(zones, chunks=(700, 9))
        of_chunks = hi.dask.zonal_statistics(*parts)
        few = hi.dask.zonal_statistics(parts[0], zones, ["max"], zone_ids=[3])
    for found in (images, of_chunks):
        assert {name: values.tobytes() for name, values in found.items() if name != "zone"} == {
            name: values.tobytes() for name, values in expected.items() if name != "zone"
        }
        assert found["zone"].tolist() == expected["zone"].tolist()
    assert list(few) == ["zone", "max"] and few["max"].tolist() == [np.nanmax(cells[zones == 3])]


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "u4", "i4", "i8", "f2", "f4", "f8"])
def test_types(dtype: str) -> None:
    """Differences of large integers lose no digit; only ``float64`` stays."""
    kind = np.dtype(dtype)
    base = {"u4": 4e9, "i4": -2e9, "i8": 2**52}.get(dtype, 0.0)
    cells = (np.arange(5) % 2 if dtype == "?" else np.arange(5) * 2 + base) * np.ones((3, 1))
    found = raster.slope(cells.astype(kind))
    assert found.dtype == (np.float64 if dtype == "f8" else np.float32)
    rise = [0.0, 0.0, 0.0] if dtype == "?" else [2.0, 2.0, 2.0]
    np.testing.assert_allclose(found[1, 1:-1], np.degrees(np.arctan(rise)), 1e-7)


def test_cells_without_data() -> None:
    cells = rough((9, 9))
    cells[4, 2:4] = 0.1
    nothing = np.where(cells == np.float32(0.1), np.float32(np.nan), cells)
    for program in (raster.slope, raster.aspect, raster.hillshade, raster.focal_statistics):
        np.testing.assert_array_equal(program(cells, nodata=0.1), program(nothing))
    assert raster.zonal_statistics(cells, np.ones((9, 9)), "count", nodata=0.1)["count"] == [np.isfinite(nothing).sum()]
    # A missing cell has no slope, whatever its neighbours are, and neither have they.
    assert np.isnan(raster.slope(nothing)[3:6, 1:5]).all() and not np.isnan(raster.slope(nothing, edges=True)[3]).any()


def test_small_rasters() -> None:
    for shape in ((1, 1), (1, 5), (2, 2), (2, 7)):
        cells = np.arange(float(np.prod(shape))).reshape(shape)
        assert np.isnan(raster.slope(cells)).all()
        assert np.isnan(raster.slope(cells, edges=True)).all() == (1 in shape)
    np.testing.assert_array_equal(raster.focal_statistics([[4.0]], 5, FOCAL).ravel(), [4, 4, 4, 0, 0, 0, 4])


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "method": (lambda: raster.slope(np.ones((3, 3)), method="sobel"), "slope: method is 'sobel'"),
    "units": (lambda: raster.slope(np.ones((3, 3)), units="radians"), "slope: units are 'radians'"),
    "scale": (lambda: raster.hillshade(np.ones((3, 3)), scale="esri"), "hillshade: scale is 'esri'"),
    "no side": (lambda: raster.aspect(np.ones((3, 3)), (1.0, 0.0)), "aspect: cell_size is .*not 0"),
    "sides": (lambda: raster.aspect(np.ones((3, 3)), (1.0, 2.0, 3.0)), "aspect: cell_size has 3 numbers"),
    "axes": (lambda: raster.hillshade(np.ones((3, 3, 3))), "hillshade: an image of 3 axes"),
    "empty": (lambda: raster.slope(np.ones((0, 3))), "slope: .* no pixels"),
    "even": (lambda: raster.focal_statistics(np.ones((3, 3)), np.ones((2, 3))), "focal_statistics: .*odd"),
    "even side": (lambda: raster.focal_statistics(np.ones((3, 3)), 4), "focal_statistics: .*odd"),
    "side": (lambda: raster.focal_statistics(np.ones((3, 3)), (3, -1)), "focal_statistics: .*positive"),
    "marks": (lambda: raster.focal_statistics(np.ones((3, 3)), np.zeros((3, 3))), "focal_statistics: no element .* 1"),
    "statistic": (lambda: raster.focal_statistics(np.ones((3, 3)), 3, ["median"]), "focal_statistics: .*'median'; there are mean"),
    "no statistic": (lambda: raster.focal_statistics(np.ones((3, 3)), 3, []), "focal_statistics: no statistic"),
    "zonal": (lambda: raster.zonal_statistics(np.ones((3, 3)), np.ones((3, 3)), "majority"), "zonal_statistics: .*'majority'"),
    "zones": (lambda: raster.zonal_statistics(np.ones((3, 3)), np.ones((3, 4))), r"zonal_statistics: zones of shape \(3, 4\)"),
    "zones of a volume": (lambda: raster.zonal_statistics(np.ones((1, 3, 3)), np.ones((1, 3, 3))), "zonal_statistics: .*rows and columns"),
    "chunks": (lambda: hi.dask.zonal_statistics(np.ones((3, 3)), np.ones(3)), "zonal_statistics: arrays of shapes"),
}


@pytest.mark.parametrize("name", CALLS)
def test_errors(name: str) -> None:
    call, message = CALLS[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_text_is_no_size() -> None:
    with pytest.raises(TypeError, match="slope: cell_size is '35'; it is a number, or the height and the width"):
        raster.slope(np.ones((3, 3)), "35")  # type: ignore[arg-type]
