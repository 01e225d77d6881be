"""Lazy images: operators, types, indexing, sessions, files."""

from __future__ import annotations

import operator
import os
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import horus_image as hi
from horus_image import filters, ndimage
from horus_image._show import png, shown

TYPES = [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.float32, np.float64]


def ramp(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape)) % 97 + 1).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [*TYPES, np.bool_])
@pytest.mark.parametrize("shape", [(5,), (4, 6), (2, 3, 4)])
def test_arrays_come_back(shape: tuple[int, ...], dtype: Any) -> None:
    array = ramp(shape, np.uint8) % 2 == 0 if dtype is np.bool_ else ramp(shape, dtype)
    image = hi.asarray(array)
    assert (image.shape, image.ndim, image.dtype, image.size, len(image)) == (shape, len(shape), dtype, array.size, shape[0])
    np.testing.assert_array_equal(image, array)
    assert np.asarray(image, dtype=np.float32).dtype == np.float32


def test_channels() -> None:
    array = ramp((4, 5, 3), np.uint8)
    image = hi.asarray(array, channels=True)
    assert image.shape == (4, 5, 3) and image.channels
    np.testing.assert_array_equal(image.channel(1), array[..., 1])
    np.testing.assert_array_equal(image[1:3, ::-1], array[1:3, ::-1])
    np.testing.assert_array_equal(image[..., 2], array[..., 2])
    each = np.stack([ndimage.median_filter(array[..., i], 3) for i in range(3)], axis=-1)
    np.testing.assert_array_equal(ndimage.median_filter(image, 3), each)
    weights = np.array([0.299, 0.587, 0.114])
    np.testing.assert_allclose(image.luminance().compute(), array.astype(float) @ weights / 255, rtol=1e-6)
    floats = hi.asarray(array.astype(np.float32), channels=True)
    np.testing.assert_allclose(floats.luminance().compute(), array.astype(float) @ weights, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
@pytest.mark.parametrize(
    "op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.ge, operator.eq, operator.ne]
)
def test_operators_have_the_types_and_values_of_numpys(op: Any, dtype: Any) -> None:
    a, b = ramp((4, 6), dtype), ramp((4, 6), dtype)[::-1].copy()
    image = hi.asarray(a)
    for other in (b, 3, 2.5):
        for ours, theirs in ((op(image, other), op(a, other)), (op(other, image), op(other, a))):
            assert isinstance(ours, hi.Image) and ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_integers_saturate_and_masks_combine() -> None:
    image = hi.asarray(np.array([[10, 250]], np.uint8))
    np.testing.assert_array_equal(image + 10, [[20, 255]])
    mask = (image > 20) | ~(image > 5)
    np.testing.assert_array_equal(mask ^ (image == 10), [[True, True]])
    np.testing.assert_array_equal(mask & np.array([[True, False]]), [[False, False]])
    np.testing.assert_array_equal(hi.where(mask, image, 0), [[0, 250]])
    np.testing.assert_array_equal(hi.minimum(image, 100), [[10, 100]])
    np.testing.assert_array_equal(hi.maximum(100, image), [[100, 250]])
    assert (image.min(), image.max(), image.sum(), image.mean(), mask.sum()) == (10, 250, 260, 130, 1)
    with pytest.raises(TypeError, match="masks combine"):
        mask + 1


def test_functions_of_numpy_are_recorded() -> None:
    array = ramp((3, 4), np.float32)
    image = hi.asarray(array)
    for ours, theirs in ((np.sqrt(image), np.sqrt(array)), (np.hypot(image, array), np.hypot(array, array)), (array * image, array * array)):
        assert isinstance(ours, hi.Image)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    np.testing.assert_allclose(abs(-image), array)
    with pytest.raises(TypeError, match="not among"):
        np.spacing(image)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrix_products(dtype: Any) -> None:
    rng = np.random.default_rng(4)
    # Whole numbers: sums are exact in any order.
    a, b = rng.integers(-50, 50, (37, 300)).astype(dtype), rng.integers(-50, 50, (300, 41)).astype(dtype)
    for product in (hi.asarray(a) @ b, a @ hi.asarray(b), np.matmul(hi.asarray(a), hi.asarray(b))):
        np.testing.assert_array_equal(product.compute(), a @ b)
    with pytest.raises(ValueError, match="matmul: 37x300 times 37x300"):
        (hi.asarray(a) @ a).compute()
    with pytest.raises(ValueError, match="matmul: matrices have two axes"):
        hi.asarray(a) @ b[0]
    with pytest.raises(TypeError, match="matmul: both images are of float32, or of float64; use astype"):
        hi.asarray(a.astype(np.int32)) @ b.astype(np.int32)


def test_functions_of_numpy_ask_and_write() -> None:
    array = np.array([[1.5, -1.5, np.nan, np.inf, -np.inf, 0.0]], np.float32)
    image = hi.asarray(array)
    for function in (np.isnan, np.isinf, np.isfinite, np.trunc, np.fabs, np.positive):
        np.testing.assert_array_equal(function(image), function(array))
    whole = hi.asarray(ramp((3, 4), np.uint8))
    for function in (np.isnan, np.isinf, np.isfinite, np.trunc):
        np.testing.assert_array_equal(function(whole), function(ramp((3, 4), np.uint8)))
    target = np.ones((3, 4))
    target += whole
    np.testing.assert_array_equal(target, 1.0 + ramp((3, 4), np.uint8))
    np.testing.assert_array_equal(np.clip(whole, 3, 7), np.clip(ramp((3, 4), np.uint8), 3, 7))
    with pytest.raises(TypeError):
        np.add(whole, 1, where=np.ones((3, 4), bool))


def test_conversions_round_and_saturate() -> None:
    image = hi.asarray([[-3.0, 1.5, 2.5, 300.0]])
    np.testing.assert_array_equal(image.astype(np.uint8), [[0, 2, 2, 255]])
    np.testing.assert_array_equal(image.astype(bool), [[True] * 4])
    with pytest.raises(TypeError, match="complex"):
        image.astype(complex)


@pytest.mark.parametrize(
    "key",
    [np.s_[1:4], np.s_[2], np.s_[:, 3], np.s_[::-1, 1:5], np.s_[..., -1], np.s_[-2:, ::-1], np.s_[1:2, 2:3], np.s_[()]],
)
def test_crops(key: Any) -> None:
    array = ramp((5, 7), np.float32)
    cropped = hi.asarray(array)[key]
    assert cropped.shape == array[key].shape
    np.testing.assert_array_equal(cropped, array[key])


def test_crops_of_volumes_and_lines() -> None:
    array = ramp((4, 5, 6), np.int32)
    image = hi.asarray(array)
    for key in (np.s_[1], np.s_[1:3, 2:, ::-1], np.s_[::-1], np.s_[2, 1:3], np.s_[0, 0], np.s_[:, 0], np.s_[..., 1], np.s_[:, 2, 1], np.s_[::2], np.s_[::-2, 1::3, ::-4]):
        np.testing.assert_array_equal(image[key], array[key])
    np.testing.assert_array_equal(hi.asarray(np.arange(9))[2:5] if False else hi.asarray(np.arange(9.0))[2:5], [2, 3, 4])
    for key, error in ((np.s_[9], IndexError), (np.s_[2:2], ValueError), ("a", IndexError)):
        with pytest.raises(error):
            image[key]


def test_sessions() -> None:
    array = ramp((30, 40), np.float32)
    results = []
    for threads in (1, 2):
        with hi.session(device="cpu", threads=threads, memory="1G", explain=True) as session:
            image = hi.asarray(array)
            assert image.session is session
            results.append((ndimage.gaussian_filter(image, 2.0) - image).compute())
            assert "launch" in session.explain()
            assert session.explain() == ""
            assert "CPU" in session.device
    np.testing.assert_array_equal(*results)
    assert hi.asarray(array).session is not session
    with pytest.raises(ValueError, match="different sessions"):
        image + hi.asarray(array)
    with pytest.raises(ValueError, match="explain=True"):
        hi.session(device="cpu").explain()


def test_files(tmp_path: Path) -> None:
    array = ramp((12, 13), np.uint8)
    for name in ("a.png", "a.npy", "a.tif", "a.pgm"):
        hi.save(tmp_path / name, array)
        again = hi.open(tmp_path / name)
        assert again.dtype == np.uint8 and not again.channels
        np.testing.assert_array_equal(again, array)
    hi.asarray(ramp((4, 5, 3), np.uint8), channels=True).save(tmp_path / "c.png")
    assert hi.open(tmp_path / "c.png").shape == (4, 5, 3)
    np.save(tmp_path / "v.npy", ramp((2, 3, 4), np.float32))
    assert hi.open(tmp_path / "v.npy", volume=True).shape == (2, 3, 4)
    with pytest.raises(OSError, match="missing"):
        hi.open(tmp_path / "missing.png")
    with pytest.raises(OSError, match="cannot write"):
        hi.save(tmp_path / "no" / "folder.png", array)
    with pytest.raises(ValueError, match="compression"):
        hi.save(tmp_path / "a.tif", array, compression="lzma")
    for compression in ("none", "deflate", "lzw", "zstd"):
        hi.save(tmp_path / "tiles.tif", array, compression=compression, tile=(16, 32))
        np.testing.assert_array_equal(hi.open(tmp_path / "tiles.tif"), array)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint32, np.float64, np.bool_])
