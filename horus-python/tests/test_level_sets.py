"""Contours, marks and joined labels of `horus_image.segmentation` against scikit-image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import skimage.segmentation
import skimage.segmentation.morphsnakes as morphsnakes

import horus_image as hi
from horus_image import segmentation

Array = np.ndarray[Any, Any]


def again() -> None:
    """There, each step of smoothing is the other one of two than that of the step before, of whichever call: begin with the first."""
    outer, inner = morphsnakes.inf_sup, morphsnakes.sup_inf
    morphsnakes._curvop = morphsnakes._fcycle([lambda u: inner(outer(u)), lambda u: outer(inner(u))])


def picture(shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
    """Bright blobs and noise."""
    pixels = scipy.ndimage.gaussian_filter(np.random.default_rng(6).normal(size=shape), 3.0)
    pixels = np.clip(pixels / np.abs(pixels).max() + 0.5, 0, 1) + 0.1 * np.random.default_rng(7).random(shape)
    return pixels.astype(dtype) if np.dtype(dtype).kind == "f" else (pixels * 200).astype(dtype)


def test_initial_level_sets() -> None:
    for shape in ((12, 17), (6, 7, 9), (11,)):
        for name, given in (
            ("disk_level_set", {}),
            ("disk_level_set", {"radius": 3.5, "center": [2.5] * len(shape)}),
            ("checkerboard_level_set", {}),
            ("checkerboard_level_set", {"square_size": 2}),
        ):
            found, want = (getattr(of, name)(shape, **given) for of in (segmentation, skimage.segmentation))
            assert found.dtype == want.dtype
            np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_inverse_gradients(dtype: Any) -> None:
    for shape in ((30, 41), (9, 12, 11)):
        image = picture(shape, dtype)
        for given in ({}, {"alpha": 10.0, "sigma": 1.5}):
            found, want = (of.inverse_gaussian_gradient(image, **given) for of in (segmentation, skimage.segmentation))
            assert found.dtype == want.dtype
            np.testing.assert_allclose(found, want, rtol=1e-5 if dtype is np.float32 else 1e-12)
            np.testing.assert_array_equal(segmentation.inverse_gaussian_gradient(hi.asarray(image), **given).compute(), found)


CHAN_VESE: list[dict[str, Any]] = [
    {"num_iter": 0},
    {"num_iter": 1},
    {"num_iter": 8},
    {"num_iter": 9, "init_level_set": "disk", "smoothing": 3},
    {"num_iter": 7, "smoothing": 2, "lambda1": 2, "lambda2": 0.5},
    {"num_iter": 6, "smoothing": 0},
]


@pytest.mark.parametrize("given", CHAN_VESE, ids=str)
def test_chan_vese(given: dict[str, Any]) -> None:
    for shape in ((30, 41), (9, 12, 11)):
        for dtype in (np.float64, np.float32):
            image = picture(shape, dtype)
            again()
            want = skimage.segmentation.morphological_chan_vese(image, **given)
            found = segmentation.morphological_chan_vese(image, **given)
            assert found.dtype == want.dtype == np.int8
            np.testing.assert_array_equal(found, want)
            lazy = segmentation.morphological_chan_vese(hi.asarray(image), **given)
            assert isinstance(lazy, hi.Image)
            np.testing.assert_array_equal(lazy.compute(), want)


GEODESIC: list[dict[str, Any]] = [
    {"num_iter": 6},
    {"num_iter": 9, "balloon": 1, "threshold": 0.4},
    {"num_iter": 8, "balloon": -1, "smoothing": 2},
    {"num_iter": 5, "balloon": 2, "init_level_set": "checkerboard", "smoothing": 0},
]


@pytest.mark.parametrize("given", GEODESIC, ids=str)
def test_geodesic_contours(given: dict[str, Any]) -> None:
    for shape in ((30, 41), (9, 12, 11)):
        image = skimage.segmentation.inverse_gaussian_gradient(picture(shape), sigma=1.5)
        again()
        want = skimage.segmentation.morphological_geodesic_active_contour(image, **given)
        found = segmentation.morphological_geodesic_active_contour(image, **given)
        assert found.dtype == want.dtype == np.int8
        np.testing.assert_array_equal(found, want)


def test_level_sets_that_are_given_and_watched() -> None:
    image = picture((30, 41))
    start = segmentation.disk_level_set(image.shape, radius=9)
    for name in ("morphological_chan_vese", "morphological_geodesic_active_contour"):
        seen: list[Array] = []
        expected: list[Array] = []
        again()
        want = getattr(skimage.segmentation, name)(image, 5, start, iter_callback=lambda one: expected.append(one.copy()))
        found = getattr(segmentation, name)(image, 5, hi.asarray(start), iter_callback=seen.append)
        np.testing.assert_array_equal(found, want)
        np.testing.assert_array_equal(seen, expected)
        for wrong, what in (("ball", "init_level_set"), (start[1:], "shape"), (start[0], "dimensions")):
            with pytest.raises(ValueError, match=what):
                getattr(segmentation, name)(image, 5, wrong)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
def test_marks(dtype: Any) -> None:
    grey = picture((30, 41), dtype)
    labels = scipy.ndimage.label(picture((30, 41)) > 0.6)[0]
    for image in (grey, np.stack([grey, grey[::-1], grey[:, ::-1]], axis=-1)):
        for given in ({}, {"mode": "inner", "color": (0.1, 0.2, 0.3)}, {"mode": "thick", "outline_color": (0, 0, 1)}, {"background_label": 2}):
            # Of the default mode there, 64-bit labels lose boundaries: `test_segmentation.py`.
            for kind in (np.int32, np.int64) if "mode" in given else (np.int32,):
                found, want = (of.mark_boundaries(image, labels.astype(kind), **given) for of in (segmentation, skimage.segmentation))
                assert found.dtype == want.dtype
                np.testing.assert_allclose(found, want, rtol=1e-6 if dtype is np.float32 else 1e-15)
            lazy = segmentation.mark_boundaries(hi.asarray(image, channels=image.ndim == 3), labels, **given)
            assert isinstance(lazy, hi.Image) and lazy.channels
            np.testing.assert_array_equal(lazy.compute(), found)
    for wrong in (np.zeros((30, 41, 2)), np.zeros((3, 4))):
        with pytest.raises(ValueError, match="channels|shape"):
            segmentation.mark_boundaries(wrong, labels)


def test_joined_labels() -> None:
    rng = np.random.default_rng(8)
    for kind in (np.int32, np.int64):
        first, second = (rng.choice([0, 1, 2, 7, 30], size=(20, 30)).astype(kind) for _ in range(2))
        found, want = (of.join_segmentations(first, second) for of in (segmentation, skimage.segmentation))
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found, want)
        ours, theirs = (of.join_segmentations(first, second, return_mapping=True) for of in (segmentation, skimage.segmentation))
        for one, other in zip(ours[1:], theirs[1:], strict=True):
            np.testing.assert_array_equal(one[found], other[found])
        np.testing.assert_array_equal(ours[1][found], first)
        np.testing.assert_array_equal(segmentation.join_segmentations(hi.asarray(first.astype(np.int32)), second).compute(), want)
    many = np.arange(200, dtype=np.uint8).reshape(10, 20)
    assert len(np.unique(segmentation.join_segmentations(many, many[::-1]))) == 200
    with pytest.raises(ValueError, match="shape"):
        segmentation.join_segmentations(first, second[1:])
