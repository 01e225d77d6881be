"""Intensities and histograms beside scikit-image."""

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
    for dtype in (np.uint8, np.int32, np.float32, np.float64):
        volume = picture(dtype, (5, 20, 30)) if dtype != np.int32 else picture(np.uint8, (5, 20, 30)).astype(dtype)
        ours, theirs = exposure.equalize_hist(volume), ski.equalize_hist(volume)
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, atol=1e-6 if dtype == np.float32 else 1e-12 if dtype == np.float64 else 0)
        np.testing.assert_array_equal(exposure.equalize_hist(hi.asarray(volume)).compute(), ours)
    for special in (np.full((3, 4), 7, np.uint8), np.full((3, 4, 5), 0.5), np.full((2, 3), 0.3, np.float32), np.arange(5, dtype=np.int64)):
        np.testing.assert_array_equal(exposure.equalize_hist(special), ski.equalize_hist(special))
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
    assert_adapted(image, **how)


def assert_adapted(image, **how):
    """Adaptive equalisation with scikit-image's bits."""
    theirs = ski.equalize_adapthist(image, **how)
    ours = exposure.equalize_adapthist(image, **how)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(exposure.equalize_adapthist(hi.asarray(image), **how).compute(), ours)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_equalize_adapthist_where_raised_bins_reach_the_limit(dtype):
    def typed(image):
        return image.astype(dtype) if np.dtype(dtype).kind == "f" else (image * np.iinfo(dtype).max).astype(dtype)

    for shape, kernel in [((150, 163), None), ((126, 168), None), ((150, 163), (30, 40))]:
        assert_adapted(typed(np.linspace(0.0, 1.0, shape[0] * shape[1]).reshape(shape)), kernel_size=kernel)
    rng = np.random.default_rng(8)
    assert_adapted(typed(rng.integers(0, 4, (90, 80)) / 3), clip_limit=0.02)
    assert_adapted(typed(np.clip(rng.normal(0.4, 0.05, (512, 512)), 0.0, 1.0)), kernel_size=64)
    smooth = ndi.gaussian_filter(rng.random((120, 140)), 6.0)
    assert_adapted(typed((smooth - smooth.min()) / np.ptp(smooth)))


def test_equalize_adapthist_of_random_pictures():
    rng = np.random.default_rng(3)
    for _ in range(40):
        shape = rng.integers(1, 70, 2)
        image = rng.integers(0, rng.integers(2, 256), shape).astype(np.uint8)
        if rng.random() < 0.5:
            image = (rng.random(shape) ** rng.integers(1, 6) * 2 - 1).astype(np.float32)
        how = {"kernel_size": tuple(rng.integers(1, 80, 2).tolist())} if rng.random() < 0.7 else {}
        limit, bins = float(rng.choice([0.0, 0.001, 0.01, 0.03, 0.2, 1.5])), int(rng.choice([1, 7, 64, 256, 1000, 16384]))
        assert_adapted(image, clip_limit=limit, nbins=bins, **how)


def test_equalize_adapthist_of_small_and_flat_images():
    for shape in [(1, 1), (1, 9), (5, 3), (23, 64)]:
        image = picture(np.uint8, shape) if min(shape) > 1 else np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
        assert_adapted(image)
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


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float16, np.float32, np.float64, np.bool_, ">f4"])
@pytest.mark.parametrize("shape", [(40, 3), (30, 41, 3), (30, 41, 1), (5, 12, 9, 2)], ids=str)
def test_match_histograms_of_channels_along_any_axis(shape, dtype):
    rng = np.random.default_rng(8)
    kind = np.dtype(dtype)

    def numbers(scale):
        drawn = rng.random(shape)
        return drawn > scale if kind.kind == "b" else (drawn * (scale if kind.kind == "f" else 200 * scale)).astype(kind)

    image, reference = numbers(0.9), numbers(0.6)
    for axis in range(-len(shape), len(shape)):
        ours, theirs = (of.match_histograms(np.moveaxis(image, -1, axis), np.moveaxis(reference, -1, axis), channel_axis=axis) for of in (exposure, ski))
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        # Numbers of float16 are rounded from those of float32 here, and of float64 there.
        np.testing.assert_allclose(ours.astype(float), theirs.astype(float), rtol=2**-10 if kind == np.float16 else 0, atol=0)