def test_stores(tmp_path: Path, dtype: Any) -> None:
    path = tmp_path / "a.zarr"
    for array in (ramp((40, 50), dtype), ramp((3, 40, 50), dtype)):
        hi.save(path, array, tile=(16, 16))  # replaces the one before
        np.testing.assert_array_equal(hi.open(path).astype(dtype), array)
    hi.asarray(ramp((4, 5, 3), np.uint8), channels=True).save(path, compression="deflate")
    assert hi.open(path).shape == (4, 5, 3)
    with pytest.raises(OSError, match="not by Lzw"):
        hi.save(path, array, compression="lzw")
    with pytest.raises(OSError, match="size 1 requested"):
        hi.open(path, size=1)
    (path / "zarr.json").write_text("{")
    with pytest.raises(OSError, match="zarr"):
        hi.open(path)
    with pytest.raises(OSError, match="tmp|pytest"):
        hi.open(tmp_path)


def decoded(png: bytes, tmp_path: Path) -> np.ndarray[Any, Any]:
    (tmp_path / "shown.png").write_bytes(png)
    return hi.open(tmp_path / "shown.png").compute()


def seen(image: hi.Image, tmp_path: Path) -> tuple[np.ndarray[Any, Any], str]:
    """The pixels of the picture that is shown, and what is told of it."""
    of = shown(image)
    return decoded(png(of, image.session), tmp_path), of.told


