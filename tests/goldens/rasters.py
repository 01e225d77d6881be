"""Writes rasters/*.npy: what GDAL's gdaldem and xarray-spatial make of a small raster of elevations.

    pip install numpy==2.4.6 rasterio==1.4.4 xarray-spatial==0.5.3 && python tests/goldens/rasters.py

rasterio does not have gdaldem, but its wheel has the library of GDAL (3.10.3), which has.
"""

import ctypes
import pathlib
import tempfile

import numpy as np
import rasterio
import xarray
import xrspatial
from rasterio.transform import from_origin
from xrspatial.convolution import circle_kernel
from xrspatial.focal import focal_stats
from xrspatial.zonal import stats

HERE = pathlib.Path(__file__).parent / "rasters"
CELL = (3.0, 2.0)
"""Height and width of a cell."""
NODATA = -9999
STATISTICS = ["mean", "max", "min", "range", "std", "var", "sum"]

gdal = ctypes.CDLL(str(next((pathlib.Path(rasterio.__file__).parents[1] / "rasterio.libs").glob("libgdal*"))))
POINTER = ctypes.c_void_p
for function in (gdal.GDALOpen, gdal.GDALDEMProcessingOptionsNew, gdal.GDALDEMProcessing):
    function.restype = POINTER
gdal.GDALOpen.argtypes = [ctypes.c_char_p, ctypes.c_int]
gdal.GDALDEMProcessingOptionsNew.argtypes = [ctypes.POINTER(ctypes.c_char_p), POINTER]
gdal.GDALDEMProcessing.argtypes = [ctypes.c_char_p, POINTER, ctypes.c_char_p, ctypes.c_char_p, POINTER, POINTER]
gdal.GDALClose.argtypes = [POINTER]
gdal.GDALAllRegister()


def gdaldem(elevations, what, *words):
    """The raster that ``gdaldem WHAT WORDS`` writes."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = f"{folder}/source.tif", f"{folder}/result.tif"
        height, width = elevations.shape
        with rasterio.open(
            source, "w", driver="GTiff", height=height, width=width, count=1, dtype=elevations.dtype, nodata=NODATA,
            transform=from_origin(0, 0, CELL[1], CELL[0]),
        ) as file:  # fmt: skip
            file.write(elevations, 1)
        given = gdal.GDALOpen(source.encode(), 0)
        options = (ctypes.c_char_p * (len(words) + 1))(*(word.encode() for word in words), None)
        options = gdal.GDALDEMProcessingOptionsNew(options, None)
        made = gdal.GDALDEMProcessing(result.encode(), given, what.encode(), None, options, None)
        assert made, (what, words)
        gdal.GDALClose(made)
        gdal.GDALClose(given)
        with rasterio.open(result) as file:
            return file.read(1)


def main():
    rng = np.random.default_rng(20)
    y, x = np.mgrid[:13, :17]
    elevations = (400 + 30 * np.sin(x / 3) * np.cos(y / 4) + rng.normal(0, 3, x.shape)).round().astype(np.int16)
    elevations[7:11, 9:14] = 410  # flat
    elevations[3, 4] = elevations[0, 11] = elevations[9, 16] = NODATA
    zones = (y // 5 * 10 + x // 6).astype(np.int32)
    ways = [["-alg", how, *edges] for how in ("Horn", "ZevenbergenThorne") for edges in ([], ["-compute_edges"])]
    found = {"elevations": elevations, "zones": zones}
    for name, words in {"slope": [], "aspect": [], "hillshade": []}.items():
        found[f"gdal_{name}"] = np.stack([gdaldem(elevations, name, *words, *way) for way in ways])
    found["gdal_slope_percent"] = gdaldem(elevations, "slope", "-p", "-s", "7")
    found["gdal_hillshade_lit"] = gdaldem(elevations, "hillshade", "-z", "2", "-az", "100", "-alt", "20")

    cells = np.where(elevations == NODATA, np.nan, elevations / 4).astype(np.float32)
    height, width = cells.shape
    coordinates = {"y": np.arange(height)[::-1] * CELL[0], "x": np.arange(width) * CELL[1]}
    array = xarray.DataArray(cells, dims=("y", "x"), coords=coordinates)
    for name in ("slope", "aspect", "hillshade"):
        found[f"xrspatial_{name}"] = getattr(xrspatial, name)(array).data.astype(np.float32)
    found["xrspatial_focal"] = np.stack([focal_stats(array, k, STATISTICS).data for k in (np.ones((3, 5)), circle_kernel(1, 1, 2))])
    names = [name for name in STATISTICS if name != "range"] + ["count"]
    table = stats(xarray.DataArray(zones), xarray.DataArray(cells), stats_funcs=names)
    found["xrspatial_zonal"] = table.to_numpy().T
    HERE.mkdir(exist_ok=True)
    for name, values in found.items():
        np.save(HERE / f"{name}.npy", values)


if __name__ == "__main__":
    main()
