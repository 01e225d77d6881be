"""The reader and the widget of napari: their manifest, and the layers that they make."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import scipy.ndimage
import tifffile

import horus_image as hi
from horus_image._napari_filter import Filter, filtered

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
    assert [widget.command for widget in manifest.contributions.widgets or []] == ["horus-image.filter"]


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


class Layer:
    """A layer of napari, as far as the widget asks."""

    def __init__(self, data: Any, **properties: Any) -> None:
        self._data = data
        self._properties = {"name": "cells", "rgb": False, "multiscale": False, "opacity": 0.5, **properties}

    def as_layer_data_tuple(self) -> tuple[Any, dict[str, Any], str]:
        return self._data, self._properties, "image"


def by_scipy(name: str, plane: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    function = getattr(scipy.ndimage, name)
    result = function(plane, size=2 * size + 1) if not name.startswith("gaussian") else function(plane, size)
    return np.asarray(result)


@pytest.mark.parametrize("name", get_args(Filter))
def test_the_widget_filters_planes_or_a_volume(name: Filter) -> None:
    volume = ramp((4, 20, 31), "uint8")
    given = volume.astype("float32") if name == "gaussian_gradient_magnitude" else volume
    for across in (False, True):
        result, about, kind = filtered(Layer(volume, scale=(2.0, 0.5, 0.5)), name, 2.0, across)
        assert (kind, about) == ("image", {"name": f"cells {name} 2", "rgb": False, "multiscale": False, "scale": (2.0, 0.5, 0.5)})
        assert isinstance(result, hi.Image)
        expected = by_scipy(name, given, 2) if across else np.stack([by_scipy(name, plane, 2) for plane in given])
        # Sums of single precision, in another order.
        np.testing.assert_allclose(result.compute(), expected, rtol=0, atol=2e-4 if given.dtype.kind == "f" else 0)


def test_the_widget_filters_all_sizes_of_a_layer_and_colours() -> None:
    sizes = [ramp((40, 60)), ramp((20, 30))]
    results, about, _ = filtered(Layer(sizes, multiscale=True), "median_filter", 4.0)
    assert about["multiscale"]
    for result, given, radius in zip(results, sizes, (4, 2), strict=True):
        np.testing.assert_array_equal(result[3:9, 5:].compute(), by_scipy("median_filter", given, radius)[3:9, 5:])
    colours = ramp((20, 30, 3), "uint8")
    result, _, _ = filtered(Layer(colours, rgb=True), "maximum_filter", 1.0)
    expected = np.stack([by_scipy("maximum_filter", colours[..., k], 1) for k in range(3)], axis=-1)
    np.testing.assert_array_equal(np.asarray(result), expected)


def test_what_the_widget_cannot_filter_is_an_error() -> None:
    with pytest.raises(ValueError, match="filter: the layer has 4 axes; at most 3 can be filtered"):
        filtered(Layer(np.zeros((2, 2, 5, 5))))
    with pytest.raises(ValueError, match="filter: size is -1.0; it must not be negative"):
        filtered(Layer(np.zeros((5, 5))), size=-1.0)