def test_images_are_shown_without_a_display(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = hi.asarray(np.arange(2000 * 1000, dtype=np.uint32).reshape(2000, 1000) // 8000)
    pixels, told = seen(large, tmp_path)
    assert told.startswith("512x256 pixels of it, ")
    assert pixels.shape == (512, 256)
    colours = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    np.testing.assert_array_equal(seen(hi.asarray(colours, channels=True), tmp_path)[0], colours)
    mask = hi.asarray(np.eye(3) > 0)
    np.testing.assert_array_equal(seen(mask, tmp_path)[0], np.eye(3) * 255)
    odd = np.array([[np.nan, np.inf], [1.0, 3.0]])
    assert seen(hi.asarray(odd), tmp_path)[0].tolist() == [[0, 255], [0, 255]]
    # Alpha keeps its scale while colours are stretched.
    clear = np.zeros((2, 2, 4), np.float32)
    clear[0, 0] = (0.5, 0.25, 0.0, 0.2)
    assert seen(hi.asarray(clear, channels=True), tmp_path)[0][0, 0].tolist() == [255, 128, 0, 51]
    bands = hi.asarray(np.zeros((4, 5, 6), np.uint8), channels=True)
    assert seen(bands, tmp_path)[1] == "channel 0"
    with hi.session(explain=True):
        assert "<details><summary>plans</summary>" in (hi.asarray(np.eye(3)) * 2)._repr_html_()
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: not opened.append(url))
    hi.show(np.eye(3))
    [url] = opened
    page = Path(url.removeprefix("file://")).read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") and "Image 3x3 float64, 0 to 1" in page and "http" not in page.replace("http://www.w3.org", "")
    monkeypatch.setattr("webbrowser.open", lambda _: False)
    with pytest.raises(RuntimeError, match="no browser was found; the page is "):
        hi.show(np.eye(3))


def test_volumes_are_shown_with_a_slider(tmp_path: Path) -> None:
    levels = np.stack([np.full((6, 7), 9.0), np.arange(42.0).reshape(6, 7), np.zeros((6, 7))])
    volume = hi.asarray(levels).with_pixel_size((2, 0.5, 1))
    pixels, told = seen(volume, tmp_path)
    assert told == "0 to 41"
    np.testing.assert_array_equal(pixels, np.rint(levels.reshape(18, 7) * 255 / 41))
    page = volume._repr_html_()
    assert "Image 3 levels of 6x7 pixels, float64, pixels of 2 x 0.5 x 1 µm, 0 to 41" in page
    assert '<input type="range"' in page and 'max="2" value="1"' in page and "[0, 1, 2][this.value]" in page and "margin-top: -6px" in page
    # What is encoded is bounded, and the levels that are shown have their numbers.
    deep = hi.asarray(np.zeros((200, 300, 2), np.uint8))
    of = shown(deep)
    assert of.pixels.shape == (64, 181, 1, 1) and of.told == "64 of 200 levels, 181x1 pixels of it"
    assert (of.levels[0], of.levels[-1], len(of.levels)) == (0, 199, 64) and of.levels == sorted(of.levels)
    assert "<input" not in hi.asarray(np.zeros((1, 4, 4)))._repr_html_()


def test_histograms_count_the_pixels_shown() -> None:
    image = np.zeros((8, 8), np.uint8)
    image[:2] = 255
    [path] = re.findall(r'<path d="M2 96([^"]*)V96"', hi.asarray(image)._repr_html_())
    heights = [96 - float(y) for y in re.findall(r"V([0-9.]+)h3", path)]
    # 48 pixels of 64 are black and 16 white.
    assert len(heights) == 64 and heights[0] == 90.0 and heights[-1] == 30.0 and not any(heights[1:-1])
    colours = hi.asarray(np.stack([image, 255 - image, image], axis=-1), channels=True)._repr_html_()
    assert [colours.count(colour) for colour in ("#c33", "#393", "#36c")] == [1, 1, 1]


def test_notebooks_and_pickles() -> None:
    image = hi.asarray(ramp((4, 5), np.float64) / 100)
    shown = image._repr_html_()
    assert "Image 4x5 float64, 0.01 to 0.2" in shown and "data:image/png;base64," in shown and "<details>" not in shown
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(image)), image.compute())
    assert repr(image) == "<horus_image.Image 4x5 float64>"
    assert repr(image[0]) == "<horus_image.Image 5 float64>"
    array = np.zeros((64, 60, 3), np.float32)
    assert repr(hi.asarray(array)) == "<horus_image.Image 64 levels of 60x3 pixels, float32>"
    assert repr(hi.asarray(array, channels=True)) == "<horus_image.Image 64x60 pixels of 3 channels, float32>"


