"""Pixels that are NaN: filters of order sort them last, as `numpy.sort` does, and extremes ignore them; wherever they lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest

import horus_image as hi
from horus_image import ndimage

Array = np.ndarray[Any, Any]

MODES: Final = {"reflect": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant"}
"""NumPy's names of edges, by SciPy's."""


def pixels(shape: tuple[int, ...], dtype: Any, share: float) -> Array:
    """Numbers of which a share is NaN, of either sign, and a few are infinite."""
    rng = np.random.default_rng(shape[-1])
    array = rng.normal(size=shape).astype(dtype)
    array[rng.random(shape) < 0.05] = np.inf
    array[rng.random(shape) < 0.05] = -np.inf
    nan = rng.random(shape) < share
    array[nan] = np.copysign(np.nan, rng.normal(size=shape))[nan]
    return array


def under(array: Array, footprint: Array, mode: str, cval: float) -> Array:
    """The pixels under a footprint, along a further axis."""
    more = {"constant_values": cval} if mode == "constant" else {}
    reach = [(size // 2, (size - 1) // 2) for size in footprint.shape]
    padded: Array = np.pad(array, reach, MODES[mode], **more)  # type: ignore[call-overload]
    windows = np.lib.stride_tricks.sliding_window_view(padded, footprint.shape)
    return windows[..., footprint]


FOOTPRINTS: Final = {
    "3x3": np.ones((3, 3), bool),
    "5x5": np.ones((5, 5), bool),
    "9x7": np.ones((9, 7), bool),
    "1x4": np.ones((1, 4), bool),
    "cross": np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], bool),
    "large cross": np.eye(7, dtype=bool) | np.eye(7, dtype=bool)[::-1],
    "centre": np.array([[0, 1, 0]], bool),
    "beside": np.array([[1, 0, 0]], bool),
    "one": np.ones((1, 1), bool),
    "3x3x3": np.ones((3, 3, 3), bool),
    "3x1x1": np.ones((3, 1, 1), bool),
    "cross of levels": np.array([[[0, 0, 0], [0, 1, 0], [0, 0, 0]], [[0, 1, 0], [1, 1, 1], [0, 1, 0]], [[0, 0, 0], [0, 1, 0], [0, 0, 0]]], bool),
}


def cases() -> list[Any]:
    modes = [*((mode, 0.0) for mode in MODES), ("constant", np.nan)]
    shares = [0.2, 1.0, 0.6]
    many = [(name, np.dtype(dtype), *modes[(i + j) % 6], shares[(i + j) % 3]) for i, name in enumerate(FOOTPRINTS) for j, dtype in enumerate(2 * ["f4", "f8"])]
    return [pytest.param(*case, id=" ".join(map(str, case))) for case in many]


@pytest.mark.parametrize(("name", "dtype", "mode", "cval", "share"), cases())
def test_orders_put_nan_last_and_extremes_ignore_it(name: str, dtype: Any, mode: str, cval: float, share: float) -> None:
    footprint = FOOTPRINTS[name]
    array = pixels((12, 17) if footprint.ndim == 2 else (5, 6, 9), dtype, share)
    window = under(array, footprint, mode, cval)
    n = int(footprint.sum())
    ordered = np.sort(window, axis=-1)
    edge: dict[str, Any] = {"mode": mode, "cval": cval}
    wanted: list[tuple[str, Callable[[Array, Array], Array], Array]] = [
        ("median", lambda a, f: ndimage.median_filter(a, footprint=f, **edge), ordered[..., n // 2]),
        ("percentile 30", lambda a, f: ndimage.percentile_filter(a, 30, footprint=f, **edge), ordered[..., int(n * 0.3)]),
        ("percentile 100", lambda a, f: ndimage.percentile_filter(a, 100, footprint=f, **edge), ordered[..., -1]),
        *((f"rank {k}", lambda a, f, k=k: ndimage.rank_filter(a, k, footprint=f, **edge), ordered[..., k]) for k in {0, 1, n // 3, n - 1} if k < n),
        ("minimum", lambda a, f: ndimage.minimum_filter(a, footprint=f, **edge), np.where(np.isnan(window), np.inf, window).min(-1)),
        ("maximum", lambda a, f: ndimage.maximum_filter(a, footprint=f, **edge), np.where(np.isnan(window), -np.inf, window).max(-1)),
    ]
    for what, function, want in wanted:
        found = function(array, footprint)
        np.testing.assert_array_equal(found, want, err_msg=what)
        if all(size % 2 for size in footprint.shape):
            for axis in range(array.ndim):
                turned = np.flip(function(np.flip(array, axis), np.flip(footprint, axis)), axis)
                assert np.where(np.isnan(turned), 0, turned).tobytes() == np.where(np.isnan(found), 0, found).tobytes(), what
                np.testing.assert_array_equal(turned, found, err_msg=what)


def test_sizes_are_footprints() -> None:
    array = pixels((9, 11), np.float32, 0.3)
    for size in (3, 5, (3, 5), 1):
        for rank in (0, -1):
            full = np.ones(np.broadcast_to(size, 2), bool)
            want = np.sort(under(array, full, "reflect", 0.0), axis=-1)[..., rank]
            np.testing.assert_array_equal(ndimage.rank_filter(array, rank, size=size), want)
            np.testing.assert_array_equal(ndimage.rank_filter(hi.asarray(array), rank, size=size).compute(), want)
    nothing = np.full((3, 4), np.nan)
    for size in (1, 3):
        np.testing.assert_array_equal(ndimage.minimum_filter1d(nothing, size), np.inf)
        np.testing.assert_array_equal(ndimage.maximum_filter1d(nothing, size, axis=0), -np.inf)


def test_masks_have_orders() -> None:
    mask = pixels((14, 15), np.float64, 0.4) > 0
    for size in (3, 5, 7):
        want = np.sort(under(mask, np.ones((size, size), bool), "reflect", 0), axis=-1)
        for k in (0, 1, size, size * size // 2, size * size - 1):
            found = ndimage.rank_filter(mask, k, size=size)
            assert found.dtype == bool
            np.testing.assert_array_equal(found, want[..., k])


SPECIAL: Final = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.0, -7.25, 1e30, -1e30, 1e-30]
APPROXIMATE: Final = {
    *(np.exp, np.log, np.sin, np.cos, np.power, np.arctan2, np.hypot, np.exp2, np.expm1, np.log2, np.log10, np.log1p, np.cbrt, np.tan, np.arcsin),
    *(np.arccos, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh, np.logaddexp, np.logaddexp2, np.float_power),
}
UNDEFINED: Final = {np.minimum, np.maximum, np.fmin, np.fmax}
"""NumPy leaves it open which one of two equal zeros is the smaller."""

OF_MASKS: Final = {np.logical_and, np.logical_or, np.logical_xor, np.logical_not}


def agree(function: np.ufunc, ours: Any, theirs: Any) -> None:
    if isinstance(theirs, tuple):
        for one, other in zip(ours, theirs, strict=True):
            agree(function, one, other)
        return
    ours, kind = np.asarray(ours), str(function)
    if function in APPROXIMATE:
        np.testing.assert_allclose(ours, theirs, rtol=3e-7 if theirs.dtype == np.float32 else 1e-15, err_msg=kind)
    else:
        np.testing.assert_array_equal(ours, theirs, err_msg=kind)
    if theirs.dtype.kind == "f" and function not in UNDEFINED:
        number = ~np.isnan(theirs)
        np.testing.assert_array_equal(np.signbit(ours)[number], np.signbit(theirs)[number], err_msg=f"signs of {kind}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_numpy_treat_nan_infinities_and_zeros_as_numpy_does(dtype: Any) -> None:
    from horus_image._ufuncs import UFUNCS

    one = np.array(SPECIAL, dtype)[None]
    a, b = (np.ascontiguousarray(both) for both in np.broadcast_arrays(one, one.T))
    with np.errstate(all="ignore"):
        for function in set(UFUNCS) - OF_MASKS:
            if function.nin == 1 and "f->" in "".join(function.types):
                agree(function, function(hi.asarray(a)), function(a))
            elif function.signature is None and "ff->" in "".join(function.types):
                agree(function, function(hi.asarray(a), hi.asarray(b)), function(a, b))
                agree(function, function(hi.asarray(a), b), function(a, b))
                for number in SPECIAL:
                    # NumPy takes some exponents that are numbers for other functions: 0.5 for the root.
                    wanted = function(a, np.full(a.shape, number, dtype))
                    agree(function, function(hi.asarray(a), number), wanted)
                    agree(function, function(number, hi.asarray(a)), function(number, a))
        agree(np.matmul, np.matmul(hi.asarray(a), hi.asarray(b)), np.matmul(a, b))
        for low, high in ((-1.0, 2.0), (-np.inf, 0.0), (0.0, np.inf), (None, 0.0), (0.0, None), (2.0, -1.0), (np.nan, 1.0), (0.0, np.nan)):
            for clipped in (np.clip(hi.asarray(a), low, high), hi.asarray(a).clip(low, high)):
                assert isinstance(clipped, hi.Image)
                np.testing.assert_array_equal(clipped, np.clip(a, low, high))


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4"])
def test_integers_are_clipped_as_numpy_clips_them(dtype: str) -> None:
    array = np.array([[0, 3, 5, 100]]).astype(dtype)
    for low, high in ((3, 50), (None, 4), (4, None), (50, 3)):
        clipped = np.clip(hi.asarray(array), low, high)
        assert isinstance(clipped, hi.Image) and clipped.dtype == array.dtype
        np.testing.assert_array_equal(clipped, np.clip(array, low, high))
    with pytest.raises(ValueError, match="out must be None"):
        hi.asarray(array).clip(1, 2, array)  # type: ignore[arg-type]


def test_extremes_of_two_keep_nan_as_numpy_does() -> None:
    image, nan = hi.asarray(np.array([[np.nan, -1.0, 2.0]])), np.nan
    np.testing.assert_array_equal(np.asarray(np.maximum(image, 0.0)), [[nan, 0.0, 2.0]])
    np.testing.assert_array_equal(np.asarray(np.minimum(0.0, image)), [[nan, -1.0, 0.0]])
    np.testing.assert_array_equal(np.asarray(np.fmax(image, 0.0)), [[0.0, 0.0, 2.0]])
    np.testing.assert_array_equal(np.asarray(np.maximum(image, nan)), np.full((1, 3), nan))
    nothing = hi.asarray(np.full((1, 3), nan))
    assert float(nothing.max()) == -np.inf and float(nothing.min()) == np.inf
