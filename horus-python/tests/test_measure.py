"""`horus_image.measure` against scikit-image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import skimage.feature
import skimage.measure

import horus_image as hi
from horus_image import measure, ndimage

Array = np.ndarray[Any, Any]
PLANE = ("orientation", "axis_major_length", "axis_minor_length", "eccentricity")
SPACE = ("label", "num_pixels", "area", "area_bbox", "bbox", "centroid", "equivalent_diameter_area", "extent")
BRIGHT = ("intensity_mean", "intensity_min", "intensity_max", "intensity_std", "centroid_weighted")


def regions(shape: tuple[int, ...], seed: int = 2) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    pixels = scipy.ndimage.gaussian_filter(rng.random(shape), 1.5)
    labels, _ = scipy.ndimage.label(pixels > np.quantile(pixels, 0.6))
    labels[labels == 3] = 0
    labels[labels == 4] = 100_000  # few labels, one of which is large
    return labels, pixels


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint16, np.uint8])
@pytest.mark.parametrize("shape", [(60, 75), (9, 20, 22)])
def test_tables(shape: tuple[int, ...], dtype: Any) -> None:
    labels, pixels = regions(shape)
    pixels = pixels.astype(dtype) if np.dtype(dtype).kind == "f" else (pixels * np.iinfo(dtype).max).astype(dtype)
    properties = SPACE + BRIGHT + (PLANE if len(shape) == 2 else ())
    ours = measure.regionprops_table(labels, pixels, properties)
    theirs = skimage.measure.regionprops_table(labels, pixels, properties)
    assert list(ours) == list(theirs)
    for name, column in theirs.items():
        assert ours[name].dtype == column.dtype, name
        if ours[name].dtype.kind == "i":
            np.testing.assert_array_equal(ours[name], column, err_msg=name)
        else:
            # scikit-image adds up float32 in that type; eccentricity is the root of a difference, of a rounding where regions are round.
            rtol = 2e-5 if dtype is np.float32 else 1e-9
            np.testing.assert_allclose(ours[name], column, rtol=rtol, atol=1e-7, err_msg=name)


def test_shapes_of_regions() -> None:
    labels = np.zeros((40, 40), np.uint8)
    labels[3, 4] = 1
    labels[10:14, 2:6] = 2
    labels[20:22, 3:30] = 3
    labels[np.arange(8) + 25, np.arange(8) + 5] = 4
    labels[np.arange(8) + 25, 30 - np.arange(8)] = 5
    ours, theirs = (of.regionprops_table(labels, properties=PLANE) for of in (measure, skimage.measure))
    for name, column in theirs.items():
        np.testing.assert_allclose(ours[name], column, atol=1e-7, err_msg=name)


def test_labels_of_any_kind() -> None:
    labels, pixels = regions((30, 30))
    want = measure.regionprops_table(labels, pixels, ("area", "intensity_mean"))
    lazy = measure.regionprops_table(hi.asarray(labels.astype(np.int32)), hi.asarray(pixels), ("area", "intensity_mean"))
    for name, column in want.items():
        np.testing.assert_array_equal(lazy[name], column)
    none = measure.regionprops_table(np.zeros((4, 5), int), properties=("label", "area", "bbox"))
    assert all(column.size == 0 for column in none.values())
    with pytest.raises(TypeError, match="labels are integers"):
        measure.regionprops_table(pixels)
    with pytest.raises(AttributeError, match="no intensity image"):
        measure.regionprops_table(labels, properties=("intensity_mean",))
    with pytest.raises(NotImplementedError, match="no property 'solidity'"):
        measure.regionprops_table(labels, properties=("solidity",))
    with pytest.raises(ValueError, match="of one shape"):
        measure.regionprops_table(labels, pixels[1:], ("intensity_mean",))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_distance": 4},
        {"min_distance": 3, "exclude_border": False},
        {"min_distance": 2, "exclude_border": (1, 7)},
        {"threshold_abs": 0.5, "threshold_rel": 0.4, "num_peaks": 5},
        {"footprint": np.ones((3, 5)), "min_distance": 2},
    ],
    ids=str,
)
def test_peaks(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(8)
    smooth = scipy.ndimage.gaussian_filter(rng.random((50, 70)), 2.0)
    plateaus = rng.integers(0, 6, (50, 70)).astype(np.uint8)
    for image in (smooth, smooth.astype(np.float32), plateaus):
        ours, theirs = (of.peak_local_max(image, **options) for of in (measure, skimage.feature))
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(measure.peak_local_max(hi.asarray(image), **options), theirs)


def test_images_without_peaks() -> None:
    assert measure.peak_local_max(np.full((6, 7), 3)).shape == (0, 2)
    assert measure.peak_local_max(np.zeros((0, 7))).shape == (0, 2)
    line = np.array([0, 3, 0, 0, 9, 0, 2.0])
    np.testing.assert_array_equal(measure.peak_local_max(line), skimage.feature.peak_local_max(line))
    with pytest.raises(ValueError, match="negative"):
        measure.peak_local_max(line, exclude_border=-1)


def medians(pixels: Array, labels: Any = None, index: Any = None) -> Any:
    """Our median and SciPy's, which are equal."""
    ours, theirs = (of.median(pixels, labels, index) for of in (hi.ndimage, scipy.ndimage))
    assert np.asarray(ours).dtype == np.asarray(theirs).dtype and np.shape(ours) == np.shape(theirs)
    np.testing.assert_array_equal(ours, theirs)
    return ours


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.bool_])
@pytest.mark.parametrize("shape", [(60, 75), (9, 20, 22), (1, 1), (50,)])
def test_medians(shape: tuple[int, ...], dtype: Any) -> None:
    rng = np.random.default_rng(8)
    pixels = (rng.normal(size=shape) * 100).astype(dtype)
    labels = rng.integers(0, 9, shape) * 3 - 3
    known = np.unique(labels)
    for given in (labels, labels.astype(np.int16), labels * 1_000_000_007):
        medians(pixels, given, np.unique(given))
    medians(pixels, labels, known[::-1].reshape(1, -1))
    medians(pixels, labels, int(known[0]))
    medians(pixels, labels, known[:1])
    medians(pixels)
    if (labels > 0).any():
        medians(pixels, labels)


