"""`horus_image.metrics` against scikit-image."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import skimage.metrics

import horus_image as hi
from horus_image import metrics
from horus_image.accel import _calls

Array = np.ndarray[Any, Any]
TYPES = [np.uint8, np.int16, np.int32, np.float32, np.float64]


@pytest.fixture(autouse=True)
def not_dispatched() -> Iterator[None]:
    """scikit-image dispatches two of its functions, to Horus if it is installed: not here."""
    _calls._threads.original = True
    yield
    _calls._threads.original = False


def pair(dtype: Any, shape: tuple[int, ...] = (30, 41)) -> tuple[Array, Array]:
    """A picture, and what noise makes of it."""
    rng = np.random.default_rng(2)
    first = rng.random(shape)
    second = np.clip(first + 0.2 * rng.random(shape), 0.0, 1.0)
    scale = np.iinfo(dtype).max if np.dtype(dtype).kind in "iu" else 1.0
    return (first * scale).astype(dtype), (second * scale).astype(dtype)


def both(name: str, first: Any, second: Any, **given: Any) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, want = (getattr(of, name)(first, second, **given) for of in (metrics, skimage.metrics))
    return found, want


@pytest.mark.parametrize("dtype", TYPES)
def test_errors(dtype: Any) -> None:
    first, second = pair(dtype)
    bound = 1e-6 if dtype is np.float32 else 1e-13
    cases: list[tuple[str, dict[str, Any]]] = [("mean_squared_error", {}), ("peak_signal_noise_ratio", {}), ("peak_signal_noise_ratio", {"data_range": 3})]
    cases += [("normalized_root_mse", {"normalization": how}) for how in ("Euclidean", "min-max", "mean")]
    for name, given in cases:
        found, want = both(name, first, second, **given)
        assert type(found) is type(want) is np.float64
        assert found == pytest.approx(want, rel=bound), name
        for one, other in ((hi.asarray(first), second), (first, hi.asarray(second)), (hi.asarray(first), hi.asarray(second))):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    assert getattr(metrics, name)(one, other, **given) == found
    assert np.isinf(metrics.peak_signal_noise_ratio(first, first))
    # Types that differ are those of both.
    found, want = both("mean_squared_error", first, second.astype(np.float64))
    assert found == pytest.approx(want, rel=1e-13)


def test_errors_of_what_cannot_be_compared() -> None:
    first, second = pair(np.float64)
    for name in ("mean_squared_error", "normalized_root_mse", "peak_signal_noise_ratio", "structural_similarity"):
        for of in (metrics, skimage.metrics):
            with pytest.raises(ValueError, match="dimensions"):
                getattr(of, name)(first, second[1:])
    for of in (metrics, skimage.metrics):
        with pytest.raises(ValueError, match="norm_type"):
            of.normalized_root_mse(first, second, normalization="none")
        with pytest.raises(ValueError, match="data_range"):
            of.peak_signal_noise_ratio(first * 2, second)
        for given in ({}, {"data_range": 1, "win_size": 31}, {"data_range": 1, "win_size": 4}, {"data_range": 1, "K1": -1}):
            with pytest.raises(ValueError, match="data_range|win_size|odd|positive"):
                of.structural_similarity(first, second, **given)
    with pytest.warns(UserWarning, match="mismatched"):
        metrics.peak_signal_noise_ratio(np.ones((3, 4), np.uint8), np.zeros((3, 4)))


GIVEN: list[dict[str, Any]] = [
    {},
    {"win_size": 5, "K1": 0.02, "K2": 0.05},
    {"gaussian_weights": True},
    {"gaussian_weights": True, "sigma": 2, "use_sample_covariance": False},
    {"full": True},
    {"gradient": True},
    {"full": True, "gradient": True, "gaussian_weights": True},
]


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_structural_similarity(given: dict[str, Any]) -> None:
    for dtype in (np.uint8, np.uint16, np.float32, np.float64):
        first, second = pair(dtype)
        more = given if np.dtype(dtype).kind == "u" else {**given, "data_range": 1.0}
        found, want = both("structural_similarity", first, second, **more)
        found, want = (one if isinstance(one, tuple) else (one,) for one in (found, want))
        assert len(found) == len(want)
        # Variances are differences of sums, of float32 too.
        bound = 1e-4 if dtype is np.float32 else 1e-11
        for one, other in zip(found, want, strict=True):
            assert np.asarray(one).dtype == np.asarray(other).dtype
            np.testing.assert_allclose(one, other, rtol=0, atol=bound * np.abs(other).max())
    images = [hi.asarray(one) for one in pair(np.float64)]
    kept = metrics.structural_similarity(images[0], images[1], data_range=1.0, **given)
    found = metrics.structural_similarity(*pair(np.float64), data_range=1.0, **given)
    if isinstance(kept, tuple) and isinstance(found, tuple):
        assert all(isinstance(one, hi.Image) for one in kept[1:])
        for one, other in zip(kept[1:], found[1:], strict=True):
            np.testing.assert_array_equal(np.asarray(one), other)
        kept, found = kept[0], found[0]
    assert kept == found


def test_structural_similarity_of_channels_and_volumes() -> None:
    first, second = pair(np.float64, (20, 24, 3))
    for axis in (-1, 0, 1):
        moved = [np.moveaxis(one, -1, axis) for one in (first, second)]
        for given in ({}, {"full": True, "gradient": True}):
            found, want = both("structural_similarity", *moved, data_range=1, channel_axis=axis, **given)
            assert type(found) is type(want)
            for one, other in zip(found, want, strict=True) if given else ((found, want),):
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-11)
    colours = [hi.asarray(one, channels=True) for one in (first, second)]
    assert metrics.structural_similarity(*colours, data_range=1) == metrics.structural_similarity(first, second, data_range=1, channel_axis=-1)
    levels = pair(np.float64, (9, 10, 11))
    found, want = both("structural_similarity", *levels, data_range=1)
    assert found == pytest.approx(want, abs=1e-12)


def test_the_range_of_integers_is_told() -> None:
    first, second = pair(np.uint16)
    with pytest.warns(UserWarning, match="65535"):
        metrics.structural_similarity(first, second)
    with pytest.raises(ValueError, match="data_range"):
        metrics.structural_similarity(first.astype(float), second)
