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


# Labels numbered anew, grown and outlined.

SHAPES = [(45, 61), (1, 1), (1, 30), (30, 1), (2, 2), (6, 11, 13), (3, 1, 40), (40,), (0, 7)]


def labelled(shape: tuple[int, ...], dtype: Any = np.int64) -> list[Array]:
    """Regions that touch, few objects, none, and nothing else."""
    rng = np.random.default_rng(10)
    regions = rng.integers(0, 4, [-(-n // 5) for n in shape])
    for axis, extent in enumerate(shape):
        regions = np.repeat(regions, 5, axis)[(slice(None),) * axis + (slice(extent),)]
    few = np.where(rng.random(shape) < 0.05, rng.integers(1, 120, shape), 0)
    return [image.astype(dtype) for image in (regions, few, np.zeros(shape), np.full(shape, 3))]


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_labels_numbered_anew(dtype: Any) -> None:
    rng = np.random.default_rng(11)
    most = min(int(np.iinfo(dtype).max), 2**53)
    fields = [image for shape in SHAPES[:-1] for image in labelled(shape, dtype)]
    fields += [rng.integers(low, most, 900, dtype, endpoint=True).reshape(30, 30) for low in (0, 1)]
    fields += [np.array(kind).astype(dtype) for kind in ([1, 1, 5, 5, 8, 99, 42], [[most, 0]], 5)]
    for field in fields:
        for offset in (1, 5, 250, 70_000):
            ours, theirs = (of.relabel_sequential(field, offset) for of in (segmentation, skimage.segmentation))
            for found, want in zip(ours, theirs, strict=True):
                assert found.dtype == want.dtype
            np.testing.assert_array_equal(ours[0], theirs[0])
            for found, want in zip(ours[1:], theirs[1:], strict=True):
                np.testing.assert_array_equal(found.in_values, want.in_values)
                np.testing.assert_array_equal(found.out_values, want.out_values)
            np.testing.assert_array_equal(ours[1][field], ours[0])
            np.testing.assert_array_equal(ours[2][ours[0]], field)
            if field.max() < 2**20:
                values = np.zeros(int(field.max()) + 1, ours[0].dtype)
                values[field] = ours[0]
                np.testing.assert_array_equal(np.array(ours[1]), values)


def test_maps_of_labels() -> None:
    field = np.array([[1, 1, 5], [8, 99, 42]])
    ours, theirs = (of.relabel_sequential(field)[1] for of in (segmentation, skimage.segmentation))
    assert repr(ours) == repr(theirs) and len(ours) == len(theirs) == 100
    places: list[Any] = [7, 42, np.array([5, 6, 99]), np.array([[200, 8]]), slice(None), slice(5, 100, 3), np.arange(100) % 2 == 0]
    for place in places:
        np.testing.assert_array_equal(ours[place], theirs[place])
    np.testing.assert_array_equal(ours(field), theirs(field))
    assert np.asarray(ours, np.float32).dtype == np.float32
    with pytest.raises(TypeError, match="should be integer"):
        ours[np.array([1.0])]


def test_lazy_labels_numbered_anew() -> None:
    field = hi.asarray(np.array([[0, 7, 7], [3, 0, 200]], np.uint8)).with_pixel_size(2.0)
    found, forward, _ = segmentation.relabel_sequential(field)
    assert isinstance(found, hi.Image) and found.dtype == np.uint8 and found.pixel_size == (2.0, 2.0)
    np.testing.assert_array_equal(found.compute(), [[0, 2, 2], [1, 0, 3]])
    np.testing.assert_array_equal(forward.in_values, [0, 3, 7, 200])


def test_labels_that_cannot_be_numbered() -> None:
    for of in (segmentation, skimage.segmentation):
        with pytest.raises(ValueError, match="Offset must be strictly positive"):
            of.relabel_sequential(np.array([1, 2]), 0)
        with pytest.raises(ValueError, match="negative values"):
            of.relabel_sequential(np.array([1, -2]))
        with pytest.raises(TypeError, match="must have an integer dtype"):
            of.relabel_sequential(np.array([1.0, 2.0]))
        with pytest.raises(ValueError, match="zero-size array"):
            of.relabel_sequential(np.zeros((0, 3), int))


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.bool_, np.float32])
@pytest.mark.parametrize("shape", SHAPES)
def test_labels_grow_over_the_background(shape: tuple[int, ...], dtype: Any) -> None:
    for image in labelled(shape, dtype):
        for distance in (0, 1, 2.5, 7, -1, 1e9):
            for spacing in (1, 0.5, tuple(1.0 + axis for axis in range(len(shape)))):
                found = segmentation.expand_labels(image, distance, spacing)
                want = skimage.segmentation.expand_labels(image, distance, spacing)
                assert found.dtype == want.dtype
                np.testing.assert_array_equal(found == 0, want == 0)
                # Where several labels are as near, it is one of them.
                apart = found != want
                if apart.any():
                    nearest = scipy.ndimage.distance_transform_edt(image == 0, spacing)
                    for label in np.unique(found[apart]):
                        at = apart & (found == label)
                        own = scipy.ndimage.distance_transform_edt(image != label, spacing)
                        np.testing.assert_allclose(own[at], nearest[at], rtol=1e-12)
                if image.size and dtype is not np.int64 and distance == 2.5:
                    lazy = segmentation.expand_labels(hi.asarray(image), distance, spacing)
                    assert isinstance(lazy, hi.Image)
                    np.testing.assert_array_equal(lazy.compute(), found)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.uint32, np.int64, np.bool_])
@pytest.mark.parametrize("shape", SHAPES)
def test_outlines(shape: tuple[int, ...], dtype: Any) -> None:
    images = labelled(shape, dtype)
    if np.dtype(dtype).kind == "i":
        images.append(images[0] - images[1])
    for image in images:
        for connectivity in range(1, len(shape) + 1):
            for mode in ("thick", "inner", "outer"):
                for background in (0, 3, -1, 1000):
                    given = {"connectivity": connectivity, "mode": mode, "background": background}
                    if image.dtype.kind in "ub" and background == -1 or np.dtype(dtype).itemsize == 1 and background == 1000:
                        continue  # numbers that pixels cannot have, which NumPy does not compare
                    # SciPy's erosion makes the smallest integer of 64 bits of the largest, which stands for the background there.
                    narrow = image.astype(np.int32) if dtype is np.int64 and mode == "outer" else image
                    want = skimage.segmentation.find_boundaries(narrow, **given)
                    found = segmentation.find_boundaries(image, **given)
                    assert found.dtype == want.dtype == bool
                    np.testing.assert_array_equal(found, want)
                    if image.size and dtype is not np.int64:
                        lazy = segmentation.find_boundaries(hi.asarray(image), **given)
                        assert isinstance(lazy, hi.Image)
                        np.testing.assert_array_equal(lazy.compute(), want)
    with pytest.raises(NotImplementedError, match="between pixels"):
        segmentation.find_boundaries(np.ones((3, 4), int), mode="subpixel")