def test_the_last_axis_of_an_array_is_saved_as_channels(tmp_path: Path) -> None:
    array = ramp((4, 5, 3), np.uint8)
    hi.save(tmp_path / "colours.png", array, channels=True)
    np.testing.assert_array_equal(hi.open(tmp_path / "colours.png").compute(), array)
    with pytest.raises(OSError, match="cannot hold 4 levels of 5x3 pixels of 1 channels"):
        hi.save(tmp_path / "volume.png", array)


def test_the_default_session_is_opened_once() -> None:
    assert hi.asarray([1.0]).session is hi.asarray([2.0]).session


def test_the_compiler_of_cuda_is_found_where_pip_puts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from horus_image import _nvrtc

    monkeypatch.setenv("HORUS_NVRTC", "")  # which counts as unset
    for folder, library in (("cuda_nvrtc", "libnvrtc.so.12"), ("cu13", "libnvrtc.so.13"), ("cu13", "libnvrtc.alt.so.13")):
        (tmp_path / "nvidia" / folder / "lib").mkdir(parents=True, exist_ok=True)
        (tmp_path / "nvidia" / folder / "lib" / library).touch()
    monkeypatch.syspath_prepend(tmp_path)
    _nvrtc.announce()
    assert os.environ["HORUS_NVRTC"] == str(tmp_path / "nvidia" / "cu13" / "lib")
    monkeypatch.setenv("HORUS_NVRTC", "/mine")
    _nvrtc.announce()
    assert os.environ["HORUS_NVRTC"] == "/mine"


PART = st.one_of(
    st.integers(-6, 6),
    st.builds(slice, *[st.one_of(st.none(), st.integers(-9, 9))] * 2, st.sampled_from([None, 1, -1, 2, -2, 3, -4, 100])),
)


@settings(max_examples=200, deadline=None)
@given(shape=st.lists(st.integers(1, 6), min_size=1, max_size=3), key=st.lists(PART, min_size=1, max_size=4))
def test_parts_are_those_of_arrays(shape: list[int], key: list[Any]) -> None:
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    image = hi.asarray(array)
    try:
        expected = array[tuple(key)]
    except IndexError:
        with pytest.raises(IndexError):
            image[tuple(key)]
        return
    try:
        found = image[tuple(key)]
    except NotImplementedError:
        assert len(shape) == 3 and any(isinstance(part, int) for part in key[1:])
    except ValueError:
        assert expected.size == 0
    else:
        np.testing.assert_array_equal(found.compute().reshape(expected.shape), expected)


