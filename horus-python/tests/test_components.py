"""Components of masks and of labels in `horus_image.morphology`, `measure` and `segmentation`, against scikit-image: equal results."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import skimage.measure
import skimage.morphology
import skimage.segmentation

import horus_image as hi
from horus_image import measure, morphology, segmentation

Array = np.ndarray[Any, Any]
SHAPES = [(45, 61), (1, 1), (1, 30), (30, 1), (2, 2), (6, 11, 13), (3, 1, 40), (40,), (0, 7)]
TYPES = [np.uint8, np.int8, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def masks(shape: tuple[int, ...]) -> Iterator[Array]:
    rng = np.random.default_rng(3)
    for share in (0.0, 0.3, 0.5, 0.7, 1.0):
        yield rng.random(shape) < share
    if len(shape) > 1 and min(shape) > 2:
        yield scipy.ndimage.gaussian_filter(rng.random(shape), 1.5) > 0.5


def labels(shape: tuple[int, ...], dtype: Any) -> Iterator[Array]:
    """Of many regions, of pixels of few values, and of one value."""
    rng = np.random.default_rng(4)
    for mask in masks(shape):
        yield scipy.ndimage.label(mask)[0].clip(0, 100).astype(dtype)
    for most in (2, 3, 6):
        yield rng.integers(0, most, shape).astype(dtype)
    yield np.full(shape, 3, dtype)


def same(ours: Any, theirs: Any) -> None:
    assert type(ours) is type(theirs) and ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


def quietly(function: Any, *args: Any, **given: Any) -> Any:
    """The result, or the exception; without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args, **given)
        except (ValueError, TypeError, NotImplementedError) as error:
            return error


# Small objects and holes.


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["remove_small_objects", "remove_small_holes"])
def test_small_parts_of_masks(name: str, shape: tuple[int, ...]) -> None:
    ours, theirs = (getattr(of, name) for of in (morphology, skimage.morphology))
    for mask in masks(shape):
        for connectivity in (*range(len(shape) + 2), 9):
            for most in (-3, 0, 1, 2, 5.5, 30, 2**40, np.inf):
                want = theirs(mask, connectivity=connectivity, max_size=most)
                same(ours(mask, connectivity=connectivity, max_size=most), want)
                if mask.size:
                    lazy = ours(hi.asarray(mask), connectivity=connectivity, max_size=most)
                    assert isinstance(lazy, hi.Image)
                    same(lazy.compute(), want)
            same(ours(mask, connectivity=connectivity), theirs(mask, connectivity=connectivity))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_small_labels(shape: tuple[int, ...], dtype: Any) -> None:
    ours, theirs = morphology.remove_small_objects, skimage.morphology.remove_small_objects
    for image in labels(shape, dtype):
        for most in (0, 1, 2, 30):
            same(quietly(ours, image, max_size=most), quietly(theirs, image, max_size=most))
        if image.size and np.dtype(dtype).itemsize < 8:
            lazy = quietly(ours, hi.asarray(image), max_size=3)
            assert isinstance(lazy, hi.Image)
            same(lazy.compute(), quietly(theirs, image, max_size=3))
        same(quietly(morphology.remove_small_holes, image, max_size=3), quietly(skimage.morphology.remove_small_holes, image, max_size=3))


def test_lazy_masks_are_not_evaluated() -> None:
    rng = np.random.default_rng(5)
    mask = rng.random((60, 70)) < 0.5
    image = hi.asarray(mask)
    found = segmentation.clear_border(morphology.remove_small_holes(morphology.remove_small_objects(image, max_size=3), max_size=3))
    assert isinstance(found, hi.Image)
    want = skimage.morphology.remove_small_holes(skimage.morphology.remove_small_objects(mask, max_size=3), max_size=3)
    same(found.compute(), skimage.segmentation.clear_border(want))
    with pytest.raises(TypeError, match="channels"):
        morphology.remove_small_objects(hi.asarray(np.zeros((4, 5, 3), np.uint8), channels=True) > 0)


