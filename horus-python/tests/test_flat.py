"""Morphology of `horus_image.morphology` with footprints and by distances, against scikit-image: equal pixels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import skimage.morphology

import horus_image as hi
from horus_image import morphology

Array = np.ndarray[Any, Any]
NAMES = ["erosion", "dilation", "opening", "closing", "white_tophat", "black_tophat"]
TYPES = ["?", "u1", "i1", "u2", "i4", "f4", "f8"]


def picture(dtype: str, shape: tuple[int, ...] = (23, 31)) -> Array:
    pixels = scipy.ndimage.gaussian_filter(np.random.default_rng(3).normal(size=shape), 1.0)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.asarray(pixels > 0)
    return pixels.astype(kind) if kind.kind == "f" else (pixels * 100 + (0 if kind.kind == "i" else 100)).astype(kind)


ODD = np.array([[0, 1, 1], [0, 1, 0], [0, 0, 0]], np.uint8)
FOOTPRINTS: list[Any] = [None, np.ones((3, 3), bool), np.ones((2, 4), np.uint8), ODD, skimage.morphology.disk(4), [(ODD, 2), (np.ones((1, 3)), 1)]]


def compare(name: str, image: Array, *args: Any, **given: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, want = (getattr(of, name)(image, *args, **given) for of in (morphology, skimage.morphology))
    assert isinstance(found, np.ndarray) and found.dtype == want.dtype
    np.testing.assert_array_equal(found, want)
    lazy = getattr(morphology, name)(hi.asarray(image), *args, **given)
    assert isinstance(lazy, hi.Image)
    np.testing.assert_array_equal(lazy.compute(), want)
    into = np.zeros_like(want)
    assert getattr(morphology, name)(image, *args, out=into, **given) is into
    np.testing.assert_array_equal(into, want)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_footprints(name: str, dtype: str) -> None:
    image = picture(dtype)
    for footprint in FOOTPRINTS:
        compare(name, image, footprint)
    compare(name, picture(dtype, (5, 9, 8)))
    compare(name, picture(dtype, (40,)), np.ones(4))


@pytest.mark.parametrize("mode", ["reflect", "constant", "nearest", "mirror", "wrap", "max", "min", "ignore"])
@pytest.mark.parametrize("name", NAMES)
def test_borders(name: str, mode: str) -> None:
    for dtype in ("?", "u1", "i2", "f8"):
        for footprint in (np.ones((3, 5)), ODD):
            if mode in ("max", "min", "ignore") and dtype == "f8" and name.endswith("tophat"):
                continue  # an infinity less itself
            compare(name, picture(dtype), footprint, mode=mode, cval=1)
    with pytest.raises(ValueError, match="unsupported mode"):
        getattr(morphology, name)(picture("u1"), mode="reflected")


def test_footprints_that_are_made() -> None:
    for radius in (0, 1, 2, 5):
        for name in ("disk", "ball", "diamond", "octahedron"):
            found, want = (getattr(of, name)(radius) for of in (morphology, skimage.morphology))
            assert found.dtype == want.dtype
            np.testing.assert_array_equal(found, want)
        for name in ("disk", "ball"):
            found, want = (getattr(of, name)(radius, bool, strict_radius=False) for of in (morphology, skimage.morphology))
            np.testing.assert_array_equal(found, want)
            assert found.dtype == bool
    for shape in ((3, 4), (2, 3, 5)):
        np.testing.assert_array_equal(morphology.footprint_rectangle(shape), skimage.morphology.footprint_rectangle(shape))
        for end in (True, False):
            footprint = np.arange(np.prod(shape)).reshape(shape)
            np.testing.assert_array_equal(morphology.pad_footprint(footprint, pad_end=end), skimage.morphology.pad_footprint(footprint, pad_end=end))
            np.testing.assert_array_equal(morphology.mirror_footprint(footprint), skimage.morphology.mirror_footprint(footprint))
    for name in ("disk", "ball", "diamond", "octahedron"):
        with pytest.raises(NotImplementedError, match="decomposition"):
            getattr(morphology, name)(3, decomposition="sequence")
        with pytest.raises(ValueError, match="radius|negative"):
            getattr(morphology, name)(-1)


@pytest.mark.parametrize("name", ["isotropic_erosion", "isotropic_dilation", "isotropic_opening", "isotropic_closing"])
def test_distances(name: str) -> None:
    for shape in ((31, 42), (9, 12, 11)):
        for dtype in ("?", "u1"):
            # Of which dilations leave some background, and erosions some of it.
            mask = (picture("f8", shape) > (0.4 if name.endswith(("closing", "dilation")) else -0.5)).astype(dtype)
            for given in ({}, {"spacing": (1, 2, 0.5)[-len(shape) :]}):
                for radius in (0, 1, 2.2):
                    compare(name, mask, radius, **given)
    full = np.ones((4, 5), bool)
    assert np.all(morphology.isotropic_erosion(full, 9)) and not np.any(morphology.isotropic_dilation(~full, 9))
