"""`horus_image.segmentation` against scikit-image: equal labels. `test_components.py` tests `clear_border`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import skimage.segmentation

import horus_image as hi
from horus_image import segmentation

Array = np.ndarray[Any, Any]


def same(image: Array, markers: Array, **given: Any) -> Array:
    ours = segmentation.watershed(image, markers, **given)
    theirs = skimage.segmentation.watershed(image, markers, **given)
    assert isinstance(ours, np.ndarray) and ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)
    return theirs


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int32, np.float32, np.float64, np.bool_, np.int64])
@pytest.mark.parametrize("shape", [(45, 61), (1, 1), (1, 30), (30, 1), (2, 2), (6, 11, 13), (40,), (0, 7)])
def test_plateaus_and_markers_of_equal_pixels(shape: tuple[int, ...], dtype: Any) -> None:
    rng = np.random.default_rng(5)
    for levels in (1, 2, 5, 200):
        image = rng.integers(0, levels, shape).astype(dtype)
        markers = np.where(rng.random(shape) < 0.15, rng.integers(-3, 30, shape), 0)
        mask = rng.random(shape) < 0.8
        for connectivity in range(1, len(shape) + 1):
            same(image, markers, connectivity=connectivity)
            same(image, markers, connectivity=connectivity, mask=mask)


def test_nan_and_infinity() -> None:
    rng = np.random.default_rng(6)
    image = rng.normal(size=(40, 40)).round(1)
    image[rng.random(image.shape) < 0.1] = np.nan
    image[rng.random(image.shape) < 0.1] = -np.inf
    image[rng.random(image.shape) < 0.1] = np.inf
    for single in (image, image.astype(np.float32)):
        same(single, np.where(rng.random(image.shape) < 0.1, 7, 0) * np.arange(40))


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_])
def test_types_of_markers(kind: Any) -> None:
    rng = np.random.default_rng(7)
    image = rng.random((20, 20))
    markers = (rng.random((20, 20)) < 0.1).astype(kind) * np.asarray(rng.integers(1, 100, (20, 20))).astype(kind)
    same(image, markers)


def test_objects_apart() -> None:
    y, x = np.indices((300, 300))
    cells = np.zeros((300, 300), bool)
    for cy, cx in np.random.default_rng(8).integers(20, 280, (40, 2)):
        cells |= (y - cy) ** 2 + (x - cx) ** 2 < 200
    away = scipy.ndimage.distance_transform_edt(cells)
    peaks = (away == scipy.ndimage.maximum_filter(away, 9)) & cells
    markers, count = scipy.ndimage.label(peaks)
    assert np.unique(same(-away, markers, mask=cells, connectivity=2)).size == count + 1
    # All of it by lazy images, which stay lazy.
    image = hi.asarray(cells)
    far = hi.ndimage.distance_transform_edt(image)
    seeds, _ = hi.ndimage.label((far == hi.ndimage.maximum_filter(far, 9)) & image)
    found = segmentation.watershed(far * -1.0, seeds, mask=image, connectivity=2)
    assert isinstance(found, hi.Image)
    np.testing.assert_array_equal(found.compute(), skimage.segmentation.watershed(-away, markers, 2, mask=cells))


def test_footprints() -> None:
    rng = np.random.default_rng(9)
    image, markers = rng.integers(0, 4, (30, 30)), np.where(rng.random((30, 30)) < 0.05, 5, 0) * np.arange(30)
    for footprint in ([[0, 0, 0], [1, 1, 1], [0, 0, 0]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], np.ones((3, 3))):
        same(image, markers, connectivity=np.array(footprint))


def test_refusals() -> None:
    image, markers = np.zeros((4, 5)), np.ones((4, 5), int)
    for given in ({"compactness": 0.1}, {"watershed_line": True}, {"markers": None}, {"markers": 3}):
        with pytest.raises(NotImplementedError):
            segmentation.watershed(image, **{"markers": markers, **given})
    with pytest.raises(NotImplementedError, match="not symmetric"):
        segmentation.watershed(image, markers, np.array([[0, 1, 0], [0, 1, 1], [0, 0, 0]]))
    with pytest.raises(NotImplementedError, match="32 bits"):
        segmentation.watershed(image, markers * 2**40)
    for of in (skimage.segmentation.watershed, segmentation.watershed):
        with pytest.raises(ValueError):
            of(image, markers[:3])
        with pytest.raises(ValueError, match="must have same shape"):
            of(image, markers, mask=np.ones((3, 3), bool))
        with pytest.raises(TypeError):
            of(image, markers.astype(float))
