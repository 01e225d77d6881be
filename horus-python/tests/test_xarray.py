"""Methods of xarray's arrays: those of arrays of NumPy, with the coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray

import horus_image as hi
import horus_image.xarray  # noqa: F401 (it registers the methods)
from horus_image import filters, ndimage, raster

Array = np.ndarray[Any, Any]
CELLS = np.random.default_rng(2).normal(500, 20, (2, 8, 9)).astype(np.float32)


def raised(rows: Any = None, columns: Any = None, count: int | None = None, chunks: Any = None) -> xarray.DataArray:
    """Elevations with coordinates, also such that are of no dimension; of several times if there is a `count`."""
    values: Any = CELLS[0] if count is None else CELLS[:count]
    if chunks is not None:
        values = da.from_array(values, chunks=chunks)
    dims = ("y", "x") if count is None else ("time", "y", "x")
    coordinates: dict[str, Any] = {
        "y": np.arange(8)[::-1] * 3.0 + 50 if rows is None else rows,
        "x": np.arange(9) * 2.0 + 7 if columns is None else columns,
        "spatial_ref": 0,
        "height": (("y", "x"), CELLS[1]),
    }
    if count is not None:
        coordinates["time"] = np.arange(count)
    return xarray.DataArray(values, coordinates, dims, "elevation", {"units": "m", "_FillValue": -9999.0})


def same(found: xarray.DataArray, like: xarray.DataArray, values: Array, nodata: bool = False) -> None:
    """Compares values, and all that is not one: of a function that takes `nodata` without the value of missing cells."""
    assert found.dtype == values.dtype and found.values.tobytes() == values.tobytes()
    xarray.testing.assert_identical(found.copy(data=like.data), without_nodata(like) if nodata else like)


def without_nodata(array: xarray.DataArray) -> xarray.DataArray:
    """The array, whose missing cells are NaN."""
    array = array.copy()
    array.attrs.pop("_FillValue", None)
    return array


def test_methods_are_the_functions() -> None:
    array = raised()
    same(array.horus.gaussian(2), array, filters.gaussian(CELLS[0], 2))
    same(array.horus.median_filter(size=3), array, ndimage.median_filter(CELLS[0], size=3))
    same(array.horus.sobel(axis=0), array, filters.sobel(CELLS[0], axis=0))
    same(array.horus.slope(), array, raster.slope(CELLS[0], (3, 2)), nodata=True)
    same(array.horus.slope(1.0, units="percent"), array, raster.slope(CELLS[0], units="percent"), nodata=True)
    same(array.horus.apply(lambda image: image * 2 + 1), array, CELLS[0] * 2 + 1)
    assert {"gaussian", "slope", "zonal_statistics"} <= set(dir(array.horus))
    assert not {"threshold_otsu", "regionprops_table"} & set(dir(array.horus))
    assert "steepness" in array.horus.slope.__doc__


@pytest.mark.parametrize(("rows", "columns", "size"), [
    (None, None, (3.0, 2.0)),
    (np.arange(8) * 3.0, None, (-3.0, 2.0)),
    (np.linspace(8.7, 8.0, 8, dtype=np.float32), 9 - np.arange(9), (0.1, -1.0)),
])  # fmt: skip
def test_cells_have_the_size_of_coordinates(rows: Any, columns: Any, size: tuple[float, float]) -> None:
    array = raised(rows, columns)
    assert array.horus.cell_size == pytest.approx(size, rel=1e-5)
    for name in ("slope", "aspect", "hillshade"):
        same(getattr(array.horus, name)(), array, getattr(raster, name)(CELLS[0], array.horus.cell_size), nodata=True)
    # Turned over, the landscape is the same.
    turned = array.isel(y=slice(None, None, -1)).horus.aspect()
    np.testing.assert_array_equal(turned.isel(y=slice(None, None, -1)), array.horus.aspect())


def test_cells_without_coordinates_are_squares() -> None:
    array = xarray.DataArray(CELLS[0])
    assert array.horus.cell_size == (1.0, 1.0)
    same(array.horus.aspect(), array, raster.aspect(CELLS[0]), nodata=True)


def test_attributes_tell_the_value_of_missing_cells() -> None:
    array = raised().copy(data=CELLS[0].round().astype(np.int16))
    array[3, 4] = -9999
    same(array.horus.slope(), array, raster.slope(array.values, (3, 2), nodata=-9999), nodata=True)
    assert np.isnan(array.horus.slope()[2:5, 3:6]).all() and not np.isnan(array.horus.slope(nodata=-1)[2:5, 3:6]).any()
    same(array.horus.focal_statistics(3, "min"), array, raster.focal_statistics(array.values, 3, "min", nodata=-9999), nodata=True)
    zones = xarray.ones_like(array).drop_attrs()
    assert array.horus.zonal_statistics(zones, "count")["count"].item() == 71


def test_results_that_are_the_value_of_missing_cells_are_no_missing_cells() -> None:
    array = xarray.DataArray(np.full((4, 5), 7.0), attrs={"_FillValue": 0, "units": "m"})
    found = array.horus.slope(edges=True).horus.focal_statistics(3, "mean")
    np.testing.assert_array_equal(found, np.zeros((4, 5)))
    assert found.attrs == {"units": "m"} and array.attrs == {"_FillValue": 0, "units": "m"}


@pytest.mark.parametrize("chunks", [(5, 4), (8, 9)])
def test_arrays_of_dask_stay_lazy(chunks: Any) -> None:
    array = raised(chunks=chunks)
    for found, values, nodata in (
        (array.horus.slope(edges=True), raster.slope(CELLS[0], (3, 2), edges=True), True),
        (array.horus.gaussian(0.5), filters.gaussian(CELLS[0], 0.5), False),
        (array.horus.apply(lambda image: image - 1), CELLS[0] - 1, False),
    ):
        assert isinstance(found.data, da.Array) and found.chunks == array.chunks
        same(found, array, values, nodata)
    several = array.horus.focal_statistics(3, ["mean", "max"])
    assert isinstance(several.data, da.Array)
    np.testing.assert_array_equal(several, raster.focal_statistics(CELLS[0], 3, ["mean", "max"]))


@pytest.mark.parametrize("chunks", [None, (1, 5, 4)])
def test_dimensions_before_rows_hold_other_images(chunks: Any) -> None:
    array = raised(count=2, chunks=chunks)
    same(array.horus.slope(), array, np.stack([raster.slope(each, (3, 2)) for each in CELLS]), nodata=True)
    several = array.horus.focal_statistics(3, ["var", "sum"])
    assert several.dims == ("time", "statistics", "y", "x") and several.name == "elevation" and several.attrs == {"units": "m"}
    assert several.statistics.values.tolist() == ["var", "sum"]
    np.testing.assert_array_equal(several.sel(statistics="sum").values[1], raster.focal_statistics(CELLS[1], 3, "sum"))
    xarray.testing.assert_identical(several.sel(statistics="var", drop=True).copy(data=array.data), without_nodata(array))


@pytest.mark.parametrize("chunks", [None, (5, 4)])
def test_statistics_of_zones(chunks: Any) -> None:
    array = raised(chunks=chunks)
    zones = xarray.DataArray(np.arange(72).reshape(8, 9) // 20 * 10, array.drop_vars("height").coords, ("y", "x"))
    found = array.horus.zonal_statistics(zones, ["mean", "count"], zone_ids=[0, 30])
    expected = raster.zonal_statistics(CELLS[0], zones.values, ["mean", "count"], zone_ids=[0, 30])
    assert found.zone.values.tolist() == [0, 30] and list(found) == ["mean", "count"] and found.attrs == {"units": "m"}
    for name in found:
        np.testing.assert_array_equal(found[name], expected[str(name)])
    xarray.testing.assert_identical(array.horus.zonal_statistics(zones.T), array.horus.zonal_statistics(zones.values))
    with pytest.raises(ValueError, match="align"):
        array.horus.zonal_statistics(zones.assign_coords(x=np.arange(9)))


CALLS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "function": (lambda: raised().horus.sharpen(), AttributeError, "no function 'sharpen'"),
    "dimensions": (lambda: xarray.DataArray([1.0]).horus.gaussian(1), ValueError, "dimensions .* last two"),
    "order": (lambda: raised().T.horus.slope(), ValueError, "transpose"),
    "no image": (lambda: raised(count=2)[:0].horus.slope(), ValueError, r"horus: an array of shape \(0, 8, 9\) has no pixels"),
    "uneven": (lambda: raised(np.arange(8.0) ** 2).horus.slope(), ValueError, "'y' are not evenly spaced"),
    "equal": (lambda: raised(np.zeros(8)).horus.slope(), ValueError, "'y' are not evenly spaced"),
    "times": (lambda: raised(None, np.arange(9).astype("M8[D]")).horus.aspect(), ValueError, "'x' are of type datetime64"),
    "argument": (lambda: raised().horus.slope(azimuth=3), TypeError, "azimuth"),
    "shape": (lambda: raised().horus.apply(lambda image: image[1:]), ValueError, r"shape \(7, 9\)"),
    "number": (lambda: raised().horus.apply(lambda image: image.max()), TypeError, "returned float32, not an image"),
}


@pytest.mark.parametrize("name", CALLS)
def test_errors(name: str) -> None:
    call, kind, message = CALLS[name]
    with pytest.raises(kind, match=message):
        call()


def test_an_uneven_raster_has_slopes_of_a_given_size() -> None:
    np.testing.assert_array_equal(raised(np.arange(8.0) ** 2).horus.slope(5.0), raster.slope(CELLS[0], 5.0))


def test_the_module_is_loaded_when_it_is_asked_for() -> None:
    assert hi.xarray.Accessor is horus_image.xarray.Accessor