def test_medians_with_nan() -> None:
    rng = np.random.default_rng(9)
    for dtype in (np.float32, np.float64):
        pixels = rng.normal(size=(40, 50)).astype(dtype)
        labels = rng.integers(1, 30, (40, 50))
        pixels[rng.random((40, 50)) < labels / 30] = np.nan
        pixels[labels == 4] = np.inf
        found = medians(pixels, labels, np.arange(1, 30))
        assert 5 < np.isnan(found).sum() < 25
        medians(pixels, labels, 4)
        medians(pixels, labels, 20)
        medians(pixels)


def test_medians_of_labels_without_pixels() -> None:
    found = hi.ndimage.median([1.0, 2.0, 4.0], [1, 1, 3], [1, 2, 3, 9])
    np.testing.assert_array_equal(found, [1.5, np.nan, 4.0, np.nan])
    lazy = hi.ndimage.median(hi.asarray(np.arange(12, dtype=np.uint8).reshape(3, 4)) + 1, np.eye(3, 4, dtype=int), [0, 1])
    np.testing.assert_array_equal(lazy, [7.0, 6.0])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.int64, np.float32])
@pytest.mark.parametrize("index", [None, 2, 0, [3, 1, 7], [0, 2], [5, 5], [2, 90], [-1, 1], [1.0, 2.0], [[1, 2], [3, 4]]])
def test_statistics_of_labels(dtype: Any, index: Any) -> None:
    rng = np.random.default_rng(4)
    pixels, labels = rng.integers(0, 1000, (31, 40)).astype(np.float64), rng.integers(0, 9, (31, 40)).astype(dtype)
    if np.dtype(dtype).kind in "if":
        labels[3:5] = -1
    for name in ("sum_labels", "mean", "median", "minimum", "maximum", "center_of_mass"):
        ours, theirs = (getattr(library, name) for library in (hi.ndimage, scipy.ndimage))
        with np.errstate(all="ignore"):
            try:
                want = theirs(pixels, labels, index)
            except ValueError:
                continue  # no pixels, of which there is no extreme
            if name == "median" and isinstance(index, list):
                want = np.where(np.isin(index, labels), want, np.nan)  # SciPy takes that of others
            np.testing.assert_allclose(ours(pixels, labels, index), want, rtol=1e-12, err_msg=name)
    lazy = hi.ndimage.mean(hi.asarray(pixels), hi.asarray(labels) if dtype != np.int64 else labels, index)
    np.testing.assert_array_equal(lazy, hi.ndimage.mean(pixels, labels, index))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.float32, np.float64, np.bool_])
def test_numbers_of_whole_images(dtype: Any) -> None:
    rng = np.random.default_rng(5)
    for shape in ((40, 51), (60,), (20, 21, 22), (30, 31, 3)):
        numbers = rng.random(shape)
        image = numbers > 0.6 if dtype is np.bool_ else (numbers * (1 if np.dtype(dtype).kind == "f" else 90)).astype(dtype)
        # scikit-image adds float32 in float32.
        close = 2e-5 if dtype is np.float32 else 1e-12
        for base in (2, np.e, 10):
            ours, theirs = (of.shannon_entropy(image, base) for of in (measure, skimage.measure))
            assert isinstance(ours, float) and ours == pytest.approx(theirs, rel=1e-12)
        ours, theirs = (of.centroid(image, spacing=(0.5, 2.0, 3.0)[: image.ndim]) for of in (measure, skimage.measure))
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=close)
        np.testing.assert_allclose(measure.centroid(image), skimage.measure.centroid(image), rtol=close)
        axis = -1 if shape[-1] == 3 else None
        if dtype is not np.bool_ or axis is None:
            for given in ({}, {"h_size": 4, "reduce_func": np.mean}, {"reduce_func": None}):
                ours, theirs = (of.blur_effect(image, channel_axis=axis, **given) for of in (measure, skimage.measure))
                np.testing.assert_allclose(ours, theirs, rtol=close)
        lazy = hi.asarray(image, channels=axis is not None)
        assert measure.shannon_entropy(lazy) == measure.shannon_entropy(image)
        if axis is None:
            np.testing.assert_array_equal(measure.centroid(lazy), measure.centroid(image))
            assert measure.blur_effect(lazy) == measure.blur_effect(image)
    assert np.isnan(measure.centroid(np.zeros((3, 4)))).all() and measure.shannon_entropy(np.zeros((3, 4))) == 0.0
    with pytest.raises(ValueError, match="spacing"):
        measure.centroid(image, spacing=(1.0, 2.0))


