"""`horus_image.color` against scikit-image, of each type, axis of channels and number of axes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import skimage.color

import horus_image as hi
from horus_image import color

Array = np.ndarray[Any, Any]
NAMES = [name for name in color.__all__ if name not in ("convert_colorspace", "gray2rgb", "xyz_tristimulus_values")]
BOUNDS = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 2e-14}
"""Of the largest number: powers and quotients follow sums, and dark colours are multiplied by 13."""
RANGES = {"lab": (100, 120, 120), "luv": (100, 120, 120), "lch": (100, 100, 6.2), "ycb": (219, 224, 224)}


def colours(name: str, dtype: Any) -> Array:
    """Colours of the space that a function converts from, over the range of an integer type."""
    unit = np.random.default_rng(5).random((13, 17, 4 if name == "rgba2rgb" else 3))
    unit[0, :5] = np.eye(5, unit.shape[2]) > 0  # black, and edges of the cube
    unit[0, 5] = 1.0
    if np.dtype(dtype).kind == "u":
        return (unit * np.iinfo(dtype).max).astype(dtype)
    if name[:3] in RANGES:
        unit = unit * RANGES[name[:3]] - ((0, 60, 60) if name[:3] in ("lab", "luv") else 0)
    return unit.astype(dtype)


def agree(found: Any, want: Array, single: bool = False) -> None:
    assert isinstance(found, np.ndarray) and found.dtype == want.dtype and found.shape == want.shape
    bound = BOUNDS[np.dtype(np.float32) if single else want.dtype]
    np.testing.assert_allclose(found, want, rtol=0, atol=bound * np.abs(want).max())


def both(name: str, image: Array, *args: Any, **given: Any) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, want = (getattr(of, name)(image, *args, **given) for of in (color, skimage.color))
    return found, want


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_spaces(name: str, dtype: Any) -> None:
    if name == "ycbcr2rgb" and np.dtype(dtype).kind == "u":
        return  # test_luminance_and_differences_of_integers
    image = colours(name, dtype)
    args = [np.eye(3) + 0.1] if name.endswith("stains") else []
    found, want = both(name, image, *args)
    single = dtype is np.float32  # matrices of stains make double precision of it, there of rounded logarithms
    agree(found, want, single)
    lazy = getattr(color, name)(hi.asarray(image, channels=True), *args)
    assert isinstance(lazy, hi.Image) and lazy.channels == (name != "rgb2gray")
    np.testing.assert_array_equal(lazy.compute(), found)
    for axis in (0, 1):
        agree(*both(name, np.ascontiguousarray(np.moveaxis(image, -1, axis)), *args, channel_axis=axis), single)
    for other in (image[2, 3], image[4], image[None], image[None, None], image[:4, None, None]):
        agree(*both(name, other, *args), single)


def test_whites() -> None:
    image = colours("rgb", np.float64)
    for illuminant in ("A", "b", "C", "d50", "D55", "D65", "D75", "E"):
        for observer in ("2", "10", "R"):
            given: Any = {"illuminant": illuminant, "observer": observer}
            want = skimage.color.xyz_tristimulus_values(**given)
            np.testing.assert_array_equal(color.xyz_tristimulus_values(**given), want)
            for name in ("rgb2lab", "xyz2lab", "xyz2luv", "lab2xyz", "lab2rgb", "luv2xyz"):
                agree(*both(name, colours(name, np.float64), **given))
    for given in ({"illuminant": "D66", "observer": "2"}, {"illuminant": "A", "observer": "3"}):
        with pytest.raises(ValueError, match="illuminant/observer"):
            color.rgb2lab(image, **given)


def test_spaces_by_their_names() -> None:
    names = ["RGB", "hsv", "RGB CIE", "xyz", "YUV", "YIQ", "YPbPr", "YCbCr", "YDbDr"]
    image = colours("rgb", np.float64)
    for name in names:
        there, want = both("convert_colorspace", image, "RGB", name)
        agree(there, want)
        agree(*both("convert_colorspace", want, name, "xyz"))
    with pytest.raises(ValueError, match="tospace"):
        color.convert_colorspace(image, "rgb", "lab")


def test_grey_and_alpha() -> None:
    for dtype in (np.uint8, np.float32, bool):
        grey = colours("rgb", np.float64)[..., 0] > 0.5 if dtype is bool else colours("rgb", dtype)[..., 0]
        for axis in (-1, 0, 1):
            np.testing.assert_array_equal(*both("gray2rgb", grey, channel_axis=axis))
        lazy = color.gray2rgb(hi.asarray(grey))
        np.testing.assert_array_equal(lazy.compute(), skimage.color.gray2rgb(grey))
        assert lazy.dtype == dtype
    image = colours("rgba2rgb", np.float32)
    agree(*both("rgba2rgb", image, (0.2, 0.5, 0.9)))
    for wrong in ((0, 0), (0, 0, 2)):
        with pytest.raises(ValueError, match="background"):
            color.rgba2rgb(image, wrong)


def test_luminance_and_differences_of_integers() -> None:
    image = colours("rgb", np.uint8)
    found = color.ycbcr2rgb(image)
    agree(found, skimage.color.ycbcr2rgb(image.astype(np.float64)))


def test_what_is_no_number_becomes_0_in_hsv() -> None:
    image = colours("rgb2hsv", np.float64)
    image[2, 3, 1] = np.nan
    found = color.rgb2hsv(image)
    np.testing.assert_array_equal(found[2, 3], 0.0)
    rest = np.ones(image.shape, bool)
    rest[2, 3] = False
    np.testing.assert_array_equal(found[rest], skimage.color.rgb2hsv(np.where(rest, image, 0.5))[rest])


@pytest.mark.parametrize("name", NAMES)
def test_colours_of_another_number_of_channels_are_refused(name: str) -> None:
    args = [np.eye(3)] if name.endswith("stains") else []
    for wrong in (np.zeros((4, 5)), np.zeros((4, 5, 2)), hi.asarray(np.zeros((4, 5, 2)), channels=True)):
        with pytest.raises(ValueError, match="channel_axis"):
            getattr(color, name)(wrong, *args)
    with pytest.raises(ValueError, match="stains"):
        color.separate_stains(np.zeros((4, 5, 3)), np.eye(2))
