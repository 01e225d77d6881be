"""`horus_image.accel`: what is served is the library's own result, and everything else is the library's."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import inspect
import os
import pickle
import re
import subprocess
import sys
import tomllib
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import scipy.ndimage
import skimage.feature
import skimage.filters
import skimage.measure
import skimage.morphology
import skimage.segmentation
from skimage.util import _backends

from horus_image import accel
from horus_image._public import SUMS
from horus_image.accel import _backend, _calls, _conditions, _profile
from test_random import Call

CASES: Final = int(os.environ.get("HORUS_CASES", "12"))
SCIPY: Final = [row for row in _calls.ROWS if row.module == "scipy.ndimage"]
SKIMAGE: Final = [row for row in _calls.ROWS if row.module.startswith("skimage.")]


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    """Installed, for images of all sizes, with no counts yet."""
    accel.install(smallest=0)
    _profile.clear()
    yield
    accel.uninstall()
    _profile.clear()


def function_of(row: Any) -> Any:
    return getattr(importlib.import_module(row.module), row.name)


def served_of(row: Any) -> _calls.Served:
    served: _calls.Served = function_of(row).__horus__
    return served


def was_served(row: Any) -> bool:
    counts = _profile._functions.get(row.public)
    return counts is not None and counts.served > 0


def outcome(function: Any, *args: Any, **kwargs: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return function(*args, **kwargs)
        except Exception as error:
            return error


def photo(dtype: Any = np.float32, shape: tuple[int, ...] = (40, 50)) -> Any:
    rng = np.random.default_rng(3)
    smooth = scipy.ndimage.gaussian_filter(rng.random(shape), 1.5)
    unit = (smooth - smooth.min()) / np.ptp(smooth)
    _profile.clear()
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return unit > 0.5
    return (unit * (200 if kind.kind in "iu" else 1) - (90 if kind.kind == "i" else 0)).astype(kind)


# Results.


@pytest.mark.parametrize("row", SCIPY, ids=lambda row: row.name)
def test_what_is_served_of_scipy_is_its_own_result(row: Any) -> None:
    """Random calls with everything that SciPy allows: types, modes, outputs, wrong arguments."""
    served = served_of(row)
    ours, theirs = (types.SimpleNamespace(**{row.name: one}) for one in (function_of(row), served.original))
    differences, count = [], 0
    for number in range(10 * CASES):
        call = Call(row.name, number)
        _profile.clear()
        found = call.made_by(ours)
        if not was_served(row):
            continue
        count += 1
        expected = call.made_by(theirs)
        difference = _calls.differs(found, expected, call.input, row.accel.bounds)
        if difference is not None:
            differences.append(f"{call!r}\n  {difference}\n  SciPy: {expected!r}\n  served: {found!r}")
        if count == CASES:
            break
    assert not differences, "\n".join(differences)
    assert count > 0, "not one call was served"


CALLS: Final[dict[str, list[dict[str, Any]]]] = {
    "frangi": [{"sigmas": [1, 2]}, {"sigmas": [1.5], "black_ridges": False, "mode": "constant"}],
    "sato": [{"sigmas": [1, 2]}, {"sigmas": [1.5], "black_ridges": False}],
    "meijering": [{"sigmas": [1, 2]}, {"sigmas": [1.5], "black_ridges": False}],
    "threshold_otsu": [{}, {"nbins": 64}],
    "threshold_yen": [{}],
    "threshold_li": [{}, {"tolerance": 0.1}, {"initial_guess": 60}],
    "threshold_isodata": [{}, {"return_all": True}],
    "threshold_minimum": [{}],
    "threshold_mean": [{}],
    "threshold_triangle": [{}],
    "rescale_intensity": [{}, {"in_range": (3, 50), "out_range": (0, 1)}, {"out_range": np.uint8}, {"in_range": "dtype", "out_range": "uint12"}],
    "adjust_gamma": [{}, {"gamma": 0.5, "gain": 0.9}],
    "adjust_log": [{}, {"inv": True}],
    "adjust_sigmoid": [{}, {"cutoff": 0.3, "inv": True}],
    "rotate": [{"angle": 30}, {"angle": -20.5, "resize": True, "order": 3, "mode": "edge"}, {"angle": 10, "order": 0}],
    "warp": [{"inverse_map": np.array([[0.9, 0.2, 1.0], [-0.1, 1.1, 2.0], [0.0, 0.0, 1.0]])}, {"inverse_map": np.eye(3), "order": 3, "cval": 0.5}],
    "is_low_contrast": [{}, {"fraction_threshold": 0.3}, {"lower_percentile": 0, "upper_percentile": 100}],
    "threshold_niblack": [{}, {"window_size": 7, "k": 0.5}],
    "threshold_sauvola": [{}, {"window_size": (3, 9), "r": 20}],
    "threshold_local": [{"block_size": 15}, {"block_size": 7, "method": "mean", "offset": 2}, {"block_size": 5, "method": "median"}],
    "apply_hysteresis_threshold": [{"low": 0.3, "high": 0.6}, {"low": 10, "high": 100}, {"low": np.float64(0.1), "high": 0.7}],
    "unsharp_mask": [{}, {"radius": 3, "amount": 2}, {"preserve_range": True}],
    "difference_of_gaussians": [{"low_sigma": 1}, {"low_sigma": 1, "high_sigma": 5, "mode": "reflect"}],
    "canny": [{}, {"sigma": 2}],
    "peak_local_max": [
        {},
        {"min_distance": 4},
        {"min_distance": 3, "threshold_rel": 0.3, "num_peaks": 5},
        {"exclude_border": False},
        {"exclude_border": 1.0},
        {"min_distance": 0},
    ],
    "denoise_tv_chambolle": [{}, {"weight": 0.5, "max_num_iter": 20}],
    "local_maxima": [{}, {"connectivity": 1, "allow_borders": False}, {"indices": True}],
    "local_minima": [{}, {"connectivity": 1}],
    "rolling_ball": [{"radius": 4}, {"kernel": np.array([[1.0, 2.0, 1.0]])}],
    "rgb2lab": [{}, {"illuminant": "A"}],
    "separate_stains": [{"conv_matrix": np.linalg.inv([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11], [0.27, 0.57, 0.78]])}],
    "combine_stains": [{"conv_matrix": np.array([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11], [0.27, 0.57, 0.78]])}],
    "normalized_root_mse": [{}, {"normalization": "min-max"}, {"normalization": "mean"}],
    "peak_signal_noise_ratio": [{}, {"data_range": 200}],
    "structural_similarity": [{}, {"data_range": 200, "full": True}, {"data_range": 1, "gradient": True, "gaussian_weights": True}],
    "reconstruction": [{}, {"method": "erosion"}],
    "remove_small_objects": [{}, {"max_size": 5, "connectivity": 2}, {"max_size": 0}, {"min_size": 5}],
    "remove_small_holes": [{}, {"max_size": 5, "connectivity": 2}, {"max_size": 0}, {"area_threshold": 5}],
    "clear_border": [{}, {"buffer_size": 3}, {"bgval": 1}, {"buffer_size": 100}],
    "find_boundaries": [{}, {"connectivity": 2, "mode": "inner"}, {"mode": "outer", "background": 1}, {"mode": "subpixel"}],
    "regionprops_table": [
        {"properties": ("label", "bbox", "num_pixels", "area", "centroid", "extent", "equivalent_diameter_area")},
        {"properties": ("axis_major_length", "axis_minor_length", "eccentricity")},
        {"properties": ("orientation", "intensity_std")},
        {"properties": ("intensity_mean", "intensity_min", "intensity_max", "centroid_weighted")},
    ],
}
TYPES: Final = ["u1", "u2", "i1", "i2", "i4", "i8", "f4", "f8", "?"]


def pictures(dtype: str) -> Iterator[Any]:
    """Smooth, of few values, of one value, and with a straight edge."""
    smooth = photo(dtype)
    yield smooth
    yield (smooth // smooth.dtype.type(max(smooth.max() / 4, 1e-3))).astype(smooth.dtype) if smooth.dtype.kind != "b" else ~smooth
    yield np.full((20, 30), smooth[3, 4])
    yield np.where(np.arange(40) < 17, smooth.min(), smooth.max()) * np.ones((30, 1), smooth.dtype)


@pytest.mark.parametrize("row", SKIMAGE, ids=lambda row: row.name)
def test_what_is_served_of_scikit_image_is_its_own_result(row: Any) -> None:
    function, original = function_of(row), served_of(row).original
    differences, types_served = [], set()
    for dtype in TYPES:
        for image in pictures(dtype):
            for options in CALLS.get(row.name, [{}]):
                first, rest = image, dict(options)
                if row.name == "reconstruction":
                    low = "method" not in options
                    bound = np.percentile(image.astype(float), 30 if low else 70)
                    first = (np.minimum if low else np.maximum)(image, bound.astype(image.dtype))
                    rest["mask"] = image
                elif row.library == "skimage.color":
                    first = np.stack([image, image[::-1], image[:, ::-1], image][: 4 if row.name == "rgba2rgb" else 3], axis=-1)
                elif row.library == "skimage.metrics":
                    rest[list(inspect.signature(original).parameters)[1]] = image[::-1].copy()
                elif row.name == "regionprops_table":
                    first = scipy.ndimage.label(image > image.min())[0]
                    rest["intensity_image"] = image
                _profile.clear()
                found = outcome(function, first, **rest)
                if was_served(row):
                    types_served.add(dtype)
                _calls._threads.original = True
                expected = outcome(original, first, **rest)
                _calls._threads.original = False
                if isinstance(expected, Exception):
                    assert type(found) is type(expected) and str(found) == str(expected)
                    continue
                bounds = row.accel.bounds if was_served(row) else SUMS
                difference = _calls.differs(found, expected, image, bounds)
                if difference is not None:
                    differences.append(f"{image.dtype} {image.shape} {options}: {difference}")
    assert not differences, "\n".join(differences)
    expected_types = {"remove_small_objects": 1, "remove_small_holes": 1, "clear_border": 1, "canny": 0, "threshold_otsu": 2, "threshold_yen": 2, "threshold_li": 2, "threshold_isodata": 2, "threshold_minimum": 2, "threshold_triangle": 2, "shannon_entropy": 2, "histogram": 4, "cumulative_distribution": 4}.get(row.name, 5)
    assert len(types_served) >= expected_types, types_served


def test_functions_of_scikit_image_reach_horus_through_scipy() -> None:
    image = photo(np.uint8)
    skimage.filters.gaussian(image, 2.0)
    skimage.filters.sobel(image)
    skimage.morphology.opening(image)
    for name in ("gaussian_filter", "convolve", "grey_erosion", "grey_dilation"):
        assert _profile._functions[f"scipy.ndimage.{name}"].served, name


# Calls that fall through.


class Tagged(np.ndarray[Any, Any]):
    pass


FALLING: Final[dict[str, Any]] = {
    "a list": [[1.0, 2.0], [3.0, 4.0]],
    "a subclass": photo().view(Tagged),
    "a matrix of masked pixels": np.ma.masked_array(photo(), photo() > 0.5),
    "another byte order": photo().astype(">f4"),
    "halves": photo().astype(np.float16),
    "complex": photo() * 1j,
    "four axes": np.zeros((2, 3, 4, 5)),
    "no axes": np.array(3.0),
    "no pixels": np.zeros((0, 4)),
    "a NaN": np.where(np.eye(8) > 0, np.nan, 1.0),
    "an infinity": np.where(np.eye(8) > 0, np.inf, 1.0),
    "integers of many bits": photo(np.uint8).astype(np.int32),
    "strings": np.array([["a", "b"]]),
    "objects": np.array([[1, 2], [3, 4]], object),
}


@pytest.mark.parametrize("what", FALLING)
def test_a_call_that_is_not_served_is_the_original_s(what: str) -> None:
    original = scipy.ndimage.gaussian_filter.__horus__.original
    found, expected = (outcome(function, FALLING[what], 1.0) for function in (scipy.ndimage.gaussian_filter, original))
    if isinstance(expected, Exception):
        assert type(found) is type(expected) and str(found) == str(expected)
    else:
        assert type(found) is type(expected) and found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    counts = _profile._functions["scipy.ndimage.gaussian_filter"]
    assert not counts.served and counts.reasons.total() == 1


def test_memory_maps_fall_through(tmp_path: Path) -> None:
    image = np.memmap(tmp_path / "pixels", np.float32, "w+", shape=(8, 9))
    image[:] = photo(shape=(8, 9))
    scipy.ndimage.gaussian_filter(image, 1.0)
    assert not _profile._functions["scipy.ndimage.gaussian_filter"].served


def test_small_images_fall_through() -> None:
    accel.install()
    for side, served in ((63, 0), (64, 1)):
        _profile.clear()
        scipy.ndimage.median_filter(photo(shape=(side, side)), 3)
        assert _profile._functions["scipy.ndimage.median_filter"].served == served
    for side, served in ((255, 0), (256, 1)):
        scipy.ndimage.extrema(photo(shape=(side, side)))
        assert _profile._functions["scipy.ndimage.extrema"].served == served


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), ((photo(),), {}), ((photo(), 1.0, 0, None, "reflect", 0.0, 4.0, 7), {}), ((photo(), 1.0), {"sigma": 2.0}), ((photo(), 1.0), {"blur": 2})],
)
def test_wrong_arguments_raise_the_original_s_errors(args: Any, kwargs: Any) -> None:
    found, expected = (
        outcome(function, *args, **kwargs)
        for function in (scipy.ndimage.gaussian_filter, scipy.ndimage.gaussian_filter.__horus__.original)
    )
    assert type(found) is type(expected) is TypeError and str(found) == str(expected)


def test_an_output_is_written_in_place() -> None:
    image, output = photo(), np.zeros((40, 50), np.float64)
    result = scipy.ndimage.gaussian_filter(image, 1.0, output=output)
    assert result is output and _profile._functions["scipy.ndimage.gaussian_filter"].served
    expected = scipy.ndimage.gaussian_filter.__horus__.original(image, 1.0, output=np.float64)
    np.testing.assert_allclose(output, expected, atol=1e-5)


def test_an_output_that_is_the_image_or_read_only_is_the_original_s() -> None:
    image = photo()
    expected = scipy.ndimage.median_filter.__horus__.original(image, 3)
    again = image.copy()
    scipy.ndimage.median_filter(again, 3, output=again)
    np.testing.assert_array_equal(again, expected)
    fixed = np.zeros_like(image)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only|writeable|readonly"):
        scipy.ndimage.median_filter(image, 3, output=fixed)
    assert not _profile._functions["scipy.ndimage.median_filter"].served


def test_channels_and_axes_that_the_library_counts_otherwise_are_its_own() -> None:
    colours = photo(np.float64, (30, 40, 3))
    skimage.filters.unsharp_mask(colours, channel_axis=-1)
    counts = _profile._functions["skimage.filters.unsharp_mask"]
    assert not counts.served and list(counts.reasons) == ["a negative channel_axis"]
    skimage.filters.unsharp_mask(colours, channel_axis=2)
    assert counts.served == 1
    image = photo(np.float64)
    for axes, served in (((1, 0), 0), ((0, 1), 1), ((-2, -1), 2)):
        scipy.ndimage.median_filter(image, (1, 5), axes=axes)
        assert _profile._functions["scipy.ndimage.median_filter"].served == served


@pytest.mark.parametrize("shape", [(40, 30, 3), (5, 20, 30, 3)], ids=str)
def test_channels_along_any_axis_are_served(shape: tuple[int, ...]) -> None:
    for axis in range(len(shape)):
        for dtype in (np.uint8, np.float32, np.float64):
            colours = np.ascontiguousarray(np.moveaxis(photo(dtype, shape), -1, axis))
            for name, given in (("unsharp_mask", {"radius": 2}), ("difference_of_gaussians", {"low_sigma": 1.0})):
                row = next(row for row in SKIMAGE if row.name == name)
                _profile.clear()
                found = getattr(skimage.filters, name)(colours, **given, channel_axis=axis)
                assert was_served(row), (name, axis)
                _calls._threads.original = True
                expected = served_of(row).original(colours, **given, channel_axis=axis)
                _calls._threads.original = False
                assert _calls.differs(found, expected, colours, row.accel.bounds) is None
    colours = photo(np.float64, shape)
    assert skimage.filters.difference_of_gaussians(colours, 1.0, channel_axis=-1).shape == shape
    assert _profile._functions["skimage.filters.difference_of_gaussians"].served == 1


def test_volumes_with_channels_are_served_where_nothing_is_done_along_them() -> None:
    volume = photo(np.float64, (6, 20, 30, 3))
    original = scipy.ndimage.gaussian_filter.__horus__.original
    for sigma, served in (((0, 2, 2, 0), 1), (2, 1)):
        found = scipy.ndimage.gaussian_filter(volume, sigma)
        np.testing.assert_allclose(found, original(volume, sigma), rtol=0, atol=1e-12)
        counts = _profile._functions["scipy.ndimage.gaussian_filter"]
        assert counts.served == served
    (reason,) = counts.reasons
    assert reason.startswith("NotImplementedError")
    skimage.filters.gaussian(volume, 1.5, channel_axis=-1)
    assert counts.served == 2


def test_a_negative_axis_is_served_where_scikit_image_counts_it_from_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    import skimage._shared.utils

    row = next(row for row in SKIMAGE if row.name == "unsharp_mask")

    def counts(of: Any, axis: int) -> tuple[Any, ...]:
        return (slice(None),) * axis + (of, ...) if axis >= 0 else (..., of) + (slice(None),) * (-axis - 1)

    monkeypatch.setattr(skimage._shared.utils, "slice_at_axis", counts)
    _conditions._counts_from_the_last.cache_clear()
    try:
        colours = photo(np.float64, (30, 40, 3))
        found = skimage.filters.unsharp_mask(colours, channel_axis=-1)
        assert was_served(row)
        assert _calls.differs(found, served_of(row).original(colours, channel_axis=-1), colours, row.accel.bounds) is None
    finally:
        _conditions._counts_from_the_last.cache_clear()


def test_a_hook_that_fails_says_so_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    served = scipy.ndimage.median_filter.__horus__

    def fails(image: Any, size: Any, output: Any) -> Any:
        output[:] = 7
        raise KeyError("a defect")

    monkeypatch.setattr(served, "horus", fails)
    image = photo()
    output = np.zeros_like(image)
    for _ in range(2):
        scipy.ndimage.median_filter(image, 3, output=output)
        np.testing.assert_array_equal(output, served.original(image, 3))
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and "scipy.ndimage.median_filter: KeyError: 'a defect'; the original is called" in told


def test_what_horus_refuses_is_the_original_s_and_said_by_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    mask = photo()
    odd = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0]], bool)
    found = skimage.morphology.reconstruction(mask / 2, mask, footprint=odd)
    np.testing.assert_array_equal(found, skimage.morphology.reconstruction.__horus__.original(mask / 2, mask, footprint=odd))
    (reason,) = _profile._functions["skimage.morphology.reconstruction"].reasons
    assert reason.startswith("NotImplementedError") and not capsys.readouterr().err


# Installation.


def test_names_taken_before_are_exchanged_and_come_back() -> None:
    accel.uninstall()
    original = scipy.ndimage.gaussian_filter
    module = types.ModuleType("taken")
    module.blur = original  # type: ignore[attr-defined]
    sys.modules["taken"] = module
    try:
        accel.install()
        assert module.blur is scipy.ndimage.gaussian_filter is not original
        assert scipy.ndimage._filters.gaussian_filter is original, "originals call each other"
        accel.install()
        assert scipy.ndimage.gaussian_filter.__wrapped__ is original, "once"
        accel.uninstall()
        assert module.blur is scipy.ndimage.gaussian_filter is original
    finally:
        del sys.modules["taken"]


def test_a_replaced_function_looks_like_the_original() -> None:
    function = scipy.ndimage.gaussian_filter
    assert function.__name__ == "gaussian_filter" and function.__doc__ == function.__wrapped__.__doc__
    assert pickle.loads(pickle.dumps(function)) is function


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)


SCRIPT = """
import sys
from scipy.ndimage import gaussian_filter
from skimage import filters
import numpy as np
image = np.random.default_rng(0).random((70, 80))
print(sys.argv[1:], __name__, gaussian_filter(image, 1).shape, filters.sobel(image).dtype, filters.sato(image).dtype)
gaussian_filter(image.astype(complex), 1)
sys.exit(3)
"""


def test_a_script_runs_with_a_profile(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    ran = run("-m", "horus_image.accel", "--profile", str(tmp_path / "script.py"), "-x", "in.png", HORUS_ACCEL="")
    assert ran.returncode == 3, ran.stderr
    assert ran.stdout == "['-x', 'in.png'] __main__ (70, 80) float64 float64\n"
    assert re.search(r"scipy.ndimage.gaussian_filter +2 +1 +1 ", ran.stderr)
    assert "1 x an image of complex128" in ran.stderr
    assert re.search(r"scipy.ndimage.convolve +2 +2 +0 ", ran.stderr), "through scikit-image"
    assert re.search(r"skimage.filters.sato +1 +1 +0 ", ran.stderr)


OTHERS = """
import sys
import numpy as np
import skimage.feature
import scipy.ndimage as ndi
from skimage import filters, restoration
from skimage.filters import rank
from skimage.morphology import disk
image = np.random.default_rng(0).random((70, 80))
for _ in range(2):
    ndi.generic_filter(image, np.max, 3)