def test_match_histograms_tells_what_it_cannot():
    image = picture(np.uint8)
    with pytest.raises(ValueError, match="same number of channels"):
        exposure.match_histograms(image, picture(np.uint8, (3, 4, 5)))
    with pytest.raises(ValueError, match="must match"):
        exposure.match_histograms(picture(np.uint8, (9, 9, 3)), picture(np.uint8, (9, 9, 2)), channel_axis=-1)


def pixels(dtype, shape=(23, 31)):
    """Numbers of both signs, if the type has them, and not all of its range."""
    kind, numbers = np.dtype(dtype), np.random.default_rng(2).random(shape) ** 2
    if kind.kind == "b":
        return numbers > 0.4
    return (numbers * (1 if kind.kind == "f" else 90) - (0 if kind.kind == "u" else 0.3)).astype(kind)


TYPES = [np.uint8, np.uint16, np.uint32, np.int8, np.int16, np.int32, np.int64, np.float32, np.float64, np.bool_, ">f4"]
RANGES = [
    {},
    {"in_range": (20, 60.5)},
    {"in_range": "dtype"},
    {"in_range": "uint8", "out_range": "image"},
    {"out_range": (3, 7.5)},
    {"out_range": (0, 1)},
    {"out_range": "uint10"},
    {"out_range": np.uint8},
    {"out_range": "bool"},
    {"in_range": (5, 5)},
]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_rescale_intensity(dtype):
    for image in (pixels(dtype), pixels(dtype, (40,)), pixels(dtype, (3, 4, 5))):
        for how in RANGES:
            # The largest integer of 64 bits is above those that floats are cut to, by both.
            with np.errstate(invalid="ignore"):
                ours, theirs = (of.rescale_intensity(image, **how) for of in (exposure, ski))
            assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
            np.testing.assert_array_equal(ours, theirs, err_msg=str(how))
            if dtype not in (np.int64, ">f4"):
                lazy = exposure.rescale_intensity(hi.asarray(image), **how)
                assert isinstance(lazy, hi.Image)
                np.testing.assert_array_equal(lazy.compute(), ours)


def test_rescale_intensity_tells_what_it_cannot():
    for of in (exposure, ski):
        with pytest.raises(ValueError):
            of.rescale_intensity(pixels(np.uint8), out_range="none")
    with pytest.raises(TypeError, match="rescale_intensity.*int64"):
        exposure.rescale_intensity(hi.asarray(pixels(np.float32)), out_range="int64")
    # NaN is not the smallest pixel.
    image = np.array([[np.nan, 1.0, 2.0, 5.0]])
    np.testing.assert_array_equal(exposure.rescale_intensity(image), ski.rescale_intensity(image, in_range=(1, 5)))


CORRECTIONS = [
    ("adjust_gamma", {}),
    ("adjust_gamma", {"gamma": 0.4}),
    ("adjust_gamma", {"gamma": 2, "gain": 0.7}),
    ("adjust_gamma", {"gamma": 0}),
    ("adjust_log", {}),
    ("adjust_log", {"gain": 0.8, "inv": True}),
    ("adjust_sigmoid", {}),
    ("adjust_sigmoid", {"cutoff": 0.2, "gain": 5, "inv": True}),
]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_corrections(dtype):
    kind = np.dtype(dtype)
    for shape in ((23, 31), (3, 4, 5)):
        image = pixels(dtype, shape)
        image = image if kind.kind == "b" else np.abs(image)
        for name, how in CORRECTIONS:
            with np.errstate(invalid="ignore"):
                ours, theirs = (getattr(of, name)(image, **how) for of in (exposure, ski))
            assert ours.dtype == theirs.dtype
            # Powers and exponentials of floats have other roundings; tables are NumPy's.
            np.testing.assert_allclose(ours, theirs, rtol=0, atol={"f4": 1e-6, "f8": 1e-15}.get(kind.str[1:], 0), err_msg=name)
            if dtype not in (np.int64, ">f4"):
                np.testing.assert_array_equal(getattr(exposure, name)(hi.asarray(image), **how).compute(), ours)


