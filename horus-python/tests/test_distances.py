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


@pytest.mark.parametrize("metric", ["chessboard", "taxicab", "cityblock", "manhattan"])
@pytest.mark.parametrize("picture", pictures(), ids=lambda p: f"{p.dtype}{p.shape}")
def test_steps(picture: Array, metric: str) -> None:
    ours, theirs = (of.distance_transform_cdt(picture, metric) for of in (ndimage, scipy.ndimage))
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


def test_arrays_to_fill_and_lazy_images() -> None:
    picture = pictures()[0]
    want, at = scipy.ndimage.distance_transform_edt(picture, return_indices=True)
    distances, indices = np.empty(picture.shape), np.empty((2, *picture.shape), np.int32)
    assert ndimage.distance_transform_edt(picture, return_indices=True, distances=distances, indices=indices) is None
    np.testing.assert_array_equal(distances, want)
    np.testing.assert_array_equal(indices, at)
    assert ndimage.distance_transform_cdt(picture, distances=indices[0]) is None
    np.testing.assert_array_equal(indices[0], scipy.ndimage.distance_transform_cdt(picture))
    lazy = ndimage.distance_transform_edt(hi.asarray(picture))
    assert isinstance(lazy, hi.Image)
    np.testing.assert_array_equal(lazy.compute(), want)
    np.testing.assert_array_equal((lazy > 2.0).compute(), want > 2.0)


def test_without_background_nothing_is_near() -> None:
    distances, at = ndimage.distance_transform_edt(np.ones((2, 3)), return_indices=True)
    assert np.isinf(distances).all() and (at == -1).all()
    assert (ndimage.distance_transform_cdt(np.ones((2, 3))) == -1).all()
    assert ndimage.distance_transform_edt(np.zeros((0, 3))).shape == (0, 3)


def test_what_cannot_be_asked_for() -> None:
    picture = pictures()[1]
    with pytest.raises(RuntimeError, match="neither distances nor indices"):
        ndimage.distance_transform_edt(picture, return_distances=False)
    with pytest.raises(RuntimeError, match="wrong shape"):
        ndimage.distance_transform_edt(picture, distances=np.empty((3, 3)))
    with pytest.raises(RuntimeError, match="must be float64"):
        ndimage.distance_transform_edt(picture, distances=np.empty(picture.shape, np.float32))
    with pytest.raises(ValueError, match="above 0"):
        ndimage.distance_transform_edt(picture, (1.0, 0.0))
    with pytest.raises(NotImplementedError, match="3 axes"):
        ndimage.distance_transform_edt(np.ones((2, 3, 4)))
    with pytest.raises(ValueError, match="invalid metric"):
        ndimage.distance_transform_cdt(picture, "euclid")
    with pytest.raises(NotImplementedError, match="not a structure"):
        ndimage.distance_transform_cdt(picture, np.ones((3, 3)))  # type: ignore[arg-type]