REDUCED: list[tuple[tuple[int, ...], bool, Any]] = [
    ((7, 9), False, 0),
    ((7, 9), False, 1),
    ((7, 9), False, (0, 1)),
    ((5, 7, 9), False, 0),
    ((5, 7, 9), False, (0, 1)),
    ((5, 7, 9), False, (0, -1)),
    ((7, 9, 3), True, -1),
    ((7, 9, 3), True, 0),
    ((7, 9, 3), True, (0, 1)),
    ((7, 9, 3), True, (0, 1, 2)),
    ((9,), False, 0),
]


@pytest.mark.parametrize(("shape", "channels", "axis"), REDUCED)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, np.bool_])
def test_reductions_along_axes_are_numpys(shape: tuple[int, ...], channels: bool, axis: Any, dtype: Any) -> None:
    array = np.random.default_rng(1).integers(0, 2 if dtype is np.bool_ else 200, shape).astype(dtype)
    image = hi.asarray(array, channels=channels)
    for keepdims in (False, True):
        for reduce in (np.sum, np.mean, np.min, np.max, np.var, np.std):
            if dtype is np.bool_ and reduce in (np.var, np.std):
                continue
            wanted = np.asarray(reduce(array.astype(np.float64), axis=axis, keepdims=keepdims))
            found = np.asarray(reduce(image, axis=axis, keepdims=keepdims))
            assert found.shape == wanted.shape, (reduce, keepdims)
            np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-4)


def test_reductions_by_numpys_names_and_types() -> None:
    array = ramp((6, 5), np.uint8)
    image = hi.asarray(array)
    assert (np.mean(image), np.sum(image), np.max(image), np.min(image)) == (array.mean(), array.sum(), array.max(), array.min())
    assert np.std(image, ddof=1) == pytest.approx(array.std(ddof=1)) and image.var(ddof=30) == np.inf
    assert image.mean(axis=0).dtype == np.float64 and image.astype(np.float32).mean(axis=0).dtype == np.float32
    assert np.sum(image, axis=0, dtype=np.float32).dtype == np.float32 and type(image.sum(dtype=np.int64)) is np.int64
    np.testing.assert_array_equal(image.cumsum(1), np.cumsum(array, 1))
    np.testing.assert_array_equal(np.cumsum(image, axis=0), np.cumsum(array, 0))
    with pytest.raises(np.exceptions.AxisError):
        image.sum(axis=2)
    with pytest.raises(ValueError, match="an axis occurs twice"):
        image.sum(axis=(0, -2))
    with pytest.raises(TypeError, match="out must be None"):
        image.sum(axis=0, out=np.zeros(5))
    for reduce in (np.sum, np.mean, np.min, np.max, np.var, np.std):
        assert reduce(image, keepdims=True).shape == (1, 1)
        assert np.asarray(reduce(image, axis=0)).dtype == np.asarray(reduce(array, axis=0)).dtype or reduce is np.sum
    assert image.mean(dtype=np.int32) == image.mean(axis=(0, 1), dtype=np.int32) == array.mean(dtype=np.int32)
    colours = hi.asarray(ramp((4, 3, 3), np.float64), channels=True)
    np.testing.assert_allclose(colours - colours.mean(axis=(0, 1)), colours.compute() - colours.compute().mean(axis=(0, 1)))
    truths = hi.asarray(ramp((3, 4), np.uint8) > 5)
    assert (truths.min(axis=0).dtype, truths.max(axis=0).dtype) == (np.bool_, np.bool_)
    with pytest.raises(ValueError, match="out must be None"):
        image.cumsum(0, out=np.zeros((6, 5)))
    volume = ramp((3, 4, 5), np.uint8)
    np.testing.assert_array_equal(hi.asarray(volume).sum(axis=1), volume.sum(axis=1))


def test_numbers_for_each_channel_and_numbers_of_numpy() -> None:
    array = ramp((4, 5, 3), np.uint8)
    image = hi.asarray(array, channels=True)
    for factors in ([1, 2, 3], (0.5, 1.0, 2.0), np.array([1.0, 0.5, 0.25]), np.array([2], np.uint8)):
        found = image * factors
        wanted = array.astype(np.float64) * np.asarray(factors, np.float64)
        np.testing.assert_array_equal(found, np.minimum(wanted, 255) if found.dtype.kind == "u" else wanted)
    assert (image * [1, 2, 3]).dtype == np.uint8 and (image * [1.0, 2.0, 3.0]).dtype == np.float64
    assert (image.astype(np.float32) * [1.0, 2.0, 3.0]).dtype == np.float32
    assert (image + np.int64(1)).dtype == np.uint8
    np.testing.assert_array_equal(image + np.int64(1), array + 1)
    with pytest.raises(OverflowError, match="out of the range of uint8"):
        image * [1, 2, 300]


