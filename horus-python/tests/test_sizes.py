"""Smaller sizes in files and stores, as zarr-python and tifffile read them: their pixels, and where these lie."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr

import horus_image as hi

Array = np.ndarray[Any, Any]


def stored(path: Path, sizes: int) -> list[Array]:
    """The pixels of all sizes, by another library."""
    if path.suffix == ".zarr":
        group = zarr.open_group(path, mode="r")
        return [np.asarray(group[str(size)]) for size in range(sizes)]
    with tifffile.TiffFile(path) as file:
        if path.name.endswith(".ome.tif"):
            return [level.asarray() for level in file.series[0].levels]
        return [file.pages[size].aspage().asarray() for size in range(sizes)]


def places(path: Path, size: int) -> tuple[list[float], list[float]]:
    """Scale and translation of a size of a store."""
    ome = json.loads((path / "zarr.json").read_text())["attributes"]["ome"]
    all = ome["multiscales"][0]["datasets"][size]["coordinateTransformations"]
    assert [one["type"] for one in all] in (["scale"], ["scale", "translation"])
    return all[0]["scale"], all[1]["translation"] if len(all) > 1 else [0.0] * len(all[0]["scale"])


def halved(array: Array, of: Callable[[list[Any]], Any]) -> Array:
    """A value for each block of two rows and two columns, from those that there are."""
    rows, columns = array.shape
    blocks = [
        [array[y : y + 2, x : x + 2].ravel().tolist() for x in range(0, columns, 2)] for y in range(0, rows, 2)
    ]
    return np.array([[of(block) for block in row] for row in blocks], array.dtype)


def mode(block: list[Any]) -> Any:
    return Counter(block).most_common(1)[0][0]


@pytest.mark.parametrize("resampling", [None, "nearest"])
@pytest.mark.parametrize("pixel", [None, (2.0, 0.5, 0.25)])
@pytest.mark.parametrize("shape", [(37, 50), (5, 37), (1, 5), (64, 1), (3, 37, 5), (2, 5, 1), (1, 1)])
def test_pixels_lie_where_the_metadata_says(
    tmp_path: Path, shape: tuple[int, ...], pixel: tuple[float, ...] | None, resampling: str | None
) -> None:
    ndim, sizes = len(shape), 4
    sides = [1.0] * ndim if pixel is None else list(pixel[-ndim:])
    for axis in range(ndim):
        # Each pixel is its place along the axis.
        ramp = np.broadcast_to(np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(ndim)]), shape)
        ramp = ramp.astype(np.float32)
        path = tmp_path / "ramp.zarr"
        given = None if pixel is None else tuple(sides)
        hi.save(path, ramp, sizes=sizes, pixel_size=given, resampling=resampling)
        all = stored(path, sizes)
        # One level is no axis of a store.
        for size, pixels in enumerate(all):
            step = 2**size
            scale, translation = places(path, size)
            halves = [0] * (ndim - 2) + [int(n > 1) for n in shape[-2:]]
            assert scale == [side * (step if half else 1) for side, half in zip(sides, halves, strict=True)]
            middle = 0.0 if resampling == "nearest" else (step - 1) / 2
            assert translation == [side * middle * half for side, half in zip(sides, halves, strict=True)]
            # Blocks that the edge cuts have means of fewer.
            inside = pixels[tuple(slice(n // step) if half else slice(n) for n, half in zip(shape, halves, strict=True))]
            at = translation[axis] + np.indices(inside.shape)[axis] * scale[axis]
            np.testing.assert_array_equal(inside * sides[axis], at, str((size, axis)))
        for name in ("ramp.tif", "ramp.ome.tif"):
            hi.save(tmp_path / name, ramp, sizes=sizes, tile=(16, 16), pixel_size=given, resampling=resampling)
            if ndim == 2 or name == "ramp.ome.tif":
                for pixels, same in zip(all, stored(tmp_path / name, sizes), strict=True):
                    np.testing.assert_array_equal(same.reshape(pixels.shape), pixels)
        if pixel is not None:
            for size in range(sizes):
                for name in ("ramp.zarr", "ramp.ome.tif"):
                    read = hi.open(tmp_path / name, size=size, volume=ndim == 3)
                    assert read.pixel_size == tuple(places(path, size)[0]), (name, size)


@pytest.mark.parametrize("name", ["a.zarr", "a.tif", "a.ome.tif"])
def test_labels_and_masks_have_modes_and_pictures_means(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    array = np.random.default_rng(5).integers(0, 4, (37, 51)).repeat(2, axis=1)[:, :51] * 50
    means = {dtype: halved(array.astype(dtype), lambda block: np.rint(np.mean(block))) for dtype in ("uint8", "int32")}

    def second(image: Any, **how: Any) -> Array:
        hi.save(path, image, sizes=2, **how)
        return stored(path, 2)[1]

    for dtype in ("int32", "uint32"):
        labels = array.astype(dtype) * 20
        np.testing.assert_array_equal(second(labels), halved(labels, mode))
        assert set(np.unique(second(labels))) <= set(np.unique(labels))
    np.testing.assert_array_equal(second(array.astype("int32"), resampling="average"), means["int32"])
    for dtype in ("uint8", "int16", "float32"):
        picture = array.astype(dtype)
        np.testing.assert_array_equal(second(picture, resampling="mode"), halved(picture, mode))
        np.testing.assert_array_equal(second(picture, resampling="nearest"), picture[::2, ::2])
    np.testing.assert_array_equal(second(array.astype("uint8")), means["uint8"])
    mask = array > 60
    small = second(mask)
    assert set(np.unique(small)) <= ({False, True} if name == "a.zarr" else {0, 255})
    np.testing.assert_array_equal(small != 0, halved(mask, mode))
    np.testing.assert_array_equal(second(mask, resampling="nearest") != 0, mask[::2, ::2])
    with pytest.raises(ValueError, match="no resampling is called best: average, mode or nearest"):
        second(mask, resampling="best")


def test_the_size_of_pixels_of_sizes_that_others_wrote(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "others.zarr", mode="w", zarr_format=3)
    group.create_array("s0", data=np.zeros((37, 50), np.uint8))
    group.create_array("s1", data=np.zeros((9, 12), np.uint8))
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "yx"]
    moved = [{"type": "scale", "scale": [4.0, 4.0]}, {"type": "translation", "translation": [1.5, 1.5]}]
    datasets = [
        {"path": "s0", "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0]}]},
        {"path": "s1", "coordinateTransformations": moved},
    ]
    both = [{"type": "scale", "scale": [0.5, 0.25]}]
    image = {"axes": axes, "datasets": datasets, "coordinateTransformations": both}
    group.attrs["ome"] = {"version": "0.5", "multiscales": [image]}
    assert hi.open(tmp_path / "others.zarr").pixel_size == (0.5, 0.25)
    assert hi.open(tmp_path / "others.zarr", size=1).pixel_size == (2.0, 1.0)
    with tifffile.TiffWriter(tmp_path / "others.ome.tif") as file:
        metadata = {"axes": "YX", "PhysicalSizeX": 0.25, "PhysicalSizeY": 0.5}
        file.write(np.zeros((37, 50), np.uint8), subifds=2, metadata=metadata)
        for shape in ((18, 25), (9, 12)):
            file.write(np.zeros(shape, np.uint8), subfiletype=1)
    sizes = [hi.open(tmp_path / "others.ome.tif", size=size).pixel_size for size in range(3)]
    assert sizes == [(0.5, 0.25), (1.0, 0.5), (2.0, 1.0)]


def warnings(caplog: pytest.LogCaptureFixture, path: Path) -> list[str]:
    """What is logged while a store is read, of which no chunk is where its metadata says."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="horus_image"):
        pixels = hi.open(path)
        assert not pixels[:2, :2].compute().any() and not pixels[:2].compute().any()
    return [record.message for record in caplog.records if "fill value" in record.message]


