"""Geometry against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

from horus_image import ndimage

MODES = ["reflect", "mirror", "nearest", "constant", "grid-wrap", "grid-constant", "grid-mirror"]


def photo(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray[Any, Any]:
    smooth = scipy.ndimage.gaussian_filter(np.random.default_rng(2).normal(size=shape), 1.0)
    return (smooth * 200 if np.dtype(dtype).kind == "f" else np.abs(smooth) * 200).astype(dtype)


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
        with np.testing.suppress_warnings() as quiet:
            quiet.filter(UserWarning)
            theirs = scipy.ndimage.affine_transform(image, matrix, **given)
        ours = ndimage.affine_transform(image, matrix, **given)
        # Positions are held to 2^-32 of a pixel: a step is wrong by half of that, times as many pixels. Half way between two pixels, as many
        # of these are, the nearest may be the other one.
        apart = np.abs(ours - theirs) > 1e-5
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
            # Where a position lies on an edge or half way between two pixels, sines rounded otherwise decide otherwise.
            assert np.count_nonzero(~near) <= 0.05 * near.size
        for factor in (0.5, 1.7, (2, 1.3)):
            for grid in (False, True):
                if grid and mode in ("constant",):
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
        if name == "affine_transform" and "prefilter" in given and mode in ("nearest", "grid-constant"):
            continue  # a position beyond the edge is the edge in SciPy, and samples repeated pixels here
        ours = getattr(ndimage, name)(array, *args, order=order, mode=mode, cval=1.0, **given)
        theirs = getattr(scipy.ndimage, name)(array, *args, order=order, mode=mode, cval=1.0, **given)
        np.testing.assert_allclose(ours, theirs, atol=1e-4, err_msg=f"{name} {given}")


def test_rotations_in_each_plane_of_a_volume() -> None:
    volume = photo((7, 8, 9))
    for axes in ((0, 1), (0, 2), (2, 1)):
        np.testing.assert_allclose(ndimage.rotate(volume, 30, axes), scipy.ndimage.rotate(volume, 30, axes), atol=1e-6)


@pytest.mark.parametrize("order", range(6))
def test_shifts_by_splines(order: int) -> None:
    for shape in ((32,), (25, 32), (16, 27, 18)):
        image = photo(shape)
        for mode in ("reflect", "mirror", "constant", "grid-wrap"):
            # Half way beyond an edge that mirrors, SciPy's nearest pixel is the other one.
            for by in (0.3, -1.5 if order else -1.25, 2.0, 2.75):
                ours = ndimage.shift(image, by, order=order, mode=mode, cval=1.0)
                theirs = scipy.ndimage.shift(image, by, order=order, mode=mode, cval=1.0)
                np.testing.assert_allclose(ours, theirs, atol=1e-8, err_msg=f"{shape} {mode} {by}")


@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_prefilters_of_splines(order: int) -> None:
    for shape in ((1,), (2,), (3,), (31,), (35, 42), (26, 27, 28)):
        for mode in ("mirror", "reflect", "grid-wrap", "constant"):
            if mode == "reflect" and shape in ((2,), (3,)):
                continue  # SciPy's first coefficient of so short a line is an approximation
            image = photo(shape)
            ours = ndimage.spline_filter(image, order, mode=mode)
            np.testing.assert_allclose(ours, scipy.ndimage.spline_filter(image, order, mode=mode), atol=1e-9)


def test_what_is_not_there_says_so() -> None:
    image = photo((8, 9))
    for call, told in (
        (lambda: ndimage.map_coordinates(image, [[0.5], [0.5]]), "coordinates of an array"),
        (lambda: ndimage.label(image > 0), "connected components"),
        (lambda: ndimage.shift(image, 1.5, order=1, mode="wrap"), "grid-wrap"),
        (lambda: ndimage.zoom(photo((4, 5, 6)), 2, order=1), "levels of a volume"),
        (lambda: ndimage.median_filter(photo((4, 5, 6)), 5), "a rank among 125 pixels of several levels"),
        (lambda: ndimage.gaussian_filter(np.zeros((2, 2, 2, 2)), 1), "4 axes"),
    ):
        with pytest.raises(NotImplementedError, match=told):
            call()