def test_corrections_refuse_what_is_negative():
    for name in ("adjust_gamma", "adjust_log", "adjust_sigmoid"):
        for image in (np.array([[0.5, -0.1]]), np.array([[1, -1]], np.int16)):
            for of in (exposure, ski):
                with pytest.raises(ValueError, match="negative"):
                    getattr(of, name)(image)
    for of in (exposure, ski):
        with pytest.raises(ValueError, match="non-negative"):
            of.adjust_gamma(pixels(np.uint8), -1)


@pytest.mark.filterwarnings("ignore:This might be a color image")
@pytest.mark.parametrize("dtype", TYPES[:9], ids=str)
def test_histogram(dtype):
    for image in (pixels(dtype), pixels(dtype, (7, 20, 3)), np.full((3, 4), 5, dtype)):
        # Of wide integers all numbers of the type are too many.
        ranges = [{"source_range": "dtype"}] if np.dtype(dtype).kind == "f" or np.dtype(dtype).itemsize < 4 else []
        axes = [{"channel_axis": axis} for axis in range(-1, image.ndim) if image.ndim > 2]
        for how in ({}, {"nbins": 9, "normalize": True}, *ranges, *axes):
            found, expected = (of.histogram(image, **how) for of in (exposure, ski))
            for ours, theirs in zip(found, expected, strict=True):
                assert ours.dtype == theirs.dtype
                np.testing.assert_array_equal(ours, theirs, err_msg=str(how))
        found, expected = (of.cumulative_distribution(image, 20) for of in (exposure, ski))
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
        if dtype is not np.int64:
            np.testing.assert_array_equal(exposure.histogram(hi.asarray(image))[0], exposure.histogram(image)[0])
            np.testing.assert_array_equal(exposure.cumulative_distribution(hi.asarray(image), 20)[0], found[0])


def test_histogram_tells_what_it_cannot():
    for of in (exposure, ski):
        with pytest.raises(ValueError, match="source_range"):
            of.histogram(pixels(np.uint8), source_range="all")
    with pytest.raises(NotImplementedError, match="bins"):
        exposure.histogram(pixels(np.int32), source_range="dtype")
    with pytest.raises(ValueError, match="finite"):
        exposure.histogram(np.array([[0.0, np.inf]]))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.float32, np.float64])
def test_is_low_contrast(dtype):
    for shape in ((23, 31), (50,), (5, 6, 7), (9, 11, 3), (9, 11, 4)):
        image = np.abs(pixels(dtype, shape))
        found = []
        # Shares above and below the one that decides.
        for share in np.geomspace(1e-9, 1, 60):
            for of in ({}, {"lower_percentile": 20, "upper_percentile": 70.5}):
                ours, theirs = (module.is_low_contrast(image, share, **of) for module in (exposure, ski))
                assert ours == theirs
                found.append(ours)
        assert {*found} == {True, False}
        lazy = hi.asarray(image, channels=shape[-1] in (3, 4))
        assert exposure.is_low_contrast(lazy, 0.05) == exposure.is_low_contrast(image, 0.05)
    for mask in (np.ones((3, 4), bool), np.zeros((3, 4), bool), np.eye(3) > 0):
        assert exposure.is_low_contrast(mask) is ski.is_low_contrast(mask)
