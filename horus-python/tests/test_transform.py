"""`horus_image.transform`, and blocks of `measure`, against scikit-image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import skimage.measure
import skimage.transform

import horus_image as hi
from horus_image import exposure, measure, transform

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


TYPES = [np.uint8, np.int16, np.int64, np.float16, np.float32, np.float64, np.bool_]


def pixels(dtype: Any, shape: tuple[int, ...]) -> Array:
    kind, numbers = np.dtype(dtype), np.random.default_rng(9).random(shape) ** 2
    if kind.kind == "b":
        return numbers > 0.4
    return (numbers * (1 if kind.kind == "f" else 120) - (0 if kind.kind == "u" else 0.2)).astype(kind)


def agree(ours: Any, theirs: Array, limit: float) -> None:
    """Within a share of the largest number; of float32 within some roundings."""
    assert isinstance(ours, np.ndarray) and ours.dtype == theirs.dtype and ours.shape == theirs.shape
    limit = {2: 2e-3, 4: max(limit, 2e-6)}.get(theirs.dtype.itemsize, limit) if theirs.dtype.kind == "f" else 0.0
    apart = np.abs(ours.astype(float) - theirs.astype(float)).max()
    assert apart <= limit * max(float(np.abs(theirs).max()), 1.0), apart


WAYS: list[dict[str, Any]] = [
    {},
    {"order": 0},
    {"order": 3},
    {"order": 1, "mode": "constant", "cval": 2.5},
    {"order": 3, "mode": "constant", "cval": -0.1},
    {"order": 3, "mode": "constant", "cval": 9, "clip": False},
    {"mode": "edge", "preserve_range": True},
    {"mode": "wrap", "anti_aliasing": False},
    {"order": 2, "mode": "symmetric", "clip": False},
]
SHAPES: list[tuple[tuple[int, ...], list[tuple[int, ...]]]] = [
    ((20, 25), [(30, 11), (7, 8), (20, 25), (41, 60)]),
    ((20,), [(33,), (7,)]),
    ((9, 10, 11), [(9, 14, 6), (12, 7, 11)]),
    ((24, 25, 3), [(30, 9, 3), (8, 29)]),
]


@pytest.mark.parametrize("dtype", TYPES)
def test_resize(dtype: Any) -> None:
    for shape, sizes in SHAPES:
        image = pixels(dtype, shape)
        for size in sizes:
            for way in WAYS:
                if (way.get("order") == 0 and dtype is np.float16) or (way.get("order") != 0 and dtype is np.bool_):
                    continue
                if way.get("order") == 2 and min(shape) < 8:
                    continue  # SciPy's prefilter is inexact along short axes
                # Positions are held to 2^-32 of a pixel, and steps of them add up.
                agree(transform.resize(image, size, **way), skimage.transform.resize(image, size, **way), 1e-7)
    if dtype is not np.bool_:
        image = pixels(dtype, (24, 25, 3))
        way = {"anti_aliasing": True, "anti_aliasing_sigma": 0.7}
        # Channels are smoothed into each other, at which both warn.
        with pytest.warns(UserWarning, match="not down-sampling"):
            agree(transform.resize(image, (10, 12), **way), skimage.transform.resize(image, (10, 12), **way), 1e-7)


def test_images_are_resized_lazily() -> None:
    for shape, size in (((20, 25), (9, 30)), ((20, 25, 3), (9, 30)), ((20, 25, 3), (9, 30, 3))):
        image = pixels(np.float32, shape)
        lazy = hi.asarray(image, channels=len(shape) > 2)
        for way in ({}, {"order": 3, "mode": "constant", "cval": 0.5}):
            found = transform.resize(lazy, size, **way)
            assert isinstance(found, hi.Image) and found.channels == lazy.channels
            agree(found.compute(), skimage.transform.resize(image, size, **way), 1e-6)
    lazy = hi.asarray(pixels(np.uint8, (20, 25)))
    for name, given in (("rescale", 1.5), ("pyramid_reduce", 2), ("pyramid_expand", 2), ("downscale_local_mean", (2, 3))):
        found = getattr(transform, name)(lazy, given)
        assert isinstance(found, hi.Image)
        agree(found.compute(), getattr(skimage.transform, name)(lazy.compute(), given), 1e-7)
    found = transform.integral_image(lazy)
    np.testing.assert_array_equal(found.compute(), skimage.transform.integral_image(lazy.compute()))
    np.testing.assert_array_equal(transform.integrate(found, [(1, 2), (0, 0)], [(4, -1), (3, 3)]), transform.integrate(found.compute(), [(1, 2), (0, 0)], [(4, -1), (3, 3)]))


@pytest.mark.parametrize("dtype", TYPES)
def test_rescale_and_pyramids(dtype: Any) -> None:
    order = {"order": 0} if dtype is np.bool_ else {}
    for shape in ((20, 25), (21,), (9, 10, 11)):
        image = pixels(dtype, shape)
        for scale in (2, 0.4, (1.3,) * len(shape)):
            if dtype is not np.float16:
                agree(transform.rescale(image, scale), skimage.transform.rescale(image, scale), 1e-7)
        for name in ("pyramid_reduce", "pyramid_expand"):
            for way in ({}, {"sigma": 1, "preserve_range": True, "mode": "constant", "cval": 0.3}):
                ours, theirs = (getattr(of, name)(image, 1.7, **way, **order) for of in (transform, skimage.transform))
                agree(ours, theirs, 1e-7)
    for axis in range(-1, 3):
        image = pixels(dtype, (24, 25, 28))[tuple(slice(3) if k == axis % 3 else slice(None) for k in range(3))]
        for name, given in (("rescale", (0.7, 1.2)), ("pyramid_reduce", 2), ("pyramid_expand", 1.5)):
            more = {} if name == "rescale" else order
            ours, theirs = (getattr(of, name)(image, given, channel_axis=axis, **more) for of in (transform, skimage.transform))
            agree(ours, theirs, 1e-7)


def test_resizing_refuses_what_it_cannot_do() -> None:
    image = pixels(np.float64, (12, 13))
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("resize", ((3,) * 4,), {}),
        ("resize", ((5, 6),), {"mode": "grid"}),
        ("resize", ((5, 6),), {"order": 6}),
        ("resize", ((5, 6),), {"anti_aliasing_sigma": -1, "anti_aliasing": True}),
        ("rescale", ((1, 2, 3),), {}),
        ("pyramid_reduce", (1,), {}),
        ("pyramid_expand", (0.5,), {}),
    ]
    for name, args, given in calls[1:]:
        for of in (transform, skimage.transform):
            with pytest.raises(ValueError):
                getattr(of, name)(image, *args, **given)
    with pytest.raises(ValueError, match="axes"):
        transform.resize(image, (3,) * 4)
    with pytest.raises(ValueError, match="no pixels"):
        transform.resize(image, (0, 4))
    for given in ({"order": 1}, {"anti_aliasing": True}):
        for of in (transform, skimage.transform):
            with pytest.raises(ValueError):
                of.resize(image > 0.5, (5, 6), **given)
    for of in (transform, skimage.transform):
        with pytest.warns(UserWarning, match="not down-sampling"):
            of.resize(image, (24, 13), anti_aliasing=True, anti_aliasing_sigma=1)
    with pytest.raises(NotImplementedError, match="channels"):
        transform.resize(hi.asarray(pixels(np.uint8, (4, 5, 3)), channels=True), (4, 5, 2))


@pytest.mark.parametrize("dtype", TYPES)
def test_blocks(dtype: Any) -> None:
    for shape, sizes in (((20, 25), [2, (3, 7), (30, 1)]), ((20,), [3]), ((5, 6, 7), [(1, 2, 3)]), ((20, 25, 3), [(2, 3, 1)])):
        image = pixels(dtype, shape)
        for size in sizes:
            agree(transform.downscale_local_mean(image, size, 2), skimage.transform.downscale_local_mean(image, size, 2), 1e-14)
            for of in (np.sum, np.mean, np.min, np.max, np.std, np.var):
                agree(measure.block_reduce(image, size, of, 1), skimage.measure.block_reduce(image, size, of, 1), 1e-13)
    lazy = measure.block_reduce(hi.asarray(pixels(np.uint8, (9, 10))), 3, np.max)
    assert isinstance(lazy, hi.Image) and lazy.dtype == np.uint8


def test_blocks_refuse_what_they_cannot_do() -> None:
    image = pixels(np.float64, (6, 7, 8))
    for size in ((2, 3), (2, 0, 1)):
        for of in (measure.block_reduce, skimage.measure.block_reduce):
            with pytest.raises(ValueError):
                of(image, size)
    for call in (lambda: measure.block_reduce(image, 2), lambda: measure.block_reduce(image[0], 2, np.median)):
        with pytest.raises(NotImplementedError, match="block_reduce"):
            call()


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float32, np.float64, np.bool_])
def test_integral_images(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    for shape in ((20, 25), (9,), (5, 6, 7)):
        image = pixels(dtype, shape)
        ours, theirs = (of.integral_image(image) for of in (transform, skimage.transform))
        agree(ours, theirs, 1e-14)
        corners = np.sort(rng.integers(0, np.array(shape)[:, None, None], (len(shape), 2, 30)), axis=1)
        first, last = corners[:, 0].T, corners[:, 1].T
        for start, end in ((first, last), (first[3], last[3]), (first - np.array(shape), last)):
            found, expected = (of.integrate(theirs, start, end) for of in (transform, skimage.transform))
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
    single = transform.integral_image(image, dtype=np.float32)
    assert single.dtype == np.float32 and transform.integral_image(hi.asarray(image > 0), dtype=np.float32).dtype == np.float32
    for of in (transform, skimage.transform):
        with pytest.raises(IndexError):
            of.integrate(theirs, (3, 3, 3), (2, 4, 4))
        with pytest.raises(IndexError):
            of.integrate(theirs, (3, 3, 3), (9, 4, 4))


WARPS: list[dict[str, Any]] = [
    {},
    {"order": 3},
    {"order": 4},
    {"order": 1, "cval": 2.5},
    {"order": 3, "cval": -0.1},
    {"mode": "edge", "preserve_range": True},
    {"mode": "wrap"},
    {"order": 3, "mode": "symmetric", "clip": False},
    {"order": 3, "mode": "reflect"},
]
MAPS = [
    skimage.transform.AffineTransform(scale=(1.2, 0.8), rotation=0.3, shear=0.1, translation=(2.3, -3.1)),
    skimage.transform.EuclideanTransform(rotation=0.2, translation=(1, 2)),
    skimage.transform.SimilarityTransform(scale=0.5).inverse,
    2.0 * np.array([[1.0, 0.2, -3.0], [-0.1, 0.9, 4.0], [0.0, 0.0, 1.0]]),
]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
def test_warps_and_rotations(dtype: Any) -> None:
    # Positions of float32 are rounded to that by scikit-image, and here held to 2^-32 of a pixel.
    limit = 3e-5 if dtype is np.float32 else 1e-7
    for shape in ((20, 25), (14, 15, 3)):
        image = pixels(dtype, shape)
        for way in WARPS:
            for given in MAPS:
                for size in (None, (30, 11)):
                    ours, theirs = (of.warp(image, given, output_shape=size, **way) for of in (transform, skimage.transform))
                    warped(ours, theirs, limit)
            for angle, more in ((30, {}), (-47.3, {"resize": True}), (90, {"resize": True}), (180, {"center": (3, 7.5)}), (0, {})):
                warped(*(of.rotate(image, angle, **more, **way) for of in (transform, skimage.transform)), limit)
    lazy = transform.rotate(hi.asarray(pixels(dtype, (14, 15, 3)), channels=True), 30, order=3)
    assert isinstance(lazy, hi.Image)
    np.testing.assert_array_equal(lazy.compute(), transform.rotate(pixels(dtype, (14, 15, 3)), 30, order=3))


def warped(ours: Any, theirs: Array, limit: float) -> None:
    assert isinstance(ours, np.ndarray) and ours.dtype == theirs.dtype and ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() <= limit * max(float(np.abs(theirs).max()), 1.0)


@pytest.mark.parametrize("dtype", TYPES)
def test_nearest_pixels_keep_their_type(dtype: Any) -> None:
    for shape in ((20, 25), (14, 15, 3)):
        image = pixels(dtype, shape)
        if dtype is np.float16:
            image = image.astype(np.float32)
        for mode in ("constant", "edge", "reflect"):
            ours, theirs = (of.warp(image, MAPS[0], order=0, mode=mode) for of in (transform, skimage.transform))
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
    if dtype is np.bool_:
        np.testing.assert_array_equal(transform.rotate(image, 12.3), skimage.transform.rotate(image, 12.3))


def test_warps_refuse_what_they_cannot_do() -> None:
    image = pixels(np.float64, (12, 13))
    projective = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.01, 0.0, 1.0]])
    for given in (projective, np.zeros((2, 12, 13)), lambda xy: xy):
        with pytest.raises(NotImplementedError, match="warp"):
            transform.warp(image, given)
    with pytest.raises(NotImplementedError, match="map_args"):
        transform.warp(image, np.eye(3), map_args={"a": 1})  # type: ignore[arg-type]
    for wrong in (np.zeros((3, 3)), np.full((3, 3), np.nan)):
        with pytest.raises(ValueError, match="inverse_map"):
            transform.warp(image, wrong)
    for wrong in ({"output_shape": (3, 4, 5)}, {"mode": "grid"}, {"order": 7}):
        with pytest.raises(ValueError):
            transform.warp(image, np.eye(3), **wrong)
    with pytest.raises(ValueError, match="channels"):
        transform.warp(pixels(np.float64, (5, 6, 3)), np.eye(3), output_shape=(5, 6, 4))
    for of in (transform, skimage.transform):
        with pytest.raises(ValueError, match="bool" if of is not transform else "masks"):
            of.rotate(image > 0.5, 30, order=1)


def test_faults_of_planes_and_sizes_are_told() -> None:
    image = np.ones((9, 9))
    for call, error, message in (
        (lambda: transform.rotate(hi.asarray(np.zeros((3, 4, 5))), 3), ValueError, "rotate: a volume, of shape"),
        (lambda: transform.rotate(np.arange(5.0), 20), ValueError, "rotate: an image of 1 axes"),
        (lambda: transform.resize(image, (3, 3), anti_aliasing=True, anti_aliasing_sigma=(1, 1, 1)), ValueError, "anti_aliasing_sigma of 3 axes"),
        (lambda: transform.resize(image, (3, 3), order=1.5), TypeError, "integer"),  # type: ignore[arg-type]
        (lambda: measure.block_reduce(image, 2.5), TypeError, "integer"),
        (lambda: measure.block_reduce(np.float64(3)), ValueError, "block_reduce: a number has no blocks"),
        (lambda: measure.blur_effect(np.ones((9, 9, 4)), channel_axis=-1), ValueError, "blur_effect: 4 channels"),
        (lambda: measure.blur_effect(np.ones((3, 9))), ValueError, "blur_effect: an image of shape"),
        (lambda: exposure.rescale_intensity(image, (1, 2, 3)), ValueError, "is no range"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_nan_stays_in_blurs_and_volumes_have_a_contrast() -> None:
    image = np.ones((12, 12))
    image[3:, 4] = 2
    image[5, 5] = np.nan
    assert np.isnan(measure.blur_effect(image))
    assert not exposure.is_low_contrast(hi.asarray(np.linspace(0, 1, 60).reshape(4, 5, 3)))


def planes(dtype: Any = np.float64) -> tuple[Array, Array]:
    """A smooth picture, and one of three channels."""
    pixels = scipy.ndimage.gaussian_filter(np.random.default_rng(4).random((41, 52)), 1.5)
    pixels = pixels.astype(dtype) if np.dtype(dtype).kind == "f" else (pixels * np.iinfo(dtype).max).astype(dtype)
    return pixels, np.stack([pixels, pixels[::-1], pixels[:, ::-1]], axis=-1)


POLAR: list[dict[str, Any]] = [
    {},
    {"scaling": "log", "mode": "edge"},
    {"radius": 15, "center": (10, 20.5)},
    {"output_shape": (50, 30), "order": 3},
    {"order": 0},
    {"mode": "reflect", "radius": 60, "preserve_range": True},
    {"cval": 0.7, "clip": False},
]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_polar_coordinates(dtype: Any) -> None:
    grey, colours = planes(dtype)
    for given in POLAR:
        for image, axis in ((grey, None), (colours, -1), (np.ascontiguousarray(np.moveaxis(colours, -1, 0)), 0)):
            found, want = (of.warp_polar(image, channel_axis=axis, **given) for of in (transform, skimage.transform))
            assert found.dtype == want.dtype and found.shape == want.shape
            # A position is half a pixel, or on the edge, but for a rounding.
            off = np.abs(found.astype(float) - want) > (1e-5 if dtype is np.float32 else 1e-9) * max(float(np.abs(want).max()), 1.0)
            assert off.mean() < 1e-3
        lazy = transform.warp_polar(hi.asarray(grey), **given)
        assert isinstance(lazy, hi.Image)
        np.testing.assert_array_equal(lazy.compute(), transform.warp_polar(grey, **given))
    for of in (transform, skimage.transform):
        with pytest.raises(ValueError, match="[Ss]caling"):
            of.warp_polar(grey, scaling="square")


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_swirls(dtype: Any) -> None:
    cases: list[dict[str, Any]] = [{}, {"strength": 5, "radius": 30, "order": 3, "mode": "constant", "cval": 0.2}, {"rotation": 0.3}, {"center": (10, 20), "output_shape": (30, 60), "mode": "wrap"}]
    for image in planes(dtype):
        for given in cases:
            found, want = (of.swirl(image, **given) for of in (transform, skimage.transform))
            assert found.dtype == want.dtype and found.shape == want.shape
            assert (np.abs(found - want) > (1e-5 if dtype is np.float32 else 1e-9)).mean() < 1e-3
            lazy = transform.swirl(hi.asarray(image, channels=image.ndim == 3), **given)
            np.testing.assert_array_equal(np.asarray(lazy), found)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("name", ["pyramid_gaussian", "pyramid_laplacian"])
def test_layers_of_pyramids(name: str, dtype: Any) -> None:
    grey, colours = planes(dtype)
    levels = np.random.default_rng(2).random((20, 12, 14)).astype(dtype)
    for given in ({}, {"max_layer": 2, "downscale": 1.5, "preserve_range": True}, {"sigma": 1.2, "mode": "constant", "max_layer": 3}, {"max_layer": 0}):
        for image, axis in ((grey, None), (colours, -1), (np.ascontiguousarray(np.moveaxis(colours, -1, 0)), 0), (levels, None)):
            found, want = (list(getattr(of, name)(image, channel_axis=axis, **given)) for of in (transform, skimage.transform))
            assert len(found) == len(want)
            for one, other in zip(found, want, strict=True):
                assert one.dtype == other.dtype and one.shape == other.shape
                # Positions between pixels are held to 2^-21 of one.
                np.testing.assert_allclose(one, other, rtol=0, atol=(1e-5 if dtype is np.float32 else 1e-7) * max(float(np.abs(want[0]).max()), 1.0))
        for one, other in zip(getattr(transform, name)(hi.asarray(grey), **given), getattr(transform, name)(grey, **given), strict=True):
            assert isinstance(one, hi.Image)
            np.testing.assert_array_equal(one.compute(), other)
    for of in (transform, skimage.transform):
        with pytest.raises(ValueError, match="scale factor"):
            list(getattr(of, name)(grey, downscale=1))