@pytest.mark.parametrize("separator", [".", "/"])
@pytest.mark.parametrize("version", [2, 3])
def test_chunks_that_lie_elsewhere_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, version: int, separator: str
) -> None:
    def store(name: str) -> tuple[Path, Any]:
        path, kind = tmp_path / name, "v2" if version == 2 else "default"
        keys = {"name": kind, "separator": separator}
        array = zarr.create_array(
            path, shape=(20, 30), chunks=(4, 5), dtype="u2", fill_value=0, zarr_format=version, chunk_key_encoding=keys
        )
        return path, array

    path, array = store("sparse.zarr")
    assert warnings(caplog, path) == [], "nothing is stored"
    array[16:, 20:] = 3
    assert warnings(caplog, path) == [], "little is stored"

    path, array = store("other.zarr")
    array[:] = 7
    metadata = path / (".zarray" if version == 2 else "zarr.json")
    text = json.loads(metadata.read_text())
    other = {".": "/", "/": "."}[separator]
    if version == 2:
        # Without it, it is ".".
        text.pop("dimension_separator", None)
        if separator == ".":
            text["dimension_separator"] = other
    else:
        text["chunk_key_encoding"]["configuration"]["separator"] = other
    metadata.write_text(json.dumps(text))
    [told] = warnings(caplog, path)
    assert "other.zarr" in told, told
    if (version, separator) == (2, "/"):
        assert "like 0.0" in told and "there is 0/0" in told and "dimension_separator" in told, told
