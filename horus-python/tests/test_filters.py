"""Each filter against SciPy's, over border modes, types and shapes."""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pytest
import scipy.ndimage

import horus_image as hi
from horus_image import filters, ndimage

MODES = ["reflect", "mirror", "nearest", "wrap", "constant", "grid-wrap", "grid-mirror", "grid-constant"]
TYPES = [np.uint8, np.uint16, np.int8, np.int16, np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64]
SHAPES = [(1,), (7,), (1, 1), (1, 5), (6, 1), (13, 17), (2, 3, 4), (5, 9, 8)]

Case = tuple[str, tuple[Any, ...], dict[str, Any]]
LINEAR: list[Case] = [
    ("correlate1d", ([1, 3, -2],), {}),
    ("correlate1d", ([1, 3],), {"axis": 0, "origin": -1}),
    ("convolve1d", ([1, 3, -2, 5],), {"axis": 0}),
    ("uniform_filter1d", (4,), {"origin": 1}),
    ("laplace", (), {}),
    ("sobel", (), {"axis": 0}),
    ("prewitt", (), {}),
    ("uniform_filter", (3,), {}),
    ("gaussian_filter", (1.3,), {}),
    ("gaussian_filter1d", (2.0,), {"axis": 0, "order": 1}),
    ("gaussian_gradient_magnitude", (1.0,), {}),
    ("gaussian_laplace", (1.5,), {}),
    ("uniform_filter1d", (61,), {"axis": 0, "origin": -3}),
    ("uniform_filter", (60,), {"origin": 2}),
    ("uniform_filter", (150,), {}),
]
EXACT: list[Case] = [
    ("minimum_filter", (3,), {}),
    ("maximum_filter", (4,), {"origin": -1}),
    ("minimum_filter1d", (5,), {"axis": 0}),
    ("maximum_filter1d", (2,), {"origin": 0}),
    ("median_filter", (3,), {}),
    ("rank_filter", (-2,), {"size": 3}),
    ("percentile_filter", (30,), {"size": 3}),
    ("grey_erosion", (3,), {}),
    ("grey_dilation", (4,), {}),
    ("grey_opening", (3,), {}),
    ("grey_closing", (3,), {}),
    ("morphological_gradient", (3,), {}),
    ("morphological_laplace", (3,), {}),
    ("white_tophat", (3,), {}),
    ("black_tophat", (3,), {}),
]


T = TypeVar("T")


def third(values: Sequence[T], turn: int) -> Sequence[T]:
    """A third of the values, at the next turn others; all with `HORUS_CASES`."""
    return values if "HORUS_CASES" in os.environ else values[turn % 3 :: 3]