def test_where_takes_arrays() -> None:
    array = ramp((4, 5), np.uint8)
    image, mask = hi.asarray(array), array % 2 == 0
    np.testing.assert_array_equal(hi.where(mask, image, 0), np.where(mask, array, 0))
    np.testing.assert_array_equal(hi.where(image > 9, 1, array), np.where(array > 9, 1, array))
    np.testing.assert_array_equal(hi.where(image > 9, 1.5, 0), np.where(array > 9, 1.5, 0))
    for wrong in (lambda: hi.where(mask, array, 0), lambda: hi.where(array, image, 0)):
        with pytest.raises(TypeError, match="where: "):
            wrong()


def test_colours_tables_and_stacks() -> None:
    from skimage import color

    array = np.random.default_rng(2).integers(0, 256, (6, 7, 3)).astype(np.uint8)
    image = hi.asarray(array, channels=True)
    np.testing.assert_allclose(image.convert_colour("rgb", "hsv"), color.rgb2hsv(array), atol=2e-6)
    np.testing.assert_allclose(image.convert_colour("rgb", "lab"), color.rgb2lab(array), atol=2e-3)
    back = image.convert_colour("rgb", "lab").convert_colour("lab", "rgb")
    np.testing.assert_allclose(back, array / 255.0, atol=1e-4)
    with pytest.raises(ValueError, match='no colour space is called "luv"'):
        image.convert_colour("rgb", "luv")
    table = np.arange(256)[::-1].astype(np.uint8)
    np.testing.assert_array_equal(image.lookup(table), table[array])
    with pytest.raises(ValueError, match="it has one"):
        image.lookup(table.reshape(16, 16))
    parts = [image.channel(k) for k in range(3)]
    np.testing.assert_array_equal(hi.stack(parts, axis=-1), array)
    np.testing.assert_array_equal(hi.stack(parts), np.moveaxis(array, -1, 0))
    for wrong in (lambda: hi.stack(parts, axis=1), lambda: hi.stack([image[0], image[1]])):
        with pytest.raises(ValueError, match="levels"):
            wrong()


@pytest.mark.parametrize("dtype", ["u1", "i4", "f4", "f8", "?"])
@pytest.mark.parametrize("shape", [(11,), (9, 11), (3, 9, 11)])
def test_tiles_are_reduced_as_numpy_reduces_each(shape: tuple[int, ...], dtype: str) -> None:
    array = np.random.default_rng(3).normal(50, 30, shape).astype(dtype)
    if dtype[0] == "f":
        array.flat[[0, 5]] = np.nan
    ignoring = {"sum": np.sum, "mean": np.mean, "var": np.var, "std": np.std, "min": np.nanmin, "max": np.nanmax}
    for height, width in ((1, 1), (2, 3), (4, 4), (20, 5), (9, 11), (100, 100)):
        rows, columns = range(0, (1, *shape)[-2], height), range(0, shape[-1], width)
        tiles = hi.asarray(array).tiles(height, width)
        for name, of in ignoring.items():
            found = getattr(tiles, name)().compute()
            assert found.dtype == (array.dtype if name in ("min", "max") else np.float64)
            whole = array if len(shape) > 1 else array[None]
            numbers = whole if name in ("min", "max") else whole.astype("f8")
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                cut = [[of(numbers[..., y : y + height, x : x + width], axis=(-2, -1)) for x in columns] for y in rows]
            want = np.moveaxis(np.array(cut), (0, 1), (-2, -1)).reshape(found.shape)
            if name in ("min", "max") and dtype[0] == "f":
                want = np.where(np.isnan(want), np.inf if name == "min" else -np.inf, want)
            np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12, err_msg=f"{name} {height}x{width}")


def test_tiles_of_channels_and_errors_of_tiles() -> None:
    from skimage.measure import block_reduce

    colours = np.random.default_rng(4).integers(0, 255, (8, 6, 3), np.uint8)
    tiles = hi.asarray(colours, channels=True).tiles(2, np.int64(3))
    np.testing.assert_allclose(tiles.mean(), block_reduce(colours, (2, 3, 1), np.mean))
    np.testing.assert_array_equal(tiles.max(), block_reduce(colours, (2, 3, 1), np.max))
    assert repr(tiles) == "<horus_image.Tiles of 2x3 pixels of <horus_image.Image 8x6 pixels of 3 channels, uint8>>"
    for height, width in ((0, 2), (2, 0), (-1, 2)):
        with pytest.raises(ValueError, match="an image has no tiles of"):
            hi.asarray(colours[..., 0]).tiles(height, width)
    with pytest.raises(TypeError):
        hi.asarray(colours[..., 0]).tiles(2.0, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "?"])
