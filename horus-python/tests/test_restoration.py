"""Deconvolution, against scikit-image within a tolerance, and filters of volumes within a tolerance, against SciPy."""

import numpy as np
import pytest
import scipy.ndimage
import skimage.restoration

import horus_image as hi
from horus_image import ndimage, restoration

RNG = np.random.default_rng(7)


def blurred(shape, psf, dtype):
    beads = (RNG.random(shape) > 0.97).astype(np.float64)
    return np.maximum(scipy.ndimage.convolve(beads, psf, mode="constant"), 0).astype(dtype)


def spread(*shape):
    at = np.meshgrid(*[np.arange(n) - (n - 1) / 2 for n in shape], indexing="ij")
    psf = np.exp(-sum((a / (1 + 0.2 * k)) ** 2 for k, a in enumerate(at)) / 3)
    return psf / psf.sum()


@pytest.mark.parametrize(
    ("shape", "psf"), [((40, 45), (7, 9)), ((9, 30, 37), (5, 13, 11)), ((60,), (5,)), ((20, 21), (4, 6)), ((1, 1), (3, 3)), ((2, 3, 4), (3, 5, 7))]
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_richardson_lucy(shape, psf, dtype):
    psf = spread(*psf)
    image = blurred(shape, psf, dtype)
    want = skimage.restoration.richardson_lucy(image, psf, num_iter=8)
    got = restoration.richardson_lucy(image, psf, num_iter=8)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-3 if dtype == "f4" else 1e-6)
    lazy = restoration.richardson_lucy(hi.asarray(image), psf, num_iter=8)
    np.testing.assert_array_equal(lazy.compute(), got)


def test_arguments_of_richardson_lucy():
    psf = spread(5, 5)
    image = 3 * blurred((30, 31), psf, "f8")
    for options in ({"clip": False}, {"filter_epsilon": 0.05}, {"num_iter": 0}, {"num_iter": 1}):
        given = {"num_iter": 5, **options}
        want = skimage.restoration.richardson_lucy(image, psf, **given)
        np.testing.assert_allclose(restoration.richardson_lucy(image, psf, **given), want, rtol=0, atol=1e-6)
    counts = (200 * image).astype(np.uint8)
    want = skimage.restoration.richardson_lucy(counts, psf, 3, clip=False)
    np.testing.assert_allclose(restoration.richardson_lucy(counts, psf, 3, clip=False), want, rtol=1e-6, atol=1e-9)
    with hi.within(1e-2):
        near = restoration.richardson_lucy(image, psf, 3)
    np.testing.assert_allclose(near, restoration.richardson_lucy(image, psf, 3), rtol=0, atol=0.1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_richardson_lucy_keeps_what_is_not_finite(bad):
    image = np.array([[0.1, bad, 0.2, 0.3, 0.4, 0.5, 0.6]])
    psf = np.ones((1, 3)) / 3
    for steps in (0, 1, 2):
        for clip in (True, False):
            want = skimage.restoration.richardson_lucy(image, psf, steps, clip)
            np.testing.assert_allclose(restoration.richardson_lucy(image, psf, steps, clip), want, rtol=1e-9)


def test_faults_of_richardson_lucy():
    image = np.ones((5, 6))
    for psf in (np.ones(3), np.ones((3, 3, 3)), np.ones((0, 3))):
        with pytest.raises(ValueError, match=r"richardson_lucy: a point spread function of shape .* for an image of 2 axes"):
            restoration.richardson_lucy(image, psf)
    with pytest.raises(ValueError, match="richardson_lucy: -1 steps"):
        restoration.richardson_lucy(image, np.ones((3, 3)), -1)
    with pytest.raises(TypeError, match="integer"):
        restoration.richardson_lucy(image, np.ones((3, 3)), 2.5)
    with pytest.raises(NotImplementedError, match="richardson_lucy of an image with channels"):
        restoration.richardson_lucy(hi.asarray(np.ones((5, 6, 3)), channels=True), np.ones((3, 3)))


@pytest.mark.parametrize("mode", ["reflect", "mirror", "nearest", "wrap", "constant"])
@pytest.mark.parametrize("origin", [0, (-2, 1, 3)])
def test_filters_of_volumes_are_within_the_tolerance(mode, origin):
    image, weights = RNG.random((12, 40, 43)), RNG.standard_normal((5, 15, 14))
    weights[3] = 0
    for ours, theirs in ((ndimage.correlate, scipy.ndimage.correlate), (ndimage.convolve, scipy.ndimage.convolve)):
        exact = theirs(image, weights, mode=mode, cval=0.5, origin=origin)
        with hi.within(1e-9):
            near = ours(image, weights, mode=mode, cval=0.5, origin=origin)
        assert 0 < np.abs(near - exact).max() <= 1.1e-9 * np.abs(weights).sum()


SHAPES: list[tuple[int, ...]] = [(50,), (40, 51), (9, 12, 14)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "i8", "f4", "f8"])
def test_backgrounds_under_a_ball(dtype: str, shape: tuple[int, ...]) -> None:
    pixels = np.random.default_rng(1).random(shape) * 200
    image = pixels > 100 if dtype == "?" else pixels.astype(dtype)
    ellipsoids = [skimage.restoration.ellipsoid_kernel((side,) * len(shape), 20.0) for side in (5, 8)]
    holes = np.where(np.arange(ellipsoids[0].size).reshape(ellipsoids[0].shape) % 7, ellipsoids[0], np.inf)
    for given in ({"radius": 5}, {"radius": 3.5}, *({"kernel": kernel} for kernel in (*ellipsoids, holes, holes[1:]))):
        found, want = (of.rolling_ball(image, **given) for of in (restoration, skimage.restoration))
        assert found.dtype == want.dtype
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-4 if dtype == "f4" else 0)
        if dtype != "i8":
            lazy = restoration.rolling_ball(hi.asarray(image), **given)
            assert isinstance(lazy, hi.Image)
            np.testing.assert_array_equal(lazy.compute(), found)