def test_results_in_arrays() -> None:
    rng = np.random.default_rng(6)
    mask, image = rng.random((30, 40)) < 0.5, rng.integers(0, 9, (30, 40))
    for function in (morphology.remove_small_objects, morphology.remove_small_holes, segmentation.clear_border):
        want = function(mask)
        for given in (np.ones_like(mask), mask.copy()):
            assert function(mask, out=given) is given
            same(given, want)
        own = mask.copy()
        assert function(own, out=own) is own
        same(own, want)
        with pytest.raises(TypeError, match="lazy image"):
            function(hi.asarray(mask), out=np.ones_like(mask))
    # The type of the array says what is removed.
    for first, out in ((mask, np.zeros((30, 40), np.int16)), (image, np.zeros((30, 40), bool))):
        other = out.copy()
        assert quietly(morphology.remove_small_objects, first, max_size=3, out=out) is out
        quietly(skimage.morphology.remove_small_objects, first, max_size=3, out=other)
        same(out, other)
    for function in (morphology.remove_small_objects, segmentation.clear_border):
        want, own = function(image), image.copy()
        assert function(own, out=own) is own
        same(own, want)
    with pytest.raises(TypeError, match="out dtype must be bool"):
        morphology.remove_small_holes(mask, out=np.zeros((30, 40), np.uint8))


@pytest.mark.parametrize(("name", "old"), [("remove_small_objects", "min_size"), ("remove_small_holes", "area_threshold")])
def test_deprecated_sizes(name: str, old: str) -> None:
    mask = np.random.default_rng(7).random((50, 60)) < 0.5
    ours, theirs = (getattr(of, name) for of in (morphology, skimage.morphology))
    for size in (0, 1, 2, 4.5, 6):
        with pytest.warns(FutureWarning) as told:
            found = ours(mask, **{old: size})
        assert told[0].filename == __file__
        with pytest.warns(FutureWarning) as expected:
            theirs(mask, **{old: size})
        assert str(told[0].message) == str(expected[0].message)
        # What is smaller, which 0.26.0 takes for what is not larger.
        same(found, theirs(mask, max_size=np.ceil(size) - 1))
        with pytest.warns(FutureWarning):
            same(ours(mask, size), found)
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="Both deprecated parameter"):
        ours(mask, 3, max_size=7)


def test_warnings_and_refusals() -> None:
    one = np.array([[0, 1, 1], [0, 0, 1]])
    for of in (morphology, skimage.morphology):
        with pytest.warns(UserWarning, match="Only one label was provided to `remove_small_objects`"):
            of.remove_small_objects(one)
        with pytest.warns(UserWarning, match="Any labeled images will be returned as a boolean array"):
            of.remove_small_holes(one)
        with pytest.raises(ValueError, match="Negative value labels are not supported"):
            of.remove_small_objects(one - 2)
        for function in (of.remove_small_objects, of.remove_small_holes):
            with pytest.raises(TypeError, match="Only bool or integer image types are supported. Got float64."):
                function(one * 1.0)
    with pytest.warns(UserWarning) as told:
        morphology.remove_small_objects(one)
        morphology.remove_small_holes(one)
    assert [warning.filename for warning in told] == [__file__] * 2


# Components of equal pixels.


@pytest.mark.parametrize("shape", SHAPES)
def test_components_of_masks(shape: tuple[int, ...]) -> None:
    for mask in masks(shape):
        for connectivity in (None, *range(1, len(shape) + 1)):
            for background in (None, 0, 1, True, 5):
                given = {"background": background, "connectivity": connectivity}
                theirs, count = skimage.measure.label(mask, return_num=True, **given)
                ours, number = measure.label(mask, return_num=True, **given)
                assert number == count
                same(ours, theirs)
                same(measure.label(mask, **given), theirs)
                if mask.size:
                    lazy, number = measure.label(hi.asarray(mask), return_num=True, **given)
                    assert isinstance(lazy, hi.Image) and number == count
                    same(lazy.compute(), theirs)
                    same(measure.label(hi.asarray(mask), **given).compute(), theirs)


