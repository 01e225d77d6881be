"""Regional extremes and floods of `horus_image.morphology` against scikit-image: equal pixels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import skimage.morphology

import horus_image as hi
from horus_image import morphology, segmentation

Array = np.ndarray[Any, Any]
TYPES = ["?", "u1", "i1", "u2", "i4", "f4", "f8"]
EXTREMES = ["local_maxima", "local_minima"]


def picture(dtype: str, shape: tuple[int, ...] = (23, 31), seed: int = 3, levels: int = 12) -> Array:
    """Smooth, of a few numbers, so that there are plateaus."""
    pixels = scipy.ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=shape), 1.0)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.asarray(pixels > 0)
    steps = np.round(pixels / np.abs(pixels).max() * levels)
    return (steps / 8).astype(kind) if kind.kind == "f" else (steps + (levels if kind.kind == "u" else 0)).astype(kind)


def compare(name: str, image: Array, *args: Any, **given: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, want = (getattr(of, name)(image, *args, **given) for of in (morphology, skimage.morphology))
    assert isinstance(found, np.ndarray) and found.dtype == want.dtype
    np.testing.assert_array_equal(found, want)
    lazy = getattr(morphology, name)(hi.asarray(image), *args, **given)
    assert isinstance(lazy, hi.Image)
    np.testing.assert_array_equal(lazy.compute(), want)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", EXTREMES)
def test_regional_extremes(name: str, dtype: str) -> None:
    for shape in ((23, 31), (7, 9, 8), (40,), (1, 17), (2, 2)):
        image = picture(dtype, shape)
        for connectivity in range(1, len(shape) + 1):
            compare(name, image, connectivity=connectivity)
        if min(shape) > 2:
            compare(name, image, allow_borders=False)
        found, want = (getattr(of, name)(image, indices=True) for of in (morphology, skimage.morphology))
        assert len(found) == len(want)
        np.testing.assert_array_equal(found, want)
    compare(name, picture(dtype), np.eye(3))
    compare(name, np.full((5, 6), picture(dtype)[0, 0]))


def test_extremes_at_the_ends_of_a_type() -> None:
    for dtype in ("u1", "i2"):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        image = np.full((6, 7), low, dtype)
        image[2, 3] = image[4:, :2] = high
        for name in EXTREMES:
            compare(name, image)
            compare(name, image[::-1] * 0 + high - image + low)
    image = np.where(np.eye(6) > 0, np.inf, -np.inf)
    for name in EXTREMES:
        compare(name, image, connectivity=1)


def test_images_without_room() -> None:
    with pytest.warns(UserWarning, match="smaller 3"):
        assert not np.any(morphology.local_maxima(np.eye(2), allow_borders=False))
    assert morphology.local_maxima(np.zeros((0, 3))).shape == (0, 3)
    assert [len(one) for one in morphology.local_maxima(np.zeros((0, 3)), indices=True)] == [0, 0]
    with pytest.raises(NotImplementedError, match="footprint"):
        morphology.local_maxima(np.zeros((6, 6)), np.ones((5, 5)))
    with pytest.raises(TypeError, match="channels"):
        morphology.local_maxima(hi.asarray(np.zeros((4, 5, 3)), channels=True))


@pytest.mark.parametrize("dtype", TYPES[1:])
@pytest.mark.parametrize("name", ["h_maxima", "h_minima"])
def test_deep_extremes(name: str, dtype: str) -> None:
    for shape in ((23, 31), (7, 9, 8), (40,)):
        image = picture(dtype, shape)
        for h in (1, 3, 1000 if dtype not in ("u1", "i1") else 120, *((0.25, 0.3) if image.dtype.kind == "f" else (np.float64(2.0),))):
            compare(name, image, h)
    compare(name, image, 2, footprint=np.ones(3))
    with pytest.raises(ValueError, match="ambiguous"):
        getattr(morphology, name)(image, 0)


@pytest.mark.parametrize("name", ["h_maxima", "h_minima"])
def test_a_fraction_makes_floats(name: str) -> None:
    image = picture("u1")
    with pytest.warns(UserWarning, match="precision"):
        found = getattr(morphology, name)(image, 1.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(found, getattr(skimage.morphology, name)(image, 1.5))
    with pytest.raises(ValueError, match="range"):
        getattr(morphology, name)(image, 300)


@pytest.mark.parametrize("dtype", TYPES)
def test_floods(dtype: str) -> None:
    for shape, seed in (((23, 31), (4, 7)), ((23, 31), (-1, -2)), ((7, 9, 8), (3, 2, 5)), ((40,), 9)):
        image = picture(dtype, shape)
        for given in ({}, {"connectivity": 1}, *([{"tolerance": 2}, {"tolerance": 300}] if dtype != "?" else [])):
            compare("flood", image, seed, **given)
            compare("flood_fill", image, seed, 7 if dtype != "?" else True, **given)
    image = picture(dtype)
    compare("flood", image, (3, 4), footprint=[[0, 1, 0], [1, 1, 1], [0, 1, 0]])
    again = image.copy()
    assert morphology.flood_fill(again, (4, 7), 1, in_place=True) is again
    np.testing.assert_array_equal(again, skimage.morphology.flood_fill(image, (4, 7), 1))
    assert segmentation.flood is morphology.flood and segmentation.flood_fill is morphology.flood_fill


def test_floods_of_fractions() -> None:
    image = np.random.default_rng(4).random((30, 40)).astype(np.float32)
    for tolerance in (0.3, 0.45, 1):
        compare("flood", image, (5, 6), tolerance=tolerance)
    for wrong, error in (((1, 2, 3), ValueError), ((30, 0), IndexError)):
        with pytest.raises(error, match="position"):
            morphology.flood(image, wrong)
    with pytest.raises(TypeError, match="not written"):
        morphology.flood_fill(hi.asarray(image), (0, 0), 1, in_place=True)