def test_paste_is_assignment_to_a_part(dtype: str) -> None:
    rng = np.random.default_rng(5)
    plane, stamp = (rng.integers(0, 2 if dtype == "?" else 100, shape).astype(dtype) for shape in ((7, 9), (3, 4)))
    volume = np.stack([plane, plane[::-1], plane])
    colours = np.moveaxis(volume, 0, -1).copy()

    def pasted(array: Any, part: Any, top: int, left: int) -> Any:
        """By pixels; the part has the axes of the array."""
        found = array.copy()
        for y, x in np.ndindex(stamp.shape):
            if 0 <= y + top < plane.shape[0] and 0 <= x + left < plane.shape[1]:
                found[y + top, x + left] = part[y, x]
        return found

    stamps = np.stack([stamp, stamp[::-1], stamp[:, ::-1]], axis=-1)
    for top, left in ((0, 0), (2, 3), (-1, -2), (6, 8), (5, -3), (7, 0), (0, -4), (1000, 1000)):
        want = pasted(plane, stamp, top, left)
        for part in (stamp, hi.asarray(stamp)):
            found = hi.asarray(plane).paste(part, top, left)
            assert found.dtype == plane.dtype
            np.testing.assert_array_equal(found, want)
        everywhere = pasted(colours, stamp[..., None], top, left)
        np.testing.assert_array_equal(hi.asarray(colours, channels=True).paste(stamp, top, left), everywhere)
        np.testing.assert_array_equal(hi.asarray(volume).paste(stamp, top, left), np.moveaxis(everywhere, -1, 0))
        each = pasted(colours, stamps, top, left)
        np.testing.assert_array_equal(hi.asarray(colours, channels=True).paste(stamps, top, left), each)
        np.testing.assert_array_equal(hi.asarray(volume).paste(np.moveaxis(stamps, -1, 0), top, left), np.moveaxis(each, -1, 0))


def test_paste_refuses_what_does_not_fit() -> None:
    plane = hi.asarray(np.zeros((4, 5), np.uint8))
    with pytest.raises(TypeError, match="paste: pixels of float64 over those of uint8; astype converts them"):
        plane.paste(np.ones((2, 2)), 0, 0)
    for other in (np.zeros((2, 2, 2), np.uint8), hi.asarray(np.zeros((2, 2, 3), np.uint8), channels=True)):
        with pytest.raises(ValueError, match="paste"):
            plane.paste(other, 0, 0)
    with hi.session(device="cpu"):
        foreign = hi.asarray(np.zeros((2, 2), np.uint8))
    with pytest.raises(ValueError, match="session"):
        plane.paste(foreign, 0, 0)
    with pytest.raises(TypeError):
        plane.paste(np.zeros((2, 2), np.uint8), 0.5, 0)  # type: ignore[arg-type]


def test_several_images_are_evaluated_together() -> None:
    array = np.random.default_rng(6).normal(size=(40, 50)).astype(np.float32)
    colours = np.random.default_rng(7).integers(0, 255, (6, 7, 3), np.uint8)
    with hi.session(device="cpu", explain=True) as session:
        image = hi.asarray(array)
        smooth = ndimage.gaussian_filter(image, 2.0)
        mask, large = smooth > 0, hi.asarray(np.arange(90000).reshape(300, 300).astype(np.int32)) + 1
        several = [smooth, mask, smooth, image[3], hi.asarray(array.reshape(4, 10, 50)), hi.asarray(colours, channels=True), large]
        several.append(smooth.max(keepdims=True))
        found = hi.get_all(*several)
        evaluations = re.findall(r"evaluations: (\d+)", session._core.stats())
        assert evaluations == ["1"]
        # A mask is one of bytes, and large memory is Horus's own: they are arrays as those of each alone, to be written to.
        for one, image in zip(found, several, strict=True):
            want = image.compute()
            assert type(one) is np.ndarray and one.dtype == want.dtype and one.shape == want.shape
            assert one.flags.c_contiguous and one.flags.writeable
            np.testing.assert_array_equal(one, want)
            one[...] = 0
        np.testing.assert_array_equal(hi.get_all(smooth)[0], smooth.compute())
    assert hi.get_all() == ()
    with pytest.raises(TypeError, match="get_all: expected horus_image.Image, not ndarray"):
        hi.get_all(smooth, array)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="get_all: the images belong to several sessions"):
        hi.get_all(smooth, hi.asarray(array))


