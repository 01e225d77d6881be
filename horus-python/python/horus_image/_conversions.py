"""Colours in other spaces, with the matrices and the rules of scikit-image 0.26: each channel of the result is a formula of those of the input."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import _horus
from ._floats import Given, applied
from ._foreign import of_any_library, read
from ._image import Array, Image, made, maximum, minimum, where
from ._public import SUMS, Terms, public
from ._values import axis_of
from .typing import ArrayLike, Pixels

_Channels = Sequence[Image]
_Formula = Callable[[_Channels], "Image | _Channels"]

_listed = public("color", module="skimage.color.colorconv", rust="convert_colour", opencv="cv.cvtColor", accel=Terms("finite", SUMS))
_unwarned = public(
    "color", module="skimage.color.colorconv", rust="convert_colour", opencv="cv.cvtColor", differs="does not warn of negative Z, which it takes for 0"
)

_quotients = public("color", module="skimage.color.colorconv", rust="convert_colour", opencv="cv.cvtColor")

_XYZ: Final = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
_CIE: Final = np.linalg.inv(np.array([[0.49, 0.31, 0.20], [0.17697, 0.81240, 0.01063], [0.00, 0.01, 0.99]]) / 0.17697) @ _XYZ
_YUV: Final = np.array([[0.299, 0.587, 0.114], [-0.14714119, -0.28886916, 0.43601035], [0.61497538, -0.51496512, -0.10001026]])
_YIQ: Final = np.array([[0.299, 0.587, 0.114], [0.59590059, -0.27455667, -0.32134392], [0.21153661, -0.52273617, 0.31119955]])
_YPBPR: Final = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
_YCBCR: Final = np.array([[65.481, 128.553, 24.966], [-37.797, -74.203, 112.0], [112.0, -93.786, -18.214]])
_YDBDR: Final = np.array([[0.299, 0.587, 0.114], [-0.45, -0.883, 1.333], [-1.333, 1.116, 0.217]])
_HED: Final = np.array([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11], [0.27, 0.57, 0.78]])
"""Red, green and blue of haematoxylin, eosin and DAB."""

_WHITES: Final = {
    "A": {"2": (1.098466069456375, 0.3558228003436005), "10": (1.111420406956693, 0.3519978321919493)},
    "B": {"2": (0.9909274480248003, 0.8531327322886154), "10": (0.9917777147717607, 0.8434930535866175)},
    "C": {"2": (0.980705971659919, 1.1822494939271255), "10": (0.9728569189782166, 1.1614480488951577)},
    "D50": {
        "2": (0.9642119944211994, 0.8251882845188288), "10": (0.9672062750333777, 0.8142801513128616),
        "R": (0.9639501491621826, 0.8241280285499208),
    },
    "D55": {
        "2": (0.956797052643698, 0.9214805860173273), "10": (0.9579665682254781, 0.9092525159847462),
        "R": (0.9565317453467969, 0.9202554587037198),
    },
    "D65": {"2": (0.95047, 1.08883), "10": (0.94809667673716, 1.0730513595166162), "R": (0.9532057125493769, 1.0853843816469158)},
    "D75": {"2": (0.9497220898840717, 1.226393520724154), "10": (0.9441713925645873, 1.2064272211720228)},
    "E": {"2": (1.0, 1.0), "10": (1.0, 1.0)},
}
"""X and Z of the white of an illuminant, whose Y is 1, by observer: of 2 or 10 degrees, or that of R where it is not the first."""


@public("color", module="skimage.color.colorconv")
def xyz_tristimulus_values(*, illuminant: str, observer: str, dtype: npt.DTypeLike = float) -> Array:
    """X, Y and Z of the white of an illuminant (``skimage.color.xyz_tristimulus_values``).

    Parameters
    ----------
    illuminant : {'A', 'B', 'C', 'D50', 'D55', 'D65', 'D75', 'E'}
        Its name, in letters of either case.
    observer : {'2', '10', 'R'}
        Degrees that the observer sees, or the observer of R's ``grDevices::convertColor``.
    dtype : type, optional
        Of the numbers.

    Examples
    --------
    >>> from horus_image.color import xyz_tristimulus_values
    >>> xyz_tristimulus_values(illuminant="D65", observer="2").tolist()
    [0.95047, 1.0, 1.08883]
    """
    by_observer = _WHITES.get(illuminant.upper(), {})
    observer = observer.upper()
    if not by_observer or observer not in ("2", "10", "R"):
        raise ValueError(f"Unknown illuminant/observer combination (`{illuminant.upper()}`, `{observer}`)")
    x, z = by_observer.get(observer, by_observer["2"])
    return np.array([x, 1.0, z], dtype)


def _converted(name: str, image: Any, channel_axis: Any, formula: _Formula, count: int = 3, within: Callable[[Given], Image] = Given.unit) -> Pixels:
    """A formula of the channels of an image, or of an array of any number of axes."""
    given = image if isinstance(image, Image) else read(image)
    if not given.ndim or given.shape[channel_axis] != count:
        raise ValueError(f"the input array must have size {count} along `channel_axis`, got {given.shape}")
    if isinstance(given, np.ndarray) and not 2 <= given.ndim <= 4:
        moved = np.moveaxis(given, channel_axis, -1)
        rows = moved[np.newaxis] if given.ndim == 1 else moved.reshape(-1, *moved.shape[-2:])
        found = np.asarray(_converted(name, rows, -1, formula, count, within))
        if found.ndim < rows.ndim:
            gray: Array = found.reshape(moved.shape[:-1])
            return gray
        return np.moveaxis(found.reshape(*moved.shape[:-1], found.shape[-1]), -1, axis_of(channel_axis, given.ndim))
    entered = Given(name, given, (1, 2, 3), channel_axis)
    pixels = within(entered)
    made_of = formula([pixels.channel(k) for k in range(count)])
    if isinstance(made_of, Image):
        entered.axis = None  # a result without channels lies as it is
        return entered.back(made_of)
    return entered.back(_stacked(made_of))


def _stacked(channels: _Channels) -> Image:
    first = channels[0]
    return made(_horus.stack([one._core for one in channels], True), first.session, first.ndim, True)


def _weighed(weights: Any, channels: _Channels) -> Image:
    """The sum of channels times their weights."""
    return functools.reduce(Image.__add__, [one * float(weight) for one, weight in zip(channels, weights, strict=True)])


def _mixed(matrix: Array) -> Callable[[_Channels], _Channels]:
    """A matrix by which channels are multiplied."""
    return lambda channels: [_weighed(row, channels) for row in matrix]


def _linear(channels: _Channels) -> _Channels:
    """sRGB without its gamma."""
    return [where(one > 0.04045, ((one + 0.055) / 1.055) ** 2.4, one / 12.92) for one in channels]


def _to_xyz(channels: _Channels) -> _Channels:
    return _mixed(_XYZ)(_linear(channels))


def _of_xyz(channels: _Channels) -> _Channels:
    mixed = _mixed(np.linalg.inv(_XYZ))(channels)
    return [where(one > 0.0031308, 1.055 * one ** (1 / 2.4) - 0.055, one * 12.92).clip(0.0, 1.0) for one in mixed]


def _to_lab(channels: _Channels, illuminant: str, observer: str) -> _Channels:
    white = xyz_tristimulus_values(illuminant=illuminant, observer=observer, dtype=channels[0].dtype)
    scaled = [one / float(most) for one, most in zip(channels, white, strict=True)]
    x, y, z = (where(one > 0.008856, np.cbrt(one), one * 7.787 + 16.0 / 116.0) for one in scaled)
    return [y * 116.0 - 16.0, (x - y) * 500.0, (y - z) * 200.0]


def _of_lab(channels: _Channels, illuminant: str, observer: str) -> _Channels:
    light, red, yellow = channels
    y = (light + 16.0) / 116.0
    x, z = red / 500.0 + y, y - yellow / 200.0
    white = xyz_tristimulus_values(illuminant=illuminant, observer=observer)
    cubes = [where(one > 0.2068966, one * one * one, (one - 16.0 / 116.0) / 7.787) for one in (x, y, where(z < 0.0, 0.0, z))]
    return [one * float(most) for one, most in zip(cubes, white, strict=True)]


def _white_of_luv(channels: _Channels, illuminant: str, observer: str) -> tuple[float, float, float]:
    """Y, u' and v' of the white."""
    x, y, z = (float(one) for one in xyz_tristimulus_values(illuminant=illuminant, observer=observer, dtype=channels[0].dtype))
    across = x + 15.0 * y + 3.0 * z
    return y, 4.0 * x / across, 9.0 * y / across


def _to_luv(channels: _Channels, illuminant: str, observer: str) -> _Channels:
    x, y, z = channels
    white, u, v = _white_of_luv(channels, illuminant, observer)
    light = y / white
    light = where(light > 0.008856, np.cbrt(light) * 116.0 - 16.0, light * 903.3)
    across = x + y * 15.0 + z * 3.0 + float(np.finfo(x.dtype).eps)
    return [light, light * 13.0 * (x * 4.0 / across - u), light * 13.0 * (y * 9.0 / across - v)]


def _of_luv(channels: _Channels, illuminant: str, observer: str) -> _Channels:
    light, u, v = channels
    white, u0, v0 = _white_of_luv(channels, illuminant, observer)
    root = (light + 16.0) / 116.0
    y = where(light > 7.999625, root * root * root, light / 903.3) * white
    scale = light * 13.0 + float(np.finfo(light.dtype).eps)
    a, b = u / scale + u0, v / scale + v0
    c = y * 3.0 * (b * 5.0 - 3.0)
    z = ((a - 4.0) * c - a * 15.0 * b * y) / (b * 12.0)
    return [0.0 - (c / b + z * 3.0), y, z]


def _to_hsv(channels: _Channels) -> _Channels:
    red, green, blue = channels
    value = maximum(maximum(red, green), blue)
    delta = value - minimum(minimum(red, green), blue)
    hue = where(green == value, (blue - red) / delta + 2.0, (green - blue) / delta)
    hue = where(blue == value, (red - green) / delta + 4.0, hue) / 6.0 % 1.0
    gray = delta == 0.0
    found = where(gray, 0.0, hue), where(gray, 0.0, delta / value), value
    return [where(np.isnan(one), 0.0, one) for one in found]


def _of_hsv(channels: _Channels) -> _Channels:
    hue, saturation, value = channels
    sector = np.floor(hue * 6.0)
    rest = hue * 6.0 - sector
    low = value * (1.0 - saturation)
    falling, rising = value * (1.0 - rest * saturation), value * (1.0 - (1.0 - rest) * saturation)
    sector = sector % 6.0
    sides = (value, falling, low, low, rising, value)
    # Green and blue are where red is a third and two thirds of a turn before.
    turns = [sides[-first:] + sides[:-first] for first in (6, 2, 4)]
    found = [turn[0] for turn in turns]
    for k in range(1, 6):
        here = sector == float(k)
        found = [where(here, turn[k], one) for turn, one in zip(turns, found, strict=True)]
    return found


_LEAST: Final = 1e-6
"""Light of which a logarithm is taken at least."""


def _double(given: Given) -> Image:
    """Floats from 0 to 1 of 64 bits, which matrices of stains make of all."""
    return given.unit(np.dtype(np.float64))


def _separated(matrix: Any) -> Callable[[_Channels], _Channels]:
    by_stain = _mixed(_square(matrix).T)
    return lambda channels: [maximum(one, 0.0) for one in by_stain([applied("log", maximum(one, _LEAST)) / math.log(_LEAST) for one in channels])]


def _combined(matrix: Any) -> Callable[[_Channels], _Channels]:
    by_colour = _mixed(_square(matrix).T)
    return lambda channels: [applied("exp", one).clip(0.0, 1.0) for one in by_colour([one * math.log(_LEAST) for one in channels])]


def _square(matrix: Any) -> Array:
    found = np.asarray(matrix, np.float64)
    if found.shape != (3, 3):
        raise ValueError(f"a matrix of shape {found.shape} for three stains of three colours")
    return found


@_listed
@of_any_library
def rgb2gray(rgb: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """The luminance, 0.2125 R + 0.7154 G + 0.0721 B (``skimage.color.rgb2gray``), without an axis of channels.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.color import rgb2gray
    >>> rgb2gray(np.array([[[255, 0, 0], [255, 255, 255]]], np.uint8)).round(4)
    array([[0.2125, 1.    ]])
    """
    return _converted("rgb2gray", rgb, channel_axis, functools.partial(_weighed, (0.2125, 0.7154, 0.0721)))


@public("color", module="skimage.color.colorconv", rust="stack", opencv="cv.cvtColor")
@of_any_library
def gray2rgb(image: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """Three equal channels, in the type of the pixels (``skimage.color.gray2rgb``); those of a lazy image are its last axis.

    Examples
    --------
    >>> from horus_image.color import gray2rgb
    >>> gray2rgb([7, 8])
    array([[7, 7, 7],
           [8, 8, 8]])
    """
    given = image if isinstance(image, Image) else read(image)
    if isinstance(given, np.ndarray):
        return np.stack([given] * 3, axis=channel_axis)
    entered = Given("gray2rgb", given, (1, 2, 3))
    entered.gray()
    if channel_axis not in (-1, entered.value.ndim):
        raise ValueError(f"gray2rgb: channel_axis is {channel_axis}; channels of an image are its last axis")
    return entered.back(_stacked([entered.image] * 3))


@_listed
@of_any_library
def rgba2rgb(rgba: ArrayLike, background: npt.ArrayLike = (1, 1, 1), *, channel_axis: int = -1) -> Pixels:
    """Colours before a background by their alpha, which is not premultiplied (``skimage.color.rgba2rgb``).

    Examples
    --------
    >>> from horus_image.color import rgba2rgb
    >>> rgba2rgb([[[0.0, 0.5, 1.0, 0.5]]])
    array([[[0.5 , 0.75, 1.  ]]])
    """
    behind = np.ravel(background).astype(np.float64)
    if len(behind) != 3:
        raise ValueError(f"background must be an array-like containing 3 RGB values. Got {len(behind)} items")
    if ((behind < 0) | (behind > 1)).any():
        raise ValueError("background RGB values must be floats between 0 and 1.")

    def blended(channels: _Channels) -> _Channels:
        *colours, alpha = channels
        return [((1.0 - alpha) * float(most) + alpha * one).clip(0.0, 1.0) for one, most in zip(colours, behind, strict=True)]

    return _converted("rgba2rgb", rgba, channel_axis, blended, count=4)


@_listed
@of_any_library
def rgb2hsv(rgb: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """Hue, saturation and value, each from 0 to 1 (``skimage.color.rgb2hsv``).

    Examples
    --------
    >>> from horus_image.color import rgb2hsv
    >>> rgb2hsv([[[0.0, 1.0, 0.5]]]).round(3)
    array([[[0.417, 1.   , 1.   ]]])
    """
    return _converted("rgb2hsv", rgb, channel_axis, _to_hsv)


@public(
    "color", module="skimage.color.colorconv", rust="convert_colour", opencv="cv.cvtColor", differs="a negative hue is that of a turn more",
    accel=Terms("hues finite", SUMS)
)
@of_any_library
def hsv2rgb(hsv: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """Colours of hue, saturation and value (``skimage.color.hsv2rgb``).

    Examples
    --------
    >>> from horus_image.color import hsv2rgb
    >>> hsv2rgb([[[1 / 3, 1.0, 0.5]]])
    array([[[0. , 0.5, 0. ]]])
    """
    return _converted("hsv2rgb", hsv, channel_axis, _of_hsv)


@_listed
@of_any_library
def rgb2xyz(rgb: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """CIE's X, Y and Z of sRGB (``skimage.color.rgb2xyz``).

    Examples
    --------
    >>> from horus_image.color import rgb2xyz
    >>> rgb2xyz([[[1.0, 1.0, 1.0]]]).round(3)
    array([[[0.95 , 1.   , 1.089]]])
    """
    return _converted("rgb2xyz", rgb, channel_axis, _to_xyz)


@_listed
@of_any_library
def xyz2rgb(xyz: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """sRGB of X, Y and Z, limited to 0 to 1 (``skimage.color.xyz2rgb``)."""
    return _converted("xyz2rgb", xyz, channel_axis, _of_xyz)


@_listed
@of_any_library
def rgb2lab(rgb: ArrayLike, illuminant: str = "D65", observer: str = "2", *, channel_axis: int = -1) -> Pixels:
    """CIE's L*, from 0 to 100, a* and b* of sRGB (``skimage.color.rgb2lab``).

    Parameters
    ----------
    rgb : array_like or Image
        Integers become floats from 0 to 1.
    illuminant, observer : str, optional
        Of the white; see `xyz_tristimulus_values`.
    channel_axis : int, optional
        The axis of an array that is that of channels. A lazy image knows its own.

    Returns
    -------
    ndarray or Image
        ``float32`` of that, else ``float64``.

    Examples
    --------
    >>> from horus_image.color import rgb2lab
    >>> rgb2lab([[[1.0, 0.0, 0.0]]]).round(1)
    array([[[53.2, 80.1, 67.2]]])
    """
    return _converted("rgb2lab", rgb, channel_axis, lambda channels: _to_lab(_to_xyz(channels), illuminant, observer))


@_unwarned
@of_any_library
def lab2rgb(lab: ArrayLike, illuminant: str = "D65", observer: str = "2", *, channel_axis: int = -1) -> Pixels:
    """sRGB of L*, a* and b*, limited to 0 to 1 (``skimage.color.lab2rgb``).

    Examples
    --------
    >>> from horus_image.color import lab2rgb
    >>> lab2rgb([[[53.24, 80.09, 67.2]]]).round(2)
    array([[[1., 0., 0.]]])
    """
    return _converted("lab2rgb", lab, channel_axis, lambda channels: _of_xyz(_of_lab(channels, illuminant, observer)))


@_listed
@of_any_library
def xyz2lab(xyz: ArrayLike, illuminant: str = "D65", observer: str = "2", *, channel_axis: int = -1) -> Pixels:
    """L*, a* and b* of X, Y and Z (``skimage.color.xyz2lab``)."""
    return _converted("xyz2lab", xyz, channel_axis, lambda channels: _to_lab(channels, illuminant, observer))


@_unwarned
@of_any_library
def lab2xyz(lab: ArrayLike, illuminant: str = "D65", observer: str = "2", *, channel_axis: int = -1) -> Pixels:
    """X, Y and Z of L*, a* and b* (``skimage.color.lab2xyz``)."""
    return _converted("lab2xyz", lab, channel_axis, lambda channels: _of_lab(channels, illuminant, observer))


@_listed
@of_any_library
def rgb2luv(rgb: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """CIE's L*, u* and v* of sRGB, under D65 (``skimage.color.rgb2luv``)."""
    return _converted("rgb2luv", rgb, channel_axis, lambda channels: _to_luv(_to_xyz(channels), "D65", "2"))


