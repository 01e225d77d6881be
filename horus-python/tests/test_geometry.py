"""Geometry against SciPy's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import horus_image as hi
from horus_image import ndimage

MODES = ["reflect", "mirror", "nearest", "constant", "wrap", "grid-wrap", "grid-constant", "grid-mirror"]


def photo(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    smooth = scipy.ndimage.gaussian_filter(np.random.default_rng(2).normal(size=shape), 1.0)
    return (smooth * 200 if np.dtype(dtype).kind == "f" else np.abs(smooth) * 200).astype(dtype)


def on_edges(shape: tuple[int, ...], output: tuple[int, ...], matrix: Any, offset: Any) -> np.ndarray[Any, Any]:
    """The few pixels whose positions are on the first or the last row or column, which a rounding takes inside or beyond."""
    square = np.diag(matrix) if np.ndim(matrix) == 1 else np.asarray(matrix)[:, : len(shape)]
    move = np.asarray(matrix)[:, -1] if np.shape(matrix) == (2, 3) else offset
    places = np.moveaxis(np.indices(output), 0, -1) @ square.T + move
    there = (np.minimum(np.abs(places), np.abs(places - np.subtract(shape, 1))) < 1e-9).any(axis=-1)
    assert there.sum() <= 8
    return np.asarray(there)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
def test_affine_maps(order: int, mode: str) -> None:
    image = photo((20, 27))
    for matrix, offset in (
        ([[0.9, 0.2], [-0.3, 1.1]], (0.7, -1.3)),
        ([0.5, 1.7], (1.2, -0.4)),
        ([[0.8, 0.0, 1.4], [0.1, 1.0, 2.2]], 0.0),
    ):
        given: dict[str, Any] = {"offset": offset, "order": order, "mode": mode, "cval": 3.0, "output_shape": (22, 30)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            theirs = scipy.ndimage.affine_transform(image, matrix, **given)
        ours = ndimage.affine_transform(image, matrix, **given)
        # Positions are held to 2^-32 of a pixel: a step is wrong by half of that, times as many pixels. Half way between two pixels, as many
        # of these are, the nearest may be the other one.
        apart = np.abs(ours - theirs) > 1e-5
        if mode in ("constant", "wrap"):
            apart &= ~on_edges(image.shape, ours.shape, matrix, offset)
        assert np.count_nonzero(apart) <= (0 if order else apart.size // 12)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
def test_rotations_and_zooms(order: int, mode: str) -> None:
    for dtype in (np.float64, np.float32, np.uint8):
        image = photo((19, 24), dtype)
        for angle in (0, 33.3, 90, -120):
            ours = ndimage.rotate(image, angle, order=order, mode=mode)
            theirs = scipy.ndimage.rotate(image, angle, order=order, mode=mode)
            assert ours.shape == theirs.shape
            near = np.abs(ours.astype(float) - theirs.astype(float)) <= (1e-3 if dtype != np.uint8 else 1)
            # A position on an edge or half way between two pixels depends on the rounding of sines.
            assert np.count_nonzero(~near) <= 0.05 * near.size
        for factor in (0.5, 1.7, (2, 1.3)):
            for grid in (False, True):
                if grid and mode in ("constant", "wrap"):
                    continue
                ours = ndimage.zoom(image, factor, order=order, mode=mode, grid_mode=grid)
                theirs = scipy.ndimage.zoom(image, factor, order=order, mode=mode, grid_mode=grid)
                assert ours.shape == theirs.shape
                near = np.abs(ours.astype(float) - theirs.astype(float)) <= (1e-3 if dtype != np.uint8 else 1)
                assert np.count_nonzero(~near) <= 0.05 * near.size


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_affine_maps_of_splines(order: int, mode: str) -> None:
    image = photo((30, 41))
    line = image[0]
    for name, array, args, given in (
        ("affine_transform", image, ([[0.9, 0.2], [-0.3, 1.1]],), {"offset": (0.7, -1.3), "output_shape": (22, 50)}),
        ("affine_transform", image, ([[0.9, 0.2], [-0.3, 1.1]],), {"prefilter": False}),
        ("rotate", image, (33.3,), {}),
        ("zoom", image, (1.7,), {}),
        ("zoom", line, (0.6,), {}),
        ("shift", image, ((1.3, -2.6),), {}),
    ):
        ours = getattr(ndimage, name)(array, *args, order=order, mode=mode, cval=1.0, **given)
        theirs = getattr(scipy.ndimage, name)(array, *args, order=order, mode=mode, cval=1.0, **given)
        if name == "affine_transform" and mode in ("constant", "wrap"):
            there = on_edges(array.shape, ours.shape, args[0], given.get("offset", 0.0))
            ours, theirs = np.where(there, 0.0, ours), np.where(there, 0.0, theirs)
        np.testing.assert_allclose(ours, theirs, atol=1e-8, err_msg=f"{name} {given}")


def test_rotations_in_each_plane_of_a_volume() -> None:
    volume = photo((7, 8, 9))
    for axes in ((0, 1), (0, 2), (2, 1)):
        np.testing.assert_allclose(ndimage.rotate(volume, 30, axes), scipy.ndimage.rotate(volume, 30, axes), atol=1e-6)


@pytest.mark.parametrize("order", range(6))
def test_shifts_by_splines(order: int) -> None:
    for shape in ((32,), (25, 32), (16, 27, 18)):
        image = photo(shape)
        for mode in ("reflect", "mirror", "constant", "grid-wrap", "wrap", "nearest", "grid-constant"):
            # Half way beyond an edge that mirrors, SciPy's nearest pixel is the other one.
            for by in (0.3, -1.5 if order else -1.25, 2.0, 2.75):
                ours = ndimage.shift(image, by, order=order, mode=mode, cval=1.0)
                theirs = scipy.ndimage.shift(image, by, order=order, mode=mode, cval=1.0)
                np.testing.assert_allclose(ours, theirs, atol=1e-8, err_msg=f"{shape} {mode} {by}")


@pytest.mark.parametrize("order", range(6))
def test_shifts_of_some_axes(order: int) -> None:
    """Along the others splines have the numbers that they go through, unless these are taken for coefficients."""
    image = photo((16, 27, 18))
    for mode in ("reflect", "mirror", "constant", "grid-wrap", "wrap", "nearest"):
        for by in ((0, 1.3, -2.6), (0.0, 0, 2.75), (0.3, 0, 0), (-0.0, 2, 0), (0, 0, 0)):
            for prefilter in (True, False):
                given: dict[str, Any] = {"order": order, "mode": mode, "cval": 1.0, "prefilter": prefilter}
                ours, theirs = (of.shift(image, by, **given) for of in (ndimage, scipy.ndimage))
                # Positions of planes have 32 fractional bits.
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8, err_msg=f"{mode} {by} {prefilter}")


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_prefilters_of_splines(order: int) -> None:
    for shape in ((1,), (2,), (3,), (31,), (35, 42), (26, 27, 28)):
        for mode in ("mirror", "reflect", "grid-wrap", "constant"):
            if mode == "reflect" and shape in ((2,), (3,)):
                continue  # SciPy's first coefficient of so short a line is an approximation
            image = photo(shape)
            ours = ndimage.spline_filter(image, order, mode=mode)
            np.testing.assert_allclose(ours, scipy.ndimage.spline_filter(image, order, mode=mode), atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", range(6))
def test_coordinates(order: int, mode: str) -> None:
    rng = np.random.default_rng(5)
    for shape, places in (((23,), (40,)), ((17, 19), (5, 14)), ((16, 17, 15), (33,)), ((15, 14, 16), (3, 4, 5)), ((11, 12), (2, 3, 4, 5))):
        for dtype in (np.float64, np.float32, np.int16):
            image = photo(shape, dtype)
            extents = np.reshape(shape, (-1,) + (1,) * len(places))
            at = rng.uniform(-0.4, 1.4, (len(shape), *places)) * extents
            for prefilter in (True, False):
                given: dict[str, Any] = {"order": order, "mode": mode, "cval": 2.0, "prefilter": prefilter}
                ours = ndimage.map_coordinates(image, at, **given)
                theirs = scipy.ndimage.map_coordinates(image, at, **given)
                assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
                # Images of float32 are sampled in float32 by orders 0 and 1; what lies half way is rounded either way.
                # SciPy's coefficients of lines as short as these are approximations in mode reflect.
                exact = 1e-5 if mode in ("reflect", "grid-mirror") else 1e-8
                most = 1 if dtype == np.int16 else 1e-4 if dtype == np.float32 else exact
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=most, err_msg=f"{shape} {dtype} {prefilter}")


def test_coordinates_of_every_kind() -> None:
    image = photo((14, 15), np.float32)
    at = np.random.default_rng(6).uniform(0, 13, (2, 6, 7))
    theirs = scipy.ndimage.map_coordinates(image, at)
    lazy = ndimage.map_coordinates(hi.asarray(image), at)
    assert isinstance(lazy, hi.Image) and lazy.shape == (6, 7)
    np.testing.assert_allclose(lazy, theirs, atol=1e-4)
    images = [hi.asarray(axis) for axis in at]
    np.testing.assert_allclose(ndimage.map_coordinates(hi.asarray(image), images), theirs, atol=1e-4)
    single = at.astype(np.float32)
    for mode in MODES:
        exact = ndimage.map_coordinates(image, single.astype(np.float64), mode=mode)
        np.testing.assert_array_equal(ndimage.map_coordinates(image, single, mode=mode), exact)
        kept = single.copy()
        lazy = ndimage.map_coordinates(hi.asarray(image), [kept[0], hi.asarray(single[1])], mode=mode)
        kept[:] = 0  # the caller's, who may write to it
        np.testing.assert_array_equal(lazy, exact)
    whole = ndimage.map_coordinates(image + 1j * image, at)
    np.testing.assert_allclose(whole, scipy.ndimage.map_coordinates(image + 1j * image, at), atol=1e-4)
    for wrong in ([[1.0]], [[[1.0]]] * 3):
        with pytest.raises(RuntimeError, match="invalid shape"):
            ndimage.map_coordinates(image, wrong)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"])
def test_coordinates_that_are_no_numbers(dtype: str, mode: str) -> None:
    image = np.array([[26, 22, 29], [1, 2, 3], [100, 7, 9]]).astype(dtype)
    image[0, 2] = image[0, 2] if dtype[0] == "u" else -29
    wrong = [np.nan, np.inf, -np.inf]
    at = [[*wrong, 0.0, 0.0, 0.0, *wrong], [1.0, 0.0, 1.0, *wrong, *wrong]]
    for order in range(6):
        found = ndimage.map_coordinates(image, at, order=order, mode=mode, cval=5)
        assert found.dtype == image.dtype
        expected = 5.0 if mode == "constant" else np.nan if dtype[0] == "f" else 0.0
        np.testing.assert_array_equal(found, np.full(9, expected), err_msg=str(order))


@pytest.mark.parametrize("order", [0, 1, 3])
def test_maps_across_the_levels_of_a_volume(order: int) -> None:
    volume = photo((17, 18, 19))
    turn = [[0.9, 0.1, -0.2], [0.2, 1.1, 0.1], [-0.1, 0.3, 0.8]]
    for mode in MODES:
        given: dict[str, Any] = {"order": order, "mode": mode, "cval": 1.0}
        for name, args in (
            ("affine_transform", (turn, (0.31, -0.42, 0.13))),
            # Axes that are exchanged, left out, or only moved.
            ("affine_transform", ([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.7]], (0.0, 0.0, 0.45))),
            ("affine_transform", ([[1.0, 0.0, 0.2], [0.0, 0.0, 0.0], [0.0, -0.6, 0.0]], (0.31, 2.37, 5.13))),
            ("zoom", ((1.3, 0.7, 1.9),)),
        ):
            ours = getattr(ndimage, name)(volume, *args, **given)
            theirs = getattr(scipy.ndimage, name)(volume, *args, **given)
            apart = np.abs(ours - theirs) > 1e-8
            # A position on an edge, or half way between two pixels, that is rounded otherwise.
            assert np.count_nonzero(apart) <= 0.01 * apart.size, f"{name} {mode}"


@pytest.mark.parametrize(
    "wrong", [{"order": 9}, {"mode": "x"}, {"output": np.zeros(2)}, {"output": "x"}, {"output": [1]}, {"output": "c8"}, {"cval": "x"}], ids=str
)
def test_arguments_of_a_mapping_are_checked_before_it_is_called(wrong: dict[str, Any]) -> None:
    def mapping(at: tuple[int, ...]) -> tuple[int, ...]:
        raise AssertionError("called")

    with pytest.raises((RuntimeError, TypeError, ValueError)):
        ndimage.geometric_transform(np.ones(3), mapping, **wrong)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_mapping_gives_the_positions_along_each_axis(dtype: Any) -> None:
    image = photo((7, 9, 3)).astype(dtype)

    def mapping(at: tuple[int, ...], move: float, scale: float) -> tuple[float, ...]:
        return (at[0] * scale + move, at[1] - move, at[2] * 0.5, 99.0)

    given: dict[str, Any] = {"output_shape": (4, 5, 6), "order": 1, "mode": "mirror", "extra_arguments": (0.25,), "extra_keywords": {"scale": 1.5}}
    found = ndimage.geometric_transform(image, mapping, **given)
    np.testing.assert_allclose(found, scipy.ndimage.geometric_transform(image, mapping, **given), rtol=1e-6)
    with pytest.raises(TypeError, match="fewer than 3 numbers"):
        ndimage.geometric_transform(image, lambda at: at[:2])


def test_what_is_not_there_says_so() -> None:
    image = photo((8, 9))
    for call, told in (
        (lambda: ndimage.label(np.zeros((2, 2, 2, 2))), "4 axes"),
        (lambda: ndimage.median_filter(np.zeros((2, 2, 2, 2)), 5), "4 axes"),
        (lambda: ndimage.gaussian_filter(np.zeros((2, 2, 2, 2)), 1), "4 axes"),
    ):
        with pytest.raises(NotImplementedError, match=told):
            call()
