"""Tensors and corners of `horus_image.feature` against scikit-image; `test_ski_filters.py` tests `canny`, `test_measure.py` peaks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import skimage.feature

import horus_image as hi
from horus_image import feature

Array = np.ndarray[Any, Any]
TYPES = [np.uint8, np.int16, np.float32, np.float64]
BOUNDS = {np.dtype(np.float32): 5e-6, np.dtype(np.float64): 1e-13}


def picture(dtype: Any = np.float64, shape: tuple[int, ...] = (31, 42)) -> Array:
    """Blurred blocks and noise from 0 to 1, or over the range of an integer type."""
    rng = np.random.default_rng(7)
    blocks = scipy.ndimage.zoom(rng.random([-(-side // 6) for side in shape]), 6, order=0)[tuple(slice(side) for side in shape)]
    pixels = 0.8 * scipy.ndimage.gaussian_filter(blocks, 0.7) + 0.2 * rng.random(shape)
    kind = np.dtype(dtype)
    return pixels.astype(kind) if kind.kind == "f" else (pixels * np.iinfo(kind).max).astype(kind)


def compare(name: str, image: Any, *args: Any, scale: float = 1.0, **given: Any) -> None:
    """Of an array and an image, within a bound of the largest number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, want = (getattr(of, name)(image, *args, **given) for of in (feature, skimage.feature))
        lazy = getattr(feature, name)(hi.asarray(image), *args, **given)
    assert type(found) is type(want)
    if isinstance(want, np.ndarray):
        found, want, lazy = [found], [want], [lazy]
    assert len(found) == len(want) == len(lazy)
    for one, other, later in zip(found, want, lazy, strict=True):
        assert isinstance(later, hi.Image)
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=0, atol=scale * BOUNDS[other.dtype] * np.nanmax(np.abs(other)))
        np.testing.assert_array_equal(later.compute(), one)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", ["constant", "nearest", "reflect", "mirror", "wrap"])
def test_tensors(dtype: Any, mode: str) -> None:
    image, levels = picture(dtype), picture(dtype, (9, 13, 12))
    for order in ("rc", "xy"):
        compare("structure_tensor", image, 1.3, mode, 0.4, order)
        for derivatives in (False, True):
            # Differences of neighbours, which are nearly equal.
            compare("hessian_matrix", image, (1, 1.7), mode, 0.4, order, use_gaussian_derivatives=derivatives, scale=100.0)
    compare("structure_tensor", levels, (1, 2, 0.8), mode)
    for derivatives in (False, True):
        compare("hessian_matrix", levels, 1.5, mode, use_gaussian_derivatives=derivatives, scale=100.0)