ndi.label(image > 0.5)
restoration.denoise_nl_means(image)
skimage.feature.corner_harris(image)
rank.windowed_histogram((image * 255).astype(np.uint8), disk(3))
assert ndi.generic_filter.__module__ == "scipy.ndimage" and restoration.denoise_nl_means is restoration.denoise_nl_means
assert "skimage.filters.ridges" not in sys.modules, "loaded when it is used"
try:
    ndi.generic_filter(image)
except TypeError:
    pass
"""


def test_a_profile_names_what_is_not_in_the_table(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(OTHERS)
    ran = run("-m", "horus_image.accel", "--profile", str(tmp_path / "script.py"), HORUS_ACCEL="")
    assert ran.returncode == 0, ran.stderr
    lines = dict(re.findall(r"^(\S+) +(\d+ +\d+ +\d+) .*\n +\d+ x not served$", ran.stderr, re.MULTILINE))
    named = {name: [int(number) for number in numbers.split()] for name, numbers in lines.items()}
    assert named.pop("scipy.ndimage.generic_filter") == [3, 0, 3]
    once = ("restoration.denoise_nl_means", "feature.corner_harris", "filters.rank.windowed_histogram", "morphology.disk")
    ours = {name: numbers for name, numbers in named.items() if name.startswith("skimage")}
    assert ours == {f"skimage.{name}": [1, 0, 1] for name in once}, "and no call of a library to itself"
    assert re.search(r"^scipy.ndimage.gaussian_filter +\d", ran.stderr, re.MULTILINE), "through scikit-image"


def test_a_profile_of_libraries_that_are_loaded_ends() -> None:
    import skimage.restoration

    originals = scipy.ndimage.generic_filter, skimage.feature.corner_harris, skimage.restoration.denoise_nl_means
    module = types.ModuleType("taken")
    module.corners = originals[1]  # type: ignore[attr-defined]
    sys.modules["taken"] = module
    image = photo(np.float64)
    try:
        accel.install(smallest=0, profile=True)
        accel.install(smallest=0, profile=True)
        module.corners(image)
        scipy.ndimage.generic_filter(image, np.max, 3)
        skimage.restoration.denoise_nl_means(image)
        for name in ("scipy.ndimage.generic_filter", "skimage.feature.corner_harris", "skimage.restoration.denoise_nl_means"):
            counts = _profile._functions[name]
            assert counts.reasons == {"not served": 1} and name in accel.report()
        function = pickle.loads(pickle.dumps(module.corners))
        assert function is module.corners is skimage.feature.corner_harris and function.__wrapped__ is originals[1]
        accel.uninstall()
        assert (scipy.ndimage.generic_filter, skimage.feature.corner_harris, skimage.restoration.denoise_nl_means) == originals
        assert module.corners is originals[1] and skimage.feature.corner.corner_harris is originals[1]
        accel.install(smallest=0)
        assert skimage.feature.corner_harris is originals[1], "no profile"
    finally:
        del sys.modules["taken"]


def test_a_profile_loads_and_counts_nothing_of_others() -> None:
    program = """