@pytest.mark.parametrize("dtype", [*TYPES, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_components_of_equal_pixels(shape: tuple[int, ...], dtype: Any) -> None:
    for image in labels(shape, dtype):
        for connectivity in (None, *range(1, len(shape) + 1)):
            for background in (None, 1):
                given = {"background": background, "connectivity": connectivity}
                theirs, count = skimage.measure.label(image, return_num=True, **given)
                ours, number = measure.label(image, return_num=True, **given)
                assert number == count
                same(ours, theirs)
        if image.size and np.dtype(dtype).itemsize < 8:
            lazy = measure.label(hi.asarray(image))
            assert isinstance(lazy, hi.Image) and lazy.dtype == np.int32
            np.testing.assert_array_equal(lazy.compute(), skimage.measure.label(image))


def test_long_components() -> None:
    """A spiral and a comb, whose runs are joined one after the other."""
    spiral = np.zeros((41, 41), int)
    y, x, dy, dx = 20, 20, 0, 1
    for turn in range(38):
        for _ in range(2 * (turn // 2 + 1) - 1 + (turn % 2)):
            if 0 <= y < 41 and 0 <= x < 41:
                spiral[y, x] = 2
            y, x = y + dy, x + dx
        dy, dx = dx, -dy
    comb = np.full((50, 50), 4)
    comb[:-1, ::2] = 2 + np.arange(25) % 2
    for image in (spiral, spiral.T[::-1], comb, comb[::-1], comb.T, comb.T[::-1]):
        for connectivity in (1, 2):
            same(measure.label(image + 1, connectivity=connectivity), skimage.measure.label(image + 1, connectivity=connectivity))


def test_refusals_of_components() -> None:
    for of in (measure.label, skimage.measure.label):
        for image in (np.ones((3, 4), bool), np.ones((3, 4), int)):
            for connectivity in (0, 3):
                with pytest.raises(ValueError, match=f"Connectivity for 2D image should be in .*Got {connectivity}."):
                    of(image, connectivity=connectivity)
        for shape in ((), (2, 2, 2, 2)):
            with pytest.raises(NotImplementedError, match=f"got a {len(shape)}D one"):
                of(np.ones(shape, int))


# At the border.


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64, np.float32])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_touches_the_border(shape: tuple[int, ...], dtype: Any) -> None:
    ours, theirs = segmentation.clear_border, skimage.segmentation.clear_border
    rng = np.random.default_rng(8)
    inside = rng.random(shape) < 0.9
    for image in masks(shape) if dtype is np.bool_ else labels(shape, dtype):
        calls: list[dict[str, Any]] = [{"buffer_size": size} for size in (0, 1, 3, 7, 50)]
        calls += [{"bgval": 7}, {"mask": inside}, {"mask": inside, "bgval": 1, "buffer_size": 99}, {"mask": np.ones(shape, bool)}]
        for given in calls:
            want, found = (quietly(function, image, **given) for function in (theirs, ours))
            if isinstance(want, Exception):
                assert type(found) is type(want) and str(found) == str(want)
                continue
            same(found, want)
            if image.size and np.dtype(dtype).itemsize < 8:
                lazy = ours(hi.asarray(image), **given)
                assert isinstance(lazy, hi.Image)
                same(lazy.compute(), want)


def test_refusals_at_the_border() -> None:
    mask = np.ones((4, 5), bool)
    for image in (mask, mask * 3):
        with pytest.raises(ValueError, match="same shape"):
            segmentation.clear_border(image, mask=mask[1:])
        for of in (segmentation, skimage.segmentation):
            with pytest.raises(TypeError, match="mask should be of type bool"):
                of.clear_border(image, mask=mask.astype(int))
            with pytest.raises(ValueError, match="buffer size may not be greater than labels size"):
                of.clear_border(image, 4)