@_quotients
@of_any_library
def luv2rgb(luv: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """sRGB of L*, u* and v*, limited to 0 to 1 (``skimage.color.luv2rgb``)."""
    return _converted("luv2rgb", luv, channel_axis, lambda channels: _of_xyz(_of_luv(channels, "D65", "2")))


@_listed
@of_any_library
def xyz2luv(xyz: ArrayLike, illuminant: str = "D65", observer: str = "2", *, channel_axis: int = -1) -> Pixels:
    """L*, u* and v* of X, Y and Z (``skimage.color.xyz2luv``)."""
    return _converted("xyz2luv", xyz, channel_axis, lambda channels: _to_luv(channels, illuminant, observer))


@_quotients
@of_any_library
def luv2xyz(luv: ArrayLike, illuminant: str = "D65", observer: str = "2", *, channel_axis: int = -1) -> Pixels:
    """X, Y and Z of L*, u* and v* (``skimage.color.luv2xyz``)."""
    return _converted("luv2xyz", luv, channel_axis, lambda channels: _of_luv(channels, illuminant, observer))


@_listed
@of_any_library
def lab2lch(lab: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """L*, chroma, and hue from 0 to 2 pi of L*, a* and b* (``skimage.color.lab2lch``).

    Examples
    --------
    >>> from horus_image.color import lab2lch
    >>> lab2lch([[[50.0, 3.0, -4.0]]]).round(3)
    array([[[50.   ,  5.   ,  5.356]]])
    """

    def polar(channels: _Channels) -> _Channels:
        light, red, yellow = channels
        angle: Any = np.arctan2(yellow, red)
        chroma: Any = np.hypot(red, yellow)
        return [light, chroma, where(angle < 0.0, angle + 2.0 * math.pi, angle)]

    return _converted("lab2lch", lab, channel_axis, polar)


@_listed
@of_any_library
def lch2lab(lch: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """L*, a* and b* of L*, chroma and hue (``skimage.color.lch2lab``)."""

    def plane(channels: _Channels) -> _Channels:
        light, chroma, hue = channels
        return [light, chroma * applied("cos", hue), chroma * applied("sin", hue)]

    return _converted("lch2lab", lch, channel_axis, plane)


@_listed
@of_any_library
def separate_stains(rgb: ArrayLike, conv_matrix: npt.ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """The amounts of three stains (``skimage.color.separate_stains``).

    Parameters
    ----------
    rgb : array_like or Image
        Integers become floats from 0 to 1.
    conv_matrix : array_like
        3 by 3: of red, green and blue, in its rows, the share of each stain.
    channel_axis : int, optional
        The axis of an array that is that of channels.

    Examples
    --------
    >>> import numpy as np
    >>> from horus_image.color import separate_stains
    >>> separate_stains([[[0.1, 1.0, 1.0]]], np.eye(3)).round(3) + 0.0
    array([[[0.167, 0.   , 0.   ]]])
    """
    return _converted("separate_stains", rgb, channel_axis, _separated(conv_matrix), within=_double)


@_listed
@of_any_library
def combine_stains(stains: ArrayLike, conv_matrix: npt.ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """Colours of amounts of three stains (``skimage.color.combine_stains``); `conv_matrix` is the inverse of that of `separate_stains`."""
    return _converted("combine_stains", stains, channel_axis, _combined(conv_matrix), within=_double)


@_listed
@of_any_library
def rgb2hed(rgb: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """The amounts of haematoxylin, eosin and DAB (``skimage.color.rgb2hed``)."""
    return _converted("rgb2hed", rgb, channel_axis, _separated(np.linalg.inv(_HED)), within=_double)


@_listed
@of_any_library
def hed2rgb(hed: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """Colours of amounts of haematoxylin, eosin and DAB (``skimage.color.hed2rgb``)."""
    return _converted("hed2rgb", hed, channel_axis, _combined(_HED), within=_double)


@_listed
@of_any_library
def rgb2rgbcie(rgb: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """CIE's RGB of RGB, without gamma (``skimage.color.rgb2rgbcie``)."""
    return _converted("rgb2rgbcie", rgb, channel_axis, _mixed(_CIE))


@_listed
@of_any_library
def rgbcie2rgb(rgbcie: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """RGB of CIE's RGB (``skimage.color.rgbcie2rgb``)."""
    return _converted("rgbcie2rgb", rgbcie, channel_axis, _mixed(np.linalg.inv(_CIE)))


@_listed
@of_any_library
def rgb2yuv(rgb: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """Luminance, U and V of PAL television (``skimage.color.rgb2yuv``).

    Examples
    --------
    >>> from horus_image.color import rgb2yuv
    >>> rgb2yuv([[[0.0, 0.0, 1.0]]]).round(3)
    array([[[ 0.114,  0.436, -0.1  ]]])
    """
    return _converted("rgb2yuv", rgb, channel_axis, _mixed(_YUV))


@_listed
@of_any_library
def yuv2rgb(yuv: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """Colours of Y, U and V (``skimage.color.yuv2rgb``)."""
    return _converted("yuv2rgb", yuv, channel_axis, _mixed(np.linalg.inv(_YUV)))


@_listed
@of_any_library
def rgb2yiq(rgb: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """Luminance, I and Q of NTSC television (``skimage.color.rgb2yiq``)."""
    return _converted("rgb2yiq", rgb, channel_axis, _mixed(_YIQ))


@_listed
@of_any_library
def yiq2rgb(yiq: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """Colours of Y, I and Q (``skimage.color.yiq2rgb``)."""
    return _converted("yiq2rgb", yiq, channel_axis, _mixed(np.linalg.inv(_YIQ)))


@_listed
@of_any_library
def rgb2ypbpr(rgb: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """Luminance, and the differences of blue and red, from -0.5 to 0.5 (``skimage.color.rgb2ypbpr``)."""
    return _converted("rgb2ypbpr", rgb, channel_axis, _mixed(_YPBPR))


@_listed
@of_any_library
def ypbpr2rgb(ypbpr: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """Colours of Y, Pb and Pr (``skimage.color.ypbpr2rgb``)."""
    return _converted("ypbpr2rgb", ypbpr, channel_axis, _mixed(np.linalg.inv(_YPBPR)))


@_listed
@of_any_library
def rgb2ydbdr(rgb: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """Luminance, Db and Dr of SECAM television (``skimage.color.rgb2ydbdr``)."""
    return _converted("rgb2ydbdr", rgb, channel_axis, _mixed(_YDBDR))


@_listed
@of_any_library
def ydbdr2rgb(ydbdr: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """Colours of Y, Db and Dr (``skimage.color.ydbdr2rgb``)."""
    return _converted("ydbdr2rgb", ydbdr, channel_axis, _mixed(np.linalg.inv(_YDBDR)))


@_listed
@of_any_library
def rgb2ycbcr(rgb: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """Luminance from 16 to 235, and the differences of blue and red from 16 to 240, as floats (``skimage.color.rgb2ycbcr``).

    Examples
    --------
    >>> from horus_image.color import rgb2ycbcr
    >>> rgb2ycbcr([[[1.0, 1.0, 1.0]]]).round(3)
    array([[[235., 128., 128.]]])
    """

    def raised(channels: _Channels) -> _Channels:
        y, blue, red = _mixed(_YCBCR)(channels)
        return [y + 16.0, blue + 128.0, red + 128.0]

    return _converted("rgb2ycbcr", rgb, channel_axis, raised)


@public(
    "color", module="skimage.color.colorconv", rust="convert_colour", opencv="cv.cvtColor",
    differs="integers are taken as they are, where there 16 and 128 are subtracted around their range"
)
@of_any_library
def ycbcr2rgb(ycbcr: ArrayLike, *, channel_axis: int = -1) -> Pixels:
    """Colours of Y, Cb and Cr in the range of 8 bits (``skimage.color.ycbcr2rgb``)."""

    def lowered(channels: _Channels) -> _Channels:
        y, blue, red = channels
        return _mixed(np.linalg.inv(_YCBCR))([y - 16.0, blue - 128.0, red - 128.0])

    return _converted("ycbcr2rgb", ycbcr, channel_axis, lowered, within=Given.floats)


_FROM: Final = {
    "hsv": hsv2rgb, "rgb cie": rgbcie2rgb, "xyz": xyz2rgb, "yuv": yuv2rgb, "yiq": yiq2rgb, "ypbpr": ypbpr2rgb, "ycbcr": ycbcr2rgb,
    "ydbdr": ydbdr2rgb,
}
_TO: Final = {
    "hsv": rgb2hsv, "rgb cie": rgb2rgbcie, "xyz": rgb2xyz, "yuv": rgb2yuv, "yiq": rgb2yiq, "ypbpr": rgb2ypbpr, "ycbcr": rgb2ycbcr,
    "ydbdr": rgb2ydbdr,
}


@public("color", module="skimage.color.colorconv", rust="convert_colour", opencv="cv.cvtColor", differs="see `ycbcr2rgb`")
def convert_colorspace(arr: ArrayLike, fromspace: str, tospace: str, *, channel_axis: int = -1) -> Pixels:
    """Colours of a space in another, by RGB (``skimage.color.convert_colorspace``).

    Parameters
    ----------
    arr : array_like or Image
        Of three channels.
    fromspace, tospace : {'RGB', 'HSV', 'RGB CIE', 'XYZ', 'YUV', 'YIQ', 'YPbPr', 'YCbCr', 'YDbDr'}
        Names of spaces, in letters of either case.
    channel_axis : int, optional
        The axis of an array that is that of channels.

    Examples
    --------
    >>> from horus_image.color import convert_colorspace
    >>> convert_colorspace([[[0.0, 1.0, 1.0]]], "HSV", "XYZ").round(3)
    array([[[0.412, 0.213, 0.019]]])
    """
    found: Any = arr
    for space, ways, what in ((fromspace, _FROM, "fromspace"), (tospace, _TO, "tospace")):
        name = space.lower()
        if name not in ways and name != "rgb":
            raise ValueError(f"`{what}` has to be one of rgb, {', '.join(ways)}, not {space!r}")
        found = ways[name](found, channel_axis=channel_axis) if name != "rgb" else found
    return found if isinstance(found, Image) else np.asarray(found)
