"""The reader of napari: its manifest, and the layers that it makes of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

import horus_image as hi

npe2 = pytest.importorskip("npe2")


def ramp(shape: tuple[int, ...], dtype: str = "uint16") -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape)) * 7 % 251).reshape(shape).astype(dtype)


def read(path: Path | str) -> list[tuple[Any, dict[str, Any], str]]:
    """The layers that napari gets, which finds the manifest among the installed packages."""
    npe2.PluginManager.instance().discover(include_npe1=False)
    return list(npe2.read([str(path)], stack=False, plugin_name="horus-image"))


def test_the_manifest_is_valid_and_names_what_is_there() -> None:
    manifest = npe2.PluginManifest.from_distribution("horus-image")
    manifest.validate_imports()
    assert [reader.command for reader in manifest.contributions.readers or []] == ["horus-image.read"]


def test_sizes_of_a_file_are_read_on_demand(tmp_path: Path) -> None:
    array = ramp((300, 201))
    path = tmp_path / "large.tif"
    hi.save(path, array, sizes=3, tile=(64, 64), compression="deflate", pixel_size=(0.5, 0.25))
    [(sizes, about, kind)] = read(path)
    assert kind == "image" and about == {"name": "large.tif", "scale": (0.5, 0.25), "multiscale": True}
    assert [size.shape for size in sizes] == [(300, 201), (150, 101), (75, 51)]
    assert all(isinstance(size, hi.Image) for size in sizes)
    np.testing.assert_array_equal(np.asarray(sizes[0][17:40, 3:9]), array[17:40, 3:9])


def test_colours_are_one_layer_and_other_channels_are_many(tmp_path: Path) -> None:
    colours, bands = ramp((20, 30, 3), "uint8"), ramp((20, 30, 5))
    hi.save(tmp_path / "colours.png", hi.asarray(colours, channels=True))
    hi.save(tmp_path / "bands.tif", hi.asarray(bands, channels=True))
    [(image, about, _)] = read(tmp_path / "colours.png")
    assert about["rgb"] and not about["multiscale"]
    np.testing.assert_array_equal(np.asarray(image), colours)
    layers = read(tmp_path / "bands.tif")
    assert [about["name"] for _, about, _ in layers] == [f"bands.tif {k}" for k in range(5)]
    np.testing.assert_array_equal(np.asarray(layers[3][0]), bands[..., 3])


def test_volumes_times_and_stores(tmp_path: Path) -> None:
    volume = ramp((4, 20, 30))
    hi.save(tmp_path / "a.ome.tif", volume, pixel_size=(2.0, 0.5, 0.5))
    hi.save(tmp_path / "a.zarr", volume, sizes=2)
    [(image, about, _)] = read(tmp_path / "a.ome.tif")
    assert about["scale"] == (2.0, 0.5, 0.5)
    np.testing.assert_array_equal(np.asarray(image[2]), volume[2])
    [(sizes, _, _)] = read(tmp_path / "a.zarr")
    assert [size.shape for size in sizes] == [(4, 20, 30), (4, 10, 15)]
    times = ramp((2, 4, 20, 30))
    tifffile.imwrite(tmp_path / "times.ome.tif", times, metadata={"axes": "TZYX"})
    [(image, _, _)] = read(tmp_path / "times.ome.tif")
    np.testing.assert_array_equal(np.asarray(image), times[0])


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "broken.tif"
    path.write_bytes(b"II*\0\xff\xff\xff\0")
    with pytest.raises(OSError, match=r"broken\.tif"):
        read(path)
