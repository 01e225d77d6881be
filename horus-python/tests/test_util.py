"""`horus_image.util` against scikit-image: equal pixels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import skimage.util

import horus_image as hi
from horus_image import util

Array = np.ndarray[Any, Any]
TYPES = ["?", "u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8"]
NAMES = ["img_as_float", "img_as_float32", "img_as_float64", "img_as_ubyte", "img_as_uint", "img_as_int", "img_as_bool"]


def picture(dtype: str, shape: tuple[int, ...] = (19, 23)) -> Array:
    """Over the range of a type, ends included."""
    unit = np.random.default_rng(3).random(shape)
    unit.flat[:3] = 0.0, 1.0, 0.5
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return unit > 0.5
    if kind.kind == "f":
        return (unit * 2 - 1).astype(kind)
    found = np.random.default_rng(4).integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)
    found.flat[:2] = np.iinfo(kind).min, np.iinfo(kind).max
    return found


def both(name: str, image: Array, **given: Any) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, want = (getattr(of, name)(image, **given) for of in (util, skimage.util))
    return found, want


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_types(name: str, dtype: str) -> None:
    if dtype in ("u4", "i4") and name in ("img_as_ubyte", "img_as_uint", "img_as_int"):
        with pytest.raises(NotImplementedError, match="img_as_float"):
            getattr(util, name)(picture(dtype))
        return
    few = picture(dtype) // 300 if dtype in ("u2", "i2") else picture(dtype)
    for image in (picture(dtype), picture(dtype, (5, 6, 7)), picture(dtype, (3, 4, 5, 2)), picture(dtype, (9,)), few):
        found, want = both(name, image)
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found, want)
        if image.ndim < 4:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                lazy = getattr(util, name)(hi.asarray(image))
            assert isinstance(lazy, hi.Image)
            np.testing.assert_array_equal(lazy.compute(), want)


def test_types_that_are_there_already() -> None:
    image = picture("u1")
    assert util.img_as_ubyte(image) is image and util.img_as_ubyte(image, force_copy=True) is not image
    assert util.img_as_float(picture("f4")).dtype == np.float32
    for of in (util, skimage.util):
        with pytest.raises(ValueError, match="between -1 and 1"):
            of.img_as_ubyte(np.array([0.5, 1.5]))
    with pytest.warns(UserWarning, match="(?i)downcasting"):
        util.img_as_ubyte(np.array([3, 200], np.uint16))


@pytest.mark.parametrize("dtype", [*TYPES, "i8", "u8"])
def test_inverted(dtype: str) -> None:
    for image in (picture(dtype), picture(dtype, (5, 6, 7)), picture(dtype, (3, 4, 5, 2))):
        for signed in (False, True):
            found, want = both("invert", image, signed_float=signed)
            assert found.dtype == want.dtype
            np.testing.assert_array_equal(found, want)
    if dtype not in ("i8", "u8"):
        np.testing.assert_array_equal(util.invert(hi.asarray(picture(dtype))).compute(), skimage.util.invert(picture(dtype)))


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f4", "f8"])
def test_compared(dtype: str) -> None:
    first, second = picture(dtype), picture(dtype)[::-1].copy()
    for given in ({}, {"method": "blend"}, {"method": "checkerboard"}, {"method": "checkerboard", "n_tiles": (3, 5)}):
        found, want = (of.compare_images(first, second, **given) for of in (util, skimage.util))
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found, want)
        lazy = util.compare_images(hi.asarray(first), second, **given)
        np.testing.assert_array_equal(np.asarray(lazy), found)
    for of in (util, skimage.util):
        with pytest.raises(ValueError, match="method"):
            of.compare_images(first, second, method="none")
        with pytest.raises(ValueError, match="shape|dimensions"):
            of.compare_images(first, second[1:])
        with pytest.raises(ValueError, match="2-dimensional"):
            of.compare_images(picture(dtype, (3, 4, 5)), picture(dtype, (3, 4, 5)), method="checkerboard")