def test_files_are_saved_as_asked(tmp_path: Path) -> None:
    from PIL import Image as Pillow

    array = np.linspace(-3.0, 9.0, 35).reshape(5, 7).astype(np.float32)
    image = hi.asarray(array)
    image.save(tmp_path / "deep.png", depth=16, scaling="range")
    stretched = (array + 3.0) / 12.0 * 65535
    np.testing.assert_allclose(np.asarray(Pillow.open(tmp_path / "deep.png")), stretched, atol=0.51)
    image.save(tmp_path / "cut.png", clipping="allow")
    with pytest.raises(OSError, match='clipping="allow" clips'):
        image.save(tmp_path / "refused.png", clipping="refuse")
    assert not (tmp_path / "refused.png").exists()
    noise = np.random.default_rng(3).integers(0, 256, (64, 64)).astype(np.uint8)
    for quality in (30, 95):
        hi.save(tmp_path / f"{quality}.jpg", noise, quality=quality)
    assert os.path.getsize(tmp_path / "30.jpg") < os.path.getsize(tmp_path / "95.jpg") / 2
    hi.save(tmp_path / "tiled.tif", noise, tile=16)
    np.testing.assert_array_equal(hi.open(tmp_path / "tiled.tif"), noise)
    with pytest.raises(ValueError, match='scaling is "stretch"; it may be auto, none, unit, range'):
        image.save(tmp_path / "a.png", scaling="stretch")
    with pytest.raises(OSError, match="a store keeps values as they are"):
        image.save(tmp_path / "a.zarr", depth=8)


def test_messages_name_what_python_can_write(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    import tifffile

    tifffile.imwrite(tmp_path / "pages.tif", np.zeros((3, 8, 9), np.uint16), photometric="minisblack", metadata=None)
    hi.open(tmp_path / "pages.tif").compute()
    assert "page=N reads the others, volume=True all as levels" in caplog.text
    hi.asarray(np.linspace(-3, 9, 16).reshape(4, 4)).save(tmp_path / "b.png")
    assert 'scaling="range" stretches' in caplog.text
    assert "::" not in caplog.text
    with pytest.raises(OSError, match='ask for depth=8 with scaling="unit"'):
        hi.asarray(np.full((4, 4), 70000, np.int32)).save(tmp_path / "c.png")
    with pytest.raises(ValueError, match="page is -1; it is counted from 0"):
        hi.open(tmp_path / "pages.tif", page=-1)
    with pytest.raises(OSError, match=r"9x8 pixels exceed the limit of 10 \(max_pixels=\)"):
        hi.open(tmp_path / "pages.tif", page=0, max_pixels=10)
    with pytest.raises(FileNotFoundError, match="missing"):
        hi.open(tmp_path / "missing.png")
    with pytest.raises(FileNotFoundError, match="folder"):
        hi.asarray(np.zeros((2, 2), np.uint8)).save(tmp_path / "folder" / "a.png")
    with pytest.raises(ValueError, match="threshold_otsu: all pixels are NaN"):
        filters.threshold_otsu(np.full((4, 4), np.nan))
    image = hi.asarray(np.zeros((2, 2), np.uint8))
    with pytest.raises(IndexError, match=r"use hi\.where\(mask, image, 0\)"):
        image[image > 1]
    with pytest.raises(IndexError, match=r"image\.compute\(\)\[mask\]"):
        image[np.zeros((2, 2), bool)]


@pytest.mark.parametrize("count", [2, 5, 7])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32])
def test_files_that_do_not_hold_so_many_channels_say_how_many_they_have(tmp_path: Path, count: int, dtype: Any) -> None:
    image = hi.asarray(np.zeros((3, 4, count), dtype), channels=True)
    have = {"jpg": "1 or 3 channels", "bmp": "1, 3 or 4 channels", "pgm": "1 channel", "ppm": "3 channels"}
    have |= {} if count == 2 else {"png": "1, 2, 3 or 4 channels"}
    for name, channels in have.items():
        with pytest.raises(OSError, match=f"a {name} file has {channels}.*, and the image {count}; save as .*npy"):
            image.save(tmp_path / f"a.{name}")
        assert not (tmp_path / f"a.{name}").exists()
    for name in ("tif", "npy"):
        image.save(tmp_path / f"a.{name}")
