"""`horus_image.transform` against scikit-image: equal counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import skimage.transform

import horus_image as hi
from horus_image import transform

Array = np.ndarray[Any, Any]


def same(image: Array, theta: Any = None) -> Array:
    ours = transform.hough_line(image, theta)
    theirs = skimage.transform.hough_line(image, theta)
    for one, other in zip(ours, theirs, strict=True):
        assert isinstance(one, np.ndarray) and one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    return theirs[0]


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (33, 1), (60, 75), (128, 128), (0, 9), (0, 0)])
def test_default_angles(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    for share in (0.0, 0.05, 1.0):
        same(rng.random(shape) < share)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64, np.int64])
def test_what_is_not_zero_counts(dtype: Any) -> None:
    rng = np.random.default_rng(4)
    image = (rng.random((50, 64)) * 4).astype(dtype) * (rng.random((50, 64)) < 0.1)
    image[7] = 1
    image[np.arange(50), np.arange(50)] = np.nan if np.dtype(dtype).kind == "f" else 2
    assert same(image).max() >= 50


def test_other_angles() -> None:
    mask = np.random.default_rng(5).random((41, 57)) < 0.1
    for theta in (np.zeros(1), np.radians(np.arange(-180.0, 181.0, 15.0)), np.random.default_rng(6).normal(size=77) * 9.0, np.zeros(0)):
        same(mask, theta)


def test_of_lazy_images() -> None:
    image = np.random.default_rng(7).random((50, 60))
    counts, _, _ = transform.hough_line(hi.asarray(image) > 0.9)
    np.testing.assert_array_equal(counts, skimage.transform.hough_line(image > 0.9)[0])


def test_refusals() -> None:
    for of in (transform.hough_line, skimage.transform.hough_line):
        with pytest.raises(ValueError, match="must be 2D"):
            of(np.zeros((3, 4, 5)))
        with pytest.raises(ValueError):
            of(np.zeros((3, 4)), np.zeros((2, 2)))