import sys
import skimage.data, skimage.feature, skimage.filters, skimage.restoration
from skimage.feature import corner_harris
from horus_image import accel
before = set(sys.modules)
originals = dict(vars(skimage.data))
accel.install(profile=True)
assert {name for name in set(sys.modules) - before if name.startswith("skimage.")} == set()
assert corner_harris is skimage.feature.corner_harris and corner_harris.__module__ == "skimage.feature"
hashed = skimage.data.file_hash
assert hashed.__module__.startswith("pooch"), hashed.__module__
del sys.modules["skimage.restoration"]
find = skimage.restoration.__getattr__
accel.uninstall()
assert skimage.restoration.__getattr__ is not find
assert corner_harris.__module__ == "skimage.feature.corner" and not hasattr(skimage.filters.gaussian, "__wrapped__")
import scipy.ndimage
assert not hasattr(scipy.ndimage.gaussian_filter, "__horus__")
"""
    ran = run("-c", program, HORUS_ACCEL="")
    assert ran.returncode == 0, ran.stderr


def test_a_script_is_verified(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    ran = run("-m", "horus_image.accel", str(tmp_path / "script.py"), HORUS_ACCEL="verify")
    assert ran.returncode == 3 and ran.stderr == "horus_image.accel: 0 results differ from the original's\n"


def test_a_module_runs(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SCRIPT)
    ran = run("-m", "horus_image.accel", "-m", "program", "-m", "one", PYTHONPATH=str(tmp_path))
    assert ran.returncode == 3 and ran.stdout.startswith("['-m', 'one'] __main__"), ran.stderr
    assert run("-m", "horus_image.accel").returncode == 2
    assert run("-m", "horus_image.accel", "none.py").stderr.endswith("there is no script none.py\n")


def test_libraries_are_loaded_when_they_are_used() -> None:
    program = """