def pixels(shape: tuple[int, ...], dtype: Any, seed: int = 1) -> np.ndarray[Any, Any]:
    """Numbers of a type; of signed types, negative ones, too."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return rng.normal(0.0, 10.0, shape).astype(dtype)
    low, high = (-100, 100) if kind.kind == "i" else (0, 200)
    return rng.integers(low, high, shape).astype(dtype)


def both(name: str, array: np.ndarray[Any, Any], *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    ours, theirs = getattr(ndimage, name)(array, *args, **kwargs), getattr(scipy.ndimage, name)(array, *args, **kwargs)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    return ours, theirs


def close(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any], array: np.ndarray[Any, Any], weight: float) -> None:
    """Equal up to the rounding of sums; integers are equal."""
    largest = max(float(np.abs(array.astype(np.float64)).max()), 1.0) * weight
    if ours.dtype == np.float32:
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6 * largest)
    elif ours.dtype == np.float64:
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13 * largest)
    else:
        apart = (ours.astype(np.int64) - theirs.astype(np.int64)) % (1 << 8 * ours.dtype.itemsize if ours.dtype.itemsize < 8 else 1 << 62)
        assert set(np.unique(apart)) <= {0}, f"{np.count_nonzero(apart)} of {apart.size} pixels differ"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", LINEAR, ids=lambda case: case[0])
def test_linear_filters_in_each_mode(case: Case, mode: str) -> None:
    name, args, kwargs = case
    for shape in SHAPES:
        for dtype in (np.float32, np.float64):
            array = pixels(shape, dtype)
            ours, theirs = both(name, array, *args, mode=mode, cval=2.5, **kwargs)
            close(ours, theirs, array, 12.0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("case", LINEAR[:7], ids=lambda case: case[0])
def test_linear_filters_of_whole_taps_are_exact_on_integers(case: Case, dtype: Any) -> None:
    name, args, kwargs = case
    # Floats and running means are compared elsewhere; what becomes of negative sums as 64-bit unsigned integers C leaves open.
    if np.dtype(dtype).kind == "f" or name == "uniform_filter1d" or (name in ("sobel", "prewitt") and dtype == np.uint64):
        return
    for shape in SHAPES:
        array = pixels(shape, dtype)
        ours, theirs = both(name, array, *args, **kwargs)
        close(ours, theirs, array, 1.0)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64])
def test_means_of_integers_are_exact_and_scipys(dtype: Any) -> None:
    array = pixels((23, 31), dtype)
    ours, theirs = both("uniform_filter", array, 5)
    np.testing.assert_array_equal(ours, theirs)
    rows = np.trunc(sum(np.pad(array, ((2, 2), (0, 0)), mode="symmetric")[k : k + 23].astype(float) for k in range(5)) / 5)
    one = np.trunc(sum(np.pad(rows, ((0, 0), (2, 2)), mode="symmetric")[:, k : k + 31] for k in range(5)) / 5)
    np.testing.assert_array_equal(ours, one.astype(dtype))


def means_along(array: np.ndarray[Any, Any], size: int, axis: int, mode: str, cval: float) -> np.ndarray[Any, Any]:
    """Means of lines of integers, cut as C does, from exact sums."""
    sums = scipy.ndimage.correlate1d(array.astype(np.float64), np.ones(size), axis, mode=mode, cval=cval)
    return np.trunc(sums / size).astype(array.dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_means_of_integers_over_windows_of_all_sizes_are_exact(dtype: Any, mode: str) -> None:
    held, turn = np.iinfo(dtype), MODES.index(mode) + np.dtype(dtype).num
    rng = np.random.default_rng(12)
    noise = rng.integers(held.min, held.max, (40, 61), dtype, endpoint=True)
    # Sums that are a part less than a multiple, where a rounding would make them one.
    high = np.full((40, 61), held.max, dtype)
    high[::7, ::5] -= 1
    for array in (noise, high):
        for size in third((2, 3, 8, 41, 60, 101), turn):
            for cval in (7.0, 2.5):
                if cval != 7.0 and "constant" not in mode:
                    continue
                ours, theirs = both("uniform_filter", array, size, mode=mode, cval=cval)
                exact = means_along(means_along(array, size, 0, mode, cval), size, 1, mode, cval)
                np.testing.assert_array_equal(ours, exact)
                np.testing.assert_array_equal(ours, theirs)
    for size in third((511, 512, 700), turn):
        line = np.full((3, 2000), held.max, dtype)
        line[1, ::3] -= 1
        line[2, 777] -= 1
        ours = ndimage.uniform_filter1d(line, size, mode=mode, cval=3.0)
        np.testing.assert_array_equal(ours, means_along(line, size, 1, mode, 3.0))


WHOLE = [dtype for dtype in TYPES if np.dtype(dtype).kind in "iu"]


def pictures(dtype: Any, shape: tuple[int, int] = (37, 70)) -> dict[str, np.ndarray[Any, Any]]:
    """Whole numbers under which many sums of products are whole, but for a rounding; all are far from the ends of wide types."""
    rng, high = np.random.default_rng(5), min(int(np.iinfo(dtype).max), 65535)
    y, x = np.mgrid[: shape[0], : shape[1]]
    photo = np.clip(high * (0.5 + 0.4 * np.sin(x / 7) + 0.3 * np.cos(y / 9)) + rng.normal(0, high / 30, shape), 0, high)
    photo[:9, :30], photo[20:, 50:] = high, 0
    found = {
        "random": rng.integers(max(int(np.iinfo(dtype).min), -high), high, shape, endpoint=True),
        "flat": np.full(shape, high),
        "ramp": (2 * x + y) % min(high, 211),
        "mask": rng.random(shape) < 0.7,
        "even mask": np.ones(shape),
        "saturated": np.where(rng.random(shape) < 0.1, rng.integers(0, high, shape), high),
        "photo": photo,
    }
    return {name: array.astype(dtype) for name, array in found.items()}


@pytest.mark.parametrize("dtype", WHOLE)
def test_gaussians_of_integers_are_scipys_at_all_widths(dtype: Any) -> None:
    widths = [round(0.3 + 0.1 * k, 1) for k in range(60)]
    for turn, (name, array) in enumerate(pictures(dtype).items()):
        for i, sigma in enumerate(third(widths, turn + np.dtype(dtype).num)):
            for order in (0, 1, 2):
                # What C makes of negative numbers as 64 bits without sign is not held by `float64`.
                if order and dtype == np.uint64:
                    continue
                mode = MODES[(i + order) % len(MODES)]
                ours, theirs = both("gaussian_filter", array, sigma, order=order, mode=mode, cval=7)
                np.testing.assert_array_equal(ours, theirs, f"{name}, sigma {sigma}, order {order}, {mode}")


@pytest.mark.parametrize("dtype", WHOLE)
def test_gaussians_of_integers_along_each_axis_are_scipys(dtype: Any) -> None:
    signed = np.dtype(dtype).kind == "i"
    for array in pictures(dtype).values():
        line, volume = array[3], array[:36].reshape(4, 9, 70)
        for given in (line, array, volume):
            for axis in range(given.ndim):
                for order in (0, 1, 2) if signed else (0,):
                    ours, theirs = both("gaussian_filter1d", given, 1.7, axis=axis, order=order)
                    np.testing.assert_array_equal(ours, theirs)
        for sigma in (0.8, (0.0, 1.5, 2.3)):
            ours, theirs = both("gaussian_filter", volume, sigma, mode=["mirror", "wrap", "constant"])
            np.testing.assert_array_equal(ours, theirs)
        if signed:
            # Squares that the type holds.
            small = array // max(1, int(np.abs(array.astype(np.int64)).max()) // (10 if dtype == np.int8 else 100))
            for name in ("gaussian_laplace", "gaussian_gradient_magnitude"):
                ours, theirs = both(name, small, 1.1)
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", WHOLE)
def test_fractions_of_integers_are_cut_as_scipy_cuts_them(dtype: Any) -> None:
    rng, mean = np.random.default_rng(9), np.full((3, 5), 1 / 15)
    lines = {"symmetric": [0.1, 0.2, 0.4, 0.2, 0.1], "even": [0.25, 0.3, 0.35, 0.1], "lone": [0.7]}
    if np.dtype(dtype).kind == "i":
        lines |= {"antisymmetric": [0.3, 0.2, 0.0, -0.2, -0.3], "any": rng.normal(0, 0.4, 7).tolist(), "nearly": [0.1, 0.8, 0.1 + 1e-16]}
        mean = mean + rng.choice([0.0, 1e-20, 0.1], (3, 5))
    for turn, (name, array) in enumerate(pictures(dtype).items()):
        for i, (kind, taps) in enumerate(lines.items()):
            for mode, cval in third([(mode, 3) for mode in MODES] + [("constant", 2.5), ("constant", -7)], turn + i):
                if cval < 0 and np.dtype(dtype).kind == "u":
                    continue
                what, axis, origin = f"{name}, {kind}, {mode} {cval}", i % 2, (0, -(len(taps) // 2), (len(taps) - 1) // 2)[turn % 3]
                for function in ("correlate1d", "convolve1d"):
                    at = origin if function == "correlate1d" or len(taps) % 2 else 0
                    ours, theirs = both(function, array, taps, axis=axis, mode=mode, cval=cval, origin=at)
                    np.testing.assert_array_equal(ours, theirs, f"{function}: {what}")
        for mode in third(MODES, turn):
            for function in ("correlate", "convolve"):
                ours, theirs = both(function, array, mean, mode=mode, cval=2.5, origin=(1, -2))
                np.testing.assert_array_equal(ours, theirs, f"{function}: {name}, {mode}")
                volume = array[:36].reshape(4, 9, 70)
                ours, theirs = both(function, volume, np.stack([mean, mean / 2]) / 1.5, mode=mode, cval=2.5)
                np.testing.assert_array_equal(ours, theirs, f"{function} of a volume: {name}, {mode}")


@pytest.mark.parametrize("source", [np.uint8, np.int16, np.uint32, np.int64, np.float32, np.float64, np.bool_])
def test_integers_of_another_type_are_cut_as_scipy_cuts_them(source: Any) -> None:
    array = (pictures(np.int16)["photo"] // 300 if source != np.bool_ else pictures(np.uint8)["mask"]).astype(source)
    for output in (np.uint8, np.int8, np.uint16, np.int32, np.int64):
        for sigma in (0.7, 1.9):
            ours, theirs = both("gaussian_filter", array, sigma, output=output)
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint32, np.float32, np.float64])
def test_ranks_in_the_plane_are_of_any_size(dtype: Any) -> None:
    array = pixels((33, 47), dtype)
    y, x = np.mgrid[-9:10, -7:8]
    disc = (y / 9.5) ** 2 + (x / 7.5) ** 2 <= 1
    footprints: list[dict[str, Any]] = [{"size": 15}, {"size": (4, 20), "origin": (-1, 3)}, {"footprint": disc}]
    for i, mode in enumerate(("mirror", "constant", "wrap")):
        for j, (name, args) in enumerate((("median_filter", ()), ("rank_filter", (-11,)), ("percentile_filter", (70,)))):
            for of in third(footprints, i + j):
                ours, theirs = both(name, array, *args, mode=mode, cval=3.0, **of)
                np.testing.assert_array_equal(ours, theirs)
    volume = pixels((4, 30, 20), dtype)
    np.testing.assert_array_equal(*both("median_filter", volume, (1, 13, 9)))


@pytest.mark.parametrize("mode", ["mirror", "reflect", "nearest", "constant", "wrap"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.uint16, np.uint32, np.float32, np.float64, bool])
def test_ranks_across_levels_are_of_any_size(dtype: Any, mode: str) -> None:
    volume = pixels((6, 17, 70), dtype)
    z, y, x = np.mgrid[-2:3, -3:4, -4:5]
    ball = (z / 2.2) ** 2 + (y / 3.3) ** 2 + (x / 4.4) ** 2 <= 1
    for name, args, of in [
        ("median_filter", (), {"size": 5}),
        ("median_filter", (), {"size": 7}),
        ("rank_filter", (40,), {"footprint": ball}),
        ("percentile_filter", (20,), {"size": (2, 4, 6), "origin": (0, 1, -2)}),
        ("rank_filter", (-2,), {"size": (3, 3, 2)}),
        ("median_filter", (), {"size": (5, 7), "axes": (0, 2)}),
    ]:
        ours, theirs = both(name, volume, *args, mode=mode, cval=1.0, **of)
        np.testing.assert_array_equal(ours, theirs)


def test_ranks_across_levels_of_little() -> None:
    for shape in [(1, 1, 1), (1, 5, 3), (7, 1, 2), (2, 300, 1)]:
        volume = np.random.default_rng(3).normal(size=shape).astype(np.float32)
        np.testing.assert_array_equal(*both("median_filter", volume, (5, 5, 3)))
    odd = np.random.default_rng(4).normal(size=(5, 9, 40))
    odd[2, 3:6, 10:13], odd[1, 1, ::3], odd[1, 1, 1::3] = np.nan, 0.0, -0.0
    ours = ndimage.rank_filter(odd, 50, (3, 5, 5))
    # By the definition: numbers before NaN.
    padded = np.pad(odd, ((1, 1), (2, 2), (2, 2)), mode="symmetric")
    around = np.lib.stride_tricks.sliding_window_view(padded, (3, 5, 5)).reshape(*odd.shape, -1)
    np.testing.assert_array_equal(ours, np.sort(around, -1)[..., 50])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", EXACT, ids=lambda case: case[0])
def test_filters_that_order_are_exact(case: Case, mode: str) -> None:
    name, args, kwargs = case
    planes = name in ("median_filter", "rank_filter", "percentile_filter") and mode != "reflect"
    for shape in SHAPES[:7]:
        for dtype in (np.uint8, np.float32):
            array = pixels(shape, dtype)
            ours, theirs = both(name, array, *args, mode=mode, cval=7.0, **kwargs)
            if planes and shape == (1,):
                # SciPy 1.17 reads beyond a line of one pixel, but not beyond a plane.
                theirs = getattr(scipy.ndimage, name)(array[None], *args, mode=mode, cval=7.0, axes=(1,), **kwargs)[0]
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", [*TYPES, np.bool_])
@pytest.mark.parametrize("case", EXACT[:11], ids=lambda case: case[0])
def test_filters_that_order_are_exact_in_each_type(case: Case, dtype: Any) -> None:
    name, args, kwargs = case
    array = pixels((13, 17), np.uint8) > 100 if dtype is np.bool_ else pixels((13, 17), dtype)
    np.testing.assert_array_equal(*both(name, array, *args, **kwargs))


@pytest.mark.parametrize("size", [(3, 3), (5, 5), (7, 7), (2, 3), (1, 4), (6, 8)])
def test_medians_of_each_size(size: tuple[int, int]) -> None:
    for dtype in (np.uint8, np.float32, np.int16):
        array = pixels((21, 34), dtype)
        np.testing.assert_array_equal(*both("median_filter", array, size))


@pytest.mark.parametrize("output", [np.uint8, np.int16, np.float32, np.float64, "int32", np.uint64])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32, np.float64])
def test_results_in_another_type(dtype: Any, output: Any) -> None:
    array = np.abs(pixels((11, 12), dtype))
    for name, args in (("correlate1d", ([1, 2, 1],)), ("maximum_filter", (3,)), ("sobel", ())):
        if name == "sobel" and np.dtype(output).kind == "u" and np.dtype(dtype).kind == "f":
            continue  # C leaves open what becomes of negative floats
        if name == "sobel" and np.dtype(output) == np.uint64:
            continue
        ours, theirs = both(name, array, *args, output=output)
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4)
        else:
            np.testing.assert_array_equal(ours, theirs)


def test_results_in_an_array_of_the_caller() -> None:
    array = pixels((20, 30), np.float32)
    for kept in (np.empty((20, 30), np.float32), np.empty((30, 20), np.float64).T, np.empty((40, 60), np.float32)[::2, ::2]):
        assert ndimage.gaussian_filter(array, 1.0, output=kept) is kept
        np.testing.assert_allclose(kept, scipy.ndimage.gaussian_filter(array, 1.0), atol=1e-4)
    ndimage.gaussian_filter(array, 1.0, output=array)  # into itself
    np.testing.assert_allclose(array, kept, atol=1e-4)


@pytest.mark.parametrize("weights", [(3, 3), (2, 4), (5, 1), (1, 1)])
def test_correlation_with_any_origin(weights: tuple[int, int]) -> None:
    taps = np.arange(1.0, 1.0 + np.prod(weights)).reshape(weights)
    array = pixels((9, 10), np.float64)
    for origin in [(0, 0), (-(weights[0] // 2), (weights[1] - 1) // 2)]:
        for name in ("correlate", "convolve"):
            turned = tuple(-o - (1 - s % 2) for o, s in zip(origin, weights, strict=True)) if name == "convolve" else origin
            ours, theirs = both(name, array, taps, origin=turned, mode="mirror")
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("shape", [(3, 3, 3), (2, 3, 4), (1, 3, 5)])
def test_filters_of_volumes(shape: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(3)
    taps, array = rng.normal(size=shape), pixels((5, 6, 7), np.float64)
    footprint = rng.random(shape) > 0.4
    for mode in ("reflect", "constant", "wrap"):
        np.testing.assert_allclose(*both("correlate", array, taps, mode=mode), rtol=1e-10, atol=1e-10)
        np.testing.assert_array_equal(*both("maximum_filter", array, footprint=footprint, mode=mode))
        np.testing.assert_array_equal(*both("median_filter", array, footprint=footprint, mode=mode))
        structure = rng.normal(size=shape)
        np.testing.assert_allclose(*both("grey_dilation", array, structure=structure, mode=mode), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (2, 1), None])
def test_filters_of_some_axes(axes: Any) -> None:
    array = pixels((4, 6, 7), np.float64)
    for name, args in (("gaussian_filter", (1.0,)), ("uniform_filter", (3,)), ("minimum_filter", (3,)), ("median_filter", (3,))):
        np.testing.assert_allclose(*both(name, array, *args, axes=axes), rtol=1e-12, atol=1e-12)


def test_arrays_without_pixels() -> None:
    for shape in [(0,), (0, 3), (3, 0, 2)]:
        array = np.zeros(shape, np.float32)
        for name, args in (("gaussian_filter", (1.0,)), ("median_filter", (3,)), ("binary_erosion", ()), ("sobel", ())):
            assert getattr(ndimage, name)(array, *args).shape == shape


def test_strides_orders_and_read_only_arrays() -> None:
    array = pixels((30, 40), np.float32)
    frozen = array.copy()
    frozen.flags.writeable = False
    swapped = array.astype(array.dtype.newbyteorder())
    for view in (array[::2, ::-3], array.T, np.asfortranarray(array), frozen, swapped, np.broadcast_to(array[:1], (5, 40))):
        np.testing.assert_allclose(ndimage.gaussian_filter(view, 1.0), scipy.ndimage.gaussian_filter(view, 1.0), atol=1e-4)


FUNCTIONS: list[tuple[str, Callable[..., Any]]] = [
    ("gaussian_filter", lambda f, a: f(a, 2.0)),
    ("median_filter", lambda f, a: f(a, 5)),
    ("grey_opening", lambda f, a: f(a, 3)),
    ("sobel", lambda f, a: f(a)),
    ("zoom", lambda f, a: f(a, 2, order=1)),
    ("rotate", lambda f, a: f(a, 20, order=1)),
]


@pytest.mark.parametrize(("name", "call"), FUNCTIONS, ids=lambda value: value if isinstance(value, str) else "")
def test_an_image_gives_the_bits_of_an_array(name: str, call: Callable[..., Any]) -> None:
    for dtype in (np.uint8, np.float32, np.float64):
        array = pixels((24, 18), dtype)
        function = getattr(ndimage, name)
        lazy = call(function, hi.asarray(array))
        assert isinstance(lazy, hi.Image) and lazy.dtype == dtype
        np.testing.assert_array_equal(lazy.compute(), call(function, array))


def test_complex_arrays_are_filtered_by_parts() -> None:
    rng = np.random.default_rng(7)
    array = rng.normal(size=(12, 13)) + 1j * rng.normal(size=(12, 13))
    taps = rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))
    for name, args, given in (
        ("correlate", (taps,), {"mode": "constant", "cval": 1 + 2j}),
        ("convolve", (taps,), {}),
        ("correlate1d", (taps[0],), {"axis": 0}),
        ("convolve1d", (taps[0],), {"output": np.complex64}),
        ("gaussian_filter", (1.5,), {}),
        ("sobel", (), {}),
        ("zoom", (1.5,), {}),
    ):
        ours, theirs = both(name, array, *args, **given)
        np.testing.assert_allclose(ours, theirs, atol=1e-5 if "output" in given else 1e-9)
    ours, theirs = both("correlate", array.real, taps)
    np.testing.assert_allclose(ours, theirs, atol=1e-10)
    with pytest.raises(RuntimeError, match="complex dtype"):
        ndimage.sobel(array, output=np.empty((12, 13)))


class TestWithin:
    """Filters within a tolerance."""

    image = np.random.default_rng(3).random((150, 170), np.float32)
    weights = np.random.default_rng(4).standard_normal((31, 29))

    @pytest.mark.parametrize("mode", ["reflect", "mirror", "nearest", "wrap", "constant"])
    def test_results_are_within_the_tolerance(self, mode):
        exact = scipy.ndimage.correlate(self.image.astype(np.float64), self.weights, mode=mode, cval=0.5)
        with hi.within(1e-5):
            near = ndimage.correlate(self.image, self.weights, mode=mode, cval=0.5)
        assert np.abs(near - exact).max() <= 1.1e-5 * np.abs(self.weights).sum()

    def test_programs_are_kept_for_each_tolerance(self):
        exact = ndimage.correlate(self.image, self.weights)
        filtered = hi.jit(lambda image: ndimage.correlate(image, self.weights))
        for _ in range(3):
            with hi.within(1e-5):
                near = ndimage.correlate(self.image, self.weights)
                again = filtered(self.image)
            assert not np.array_equal(near, exact)
            np.testing.assert_array_equal(again, near)
            np.testing.assert_array_equal(ndimage.correlate(self.image, self.weights), exact)
            np.testing.assert_array_equal(filtered(self.image), exact)

    def test_lines_are_found_within_the_tolerance(self):
        exact = filters.conv2d(self.image, 45.0, [5.0], [2.0])
        with hi.within(1e-4):
            near = filters.conv2d(self.image, 45.0, [5.0], [2.0])
        assert 0 < np.abs(near - exact).max() < 1e-2
        with hi.within(1e-4):
            np.testing.assert_array_equal(filters.convrot(self.image, 45.0, [5.0], [2.0]), filters.convrot(self.image, 45.0, [5.0], [2.0]))

    @pytest.mark.parametrize("t", [0.0, -1.0, float("nan"), float("inf")])
    def test_tolerances_are_positive_and_finite(self, t):
        with pytest.raises(ValueError, match="within: the tolerance is .*; it must be positive and finite"), hi.within(t):
            pass

    def test_tolerances_below_what_a_type_holds_are_told(self):
        with hi.within(1e-20), pytest.raises(ValueError, match="within: a tolerance of 1e-20; the smallest of f"):
            ndimage.correlate(self.image, self.weights)


AXES: list[Case] = [
    ("laplace", (), {}),
    ("gaussian_laplace", (1.2,), {}),
    ("gaussian_gradient_magnitude", (1.2,), {}),
    ("correlate", ([[1, 2, 0], [0, -3, 4]],), {"origin": (-1, 1)}),
    ("convolve", ([[1, 2, 0], [0, -3, 4]],), {"origin": (-1, 1)}),
    ("grey_erosion", (), {"structure": [[0, 1, 2], [1, 0, 0]]}),
    ("grey_dilation", ((2, 3),), {"origin": (0, -1)}),
    ("grey_opening", (), {"footprint": [[1, 1, 0], [0, 1, 1]]}),
    ("grey_closing", ((3, 4),), {}),
    ("morphological_gradient", ((3, 2),), {}),
    ("morphological_laplace", (3,), {}),
    ("white_tophat", (), {"footprint": [[0, 1, 0], [1, 1, 1]]}),
    ("black_tophat", ((4, 3),), {}),
    ("binary_erosion", (), {}),
    ("binary_dilation", ([[1, 1, 0], [0, 1, 1]],), {"iterations": 2}),
    ("binary_opening", ([[1, 1]],), {}),
    ("binary_closing", (), {"iterations": 2}),
    ("binary_propagation", (), {}),
    ("binary_fill_holes", (), {}),
    ("binary_hit_or_miss", (), {"structure1": [[1, 1], [0, 1]]}),
    ("gaussian_filter", ((1.0, 0.5),), {}),
    ("uniform_filter", ((3, 4),), {}),
    ("minimum_filter", (3,), {}),
    ("maximum_filter", (), {"footprint": [[0, 1, 0], [1, 1, 1]]}),
    ("median_filter", (), {"size": (3, 5)}),
    ("rank_filter", (2,), {"footprint": [[0, 1, 0], [1, 1, 1]]}),
    ("percentile_filter", (30,), {"size": 3}),
]


@pytest.mark.parametrize("case", AXES, ids=lambda case: case[0])
def test_filters_along_two_axes_of_three(case: Case) -> None:
    name, args, kwargs = case
    binary = name.startswith("binary")
    volume = pixels((7, 8, 9), np.float64)
    array = volume > 20.0 if binary else volume
    modes: list[Any] = [None] if binary else ["wrap"] if name in ("correlate", "convolve") or kwargs else ["wrap", ("wrap", "nearest")]
    for axes in ((0, 1), (0, 2), (-2, 2)):
        for mode in modes:
            given = {**kwargs, "axes": axes, **({} if mode is None else {"mode": mode})}
            ours, theirs = both(name, array, *args, **given)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12 * 255, err_msg=str(given))
    np.testing.assert_array_equal(getattr(ndimage, name)(hi.asarray(array), *args, **given), ours)
    for wrong, kind in (((1, 1), ValueError), ((3,), ValueError), ((0.5,), TypeError)):
        with pytest.raises(kind):
            getattr(ndimage, name)(array, *args, **{**kwargs, "axes": wrong})


def test_a_size_is_of_the_axis_in_its_place() -> None:
    array = pixels((12, 14), np.float64)
    for name, args in (("median_filter", ()), ("percentile_filter", (30,)), ("rank_filter", (0,)), ("rank_filter", (2,)), ("minimum_filter", ()),
                       ("uniform_filter", ()), ("grey_dilation", ())):  # fmt: skip
        function = getattr(ndimage, name)
        for mode in ("nearest", ("wrap", "nearest")) if args == (0,) or not args and name != "median_filter" else ("nearest",):
            turned = mode if isinstance(mode, str) else mode[::-1]
            found = function(array, *args, size=(1, 5), axes=(1, 0), origin=(0, -1), mode=mode)
            np.testing.assert_array_equal(found, function(array, *args, size=(5, 1), origin=(-1, 0), mode=turned), err_msg=f"{name} {mode}")
        plane = function(array[None], *args, size=(1, 5), axes=(2, 1), origin=(0, -1))[0]
        np.testing.assert_array_equal(plane, function(array, *args, size=(5, 1), origin=(-1, 0)), err_msg=name)
    # The axes of arrays are those of the image in rising order, as in SciPy.
    weights = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(ndimage.correlate(array, weights, axes=(1, 0)), ndimage.correlate(array, weights))
    for footprint in ([[1, 1, 1]], [[1, 0, 1]]):
        np.testing.assert_array_equal(ndimage.maximum_filter(array, footprint=footprint, axes=(1, 0)), scipy.ndimage.maximum_filter(array, footprint=footprint))


def test_every_function_that_has_axes_in_scipy_has_them() -> None:
    have = [name for name in ndimage.__all__ if "axes" in inspect.signature(getattr(scipy.ndimage, name)).parameters]
    assert len(have) >= 25
    for name in have:
        assert "axes" in inspect.signature(getattr(ndimage, name)).parameters, name
    assert {case[0] for case in AXES} >= {*have} - {"rotate"}


SEVERAL_MODES: list[Case] = [
    ("uniform_filter", ((3, 4),), {}),
    ("gaussian_filter", (1.0,), {}),
    ("gaussian_laplace", (1.0,), {}),
    ("gaussian_gradient_magnitude", (1.0,), {}),
    ("laplace", (), {}),
    ("sobel", (0,), {}),
    ("prewitt", (1,), {}),
    ("minimum_filter", ((3, 4),), {}),
    ("maximum_filter", (), {"footprint": np.ones((3, 4))}),
    ("grey_erosion", (), {"footprint": np.ones((2, 5), bool)}),
    ("grey_opening", ((3, 2),), {}),
    ("morphological_gradient", (), {"footprint": np.ones((2, 3))}),
    ("white_tophat", (3,), {}),
    ("rank_filter", (0,), {"footprint": np.ones((3, 2))}),
    ("percentile_filter", (100,), {"size": 3}),
]


@pytest.mark.parametrize("case", SEVERAL_MODES, ids=lambda case: case[0])
def test_each_axis_has_its_border_mode(case: Case) -> None:
    name, args, kwargs = case
    plane, volume = pixels((9, 11), np.float64), pixels((4, 9, 11), np.float64)
    for modes in itertools.product(("reflect", "mirror", "nearest", "wrap", "constant"), repeat=2):
        given = {**kwargs, "mode": list(modes), "cval": 3.0}
        np.testing.assert_allclose(*both(name, plane, *args, **given), rtol=0, atol=1e-12 * 255, err_msg=str(given))
        if name in ("sobel", "prewitt"):
            continue
        for axes in ((0, 1), (1, 2), (0, 2)):
            if name in ("gaussian_gradient_magnitude", "gaussian_laplace") and axes != (1, 2):
                continue
            given["axes"] = axes
            np.testing.assert_allclose(*both(name, volume, *args, **given), rtol=0, atol=1e-12 * 255, err_msg=str(given))
    for count in (1, 3):
        with pytest.raises(RuntimeError, match="rank"):
            getattr(ndimage, name)(plane, *args, **{**kwargs, "mode": ["wrap"] * count})


def test_footprints_with_gaps_have_one_border_mode_as_in_scipy() -> None:
    array, footprint = pixels((9, 11), np.float64), [[0, 1, 0], [1, 1, 1]]
    for name, args in (("minimum_filter", ()), ("grey_dilation", ()), ("median_filter", ()), ("rank_filter", (1,)), ("correlate", (footprint,))):
        kwargs: dict[str, Any] = {} if args and name == "correlate" else {"footprint": footprint}
        for library in (ndimage, scipy.ndimage):
            with pytest.raises(RuntimeError, match="[Ss]equence of modes"):
                getattr(library, name)(array, *args, mode=["wrap", "reflect"], **kwargs)