@pytest.mark.parametrize("dtype", TYPES)
def test_corners(dtype: Any) -> None:
    image = picture(dtype)
    for given in ({}, {"sigma": 2.5}, {"sigma": (0.5, 2)}):
        for name in ("corner_harris", "corner_shi_tomasi", "corner_foerstner"):
            # Of float32, a determinant is a difference of products.
            compare(name, image, **given, scale=20.0)
        compare("corner_harris", image, "eps", eps=1e-3, **given, scale=20.0)
        # Quotients of differences that may be small.
        compare("shape_index", image, **given, scale=1e3)
    for mode in ("constant", "reflect"):
        compare("corner_kitchen_rosenfeld", image, mode, 0.3, scale=10.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_eigenvalues(dtype: Any) -> None:
    for shape, scale in (((31, 42), 1.0), ((9, 13, 12), 1e4)):
        image = picture(dtype, shape)
        for tensor, name in (
            (skimage.feature.structure_tensor(image, 1.2), "structure_tensor_eigenvalues"),
            (skimage.feature.hessian_matrix(image, use_gaussian_derivatives=False), "hessian_matrix_eigvals"),
        ):
            found, want = (getattr(of, name)(tensor) for of in (feature, skimage.feature))
            assert found.dtype == want.dtype and found.shape == want.shape
            bound = BOUNDS[want.dtype] * (scale if dtype is np.float64 else 10.0)
            np.testing.assert_allclose(found, want, rtol=0, atol=bound * np.abs(want).max())
            images = [hi.asarray(one) for one in tensor]
            if len(shape) == 2:
                lazy = getattr(feature, name)(images)
                assert isinstance(lazy, hi.Image)
                np.testing.assert_array_equal(lazy.compute(), found)
            else:
                with pytest.raises(NotImplementedError, match="four axes"):
                    getattr(feature, name)(images)
    with pytest.raises(ValueError, match="elements"):
        feature.hessian_matrix_eigvals([image, image])


def test_flat_pictures_have_no_corners() -> None:
    flat = np.full((8, 9), 0.25)
    compare("corner_kitchen_rosenfeld", flat, "nearest")
    w, q = feature.corner_foerstner(np.zeros((8, 9)))
    assert not np.any(w) and not np.any(q)
    assert np.isnan(feature.shape_index(np.zeros((8, 9)), mode="nearest")).all()


def test_wrong_arguments() -> None:
    image = picture()
    with pytest.warns(FutureWarning, match="use_gaussian_derivatives"):
        feature.hessian_matrix(image)
    for of in (feature, skimage.feature):
        for order, pixels in (("yx", image), ("xy", picture(shape=(5, 6, 7)))):
            with pytest.raises(ValueError, match="order"):
                of.structure_tensor(pixels, order=order)
            with pytest.raises(ValueError, match="order"):
                of.hessian_matrix(pixels, order=order, use_gaussian_derivatives=False)
    with pytest.raises(ValueError, match="sigma"):
        feature.structure_tensor(image, (1, 2, 3))
    with pytest.raises(ValueError, match="axes"):
        feature.corner_harris(picture(shape=(5, 6, 7)))
    with pytest.raises(NotImplementedError, match="channel"):
        feature.corner_harris(hi.asarray(np.zeros((4, 5, 3)), channels=True))
    with pytest.raises(ValueError, match="at least two"):
        feature.shape_index(np.zeros((1, 5)))


@pytest.mark.parametrize("dtype", TYPES)
def test_templates(dtype: Any) -> None:
    image = picture(dtype)
    # There, running sums of the whole image are of float32.
    bound = 2e-3 if dtype is np.float32 else 1e-8
    for template in (image[8:15, 20:31], image[8:14, 20:30].astype(np.float64), image[3:4, 5:12]):
        for given in ({}, {"pad_input": True}, {"pad_input": True, "mode": "reflect"}, {"pad_input": True, "mode": "constant", "constant_values": 0.4}):
            found, want = (of.match_template(image, template, **given) for of in (feature, skimage.feature))
            assert found.dtype == want.dtype and found.shape == want.shape
            np.testing.assert_allclose(found, want, rtol=0, atol=bound)
            np.testing.assert_array_equal(feature.match_template(hi.asarray(image), template, **given).compute(), found)
    found = feature.match_template(image, image[8:15, 20:31])
    assert np.unravel_index(found.argmax(), found.shape) == (8, 20) and found.max() == pytest.approx(1.0, abs=1e-5)
    assert not np.any(feature.match_template(np.full((9, 9), 7, dtype), image[:3, :3]))
    for of in (feature, skimage.feature):
        with pytest.raises(ValueError, match="larger"):
            of.match_template(image[:5], image[:9])


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_features_of_pixels(dtype: Any) -> None:
    cases: list[dict[str, Any]] = [{"sigma_max": 4}, {"edges": False, "num_sigma": 2}, {"texture": False, "sigma_min": 1, "sigma_max": 3}, {"intensity": False, "sigma_max": 1}]
    for given in cases:
        plane, levels = picture(dtype), picture(dtype, (9, 13, 12))
        for image, more in ((plane, {}), (np.stack([plane, plane[::-1]], axis=1), {"channel_axis": 1}), (levels, {})):
            found, want = (of.multiscale_basic_features(image, **given, **more) for of in (feature, skimage.feature))
            assert found.dtype == want.dtype == np.float32 and found.shape == want.shape
            np.testing.assert_allclose(found, want, rtol=0, atol=2e-6)
        lazy = feature.multiscale_basic_features(hi.asarray(plane), **given)
        assert isinstance(lazy, hi.Image) and lazy.channels
        np.testing.assert_array_equal(lazy.compute(), feature.multiscale_basic_features(plane, **given))
    with pytest.raises(NotImplementedError, match="four axes"):
        feature.multiscale_basic_features(hi.asarray(levels))
    for of in (feature, skimage.feature):
        with pytest.raises(ValueError, match="At least one"):
            of.multiscale_basic_features(plane, False, False, False)


def test_peaks_that_are_apart() -> None:
    for image in (picture(), np.round(picture(), 1), picture(shape=(9, 13, 12)), np.zeros((8, 9))):
        for given in ({}, {"min_distance": 3}, {"min_distance": 3, "p_norm": 2}, {"num_peaks": 5, "indices": False}, {"threshold_rel": 0.5, "exclude_border": False}):
            found, want = (of.corner_peaks(image, **given) for of in (feature, skimage.feature))
            np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(feature.corner_peaks(hi.asarray(picture())), feature.corner_peaks(picture()))


def test_edges_and_peaks_are_those_of_other_modules() -> None:
    from horus_image import filters, measure

    assert feature.canny is filters.canny and feature.peak_local_max is measure.peak_local_max