import sys
from horus_image import accel
accel.install()
assert not any(name.split(".")[0] in ("scipy", "skimage") for name in sys.modules)
import skimage.filters
assert "skimage.filters.ridges" not in sys.modules
assert hasattr(skimage.filters.frangi, "__horus__")
import scipy.ndimage, inspect
assert hasattr(scipy.ndimage.zoom, "__horus__") and "def " in inspect.getsource(scipy.ndimage.zoom)
assert type(scipy.ndimage.__loader__).__module__ == "_frozen_importlib_external"
"""
    ran = run("-c", program)
    assert ran.returncode == 0, ran.stderr


def test_verification_returns_the_original_s_and_tells_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    accel.install(smallest=0, verify=True)
    served = scipy.ndimage.median_filter.__horus__
    image = photo()
    expected = served.original(image, 3)
    np.testing.assert_array_equal(scipy.ndimage.median_filter(image, 3), expected)
    assert _profile.mismatches() == 0 and was_served(served.row)
    ours = served.horus
    monkeypatch.setattr(served, "horus", lambda *args, **kwargs: ours(*args, **kwargs) + np.float32(0.5))
    for _ in range(2):
        np.testing.assert_array_equal(scipy.ndimage.median_filter(image, size=3), expected)
    output = np.zeros_like(image)
    scipy.ndimage.median_filter(image, 3, output=output)
    np.testing.assert_array_equal(output, expected)
    told = _profile.differences()
    assert told.startswith("horus_image.accel: 3 results differ")
    assert "2 x scipy.ndimage.median_filter: by 0.5, above 0, of float32 (40, 50), size=3" in told


def test_warps_that_a_rounding_limits_are_the_library_s() -> None:
    image, near = np.linspace(0.5, 1, 4096).reshape(64, 64), np.array([[1, 0, 1 - 1e-12], [0, 1, 0], [0, 0, 1.0]])
    row = skimage.transform.warp.__horus__.row
    for cval, corner, served in ((0.0, 0.5, False), (0.75, 0.75, True)):
        np.testing.assert_allclose(skimage.transform.warp(image, near, cval=cval)[0, -1], corner)
        assert was_served(row) == served, cval


@pytest.mark.parametrize("verify", [False, True])
def test_the_original_is_called_once(verify: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    accel.install(smallest=0, verify=verify)
    served = scipy.ndimage.median_filter.__horus__
    calls = []

    def original(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        raise OSError("the original's")

    monkeypatch.setattr(served, "original", original)
    monkeypatch.setattr(served, "horus", lambda *args, **kwargs: 1 / 0)
    with pytest.raises(OSError, match="the original's") as raised:
        scipy.ndimage.median_filter(photo(), 3)
    assert len(calls) == 1 and raised.value.__context__ is None


def test_ipython_loads_it() -> None:
    accel.uninstall()
    shell = types.SimpleNamespace()
    accel.load_ipython_extension(shell)
    assert hasattr(scipy.ndimage.zoom, "__horus__")
    accel.unload_ipython_extension(shell)
    assert not hasattr(scipy.ndimage.zoom, "__horus__")


# The backend of scikit-image.


def test_scikit_image_finds_the_backend() -> None:
    for group in ("skimage_backends", "skimage_backend_infos"):
        assert "horus" in importlib.metadata.entry_points(group=group).names
    backend = _backends.all_backends()["horus"]
    assert backend["implementation"].load() is _backend
    assert set(backend["info"].supported_functions) == {f"{row.public.rpartition('.')[0]}:{row.name}" for row in SKIMAGE}


def test_scikit_image_dispatches_what_is_served() -> None:
    accel.uninstall()
    original = skimage.filters.unsharp_mask
    dispatching = _backends.dispatchable(original)
    image = photo()
    with pytest.warns(_backends.DispatchNotification, match="dispatched to the 'horus' backend"):
        np.testing.assert_allclose(dispatching(image, radius=2.0), original(image, radius=2.0), atol=1e-5)
    assert was_served(next(row for row in SKIMAGE if row.name == "unsharp_mask"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dispatching(photo(bool))


# The backend of libraries that use spatch.

SPATCH: Final[dict[str, Any]] = tomllib.loads((Path(accel.__file__).parent / "spatch.toml").read_text())


def object_of(name: str) -> Any:
    """The object that spatch finds by a name: a module, and attributes of attributes."""
    module, _, attributes = name.partition(":")
    return functools.reduce(getattr, attributes.split("."), importlib.import_module(module))


def test_spatch_finds_every_function_that_is_served() -> None:
    functions = {name: entry for name, entry in SPATCH["functions"].items() if name != "defaults"}
    assert functions.keys() == {f"{row.library}:{row.name}" for row in _calls.ROWS if row.accel.unless != "never" and row.library != "cv2"}
    assert (SPATCH["name"], SPATCH["primary_types"], SPATCH["requires_opt_in"]) == ("horus", ["numpy:ndarray"], True)
    for name, entry in functions.items():
        served = object_of(entry["function"])
        assert served.original is inspect.unwrap(object_of(name)), name
        assert object_of(entry["should_run"]).__self__ is served, name


def test_spatch_runs_what_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    accel.uninstall()
    entry = SPATCH["functions"]["scipy.ndimage:gaussian_filter"]
    function, should_run = object_of(entry["function"]), object_of(entry["should_run"])
    image = photo()
    # spatch takes nothing but these two as an answer.
    assert should_run(None, image, 2.0, mode="nearest") is True
    assert should_run(None, image * 1j, 2.0) is False
    assert should_run(None) is False
    np.testing.assert_allclose(function(image, 2.0), scipy.ndimage.gaussian_filter(image, 2.0), atol=1e-5)
    assert _profile._functions["scipy.ndimage.gaussian_filter"].served == 1

    def fails(*_: Any) -> Any:
        raise ValueError("a condition that fails")

    monkeypatch.setattr(function, "bound", fails)
    assert should_run(None, image, 2.0) is False
    with pytest.raises(AttributeError, match="no attribute 'skimage_filters_blur'"):
        object_of("horus_image.accel._backend:skimage_filters_blur")