def test_regions_are_objects_with_the_properties_of_scikit_image() -> None:
    rng = np.random.default_rng(11)
    for shape in ((40, 51), (9, 14, 12)):
        labels = scipy.ndimage.label(scipy.ndimage.gaussian_filter(rng.normal(size=shape), 1.2) > 0.1)[0] * 3
        brightness = rng.random(shape)
        ours, theirs = (of.regionprops(labels, brightness) for of in (measure, skimage.measure))
        assert [one.label for one in ours] == [one.label for one in theirs]
        flat = ("moments_hu", "perimeter", "perimeter_crofton", "eccentricity", "axis_major_length", "axis_minor_length", "orientation")
        for one, other in zip(ours[:12], theirs[:12], strict=True):
            assert one.slice == other.slice and one.bbox == other.bbox and str(one)[:26] == str(other)[:26]
            for name in one:
                if name in ("slice", "orientation") or len(shape) == 3 and name in flat:
                    continue
                found, want = np.asarray(one[name]), np.asarray(other[name])
                assert found.shape == want.shape, name
                np.testing.assert_allclose(found, want, rtol=1e-8, atol=1e-8, err_msg=name)
    lazy = measure.regionprops(hi.asarray(labels.astype(np.int32)), hi.asarray(brightness))[0]
    assert lazy.intensity_mean == pytest.approx(theirs[0].intensity_mean) and lazy.image_intensity.shape == lazy.image.shape
    with pytest.raises(AttributeError, match="solidity"):
        lazy.solidity  # noqa: B018
    with pytest.raises(AttributeError, match="intensity"):
        measure.regionprops(labels)[0].image_intensity  # noqa: B018
    with pytest.raises(NotImplementedError, match="perimeter"):
        lazy.perimeter  # noqa: B018
    assert measure.regionprops(np.zeros((3, 4), int)) == []


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float32, np.float64])
def test_profiles(dtype: Any) -> None:
    pixels = np.random.default_rng(5).random((23, 31)) * (200 if dtype is np.uint8 else 1)
    image = pixels > 0.5 if dtype is bool else pixels.astype(dtype)
    colours = np.stack([image, image[::-1], image], axis=-1)
    cases: list[dict[str, Any]] = [{}, {"linewidth": 3}, {"linewidth": 4, "reduce_func": np.max}, {"linewidth": 2, "reduce_func": None}]
    if dtype is not bool:
        cases += [{"order": 3}, {"order": 0, "linewidth": 5}, {"mode": "constant", "cval": 0.3}, {"linewidth": 3, "reduce_func": lambda line: line[0]}]
    for src, dst in (((2, 3), (17, 25)), ((5.5, 28), (5.5, 2)), ((20, 10), (1, 12.25)), ((-2, 4), (26, 4))):
        for given in cases:
            for one in (image, colours):
                found, want = (of.profile_line(one, src, dst, **given) for of in (measure, skimage.measure))
                assert found.shape == want.shape and found.dtype == want.dtype
                # A position is one half but for a rounding, and integers are rounded.
                slack = 1.01 if dtype in (bool, np.uint8) or given.get("order") == 0 else 1e-5 if dtype is np.float32 else 1e-6
                far = np.abs(found.astype(float) - want)
                assert far.max() <= slack and np.mean(far > 1e-5) < 0.1
                lazy = measure.profile_line(hi.asarray(one, channels=one.ndim == 3), src, dst, **given)
                np.testing.assert_array_equal(lazy, found)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2, 4)])
def test_an_array_without_pixels_has_no_values(shape: tuple[int, ...]) -> None:
    empty = np.zeros(shape, np.int32)
    assert ndimage.value_indices(empty) == scipy.ndimage.value_indices(empty) == {}
    assert ndimage.value_indices(empty, ignore_value=1) == {}


def test_extremes_ignore_nan() -> None:
    pixels, labels = np.array([np.nan, np.nan, 1.0, np.nan, 3.0]), [1, 1, 2, 2, 2]
    assert ndimage.extrema(pixels) == (1.0, 3.0, (2,), (4,))
    least, most, low, high = ndimage.extrema(pixels, labels, [1, 2])
    assert (least.tolist(), most.tolist(), low, high) == ([np.inf, 1.0], [-np.inf, 3.0], [(0,), (2,)], [(0,), (4,)])
    assert ndimage.minimum_position(pixels[:2]) == ndimage.maximum_position(pixels[:2]) == (0,)
