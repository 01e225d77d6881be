"""The size of pixels: from files, through operations, to files; and Gaussians of a width in micrometres."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from horus_image import ndimage

import horus_image as hi


def volume(shape: tuple[int, ...], dtype: str = "uint16") -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape)) * 7 % 251).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int8", "int16", "int32", "float32", "float64"])
def test_ome_tiff_that_is_written_is_read_by_tifffile(tmp_path: Path, dtype: str) -> None:
    array = volume((4, 20, 30), dtype)
    path = tmp_path / "a & b.ome.tif"
    hi.save(path, array, pixel_size=(2.0, 0.5, 0.25))
    with tifffile.TiffFile(path) as file:
        assert file.is_ome and len(file.series) == 1
        series = file.series[0]
        assert (series.axes, series.shape, series.dtype) == ("ZYX", array.shape, array.dtype)
        np.testing.assert_array_equal(series.asarray(), array)
        pixels = tifffile.xml2dict(file.ome_metadata)["OME"]["Image"]
        assert pixels["Name"] == "a & b"
        told = pixels["Pixels"]
        assert [told[f"PhysicalSize{axis}"] for axis in "ZYX"] == [2.0, 0.5, 0.25]
        assert {told[f"PhysicalSize{axis}Unit"] for axis in "ZYX"} == {"µm"}
        page = file.pages[1].aspage()
        assert page.description == "", "the first page describes the file"
    again = hi.open(path, volume=True)
    assert again.pixel_size == (2.0, 0.5, 0.25)
    np.testing.assert_array_equal(again.compute(), array)


def test_colours_tiles_and_names(tmp_path: Path) -> None:
    array = volume((40, 50, 3), "uint8")
    path = tmp_path / "colours.ome.tiff"
    hi.save(path, hi.asarray(array, channels=True).with_pixel_size(0.1), tile=(16, 32), compression="deflate")
    with tifffile.TiffFile(path) as file:
        assert (file.is_ome, file.series[0].axes, file.pages[0].tile) == (True, "YXS", (16, 32))
        np.testing.assert_array_equal(file.series[0].asarray(), array)


def test_channels_keep_their_names(tmp_path: Path) -> None:
    names = ["DAPI", "<β> & \"γ\""]
    metadata = {"axes": "CZYX", "Channel": {"Name": names}}
    array = volume((2, 3, 20, 30))
    tifffile.imwrite(tmp_path / "in.ome.tif", array, metadata=metadata)
    cells = hi.open(tmp_path / "in.ome.tif", volume=True)
    smooth = ndimage.gaussian_filter(cells.astype("float32"), (0, 1, 1))
    hi.save(tmp_path / "store.zarr", smooth)
    ome = json.loads((tmp_path / "store.zarr" / "zarr.json").read_text())["attributes"]["ome"]
    channels = ome["omero"]["channels"]
    assert [channel["label"] for channel in channels] == names
    assert {"min", "max", "start", "end"} == set(channels[0]["window"]) and len(channels[0]["color"]) == 6
    for image in (smooth, hi.open(tmp_path / "store.zarr")):
        hi.save(tmp_path / "out.ome.tif", image, sizes=2)
        with tifffile.TiffFile(tmp_path / "out.ome.tif") as file:
            [series] = file.series
            assert (series.axes, series.shape, len(file.pages)) == ("ZCYX", (3, 2, 20, 30), 6)
            np.testing.assert_array_equal(series.asarray(), smooth.compute().transpose(0, 3, 1, 2))
            assert [level.shape for level in series.levels] == [(3, 2, 20, 30), (3, 2, 10, 15)]
            pixels = tifffile.xml2dict(file.ome_metadata)["OME"]["Image"]["Pixels"]
            assert [channel["Name"] for channel in pixels["Channel"]] == names
            assert pixels["SizeC"] == 2
    hi.save(tmp_path / "flat.ome.tif", cells[1])
    with tifffile.TiffFile(tmp_path / "flat.ome.tif") as file:
        assert (file.series[0].axes, len(file.pages)) == ("CYX", 2)
    np.testing.assert_array_equal(hi.open(tmp_path / "flat.ome.tif").compute(), array[:, 1].transpose(1, 2, 0))


@pytest.mark.parametrize("axes", ["TCZYX", "TZCYX", "CTZYX", "ZTCYX"])
def test_ome_tiff_of_tifffile_is_read_in_any_order_of_axes(tmp_path: Path, axes: str) -> None:
    extents = {"T": 2, "C": 3, "Z": 4, "Y": 5, "X": 6}
    array = volume(tuple(extents[axis] for axis in axes))
    path = tmp_path / "many.ome.tif"
    metadata = {
        "axes": axes,
        "PhysicalSizeX": 250.0,
        "PhysicalSizeXUnit": "nm",
        "PhysicalSizeY": 0.5,
        "PhysicalSizeYUnit": "µm",
        "PhysicalSizeZ": 0.002,
        "PhysicalSizeZUnit": "mm",
        "Channel": {"Name": ["one", "two", "three"]},
    }
    tifffile.imwrite(path, array, metadata=metadata)
    expected = array.transpose([axes.index(axis) for axis in "TZYXC"])
    for time in range(2):
        image = hi.open(path, volume=True, page=time)
        assert image.pixel_size == (2.0, 0.5, 0.25)
        np.testing.assert_array_equal(image.compute(), expected[time])
    with pytest.raises(OSError, match="it has 2 times, of which one is read as a volume"):
        hi.open(path, volume=True)
    with pytest.raises(OSError, match="time 2 requested, but it has 2"):
        hi.open(path, volume=True, page=2)
    assert hi.open(path).pixel_size == (0.5, 0.25)


def test_stores_and_resolutions_have_it_and_operations_keep_it(tmp_path: Path) -> None:
    image = hi.asarray(volume((40, 60), "uint8")).with_pixel_size((0.5, 0.25))
    for name in ("a.zarr", "a.tif", "a.ome.tif"):
        hi.save(tmp_path / name, image)
        assert hi.open(tmp_path / name).pixel_size == pytest.approx((0.5, 0.25), rel=1e-6)
    hi.save(tmp_path / "sizes.zarr", image, sizes=2)
    assert hi.open(tmp_path / "sizes.zarr", size=1).pixel_size == (1.0, 0.5)
    with tifffile.TiffFile(tmp_path / "a.tif") as file:
        tags = file.pages[0].tags
        assert tags["ResolutionUnit"].value == 3
        assert [a / b for a, b in (tags["XResolution"].value, tags["YResolution"].value)] == [40_000, 20_000]
    read = hi.open(tmp_path / "a.zarr")
    assert ndimage.sobel(read)[5:25, 3:40].pixel_size == (0.5, 0.25)
    assert read.resize((20, 30)).pixel_size == (1.0, 0.5)
    assert (read.astype("float32") * 2 + read).pixel_size == (0.5, 0.25)
    assert (read[:20, :30] + read[20:, 30:]).pixel_size == (0.5, 0.25)
    assert (read + read.with_pixel_size(0.5)).pixel_size is None
    assert hi.asarray(np.zeros((4, 4))).pixel_size is None
    deep = hi.asarray(volume((6, 8, 9))).with_pixel_size((2, 1, 1))
    assert deep[1:4].pixel_size == (2, 1, 1)
    hi.save(tmp_path / "deep.zarr", deep)
    assert hi.open(tmp_path / "deep.zarr").pixel_size == (2, 1, 1)
    with pytest.raises(ValueError, match="pixel_size has 2 numbers; the image has 3 axes"):
        deep.with_pixel_size((1, 2))
    with pytest.raises(ValueError, match="they must be positive"):
        deep.with_pixel_size(0)
    for levels in (0.0, -2.0, float("nan")):
        with pytest.raises(ValueError, match="they must be positive"):
            deep.with_pixel_size((levels, 1.0, 1.0))
    with pytest.raises(ValueError, match="only Zarr stores, TIFF and PNG files"):
        hi.save(tmp_path / "flat.pgm", np.zeros((4, 5), np.uint8), pixel_size=0.5)


def test_gaussians_have_a_width_in_micrometres() -> None:
    array = volume((9, 40, 50), "float64")
    image = hi.asarray(array).with_pixel_size((2.0, 0.5, 0.25))
    for function in (ndimage.gaussian_filter, ndimage.gaussian_laplace, ndimage.gaussian_gradient_magnitude):
        np.testing.assert_array_equal(function(image, "1um").compute(), function(array, (0.5, 2, 4)))
    mixed = ndimage.gaussian_filter(image, (0, "0.001 mm", 3))
    np.testing.assert_array_equal(mixed.compute(), ndimage.gaussian_filter(array, (0, 2, 3)))
    one = ndimage.gaussian_filter1d(image, "500nm", axis=1)
    np.testing.assert_array_equal(one.compute(), ndimage.gaussian_filter1d(array, 1, axis=1))
    some = ndimage.gaussian_filter(image, "1um", axes=(1, 2))
    np.testing.assert_array_equal(some.compute(), ndimage.gaussian_filter(array, (2, 4), axes=(1, 2)))
    for lacking in (array, hi.asarray(array)):
        with pytest.raises(ValueError, match="sigma is '1um', but the image has no pixel size along axis 0"):
            ndimage.gaussian_filter(lacking, "1um")
    with pytest.raises(ValueError, match="sigma is '1 parsec'; a length is a number with a unit"):
        ndimage.gaussian_filter(image, "1 parsec")


def means(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The means of four pixels each, of an array of even extents, rounded to even."""
    parts = array.reshape(array.shape[0] // 2, 2, array.shape[1] // 2, 2).astype(np.float64)
    return np.rint(parts.mean(axis=(1, 3))).astype(array.dtype)


@pytest.mark.parametrize("compression", ["none", "deflate"])
def test_sizes_of_a_tiff_file_are_read_by_tifffile(tmp_path: Path, compression: str) -> None:
    array = volume((256, 384), "uint8")
    path = tmp_path / "sizes.tif"
    hi.save(path, array, sizes=3, tile=(64, 64), compression=compression)
    with tifffile.TiffFile(path) as file:
        pages = [file.pages[k].aspage() for k in range(len(file.pages))]
        assert [page.shape for page in pages] == [(256, 384), (128, 192), (64, 96)]
        assert [page.subfiletype for page in pages] == [0, 1, 1]
        half = means(array)
        for page, expected in zip(pages, [array, half, means(half)], strict=True):
            np.testing.assert_array_equal(page.asarray(), expected)
        # Directories first, then the pixels of the smallest.
        places = [page.dataoffsets[0] for page in pages]
        assert max(page.offset for page in pages) < places[2] < places[1] < places[0]
    for size, expected in enumerate([array, half, means(half)]):
        np.testing.assert_array_equal(hi.open(path, size=size).compute(), expected)


def test_sizes_of_an_ome_tiff_file_are_those_of_its_pages(tmp_path: Path) -> None:
    array = volume((3, 64, 96), "uint16")
    path = tmp_path / "sizes.ome.tif"
    hi.save(path, array, sizes=2, tile=(32, 32), pixel_size=(2.0, 0.5, 0.5))
    with tifffile.TiffFile(path) as file:
        [series] = file.series
        assert [level.shape for level in series.levels] == [(3, 64, 96), (3, 32, 48)]
        np.testing.assert_array_equal(series.asarray(), array)
        np.testing.assert_array_equal(series.levels[1].asarray(), np.stack([means(level) for level in array]))
    half = hi.open(path, volume=True, size=1)
    assert half.shape == (3, 32, 48) and half.pixel_size == (2.0, 1.0, 1.0)


def test_png_files_have_pixels_per_metre(tmp_path: Path) -> None:
    path = tmp_path / "sized.png"
    hi.save(path, volume((4, 6), "uint8"), pixel_size=(0.5, 0.25))
    assert hi.open(path).pixel_size == (0.5, 0.25)
    hi.open(path)[::2].save(tmp_path / "half.png")
    assert hi.open(tmp_path / "half.png").pixel_size == (1.0, 0.25)
