"""Equalised and matched histograms beside scikit-image."""

import horus_image as hi
import numpy as np
import pytest
from horus_image import exposure
from scipy import ndimage as ndi
from skimage import exposure as ski


def picture(dtype, shape=(80, 117)):
    rng = np.random.default_rng(5)
    smooth = ndi.gaussian_filter(rng.random(shape), 3.0)
    smooth = (smooth - smooth.min()) / np.ptp(smooth) * 0.7 + 0.1 + 0.05 * rng.random(shape)
    return smooth.astype(dtype) if np.dtype(dtype).kind == "f" else (smooth * np.iinfo(dtype).max).astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int8, np.int16, np.float32, np.float64])
def test_equalize_hist(dtype):
    image = picture(dtype)
    theirs = ski.equalize_hist(image)
    ours = exposure.equalize_hist(image)
    assert ours.dtype == theirs.dtype and isinstance(ours, np.ndarray)
    # Positions between centres of bins are multiplied instead of divided; float32 is rounded once more.
    np.testing.assert_allclose(ours, theirs, atol=1e-6 if dtype == np.float32 else 1e-12)
    lazy = exposure.equalize_hist(hi.asarray(image))
    assert isinstance(lazy, hi.Image)
    np.testing.assert_array_equal(lazy.compute(), ours)


def test_equalize_hist_of_few_bins_colours_and_volumes():
    image = picture(np.float64)
    np.testing.assert_allclose(exposure.equalize_hist(image, nbins=7), ski.equalize_hist(image, nbins=7), atol=1e-12)
    volume = picture(np.uint8, (5, 20, 30))
    np.testing.assert_array_equal(exposure.equalize_hist(volume), ski.equalize_hist(volume))
    colours = hi.asarray(picture(np.float64, (20, 30, 3)), channels=True)
    with pytest.warns(UserWarning, match="color image"):
        theirs = ski.equalize_hist(colours.compute())
    np.testing.assert_allclose(exposure.equalize_hist(colours).compute(), theirs, atol=1e-12)
    with pytest.raises(NotImplementedError):
        exposure.equalize_hist(image, mask=image > 0.5)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("how", [{}, {"kernel_size": 16}, {"kernel_size": (7, 30), "clip_limit": 0.03}, {"clip_limit": 0.0, "nbins": 64}])
def test_equalize_adapthist(dtype, how):
    image = picture(dtype)
    theirs = ski.equalize_adapthist(image, **how)
    ours = exposure.equalize_adapthist(image, **how)
    assert ours.dtype == theirs.dtype
    # Levels are whole, and a sum just below one may be just above it: two of 2^14 levels, stretched by up to 4.
    np.testing.assert_allclose(ours, theirs, atol=8 / (1 << 14))
    np.testing.assert_array_equal(exposure.equalize_adapthist(hi.asarray(image), **how).compute(), ours)


def test_equalize_adapthist_of_small_and_flat_images():
    for shape in [(1, 1), (1, 9), (5, 3), (23, 64)]:
        image = picture(np.uint8, shape) if min(shape) > 1 else np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
        np.testing.assert_allclose(exposure.equalize_adapthist(image), ski.equalize_adapthist(image), atol=8 / (1 << 14))
    with pytest.raises(ValueError, match="between -1 and 1"):
        exposure.equalize_adapthist(np.array([[0.0, 2.0]]))
    with pytest.raises(ValueError, match="Incorrect value"):
        exposure.equalize_adapthist(np.zeros((4, 4)), kernel_size=(1, 2, 3))
    with pytest.raises(NotImplementedError):
        exposure.equalize_adapthist(np.zeros((4, 4), np.int32))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int8, np.int16, np.int32, np.float32, np.float64])
def test_match_histograms(dtype):
    image, reference = picture(dtype), (picture(dtype, (40, 31)) // 2 + 7).astype(dtype)
    theirs = ski.match_histograms(image, reference)
    ours = exposure.match_histograms(image, reference)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(exposure.match_histograms(hi.asarray(image), reference).compute(), ours)


@pytest.mark.parametrize("axis", [-1, 0])
def test_match_histograms_of_channels(axis):
    image, reference = picture(np.uint8, (30, 41, 3)), (picture(np.uint8, (25, 17, 3)) // 3 * 2).astype(np.uint8)
    reference[..., 1] //= 2
    image, reference = np.moveaxis(image, -1, axis), np.moveaxis(reference, -1, axis)
    theirs = ski.match_histograms(image, reference, channel_axis=axis)
    ours = exposure.match_histograms(image, reference, channel_axis=axis)
    assert ours.dtype == theirs.dtype == np.uint8
    np.testing.assert_array_equal(ours, theirs)


def test_match_histograms_tells_what_it_cannot():
    image = picture(np.uint8)
    with pytest.raises(ValueError, match="same number of channels"):
        exposure.match_histograms(image, picture(np.uint8, (3, 4, 5)))
    with pytest.raises(ValueError, match="must match"):
        exposure.match_histograms(picture(np.uint8, (9, 9, 3)), picture(np.uint8, (9, 9, 2)), channel_axis=-1)
