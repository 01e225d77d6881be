"""`distance_transform_edt` and `distance_transform_cdt` against SciPy's, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import horus_image as hi
from horus_image import ndimage

Array = np.ndarray[Any, Any]


def pictures() -> list[Array]:
    rng = np.random.default_rng(5)
    cells = scipy.ndimage.gaussian_filter(rng.random((61, 47)), 3.0) > 0.5
    ring = np.ones((9, 8), np.int16)
    ring[4, 3] = 0
    numbers = rng.integers(0, 3, (30, 31)).astype(np.uint8)
    # Only the distinction of zero and nonzero counts.
    floats = np.where(rng.random((12, 40)) < 0.1, 0.0, np.nan)
    return [cells, ring, numbers, floats, rng.random(33) > 0.2, np.zeros((3, 4)), np.array([[0]])]


def volumes() -> list[Array]:
    rng = np.random.default_rng(6)
    cells = scipy.ndimage.gaussian_filter(rng.random((13, 31, 27)), 2.0) > 0.5
    point = np.ones((7, 6, 5), np.uint8)
    point[5, 1, 4] = 0
    few = rng.integers(0, 60, (9, 20, 33)).astype(np.int16)
    lines = [rng.random(shape) > 0.3 for shape in [(1, 1, 40), (1, 40, 1), (40, 1, 1), (1, 12, 13), (12, 1, 13), (12, 13, 1)]]
    return [cells, point, few, rng.random((6, 7, 8)) > 0.5, np.zeros((2, 3, 4)), np.array([[[0]]]), *lines]


@pytest.mark.parametrize("sampling", [None, 0.5, (2.0, 3.5)])
@pytest.mark.parametrize("picture", pictures(), ids=lambda p: f"{p.dtype}{p.shape}")
def test_straight_lines_and_where_they_end(picture: Array, sampling: Any) -> None:
    if picture.ndim == 1 and isinstance(sampling, tuple):
        sampling = sampling[:1]
    ours = ndimage.distance_transform_edt(picture, sampling, return_indices=True)
    theirs = scipy.ndimage.distance_transform_edt(picture, sampling, return_indices=True)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("sampling", [None, 0.25, (3.0, 1.0, 1.0), (2.0, 0.5, 0.25)])
@pytest.mark.parametrize("volume", volumes(), ids=lambda v: f"{v.dtype}{v.shape}")
def test_straight_lines_in_volumes_and_where_they_end(volume: Array, sampling: Any) -> None:
    ours = ndimage.distance_transform_edt(volume, sampling, return_indices=True)
    theirs = scipy.ndimage.distance_transform_edt(volume, sampling, return_indices=True)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("sampling", [(1.0, 1.0, 1.0), (0.3, 0.1625, 0.1625), (5.0, 0.7, 1.9), (1e-3, 30.0, 2e4)])
def test_distances_are_the_least_of_all(sampling: tuple[float, float, float]) -> None:
    """By the definition: of all zeros the one with the smallest sum of squares, rounded as it is added; of equal ones that of the first column,
    in it that of the first row, and of these the first level."""
    rng = np.random.default_rng(7)
    for part in [0.5, 0.97, 0.995]:
        volume = rng.random((6, 11, 14)) < part
        zeros = np.argwhere(~volume)
        zeros = zeros[np.lexsort((zeros[:, 0], zeros[:, 1], zeros[:, 2]))]
        away = (zeros[None] - np.argwhere(np.ones(volume.shape))[:, None]) * np.array(sampling)
        squares = away[..., 0] ** 2 + away[..., 1] ** 2 + away[..., 2] ** 2
        distances, at = ndimage.distance_transform_edt(volume, sampling, return_indices=True)
        np.testing.assert_array_equal(distances, np.sqrt(squares.min(1)).reshape(volume.shape))
        ends = (at.reshape(3, -1).T - np.argwhere(np.ones(volume.shape))) * np.array(sampling)
        np.testing.assert_array_equal(ends[:, 0] ** 2 + ends[:, 1] ** 2 + ends[:, 2] ** 2, squares.min(1))
        assert not volume[tuple(at)].any()
        if sampling == (1.0, 1.0, 1.0):
            np.testing.assert_array_equal(at.reshape(3, -1).T, zeros[squares.argmin(1)])


@pytest.mark.parametrize("metric", ["chessboard", "taxicab"])
@pytest.mark.parametrize("volume", volumes(), ids=lambda v: f"{v.dtype}{v.shape}")
def test_steps_in_volumes(volume: Array, metric: str) -> None:
    ours, theirs = (of.distance_transform_cdt(volume, metric) for of in (ndimage, scipy.ndimage))
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("metric", ["chessboard", "taxicab", "cityblock", "manhattan"])
@pytest.mark.parametrize("picture", pictures(), ids=lambda p: f"{p.dtype}{p.shape}")
def test_steps(picture: Array, metric: str) -> None:
    ours, theirs = (of.distance_transform_cdt(picture, metric) for of in (ndimage, scipy.ndimage))
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("picture", [pictures()[0], volumes()[0]], ids=["picture", "volume"])
def test_arrays_to_fill_and_lazy_images(picture: Array) -> None:
    want, at = scipy.ndimage.distance_transform_edt(picture, return_indices=True)
    distances, indices = np.empty(picture.shape), np.empty((picture.ndim, *picture.shape), np.int32)
    assert ndimage.distance_transform_edt(picture, return_indices=True, distances=distances, indices=indices) is None
    np.testing.assert_array_equal(distances, want)
    np.testing.assert_array_equal(indices, at)
    assert ndimage.distance_transform_cdt(picture, distances=indices[0]) is None
    np.testing.assert_array_equal(indices[0], scipy.ndimage.distance_transform_cdt(picture))
    lazy = ndimage.distance_transform_edt(hi.asarray(picture))
    assert isinstance(lazy, hi.Image)
    np.testing.assert_array_equal(lazy.compute(), want)
    np.testing.assert_array_equal((lazy > 2.0).compute(), want > 2.0)
    only = ndimage.distance_transform_edt(picture, return_distances=False, return_indices=True)
    assert isinstance(only, np.ndarray)
    np.testing.assert_array_equal(only, at)


def test_channels_apart() -> None:
    colours = np.random.default_rng(8).random((20, 30, 3)) > 0.1
    lazy = ndimage.distance_transform_edt(hi.asarray(colours, channels=True), (1.0, 2.0))
    theirs = [scipy.ndimage.distance_transform_edt(colours[..., c], (1.0, 2.0)) for c in range(3)]
    np.testing.assert_array_equal(lazy.compute(), np.stack(theirs, -1))


def test_without_background_nothing_is_near() -> None:
    distances, at = ndimage.distance_transform_edt(np.ones((2, 3)), return_indices=True)
    assert np.isinf(distances).all() and (at == -1).all()
    assert (ndimage.distance_transform_cdt(np.ones((2, 3))) == -1).all()
    assert ndimage.distance_transform_edt(np.zeros((0, 3))).shape == (0, 3)
    distances, at = ndimage.distance_transform_edt(np.ones((2, 3, 4)), return_indices=True)
    assert np.isinf(distances).all() and at.shape == (3, 2, 3, 4) and (at == -1).all()
    assert (ndimage.distance_transform_cdt(np.ones((2, 3, 4)), "taxicab") == -1).all()


def test_what_cannot_be_asked_for() -> None:
    picture = pictures()[1]
    with pytest.raises(RuntimeError, match="request distances, indices or both"):
        ndimage.distance_transform_edt(picture, return_distances=False)
    with pytest.raises(RuntimeError, match="wrong shape"):
        ndimage.distance_transform_edt(picture, distances=np.empty((3, 3)))
    with pytest.raises(RuntimeError, match="must be float64"):
        ndimage.distance_transform_edt(picture, distances=np.empty(picture.shape, np.float32))
    with pytest.raises(ValueError, match="positive and finite"):
        ndimage.distance_transform_edt(picture, (1.0, 0.0))
    with pytest.raises(NotImplementedError, match="4 axes"):
        ndimage.distance_transform_edt(np.ones((2, 3, 4, 5)))
    with pytest.raises(RuntimeError, match="length equal to input rank"):
        ndimage.distance_transform_edt(np.ones((2, 3, 4)), (1.0, 1.0))
    with pytest.raises(ValueError, match="invalid metric"):
        ndimage.distance_transform_cdt(picture, "euclid")
    with pytest.raises(NotImplementedError, match="not a structure"):
        ndimage.distance_transform_cdt(picture, np.ones((3, 3)))  # type: ignore[arg-type]