def test_balls() -> None:
    for radius in (1, 2.5, 7):
        for ndim in (1, 2, 3):
            np.testing.assert_array_equal(restoration.ball_kernel(radius, ndim), skimage.restoration.ball_kernel(radius, ndim))
    for shape in ((5, 5), (3, 8), (4, 5, 7)):
        np.testing.assert_array_equal(restoration.ellipsoid_kernel(shape, 9.0), skimage.restoration.ellipsoid_kernel(shape, 9.0))
    for given, error in (({"nansafe": True}, NotImplementedError), ({"kernel": np.ones(3)}, ValueError)):
        with pytest.raises(error, match="rolling_ball"):
            restoration.rolling_ball(np.zeros((4, 5)), **given)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8"])
def test_total_variation(dtype: str, shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(1).random(shape)
    image = (image * 200).astype(dtype) if dtype[0] in "iu" else image.astype(dtype)
    # There, energies of float32 are sums in it: by a smaller eps, another step is the last.
    eps = 1e-4 if dtype == "f4" else 1e-6
    for given in ({}, {"weight": 0.5, "eps": eps}, {"max_num_iter": 3}, {"max_num_iter": 1}, {"eps": 0.05}):
        found, want = (of.denoise_tv_chambolle(image, **given) for of in (restoration, skimage.restoration))
        assert found.dtype == want.dtype
        np.testing.assert_allclose(found, want, rtol=0, atol=5e-6 if dtype == "f4" else 1e-12)
        lazy = restoration.denoise_tv_chambolle(hi.asarray(image), **given)
        assert isinstance(lazy, hi.Image)
        np.testing.assert_array_equal(lazy.compute(), found)


def test_total_variation_of_channels() -> None:
    colours = np.random.default_rng(2).random((20, 31, 3))
    for axis in (0, 1, -1):
        moved = np.ascontiguousarray(np.moveaxis(colours, -1, axis))
        found, want = (of.denoise_tv_chambolle(moved, channel_axis=axis) for of in (restoration, skimage.restoration))
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-12)
    lazy = restoration.denoise_tv_chambolle(hi.asarray(colours, channels=True))
    np.testing.assert_array_equal(np.asarray(lazy), found)
    for given in ({"weight": 0}, {"max_num_iter": 0}):
        with pytest.raises(ValueError, match="weight|steps"):
            restoration.denoise_tv_chambolle(colours, **given)
