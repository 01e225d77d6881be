"""Lazy images: operators, types, indexing, sessions, files."""

from __future__ import annotations

import operator
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import horus_image as hi
from horus_image import ndimage
from horus_image._show import picture

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
    with pytest.raises(TypeError):
        np.tanh(image)


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
    for key in (np.s_[1], np.s_[1:3, 2:, ::-1], np.s_[::-1], np.s_[2, 1:3], np.s_[0, 0], np.s_[::2], np.s_[::-2, 1::3, ::-4]):
        np.testing.assert_array_equal(image[key], array[key])
    np.testing.assert_array_equal(hi.asarray(np.arange(9))[2:5] if False else hi.asarray(np.arange(9.0))[2:5], [2, 3, 4])
    for key, error in ((np.s_[9], IndexError), (np.s_[:, 0], NotImplementedError), (np.s_[2:2], ValueError), ("a", IndexError)):
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


def test_images_are_shown_without_a_display(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    volume = hi.asarray(np.stack([np.full((6, 7), 9.0), np.arange(42.0).reshape(6, 7), np.zeros((6, 7))])).with_pixel_size((2, 0.5, 1))
    png, told = picture(volume)
    assert told == "level 1, 0 to 41"
    assert decoded(png, tmp_path).ravel().tolist() == np.rint(np.arange(42) * 255 / 41).tolist()
    assert "Image 3x6x7 float64, pixels of 2 x 0.5 x 1 µm, level 1, 0 to 41" in volume._repr_html_()
    large = hi.asarray(np.arange(2000 * 1000, dtype=np.uint32).reshape(2000, 1000) // 8000)
    png, told = picture(large)
    assert told.startswith("512x256 pixels of it, ")
    assert decoded(png, tmp_path).shape == (512, 256)
    colours = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    np.testing.assert_array_equal(decoded(picture(hi.asarray(colours, channels=True))[0], tmp_path), colours)
    mask = hi.asarray(np.eye(3) > 0)
    np.testing.assert_array_equal(decoded(picture(mask)[0], tmp_path), np.eye(3) * 255)
    odd = np.array([[np.nan, np.inf], [1.0, 3.0]])
    assert decoded(picture(hi.asarray(odd))[0], tmp_path).tolist() == [[0, 255], [0, 255]]
    bands = hi.asarray(np.zeros((4, 5, 6), np.uint8), channels=True)
    assert picture(bands)[1] == "channel 0"
    with hi.session(explain=True):
        assert "<details><summary>plans</summary>" in (hi.asarray(np.eye(3)) * 2)._repr_html_()
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: not opened.append(url))
    hi.show(np.eye(3))
    [url] = opened
    assert decoded(Path(url.removeprefix("file://")).read_bytes(), tmp_path).shape == (3, 3)
    monkeypatch.setattr("webbrowser.open", lambda _: False)
    with pytest.raises(RuntimeError, match="no viewer was found; the picture is "):
        hi.show(np.eye(3))


def test_notebooks_and_pickles() -> None:
    image = hi.asarray(ramp((4, 5), np.float64) / 100)
    shown = image._repr_html_()
    assert "Image 4x5 float64, 0.01 to 0.2" in shown and "data:image/png;base64," in shown and "<details>" not in shown
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(image)), image.compute())
    assert repr(image) == "<horus_image.Image 4x5 float64>"


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
