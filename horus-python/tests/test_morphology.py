"""Morphology of masks against SciPy's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import horus_image as hi
from horus_image import ndimage


def blobs(shape: tuple[int, ...], seed: int = 5) -> np.ndarray[Any, Any]:
    noise = scipy.ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=shape), 1.5)
    return np.asarray(noise > 0.0)


STRUCTURES: list[Any] = [None, np.ones((3, 3)), np.ones((2, 3)), [[0, 1, 1], [0, 1, 0], [0, 0, 0]], [[1, 0, 1]], np.zeros((3, 3))]


@pytest.mark.parametrize("structure", STRUCTURES, ids=range(len(STRUCTURES)))
@pytest.mark.parametrize("name", ["binary_erosion", "binary_dilation", "binary_opening", "binary_closing"])
def test_masks(name: str, structure: Any) -> None:
    mask, within = blobs((25, 31)), blobs((25, 31), 6)
    for border_value in (0, 1):
        for iterations in (1, 3):
            for kept in (None, within):
                given = {"structure": structure, "iterations": iterations, "border_value": border_value, "mask": kept}
                ours, theirs = getattr(ndimage, name)(mask, **given), getattr(scipy.ndimage, name)(mask, **given)
                assert ours.dtype == theirs.dtype
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("shape", [(1,), (17,), (1, 1), (9, 1), (5, 6, 7)])
def test_masks_of_other_shapes(shape: tuple[int, ...]) -> None:
    mask = blobs(shape)
    for name in ("binary_erosion", "binary_dilation", "binary_fill_holes"):
        np.testing.assert_array_equal(getattr(ndimage, name)(mask), getattr(scipy.ndimage, name)(mask))


def test_until_nothing_changes() -> None:
    mask, seed = blobs((60, 50)), np.zeros((60, 50), bool)
    seed[30, 25] = seed[10, 10] = True
    np.testing.assert_array_equal(
        ndimage.binary_propagation(seed, mask=mask), scipy.ndimage.binary_propagation(seed, mask=mask)
    )
    np.testing.assert_array_equal(
        ndimage.binary_erosion(mask, iterations=0), scipy.ndimage.binary_erosion(mask, iterations=0)
    )
    holes = blobs((80, 90), 9)
    np.testing.assert_array_equal(ndimage.binary_fill_holes(holes), scipy.ndimage.binary_fill_holes(holes))
    hit = [[0, 1, 0], [0, 1, 1], [0, 0, 0]]
    np.testing.assert_array_equal(ndimage.binary_hit_or_miss(mask, hit), scipy.ndimage.binary_hit_or_miss(mask, hit))


@pytest.mark.parametrize("shape", [(1,), (19,), (1, 9), (23, 31), (5, 8, 9)])
@pytest.mark.parametrize("name", ["binary_dilation", "binary_erosion"])
def test_all_steps_at_once(name: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    ndim = len(shape)
    lopsided = scipy.ndimage.generate_binary_structure(ndim, 1)
    lopsided[(0,) * ndim] = True
    line = np.zeros((3,) * ndim, bool)
    line[(1,) * (ndim - 1)] = True
    connectivities = [scipy.ndimage.generate_binary_structure(ndim, kind) for kind in range(1, ndim + 1)]
    structures = [None, *connectivities, line, lopsided, np.ones((1,) * ndim), np.ones((3,) + (1,) * (ndim - 1))]
    for structure in structures:
        mask, within = rng.random(shape) < (0.05 if name == "binary_dilation" else 0.95), rng.random(shape) < 0.6
        for border_value in (0, 1):
            for kept in (None, within):
                given = {"structure": structure, "iterations": -1, "border_value": border_value, "mask": kept}
                ours, theirs = getattr(ndimage, name)(mask, **given), getattr(scipy.ndimage, name)(mask, **given)
                np.testing.assert_array_equal(ours, theirs, err_msg=str(given))
    # A pair of neighbours that its origin makes symmetric, and one that it does not.
    pair = np.zeros((3,) * ndim, bool)
    pair[(0,) * ndim] = True
    for origin in (-1, 0):
        given = {"structure": pair, "mask": within, "origin": origin}
        ours, theirs = (of.binary_propagation(mask, **given) for of in (ndimage, scipy.ndimage))
        np.testing.assert_array_equal(ours, theirs)


def test_a_winding_way() -> None:
    way = np.zeros((41, 57), bool)
    way[::2] = True
    way[1::4, -1] = way[3::4, 0] = True
    seed = np.zeros_like(way)
    seed[0, 0] = True
    found = ndimage.binary_propagation(hi.asarray(seed), mask=way)
    assert isinstance(found, hi.Image)
    np.testing.assert_array_equal(found, way)
    np.testing.assert_array_equal(ndimage.binary_fill_holes(~way, [[0, 0, 0], [1, 1, 1], [0, 0, 0]]),
                                  scipy.ndimage.binary_fill_holes(~way, [[0, 0, 0], [1, 1, 1], [0, 0, 0]]))


@pytest.mark.parametrize("shape", [(1,), (17,), (1, 9), (40, 53), (6, 17, 18), (4, 1, 7)])
def test_connected_components(shape: tuple[int, ...]) -> None:
    for dtype in (bool, np.uint8, np.int64, np.float32, np.uint64):
        image = blobs(shape).astype(dtype)
        for kind in (None, *range(1, len(shape) + 1)):
            structure = None if kind is None else scipy.ndimage.generate_binary_structure(len(shape), kind)
            labels, count = ndimage.label(image, structure)
            theirs, all_ = scipy.ndimage.label(image, structure)
            assert (labels.dtype, count) == (theirs.dtype, all_)
            np.testing.assert_array_equal(labels, theirs)
            into = np.zeros(shape, np.uint16)
            assert ndimage.label(image, structure, into) == count
            np.testing.assert_array_equal(into, theirs)
        lazy, count = ndimage.label(hi.asarray(blobs(shape)))
        assert isinstance(lazy, hi.Image)
        np.testing.assert_array_equal(lazy, scipy.ndimage.label(blobs(shape))[0])
    lines = np.zeros((3,) * len(shape), bool)
    lines[(1,) * (len(shape) - 1)] = True
    np.testing.assert_array_equal(ndimage.label(image, lines)[0], scipy.ndimage.label(image, lines)[0])


def test_as_many_labels_as_pixels() -> None:
    labels = np.random.default_rng(5).permutation(540 * 500).reshape(540, 500)
    image, index = np.random.default_rng(6).random(labels.shape, np.float32), np.arange(labels.size)
    for name in ("sum_labels", "maximum"):
        ours, theirs = (getattr(of, name)(image, labels, index) for of in (ndimage, scipy.ndimage))
        np.testing.assert_array_equal(ours, theirs)


def test_labels_that_a_type_does_not_hold_are_refused() -> None:
    dots = np.zeros((1, 9000), np.uint8)
    dots[0, ::2] = 1
    for given, few in ((dots, dots[:, :2]), (hi.asarray(dots), hi.asarray(dots[:, :2]))):
        for dtype, most in ((bool, 1), (np.int8, 127), (np.uint8, 255), (np.float16, 2048)):
            with pytest.raises(RuntimeError, match="bit-depth"):
                ndimage.label(given, output=dtype)
            if dtype is np.float16 and isinstance(given, hi.Image):
                continue  # images have none
            labels, count = ndimage.label(few, output=dtype)
            assert (count, np.asarray(labels).tolist(), labels.dtype) == (1, [[1, 0]], np.dtype(dtype))
            full, count = ndimage.label(given[:, : 2 * most], output=dtype)
            assert count == most == np.asarray(full).max()
        for dtype in (np.int16, np.int32, np.float32, np.float64):
            labels, count = ndimage.label(given, output=dtype)
            assert count == 4500 == np.asarray(labels).max()
    into = np.zeros(dots.shape, bool)
    with pytest.raises(RuntimeError, match="bit-depth"):
        ndimage.label(dots, output=into)


def test_components_that_cannot_be_labelled() -> None:
    mask = blobs((20, 30))
    with pytest.raises(RuntimeError, match="insufficient bit-depth"):
        ndimage.label(np.indices((20, 30)).sum(0) % 2, output=np.uint8)
    with pytest.raises(ValueError, match="symmetric"):
        ndimage.label(mask, [[1, 0, 0], [0, 1, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match="equal to 3"):
        ndimage.label(mask, np.ones((5, 5)))
    with pytest.raises(RuntimeError, match="equal rank"):
        ndimage.label(mask, [1, 1, 1])


def test_holes_of_every_structure() -> None:
    rng = np.random.default_rng(8)
    for shape in ((40, 51), (7, 12, 15)):
        mask = rng.random(shape) < 0.6
        for kind in range(1, len(shape) + 1):
            structure = scipy.ndimage.generate_binary_structure(len(shape), kind)
            ours, theirs = (of.binary_fill_holes(mask, structure) for of in (ndimage, scipy.ndimage))
            np.testing.assert_array_equal(ours, theirs)
        line = np.zeros((3,) * len(shape), bool)
        line[(1,) * (len(shape) - 1)] = True
        np.testing.assert_array_equal(ndimage.binary_fill_holes(mask, line), scipy.ndimage.binary_fill_holes(mask, line))


def test_a_lazy_mask_stays_lazy() -> None:
    mask = blobs((20, 21))
    image = hi.asarray(mask)
    opened = ndimage.binary_opening(image)
    assert isinstance(opened, hi.Image) and opened.dtype == np.bool_
    np.testing.assert_array_equal(opened, scipy.ndimage.binary_opening(mask))


def test_structures() -> None:
    for rank in range(4):
        for connectivity in range(4):
            ours = ndimage.generate_binary_structure(rank, connectivity)
            np.testing.assert_array_equal(ours, scipy.ndimage.generate_binary_structure(rank, connectivity))
    cross = ndimage.generate_binary_structure(2, 1)
    np.testing.assert_array_equal(ndimage.iterate_structure(cross, 3), scipy.ndimage.iterate_structure(cross, 3))


@pytest.mark.parametrize("shape", [(6, 12, 13), (1, 12, 13), (12, 13)])
def test_holes_of_stacks_and_of_volumes(shape: tuple[int, ...]) -> None:
    """Structures that join neighbours of some axes, and axes: holes of lines, of planes and of volumes."""
    ndim = len(shape)
    for seed in range(3):
        array = np.random.default_rng(seed).random(shape) > 0.45
        for extents in itertools.product((1, 3), repeat=ndim):
            joined = extents.count(3)
            square = np.ones(extents, bool)
            cross = scipy.ndimage.generate_binary_structure(joined, 1).reshape(extents)
            for structure in (square, cross):
                np.testing.assert_array_equal(ndimage.binary_fill_holes(array, structure), scipy.ndimage.binary_fill_holes(array, structure))
        for count in range(1, ndim + 1):
            for axes in itertools.combinations(range(ndim), count):
                for given in ({}, {"structure": np.ones((3,) * count)}, {"origin": (1,) + (0,) * (count - 1)}):
                    want = scipy.ndimage.binary_fill_holes(array, axes=axes, **given)
                    np.testing.assert_array_equal(ndimage.binary_fill_holes(array, axes=axes, **given), want)
