"""Moments, perimeters and colocalization of `horus_image.measure` against scikit-image."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import skimage.measure

import horus_image as hi
from horus_image import measure

Array = np.ndarray[Any, Any]
SHAPES: list[tuple[int, ...]] = [(40,), (23, 31), (7, 9, 8)]


def picture(dtype: Any, shape: tuple[int, ...]) -> Array:
    pixels = np.random.default_rng(3).random(shape)
    return pixels.astype(dtype) if np.dtype(dtype).kind == "f" else (pixels * 200).astype(dtype)


def agree(found: Any, want: Any, rtol: float = 1e-12) -> None:
    found, want = np.asarray(found), np.asarray(want)
    assert found.dtype == want.dtype and found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=rtol, atol=rtol * np.abs(np.nan_to_num(want)).max())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_moments(dtype: Any, shape: tuple[int, ...]) -> None:
    image = picture(dtype, shape)
    # There, float32 is summed in it.
    rtol = 1e-5 if dtype is np.float32 else 1e-11
    side = (1.0, 2.0, 0.5)[-len(shape) :]
    for order in (0, 1, 2, 3):
        for given in ({}, {"spacing": side}):
            agree(measure.moments(image, order, **given), skimage.measure.moments(image, order, **given), rtol)
            centre = tuple(0.3 * n for n in shape)
            agree(measure.moments_central(image, centre, order, **given), skimage.measure.moments_central(image, centre, order, **given), rtol)
            if order:
                # Moments about the origin, of which it is made there, are hundreds of times as large.
                found, want = (of.moments_central(image, order=order, **given) for of in (measure, skimage.measure))
                agree(found, want, 1e-2 if dtype is np.float32 else 1e-10)
    np.testing.assert_array_equal(measure.moments(hi.asarray(image)), measure.moments(image))
    for given in ({}, {"spacing": side}):
        central = skimage.measure.moments_central(image, **given)
        agree(measure.moments_normalized(central, **given), skimage.measure.moments_normalized(central, **given))
        if len(shape) > 1:
            for more in ({}, {"mu": central}):
                for name in ("inertia_tensor", "inertia_tensor_eigvals"):
                    found, want = (getattr(of, name)(image, **more, **given) for of in (measure, skimage.measure))
                    assert type(found) is type(want)
                    agree(found, want, 1e-4 if dtype is np.float32 else 1e-10)


def test_moments_that_no_turn_changes() -> None:
    image = scipy.ndimage.gaussian_filter(picture(np.float64, (30, 40)) ** 4, 2.0)
    for dtype in (np.float64, np.float32):
        normal = skimage.measure.moments_normalized(skimage.measure.moments_central(image)).astype(dtype)
        found, want = measure.moments_hu(normal), skimage.measure.moments_hu(normal)
        assert found.dtype == want.dtype == dtype
        np.testing.assert_allclose(found, want, rtol=1e-4 if dtype is np.float32 else 1e-9)
    central = measure.moments_central(image), measure.moments_central(np.rot90(image))
    first, other = (measure.moments_hu(measure.moments_normalized(one)) for one in central)
    np.testing.assert_allclose(first, other, rtol=1e-9)


def test_wrong_moments() -> None:
    image = picture(np.float64, (8, 9))
    for call in (lambda: measure.moments(image, -1), lambda: measure.moments(image, spacing=(1,)), lambda: measure.moments_central(image, (1,))):
        with pytest.raises(ValueError, match="order|spacing|centre"):
            call()
    for of in (measure, skimage.measure):
        with pytest.raises(ValueError, match="order"):
            of.moments_normalized(np.ones((3, 3)), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(measure.inertia_tensor(np.zeros((4, 5)))).all()


def blobs(shape: tuple[int, ...], seed: int) -> Array:
    return np.asarray(scipy.ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=shape), 1.0) > 0)


@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "f8"])
def test_perimeters(dtype: str) -> None:
    for seed in range(4):
        mask = blobs((23, 31), seed).astype(dtype)
        for around in (4, 8):
            found = measure.perimeter(mask, around)
            assert found == pytest.approx(skimage.measure.perimeter(mask, around), rel=1e-12)
            assert measure.perimeter(hi.asarray(mask), around) == found
        for directions in (2, 4):
            found = measure.perimeter_crofton(mask, directions)
            assert found == pytest.approx(skimage.measure.perimeter_crofton(mask, directions), rel=1e-12)
    for name in ("perimeter", "perimeter_crofton"):
        with pytest.raises(NotImplementedError, match="axes"):
            getattr(measure, name)(np.ones((2, 3, 4)))


@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "f8"])
def test_euler_numbers(dtype: str) -> None:
    for seed in range(4):
        for shape, connectivities in (((23, 31), (None, 1, 2)), ((9, 11, 10), (None, 1, 3))):
            mask = blobs(shape, seed).astype(dtype)
            for connectivity in connectivities:
                found = measure.euler_number(mask, connectivity)
                assert isinstance(found, int) and found == skimage.measure.euler_number(mask, connectivity)
            assert measure.euler_number(hi.asarray(mask)) == measure.euler_number(mask)
    assert measure.euler_number(np.array([[-1, 0, 2]])) == 1
    with pytest.raises(NotImplementedError, match="connectivities"):
        measure.euler_number(np.ones((2, 3, 4)), 2)


@pytest.mark.parametrize("dtype", [np.uint16, np.float32, np.float64])
def test_colocalization(dtype: Any) -> None:
    for shape in SHAPES:
        first, second = picture(dtype, shape), np.flip(picture(dtype, shape)).copy()
        one, other, within = first > first.mean(), second > second.mean(), blobs(shape, 9)
        rel = 1e-5 if dtype is np.float32 else 1e-12
        for mask in (None, within):
            for name, a, b in (("manders_coloc_coeff", first, other), ("manders_overlap_coeff", first, second), ("intersection_coeff", one, other)):
                wide = [image.astype(np.float64) if dtype is np.uint16 and image.dtype != bool else image for image in (a, b)]
                want = getattr(skimage.measure, name)(*wide, mask)
                found = getattr(measure, name)(a, b, mask)
                assert isinstance(found, float) and found == pytest.approx(want, rel=rel)
                assert getattr(measure, name)(hi.asarray(a), hi.asarray(b), mask) == found
    nothing = np.zeros((3, 4), bool)
    assert measure.intersection_coeff(nothing, ~nothing) == measure.manders_coloc_coeff(nothing, ~nothing) == 0
    for call in (lambda: measure.manders_coloc_coeff([-1, 2], [True, True]), lambda: measure.manders_overlap_coeff([1, 2], [1, -2])):
        with pytest.raises(ValueError, match="negative"):
            call()
    with pytest.raises(ValueError, match="shape"):
        measure.manders_overlap_coeff(np.ones((2, 3)), np.ones((3, 2)))
