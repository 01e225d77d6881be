"""`horus_image.filters` against scikit-image, over its modes and options.

Both compute in the input's type of floats; tolerances are relative to the largest number of the result where nothing else is said.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import skimage.feature
import skimage.filters
import skimage.morphology

import horus_image as hi
from horus_image import filters
from test_attributes import CASES, plainly

Array = np.ndarray[Any, Any]
MODES = ["reflect", "constant", "nearest", "mirror", "wrap"]
# Sums have another order, and eigenvalues are differences of larger numbers.
TOLERANCE = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-10}


def picture(dtype: Any = np.float64, shape: tuple[int, int] = (45, 61), seed: int = 3) -> Array:
    """Blurred lines and noise from 0 to 1, or over the range of an integer type."""
    rng = np.random.default_rng(seed)
    lines = np.ones(shape)
    lines[shape[0] // 3] = lines[:, shape[1] // 4] = 0.0
    lines[np.arange(30), np.arange(30) + 20] = 0.0
    pixels = scipy.ndimage.gaussian_filter(lines, 1.5) + 0.1 * rng.random(shape)
    pixels = (pixels - pixels.min()) / (pixels.max() - pixels.min())
    kind = np.dtype(dtype)
    return pixels.astype(kind) if kind.kind == "f" else (pixels * np.iinfo(kind).max).astype(kind)


def agree(ours: Any, theirs: Array, scale: float = 1.0, but: int = 0) -> None:
    """Within the tolerance, at all but so many pixels."""
    assert isinstance(ours, np.ndarray) and ours.dtype == theirs.dtype and ours.shape == theirs.shape
    apart = np.abs(ours - theirs)
    tolerance = TOLERANCE[theirs.dtype] * max(float(np.abs(theirs).max()), 1e-3) * scale
    assert np.count_nonzero(~(apart <= tolerance)) <= but, f"{apart.max()} at {(apart > tolerance).sum()} pixels; {tolerance} is allowed"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["frangi", "sato", "meijering"])
def test_ridges_in_each_mode(name: str, mode: str) -> None:
    for dtype in (np.float64, np.float32):
        image = picture(dtype)
        given: dict[str, Any] = {"sigmas": [1, 2.5], "mode": mode, "cval": 0.7}
        ours, theirs = getattr(filters, name)(image, **given), getattr(skimage.filters, name)(image, **given)
        # frangi jumps to 0 where eigenvalues of both signs are equal but for a rounding: at some saddle points.
        agree(ours, theirs, but=2 if name == "frangi" and dtype is np.float32 else 0)


@pytest.mark.parametrize("black", [True, False])
def test_options_of_ridges(black: bool) -> None:
    image = picture()
    for given in ({"gamma": 0.2}, {"beta": 1.5}, {"sigmas": [3, 1]}, {}):
        agree(filters.frangi(image, black_ridges=black, **given), skimage.filters.frangi(image, black_ridges=black, **given))
    agree(filters.sato(image, black_ridges=black), skimage.filters.sato(image, black_ridges=black))
    for alpha in (None, 0.0, -0.3):
        ours = filters.meijering(image, [1.5], alpha, black)
        agree(ours, skimage.filters.meijering(image, [1.5], alpha, black))
    for dtype in (np.uint8, np.int16, np.float16):
        whole = picture(np.float32).astype(dtype) if dtype is np.float16 else picture(dtype)
        agree(filters.sato(whole, [2]), skimage.filters.sato(whole, [2]), 1.0)
    flat = np.full((9, 9), 0.25)
    for name in ("frangi", "meijering"):
        assert getattr(filters, name)(flat, [1]).max() <= 1e-12, "nothing but roundings, which are not divided by 0"


@pytest.mark.parametrize("black", [True, False])
def test_ridges_of_volumes(black: bool) -> None:
    flat = picture(shape=(45, 61))[:24, 20:60]
    volume = np.stack([np.roll(flat, 2 * z, axis=1) * (1.0 + 0.05 * z) for z in range(17)])
    volume += 0.05 * np.random.default_rng(4).random(volume.shape)
    # The closed formula has half the digits where two eigenvalues are nearly equal, and frangi jumps where one changes its sign.
    for dtype, scale in ((np.float64, 1e3), (np.float32, 50.0)):
        for name in ("frangi", "sato", "meijering"):
            given: dict[str, Any] = {"sigmas": [1.2, 2], "black_ridges": black, "mode": "nearest"}
            ours, theirs = (getattr(module, name)(volume.astype(dtype), **given) for module in (filters, skimage.filters))
            agree(ours, theirs, scale, but=4 if name == "frangi" else 0)
    ours = filters.frangi(volume, [1.5], alpha=0.2, gamma=0.1, black_ridges=black)
    agree(ours, skimage.filters.frangi(volume, [1.5], alpha=0.2, gamma=0.1, black_ridges=black), 1e3, but=4)
    assert filters.meijering(np.full((5, 6, 7), 0.25), [1]).max() <= 1e-12


def test_ridges_refuse_what_they_cannot_do() -> None:
    for name in ("frangi", "sato", "meijering"):
        with pytest.raises(NotImplementedError, match="channel"):
            getattr(filters, name)(hi.asarray(np.zeros((4, 5, 3)), channels=True))
        with pytest.raises(ValueError, match="positive"):
            getattr(filters, name)(picture(), sigmas=[-1])
        with pytest.raises(ValueError, match="axes"):
            getattr(filters, name)(np.zeros(5))
        with pytest.raises(ValueError, match="pixels"):
            getattr(filters, name)(np.zeros((0, 5)))
    with pytest.raises(NotImplementedError, match="give sigmas"):
        filters.frangi(picture(), scale_range=(1, 3))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int8, np.int16, np.float32, np.float64])
def test_unsharp_mask(dtype: Any) -> None:
    image = picture(dtype)
    for given in ({}, {"radius": 2.5, "amount": 3.0}, {"radius": (1.0, 3.0)}, {"preserve_range": True}, {"amount": -0.5}):
        agree(filters.unsharp_mask(image, **given), skimage.filters.unsharp_mask(image, **given))
    if np.dtype(dtype).kind != "u":
        agree(filters.unsharp_mask(-image, amount=4), skimage.filters.unsharp_mask(-image, amount=4))
    colours = np.stack([image, image[::-1], image[:, ::-1]], axis=1)
    agree(filters.unsharp_mask(colours, channel_axis=1), skimage.filters.unsharp_mask(colours, channel_axis=1))
    volume = np.stack([image, image[::-1], image], axis=0)[:, :20, :20]
    agree(filters.unsharp_mask(volume), skimage.filters.unsharp_mask(volume))


@pytest.mark.parametrize("mode", MODES)
def test_difference_of_gaussians(mode: str) -> None:
    for dtype in (np.uint8, np.int16, np.float32, np.float64):
        image = picture(dtype)
        for args, given in (((1.0,), {}), ((1.0, 3.0), {"truncate": 2.0}), (((1, 2), (2, 5)), {"cval": 0.4})):
            ours = filters.difference_of_gaussians(image, *args, mode=mode, **given)
            agree(ours, skimage.filters.difference_of_gaussians(image, *args, mode=mode, **given), 10.0)
    for args in ((3.0, 1.0), ((1, 2, 3),)):
        for module in (filters, skimage.filters):
            with pytest.raises(ValueError):
                module.difference_of_gaussians(picture(), *args)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int8, np.int16, np.int32, np.float32, np.float64])
def test_thresholds_of_images(dtype: Any) -> None:
    image = picture(dtype, seed=11) if dtype is not np.int32 else picture(np.int16).astype(np.int32) - 9000
    for name in ("threshold_otsu", "threshold_yen"):
        ours, theirs = getattr(filters, name)(image), getattr(skimage.filters, name)(image)
        # The same bin; its centre is rounded in another type.
        assert isinstance(ours, float) and abs(ours - theirs) <= 1e-6 * abs(theirs), name
    assert abs(filters.threshold_otsu(image, 40) - skimage.filters.threshold_otsu(image, 40)) <= 1e-6 * abs(float(image.max()))
    ours, theirs = filters.threshold_li(image), skimage.filters.threshold_li(image)
    # scikit-image takes means of float32 in float32; of integers, in float32 counts.
    assert abs(ours - theirs) <= 1e-5 * (float(image.max()) - float(image.min()))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int8, np.int16, np.int32, np.float32, np.float64])
def test_thresholds_of_histograms_and_means(dtype: Any) -> None:
    few: list[tuple[str, dict[str, Any]]] = [("threshold_isodata", {}), ("threshold_triangle", {}), ("threshold_mean", {})]
    if np.dtype(dtype).kind == "f":
        few += [("threshold_isodata", {"nbins": 33}), ("threshold_triangle", {"nbins": 40})]
    for seed in range(3):
        image = picture(dtype, seed=seed) if dtype is not np.int32 else picture(np.int16, seed=seed).astype(np.int32) // 9
        image[3:20, 5:40] //= 2
        for pixels in (image, image.max() - image):
            for name, given in few:
                ours, theirs = (getattr(of, name)(pixels, **given) for of in (filters, skimage.filters))
                # Means of float32 are of float64, and centres of its bins are not rounded.
                assert isinstance(ours, float) and abs(ours - theirs) <= (2e-6 if dtype is np.float32 else 1e-14) * abs(theirs), name
        ours, theirs = (of.threshold_isodata(image, return_all=True) for of in (filters, skimage.filters))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6 if dtype is np.float32 else 0)
        assert len(ours) and filters.threshold_isodata(image) == ours[0]


def test_thresholds_of_given_histograms() -> None:
    rng = np.random.default_rng(8)
    failures = 0
    for apart in range(24):
        pixels = np.concatenate([rng.normal(centre, 6, 300) for centre in (20, 20 + 1.5 * apart)])
        hist = np.histogram(pixels, 40, (-5, 70))[0]
        for given in (hist, (hist, np.linspace(0.0, 1.0, 40))):
            assert filters.threshold_isodata(hist=given) == skimage.filters.threshold_isodata(hist=given)
            try:
                theirs = skimage.filters.threshold_minimum(hist=given, max_num_iter=300)
            except RuntimeError as error:
                failures += 1
                with pytest.raises(RuntimeError, match=str(error)[:12]):
                    filters.threshold_minimum(hist=given, max_num_iter=300)
                continue
            assert filters.threshold_minimum(hist=given, max_num_iter=300) == theirs
    assert 0 < failures < 40
    two = np.concatenate([rng.normal(centre, 9, 900) for centre in (60, 160)]).reshape(30, 60)
    for image in (two.astype(np.uint8), two / 200):
        assert filters.threshold_minimum(image, 64) == skimage.filters.threshold_minimum(image, 64)
    for of in (filters, skimage.filters):
        with pytest.raises(RuntimeError, match="iteration|two maxima"):
            of.threshold_minimum(hist=hist, max_num_iter=1)
    for name in ("threshold_isodata", "threshold_triangle", "threshold_mean"):
        assert getattr(filters, name)(np.full((3, 4), 7, np.uint8)) == 7.0
    with pytest.raises(ValueError, match="max_num_iter"):
        filters.threshold_minimum(hist=hist, max_num_iter=0)


def test_options_of_thresholds() -> None:
    image = picture()
    counts, centres = np.histogram(image, 64)
    for name in ("threshold_otsu", "threshold_yen"):
        ours, theirs = getattr(filters, name), getattr(skimage.filters, name)
        padded = np.concatenate([[0, 0], counts, [0]])
        assert ours(hist=padded) == theirs(hist=padded)
        assert ours(hist=(counts, centres[1:])) == theirs(hist=(counts, centres[1:]))
        assert ours(np.full((3, 4), 7, np.uint8)) == 7.0
        assert ours(hi.asarray(image)) == ours(image)
        with pytest.raises(ValueError, match="provided"):
            ours()
        with pytest.raises(NotImplementedError, match="bins"):
            ours(np.array([[0, 1 << 30]], np.int32))
    seen: list[float] = []
    theirs_seen: list[float] = []
    filters.threshold_li(image, iter_callback=seen.append)
    skimage.filters.threshold_li(image, iter_callback=theirs_seen.append)
    np.testing.assert_allclose(seen, theirs_seen, rtol=1e-12)
    for given in ({"initial_guess": 0.3}, {"initial_guess": np.median}, {"tolerance": 0.05}):
        assert abs(filters.threshold_li(image, **given) - skimage.filters.threshold_li(image, **given)) < 1e-12
    spoilt = image.copy()
    spoilt[2, 3], spoilt[4, 5] = np.nan, np.inf
    assert abs(filters.threshold_li(spoilt) - skimage.filters.threshold_li(spoilt)) < 1e-12
    for wrong, error in ((2.0, ValueError), ("much", TypeError)):
        with pytest.raises(error):
            filters.threshold_li(image, initial_guess=wrong)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
def test_thresholds_of_pixels(dtype: Any) -> None:
    image = picture(dtype)
    # There, a variance of sums over the whole image is rounded, and a root of it magnifies that; float32, also for the mean of squares.
    scale = 1e5 if dtype is np.float64 else 50.0 if dtype is np.float32 else 1e5
    for name in ("threshold_niblack", "threshold_sauvola"):
        for given in ({}, {"window_size": (3, 11), "k": -0.1}, {"window_size": 31}):
            agree(getattr(filters, name)(image, **given), getattr(skimage.filters, name)(image, **given), scale)
        with pytest.raises(ValueError, match="odd"):
            getattr(filters, name)(image, 4)
    agree(filters.threshold_sauvola(image, r=0.3), skimage.filters.threshold_sauvola(image, r=0.3), scale)


@pytest.mark.parametrize("pedestal", [0.0, 1e4, 1e8])
@pytest.mark.parametrize(
    ("shape", "size"), [((80, 80), 15), ((40, 51), (3, 67)), ((30, 7), (1, 41)), ((9, 12, 14), (5, 3, 7)), ((50,), 9), ((3, 4), 1)]
)
def test_local_deviations_on_a_pedestal(shape: tuple[int, ...], size: Any, pedestal: float) -> None:
    numbers = np.random.default_rng(0).integers(0, 256, shape).astype(np.float64)
    numbers[..., shape[-1] // 2 :] += pedestal  # an edge as high, and a pedestal beyond it
    sizes = (size,) * len(shape) if isinstance(size, int) else size
    around = np.pad(numbers, [(one // 2,) * 2 for one in sizes], mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(around, sizes).reshape(*shape, -1)
    # Relative to the largest number of each window, by some roundings.
    slack = 1e-15 * np.abs(windows).max(axis=-1) + 1e-12
    mean, deviation = windows.mean(axis=-1), windows.std(axis=-1)
    found = filters.threshold_niblack(numbers, size, k=1.0)
    assert (np.abs(found - (mean - deviation)) <= slack).all()
    found = filters.threshold_sauvola(numbers, size, k=0.5, r=1e3)
    assert (np.abs(found - mean * (1.0 + 0.5 * (deviation / 1e3 - 1.0))) <= slack * (1.0 + deviation / 1e3 + np.abs(mean) / 1e3)).all()


@pytest.mark.parametrize("mode", MODES)
def test_local_thresholds(mode: str) -> None:
    for dtype in (np.uint8, np.float32, np.float64):
        image = picture(dtype)
        for method, size in (("gaussian", 9), ("mean", (5, 11)), ("median", 5)):
            given: dict[str, Any] = {"method": method, "mode": mode, "cval": 0.3, "offset": 0.1}
            agree(filters.threshold_local(image, size, **given), skimage.filters.threshold_local(image, size, **given))
        given = {"param": 2.0, "mode": mode}
        agree(filters.threshold_local(image, 9, **given), skimage.filters.threshold_local(image, 9, **given))
    with pytest.raises(NotImplementedError, match="generic"):
        filters.threshold_local(picture(), 3, "generic", param=np.max)
    with pytest.raises(ValueError, match="odd"):
        filters.threshold_local(picture(), 4)


def test_hysteresis() -> None:
    for image in (picture(seed=5), picture(np.uint8), np.stack([picture(), 1 - picture()]), picture()[7]):
        low, high = np.quantile(image, [0.7, 0.93]).tolist()
        for pair in ((low, high), (high, low)):
            ours = filters.apply_hysteresis_threshold(image, *pair)
            np.testing.assert_array_equal(ours, skimage.filters.apply_hysteresis_threshold(image, *pair))
    image = picture()
    lows = np.full(image.shape, 0.6)
    lows[:, :30] = 0.4
    ours = filters.apply_hysteresis_threshold(image, lows, 0.8)
    np.testing.assert_array_equal(ours, skimage.filters.apply_hysteresis_threshold(image, lows, 0.8))


@pytest.mark.parametrize("method", ["dilation", "erosion"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.uint64, np.float16, np.float32, np.float64, bool])
def test_reconstruction(dtype: Any, method: str) -> None:
    rng = np.random.default_rng(6)
    for shape in ((31, 40), (5, 11, 13), (50,), (1, 1)):
        mask, other = ((rng.random((2, *shape)) * 90).astype(dtype) for _ in range(2))
        if dtype is bool:
            mask, other = (rng.random((2, *shape)) < 0.6 for _ in range(2))
        seed = (np.minimum if method == "dilation" else np.maximum)(mask[0], other[0])
        kinds = [scipy.ndimage.generate_binary_structure(len(shape), kind) for kind in range(1, len(shape) + 1)]
        for footprint in (None, *kinds):
            ours, theirs = (of(seed, mask[0], method, footprint) for of in (filters.reconstruction, skimage.morphology.reconstruction))
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
        single = [image.astype(np.float32) for image in (seed, mask[0])]
        lazy = filters.reconstruction(*map(hi.asarray, single), method)
        assert isinstance(lazy, hi.Image) and lazy.dtype == np.float32
        theirs = skimage.morphology.reconstruction(*single, method)
        np.testing.assert_array_equal(lazy, theirs)


def test_options_of_reconstruction() -> None:
    mask = picture()
    seed = mask - 0.2
    both = (filters.reconstruction, skimage.morphology.reconstruction)
    # Of other types, neighbours in one row alone, and none.
    for given in (
        {"seed": (100 * seed).astype(np.int16), "mask": (100 * mask).astype(np.uint8)},
        {"seed": np.zeros(mask.shape, np.uint8), "mask": mask.astype(np.float32)},
        {"footprint": np.ones((1, 3))},
        {"footprint": np.ones((1, 1))},
    ):
        ours, theirs = (of(**{"seed": seed, "mask": mask, **given}) for of in both)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    # scikit-image takes offsets of one axis alone.
    line, even = np.ones((1, 3)), np.array([[0, 0, 0, 0], [1, 1, 1, 0]])
    moved = filters.reconstruction(seed, mask, footprint=even, offset=[1, 1])
    np.testing.assert_array_equal(moved, filters.reconstruction(seed, mask, footprint=line))
    ours, theirs = (of(seed[0], mask[0], footprint=even[1], offset=np.array([1])) for of in both)
    np.testing.assert_array_equal(ours, theirs)
    for wrong in (
        {"seed": mask + 1.0},
        {"seed": seed, "method": "erosion"},
        {"method": "opening"},
        {"footprint": np.ones((2, 3))},
        {"footprint": np.ones((3, 3)), "offset": np.array([3, 1])},
        {"footprint": np.ones((3, 3)), "offset": np.array([1])},
    ):
        for of in both:
            with pytest.raises(ValueError):
                of(**{"seed": seed, "mask": mask, **wrong})
    for footprint in (np.ones((5, 5)), np.eye(3)[[0, 1, 1]]):
        with pytest.raises(NotImplementedError, match="footprint"):
            filters.reconstruction(seed, mask, footprint=footprint)
    with pytest.raises(ValueError, match="shape"):
        filters.reconstruction(seed, mask[1:])


def edges_agree(image: Array, part: float, **given: Any) -> None:
    ours, theirs = filters.canny(image, **given), skimage.feature.canny(image, **given)
    assert ours.dtype == bool and theirs.any() and not theirs.all()
    assert np.count_nonzero(ours != theirs) <= part * np.count_nonzero(theirs)


@pytest.mark.parametrize("mode", MODES)
def test_canny(mode: str) -> None:
    edges_agree(picture(), 0.0, sigma=1.5, low_threshold=0.1, high_threshold=0.3, mode=mode, cval=0.2)
    edges_agree(picture(np.uint8), 0.0, sigma=1.0, low_threshold=20, high_threshold=60, mode=mode)
    # Magnitudes of float32 that are equal but for a rounding may be ordered otherwise.
    edges_agree(picture(np.float32), 0.02, sigma=1.5, mode=mode)
    edges_agree(picture(), 0.0, sigma=(1.0, 2.0), low_threshold=0.6, high_threshold=0.9, use_quantiles=True, mode=mode)
    mask = np.ones((45, 61), bool)
    mask[10:20, 30:] = False
    edges_agree(picture(), 0.0, mask=mask, mode=mode)


def test_canny_refuses_what_it_cannot_do() -> None:
    for wrong in ({"low_threshold": 0.5, "high_threshold": 0.1}, {"low_threshold": 2.0, "use_quantiles": True}):
        with pytest.raises(ValueError):
            filters.canny(picture(), **wrong)
    with pytest.raises(ValueError, match="64-bit"):
        filters.canny(np.ones((5, 5), np.int64))
    with pytest.raises(ValueError, match="mask"):
        filters.canny(picture(), mask=np.ones((3, 3)))


GOLDENS = Path(__file__).parents[2] / "tests" / "goldens"


def golden(name: str) -> Array:
    pixels: Array = np.load(GOLDENS / f"{name}.npy")
    return pixels


@pytest.mark.parametrize(("name", "expected"), [("convrot", "conv_rot"), ("conv2d", "conv_2d")])
def test_line_detectors_find_what_scipy_does(name: str, expected: str) -> None:
    found = getattr(filters, name)(golden("detector_input"), 45.0, [3.0], [1.0, 2.0])
    apart = np.abs(found - golden(expected))
    # The quotient magnifies the rounding of the filters where the divisor is dark; as in horus-core/tests/goldens/detectors.rs.
    assert found.dtype == np.float32 and apart.max() <= 1e-5 and apart.mean() <= 1e-6


def test_convuv_decomposes_the_filters_of_conv2d() -> None:
    image = golden("detector_input")
    along_rows = [getattr(filters, name)(image, 180.0, [3.0], [1.0, 2.0]) for name in ("conv2d", "convuv")]
    np.testing.assert_array_equal(*along_rows)
    # At 90 degrees columns come before rows.
    along_both = [getattr(filters, name)(image, 90.0, [3.0], [1.0, 2.0]) for name in ("conv2d", "convuv")]
    np.testing.assert_allclose(*along_both, rtol=0, atol=1e-5)
    dense, decomposed = (getattr(filters, name)(image, 45.0, [3.0], [2.0]) for name in ("conv2d", "convuv"))
    # Sampling between pixels smooths a little more.
    assert 0.0 < np.abs(dense - decomposed).max() < 0.2 * dense.max()


def test_line_detectors_take_each_type_and_no_volume() -> None:
    image = picture(np.uint8)
    for name in ("convrot", "conv2d", "convuv"):
        function = getattr(filters, name)
        unit = image.astype(np.float32) * np.float32(1 / 255)
        np.testing.assert_array_equal(function(image, 60.0, [3.0], [1.0]), function(unit, 60.0, [3.0], [1.0]))
        wide = function(image / 255, 60.0, [3.0], [1.0])
        assert wide.dtype == np.float64 and np.abs(wide - function(unit, 60.0, [3.0], [1.0])).max() < 1e-4
        assert not function(unit, 60.0, [], []).any()
        with pytest.raises(ValueError, match="axes"):
            function(np.zeros((3, 4, 5)))
        with pytest.raises(ValueError, match="positive"):
            function(unit, 0.0)
        with pytest.raises(ValueError, match="sigma"):
            function(unit, 60.0, [-3.0])

def test_images_give_lazy_images_with_the_same_bits() -> None:
    image = 250 * picture(np.float32)
    # Of no image, two images, and numbers: `test_waves`, `test_thresholds_of_several_classes`.
    for name in set(filters.__all__) - {"gabor", "gabor_kernel", "threshold_multiotsu"}:
        function, (call, *_) = getattr(filters, name), CASES.get(f"filters.{name}", [plainly])
        of_array, of_image = call(function, image), call(function, hi.asarray(image))
        if isinstance(of_array, float):
            assert of_image == of_array
        else:
            assert isinstance(of_image, hi.Image) and of_image.shape == image.shape
            np.testing.assert_array_equal(of_image.compute(), of_array)


@pytest.mark.parametrize("shape", [(40,), (30, 41), (9, 12, 14)])
@pytest.mark.parametrize("name", ["sobel", "scharr", "prewitt", "farid"])
def test_gradients(name: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    ours, theirs = getattr(filters, name), getattr(skimage.filters, name)
    mask = rng.random(shape) > 0.05
    for dtype in (np.uint8, np.int16, np.float32, np.float64, np.bool_):
        image = rng.random(shape) > 0.5 if dtype is np.bool_ else (rng.random(shape) * (1 if np.dtype(dtype).kind == "f" else 120)).astype(dtype)
        ways: list[dict[str, Any]] = [{}, {"mask": mask}, {"axis": 0}, {"axis": tuple(range(len(shape)))}, {"mode": "constant", "cval": 0.7}]
        for given in [*ways, *({"mode": mode} for mode in MODES)]:
            agree(ours(image, **given), theirs(image, **given))
        np.testing.assert_array_equal(ours(image, axis=-1), ours(image, axis=len(shape) - 1))
        np.testing.assert_array_equal(ours(hi.asarray(image), mask), ours(image, mask))
        for end in ("_h", "_v"):
            if len(shape) == 2:
                agree(getattr(filters, name + end)(image, mask=mask), getattr(skimage.filters, name + end)(image, mask=mask))
            else:
                with pytest.raises(ValueError, match="the filter is of 2"):
                    getattr(filters, name + end)(image)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64, np.bool_])
def test_roberts_and_laplace(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    for shape in ((40,), (30, 41), (1, 7), (9, 12, 14)):
        image = rng.random(shape) > 0.5 if dtype is np.bool_ else picture(dtype, (45, 61)).ravel()[: np.prod(shape)].reshape(shape)
        mask = rng.random(shape) > 0.05
        for name in ("laplace", "roberts", "roberts_pos_diag", "roberts_neg_diag"):
            if name != "laplace" and len(shape) != 2:
                with pytest.raises(ValueError, match="the filter is of 2"):
                    getattr(filters, name)(image)
                continue
            for given in ({}, {"mask": mask}):
                agree(getattr(filters, name)(image, **given), getattr(skimage.filters, name)(image, **given))
    agree(filters.laplace(picture(), 5), skimage.filters.laplace(picture(), 5))
    for of in (filters, skimage.filters):
        with pytest.raises(ValueError):
            of.laplace(picture(), 2)


def test_median() -> None:
    rng = np.random.default_rng(1)
    for image in (picture(np.uint8), picture(np.float32), picture(np.float64), picture()[5], np.stack([picture(np.int16)] * 3)):
        footprint = rng.random((3,) * image.ndim) > 0.3
        for given in ({}, {"footprint": footprint, "mode": "reflect"}, {"mode": "constant", "cval": 1}, {"footprint": np.ones((5,) * image.ndim)}):
            ours, theirs = (of.median(image, **given) for of in (filters, skimage.filters))
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)
        out = np.zeros_like(image)
        assert filters.median(image, out=out) is out
        np.testing.assert_array_equal(out, skimage.filters.median(image))
    with pytest.raises(NotImplementedError, match="rank"):
        filters.median(picture(np.uint8), behavior="rank")


def test_gaussian() -> None:
    for dtype in (np.uint8, np.int16, np.float32, np.float64, np.bool_):
        image = picture(seed=4) > 0.4 if dtype is np.bool_ else picture(dtype)
        ways: list[dict[str, Any]] = [{}, {"sigma": (2.3, 0.7), "truncate": 2.0}, {"preserve_range": True, "sigma": 0}, {"mode": "constant", "cval": 0.3}]
        for given in [*ways, *({"mode": mode, "preserve_range": True} for mode in MODES)]:
            agree(filters.gaussian(image, **given), skimage.filters.gaussian(image, **given))
    colours = np.stack([picture(seed=seed) for seed in range(3)])
    for axis in (0, 1, -1):
        given = {"channel_axis": axis, "sigma": (1.0, 2.0)}
        moved = np.moveaxis(colours, 0, axis)
        agree(filters.gaussian(moved, **given), skimage.filters.gaussian(moved, **given))
    agree(filters.gaussian(colours, 1.5), skimage.filters.gaussian(colours, 1.5))
    out = np.zeros(colours.shape, np.float32)
    assert filters.gaussian(colours, 1.5, out=out) is out
    agree(out, skimage.filters.gaussian(colours, 1.5, out=np.zeros_like(out)))
    for wrong in ({"sigma": -1.0}, {"out": np.zeros(colours.shape, int)}, {"sigma": (1.0, 2.0)}):
        with pytest.raises(ValueError):
            filters.gaussian(colours, **wrong)


COLOURS = [(24, 3), (24, 31, 3), (24, 31, 1), (6, 14, 11, 4)]
"""Lines, planes and volumes with channels, which are moved to each axis."""


def colours(dtype: Any, shape: tuple[int, ...], axis: int) -> Array:
    """One of the channels has negative numbers, if the type has any."""
    numbers = np.random.default_rng(6).random(shape)
    if shape[-1] > 1 and np.dtype(dtype).kind != "u":
        numbers[..., 1] -= 0.7
    kind = np.dtype(dtype)
    return np.ascontiguousarray(np.moveaxis((numbers * 120).astype(kind) if kind.kind in "iu" else numbers.astype(kind), -1, axis))


@pytest.mark.parametrize("shape", COLOURS, ids=str)
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16, np.float32, np.float64, np.bool_])
def test_channels_along_any_axis(dtype: Any, shape: tuple[int, ...]) -> None:
    each = tuple(0.5 * axis for axis in range(1, len(shape)))
    for axis in range(-len(shape), len(shape)):
        image, first = colours(dtype, shape, axis), axis % len(shape)
        calls: list[tuple[str, dict[str, Any]]] = [
            ("gaussian", {"sigma": 1.3}),
            ("gaussian", {"sigma": each, "mode": "wrap", "preserve_range": True}),
            ("gaussian", {"sigma": (*each[:first], 0, *each[first:])}),
            ("unsharp_mask", {"radius": 1.2, "amount": 3.0}),
            ("unsharp_mask", {"radius": each, "preserve_range": True}),
            ("difference_of_gaussians", {"low_sigma": 1.0}),
            ("difference_of_gaussians", {"low_sigma": each, "high_sigma": 4.0, "mode": "mirror"}),
        ]
        for name, given in calls:
            ours = getattr(filters, name)(image, **given, channel_axis=axis)
            # A negative axis scikit-image 0.26 takes for the first in unsharp_mask (its issue 7264).
            theirs = getattr(skimage.filters, name)(image, **given, channel_axis=first if name == "unsharp_mask" else axis)
            agree(ours, theirs)
            assert ours.flags.c_contiguous


def test_sigmas_of_all_axes_smooth_along_channels() -> None:
    for axis in (0, 1, -1):
        image = colours(np.float64, (24, 31, 3), axis)
        given = {"sigma": (1.5, 0.7, 2.0), "channel_axis": axis}
        agree(filters.gaussian(image, **given), skimage.filters.gaussian(image, **given))
    with pytest.raises(np.exceptions.AxisError):
        filters.gaussian(image, (1, 1, 1), channel_axis=3)


def test_views_of_colours_are_read_as_they_are() -> None:
    image = picture(np.float32, (40, 61))
    whole = np.stack([image, image[::-1], image[:, ::-1]], axis=-1)
    planes = np.moveaxis(np.moveaxis(whole, -1, 0).copy(), 0, -1)
    for view in (planes, whole[:, ::-1], whole[::2, 1::3], whole.transpose(1, 0, 2), np.asfortranarray(whole), whole[..., ::-1], whole[..., 1:], whole.astype(">f4")):
        agree(filters.gaussian(view, 1.5, channel_axis=-1), skimage.filters.gaussian(np.ascontiguousarray(view, np.float32), 1.5, channel_axis=-1))
        np.testing.assert_array_equal(hi.asarray(view, channels=True).compute(), view)


def test_unsharp_mask_of_a_line() -> None:
    line = np.linspace(-1.0, 1.0, 30) ** 3
    agree(filters.unsharp_mask(line, 2), skimage.filters.unsharp_mask(line, 2))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.bool_])
def test_canny_differs_at_ties_only(dtype: Any) -> None:
    y, x = np.mgrid[:64, :64]
    for shape in ((abs(y - 32) < 15) & (abs(x - 30) < 14), (y - 32) ** 2 + (x - 30) ** 2 < 300, x > 31):
        image = (shape * (255 if dtype is np.uint8 else 1)).astype(dtype)
        ours, theirs = filters.canny(image), skimage.feature.canny(image)
        # Of two pixels beside each other that are equal but for a rounding, either one.
        for one, other in ((ours, theirs), (theirs, ours)):
            assert not (one & ~scipy.ndimage.binary_dilation(other, np.ones((3, 3)))).any()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int8, np.float32, np.float64])
def test_thresholds_of_several_classes(dtype: Any) -> None:
    for seed in range(4):
        image = picture(dtype, seed=seed)
        image = image // 64 if dtype is np.uint16 else image
        for given in ({}, {"classes": 2}, {"classes": 3, "nbins": 100}, *([{"classes": 4, "nbins": 64}] if np.dtype(dtype).kind == "f" else [])):
            found, want = (of.threshold_multiotsu(image, **given) for of in (filters, skimage.filters))
            np.testing.assert_allclose(found, want, rtol=2e-6 if dtype is np.float32 else 1e-13)
        np.testing.assert_array_equal(filters.threshold_multiotsu(hi.asarray(image)), filters.threshold_multiotsu(image))
    counts = np.histogram(picture(), 30)[0]
    for classes in (2, 3, 4, 5):
        for hist in (counts, (counts, np.linspace(0, 1, 30))):
            found, want = (of.threshold_multiotsu(hist=hist, classes=classes) for of in (filters, skimage.filters))
            np.testing.assert_array_equal(found, want)


def test_thresholds_of_few_values() -> None:
    few = np.array([[1, 2, 9, 9]], np.uint8)
    np.testing.assert_array_equal(filters.threshold_multiotsu(few), skimage.filters.threshold_multiotsu(few))
    for of in (filters, skimage.filters):
        with pytest.raises(ValueError, match="classes"):
            of.threshold_multiotsu(few, 4)
    for given, error in (({"classes": 1}, ValueError), ({"image": np.arange(5000, dtype=np.uint16)}, NotImplementedError)):
        with pytest.raises(error, match="threshold_multiotsu"):
            filters.threshold_multiotsu(**{"image": few, **given})


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
def test_waves(dtype: Any) -> None:
    image = picture(dtype)
    for given in ({"frequency": 0.2}, {"frequency": 0.15, "theta": 0.7, "bandwidth": 1.5}, {"frequency": 0.3, "sigma_x": 3, "sigma_y": 1, "offset": 1, "mode": "constant", "cval": 1}):
        shape = {name: value for name, value in given.items() if name not in ("mode", "cval")}
        np.testing.assert_allclose(filters.gabor_kernel(**shape), skimage.filters.gabor_kernel(**shape), rtol=1e-12, atol=1e-17)
        found, want, lazy = filters.gabor(image, **given), skimage.filters.gabor(image, **given), filters.gabor(hi.asarray(image), **given)
        assert len(found) == len(want) == 2
        for one, other, later in zip(found, want, lazy, strict=True):
            assert one.dtype == other.dtype
            if np.dtype(dtype).kind == "f":
                agree(one, other, 10.0)
            else:
                # A sum that is whole but for a rounding is cut to one or the other.
                assert np.abs(one.astype(int) - other).max() <= 1 and np.mean(one == other) > 0.98
            np.testing.assert_array_equal(later.compute(), one)
    for of in (filters, skimage.filters):
        with pytest.raises(ValueError, match="complex"):
            of.gabor_kernel(0.2, dtype=np.float64)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_sparse_weights(dtype: Any) -> None:
    weights = np.zeros((7, 5))
    weights[0, 0], weights[3, 4], weights[6, 1] = 1.0, -2.0, 0.5
    image = picture(dtype)
    for kernel in (weights, weights[1:, 1:4]):
        for mode in (*MODES[:1], *MODES[2:], "valid"):
            if kernel.shape[0] % 2 == 0:
                with pytest.raises(ValueError, match="even"):
                    filters.correlate_sparse(image, kernel, mode)
                continue
            found, want = (of.correlate_sparse(image, kernel, mode) for of in (filters, skimage.filters))
            agree(found, want)
            np.testing.assert_array_equal(filters.correlate_sparse(hi.asarray(image), kernel, mode).compute(), found)
    with pytest.raises(ValueError, match="axes"):
        filters.correlate_sparse(image, np.ones(3))
