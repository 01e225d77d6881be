#!/usr/bin/env python3
"""Writes horus-apps/tests/programs/command/examples.txt: what the examples of the command `horus` give on a small picture in colour, by NumPy,
SciPy and scikit-image. A line each: the chain, the type, the shape, the mean of all values and the mean of their squares; of
numbers, what is printed. See README.md."""
import re
from pathlib import Path

import numpy as np
from scipy import ndimage as ndi
from skimage import color, exposure, feature
from skimage.morphology import local_maxima, thin
from skimage.transform import hough_line

from composed import bilateral

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs/operations.md"
OUT = HERE.parent.parent / "horus-apps/tests/programs/command/examples.txt"
H, W = 33, 41
y, x = np.mgrid[0:H, 0:W]
PICTURE = np.stack([(y * y + a * x + x * y // 3) % 251 for a in (3, 7, 11)], axis=-1).astype(np.uint8)

wide = PICTURE.astype(np.float64)
unit = wide / 255
grey = unit @ [0.299, 0.587, 0.114]
# Rounded as the command rounds it, for what depends on roundings.
weighted = [PICTURE[..., c].astype(np.float32) * np.float32(w) for c, w in enumerate((0.299, 0.587, 0.114))]
grey32 = (weighted[0] + weighted[1] + weighted[2]) / np.float32(255)


def planes(function, image=wide):
    """Of each channel."""
    if image.ndim == 2:
        return function(image)
    return np.stack([function(image[..., c]) for c in range(image.shape[-1])], axis=-1)


def u8(values):
    return np.clip(np.rint(np.nan_to_num(values, nan=0.0)), 0, 255).astype(np.uint8)


def f32(values):
    return np.asarray(values).astype(np.float32)


def gauss(image, sigma, order=(0, 0)):
    return ndi.gaussian_filter(image, sigma, order, mode="mirror", radius=int(np.ceil(3 * sigma)))


def sobel(image):
    return np.hypot(ndi.sobel(image, 0, mode="mirror"), ndi.sobel(image, 1, mode="mirror"))


def otsu(image):
    """The largest variance between classes, from 256 levels between the extremes."""
    low, high = image.min(), image.max()
    level = np.rint((image - low) / (high - low) * 255)
    counts = np.bincount(level.astype(int).ravel(), minlength=256)
    below, levels = np.cumsum(counts), np.arange(256)
    moment = np.cumsum(counts * levels)
    with np.errstate(all="ignore"):
        between = below * (below[-1] - below) * (moment / below - (moment[-1] - moment) / (below[-1] - below)) ** 2
    return image > low + (np.nanargmax(between[:-1]) + 0.5) / 255 * (high - low)


def footprint(kind, *sizes):
    if kind == "rectangle":
        return np.ones(sizes, bool)
    r = sizes[0]
    v, u = np.mgrid[-r:r + 1, -r:r + 1]
    return v * v + u * u <= r * r if kind == "disc" else (v == 0) | (u == 0)


def under(function, shape, image=wide):
    return u8(planes(lambda plane: function(plane, footprint=shape, mode="mirror"), image))


def opening(plane, shape):
    return ndi.grey_dilation(ndi.grey_erosion(plane, footprint=shape, mode="mirror"), footprint=shape, mode="mirror")


def closing(plane, shape):
    return ndi.grey_erosion(ndi.grey_dilation(plane, footprint=shape, mode="mirror"), footprint=shape, mode="mirror")


def warped(matrix, offset, size=(H, W), order=1, mode="grid-constant"):
    return u8(planes(lambda p: ndi.affine_transform(p, matrix, offset, size, order=order, mode=mode)))


def rotated(degrees):
    """A canvas that holds all corners."""
    t = np.radians(degrees)
    c, s = np.cos(t), np.sin(t)
    size = (int(np.ceil(W * s + H * c)), int(np.ceil(W * c + H * s)))
    matrix = np.array([[c, s], [-s, c]])
    offset = np.array([(H - 1) / 2, (W - 1) / 2]) - matrix @ ((np.array(size) - 1) / 2)
    return warped(matrix, offset, size)


def windows(of, size, step):
    view = np.lib.stride_tricks.sliding_window_view(wide, size, axis=(0, 1))
    return of(view[::step[0], ::step[1]], axis=(-2, -1))


def tiles(of, side):
    rows = [wide[top:top + side] for top in range(0, H, side)]
    return np.array([[of(row[:, left:left + side], axis=(0, 1)) for left in range(0, W, side)] for row in rows])


def pasted(top, left):
    out = PICTURE.copy()
    part = PICTURE[:, -left:]
    out[top:, :W + left] = part[:H - top]
    return out


def kernel(rows):
    return np.array(rows, dtype=np.float64)


def filtered(rows, image=wide, flip=False):
    taps = kernel(rows)[::-1, ::-1] if flip else kernel(rows)
    return f32(planes(lambda p: ndi.correlate(p, taps, mode="mirror"), image))


def extremes(values, pick):
    at = np.unravel_index(pick(np.moveaxis(values, -1, 0)), (3, H, W))
    return [at[1], at[2], at[0]]


def sizes(mask, structure=None):
    """The number of pixels of each pixel's component."""
    labels = ndi.label(mask, structure)[0]
    return np.where(mask, np.bincount(labels.ravel())[labels], 0)


def clear_border(mask, structure):
    labels = ndi.label(mask, structure)[0]
    edges = np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]])
    return mask & ~np.isin(labels, edges)


def labelled():
    return ndi.label(otsu(grey), np.ones((3, 3)))[0].astype(np.uint16)


binary = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum, "minimum": np.minimum, "maximum": np.maximum,
          "lower": np.minimum, "upper": np.maximum, "rem": np.fmod,
          **{name: (lambda a, b, f=getattr(np, name): f(a.astype(np.uint8), b)) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
          **{name: (lambda a, b, f=getattr(np, name): f(a.astype(np.uint8), b)) for name in ("left_shift", "right_shift")},
          "absdiff": lambda a, b: abs(a - b), "pow": np.power, "atan2": np.arctan2, "hypot": np.hypot,
          "div": np.floor_divide}
unary = {"neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "exp": np.exp, "square": np.square, "sign": np.sign,
         "floor": np.floor, "ceil": np.ceil, "round": np.rint, "sin": np.sin, "cos": np.cos}
compare = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
           "ne": np.not_equal}

EXPECTED = {
    **{name: (lambda f=f: u8(f(wide))) for name, f in unary.items()},
    **{f"{name} 2": (lambda f=f: u8(f(wide, 2))) for name, f in binary.items()},
    **{f"{name} 2": (lambda f=f: f(wide, 2)) for name, f in compare.items()},
    "luminance": lambda: f32(grey),
    "to_unit": lambda: f32(unit),
    "convert f32": lambda: f32(wide),
    "normalize 0.1 0.9": lambda: f32((unit - unit.min()) / (unit.max() - unit.min()) * 0.8 + 0.1),
    "channel 0": lambda: PICTURE[..., 0],
    "channel 0 stack @in": lambda: np.concatenate([PICTURE[..., :1], PICTURE], axis=-1),
    "paste @in 4 -3": lambda: pasted(4, -3),
    "to_unit rgb_to_hsv": lambda: f32(color.rgb2hsv(unit)),
    "to_unit hsv_to_rgb": lambda: f32(color.hsv2rgb(unit)),
    "luminance clamp 0.2 0.8": lambda: f32(np.clip(grey, 0.2, 0.8)),
    "luminance absdiv @in 0.001": lambda: f32(np.where(unit >= 0.001, grey[..., None] / np.maximum(unit, 0.001), 0)),
    "invert": lambda: 255 - PICTURE,
    "gamma 0.45": lambda: f32(unit ** 0.45),
    "luminance threshold 0.5": lambda: grey > 0.5,
    "luminance otsu and @in": lambda: otsu(grey)[..., None] & (PICTURE != 0),
    "luminance otsu or @in": lambda: otsu(grey)[..., None] | (PICTURE != 0),
    "luminance otsu xor @in": lambda: otsu(grey)[..., None] ^ (PICTURE != 0),
    "luminance gauss 1 otsu": lambda: otsu(gauss(grey, 1)),
    "otsu not": lambda: ~planes(otsu),
    "luminance otsu select @in 0": lambda: np.where(otsu(grey)[..., None], PICTURE, 0),
    "gauss 2": lambda: f32(planes(lambda p: gauss(p, 2))),
    "gauss 2 sobel": lambda: f32(planes(lambda p: sobel(gauss(p, 2)))),
    "box_filter 5": lambda: f32(planes(lambda p: ndi.uniform_filter(p, 5, mode="mirror"))),
    "sobel_x": lambda: f32(planes(lambda p: ndi.sobel(p, 1, mode="mirror"))),
    "sobel_y": lambda: f32(planes(lambda p: ndi.sobel(p, 0, mode="mirror"))),
    "laplace": lambda: f32(planes(lambda p: ndi.laplace(p, mode="mirror"))),
    "unsharp 2 1.5": lambda: f32(np.clip(unit + 1.5 * (unit - planes(lambda p: gauss(p, 2), unit)), 0, 1)),
    "median 5": lambda: u8(planes(lambda p: ndi.median_filter(p, 5, mode="mirror"))),
    "correlate 1,0,-1/2,0,-2/1,0,-1": lambda: filtered([[1, 0, -1], [2, 0, -2], [1, 0, -1]]),
    "convolve 1,2,3": lambda: filtered([[1, 2, 3]], flip=True),
    "generalized 1,0,1 add min": lambda: u8(planes(
        lambda p: -ndi.grey_dilation(-p, structure=-kernel([[1, 0, 1]]), mode="mirror"))),
    "erode disc 2": lambda: under(ndi.grey_erosion, footprint("disc", 2)),
    "dilate cross 1": lambda: under(ndi.grey_dilation, footprint("cross", 1)),
    "median_under disc 7": lambda: under(ndi.median_filter, footprint("disc", 7)),
    "opening 3": lambda: u8(planes(lambda p: opening(p, footprint("rectangle", 3, 3)))),
    "closing rectangle 3 5": lambda: u8(planes(lambda p: closing(p, footprint("rectangle", 3, 5)))),
    "top_hat disc 3": lambda: u8(planes(lambda p: p - opening(p, footprint("disc", 3)))),
    "black_hat disc 3": lambda: u8(planes(lambda p: closing(p, footprint("disc", 3)) - p)),
    "morphological_gradient 3": lambda: u8(planes(
        lambda p: ndi.maximum_filter(p, 3, mode="mirror") - ndi.minimum_filter(p, 3, mode="mirror"))),
    "luminance otsu label 8 convert u16": labelled,
    "luminance otsu component_sizes convert u16": lambda: sizes(otsu(grey)).astype(np.uint16),
    "luminance otsu remove_small 20 8": lambda: sizes(otsu(grey), np.ones((3, 3))) >= 20,
    "luminance otsu fill_small 20": lambda: ~(sizes(~otsu(grey)) >= 20),
    "luminance otsu keep_largest": lambda: sizes(otsu(grey)) == sizes(otsu(grey)).max(),
    "luminance otsu clear_border 8": lambda: clear_border(otsu(grey), np.ones((3, 3))),
    "luminance otsu distance": lambda: f32(ndi.distance_transform_edt(otsu(grey))),
    "rotate 30 grow": lambda: rotated(30),
    "translate -1.5 4": lambda: warped(np.eye(2), [1.5, -4]),
    "affine 1,0.2,0,0,1,0": lambda: warped([[1, 0], [0.2, 1]], [0, 0]),
    "flip horizontal": lambda: PICTURE[:, ::-1],
    "transpose": lambda: PICTURE.transpose(1, 0, 2),
    "crop 2 3 8 9": lambda: PICTURE[2:10, 3:12],
    "step 2 3": lambda: PICTURE[::2, ::3],
    "pad 1 2 3 4 wrap": lambda: np.pad(PICTURE, ((1, 2), (3, 4), (0, 0)), mode="wrap"),
    "over channels mean": lambda: wide.mean(axis=2, keepdims=True).astype(np.float32),
    "luminance cumsum rows cumsum columns": lambda: grey.cumsum(axis=0).cumsum(axis=1),
    "tiles 8 8 max": lambda: tiles(np.max, 8).astype(np.uint8),
    "windows 7 7 4 4 variance": lambda: windows(np.var, (7, 7), (4, 4)),
    "trunc": lambda: np.trunc(wide).astype(np.uint8),
    "min": lambda: [PICTURE.min()],
    "max": lambda: [PICTURE.max()],
    "sum": lambda: [wide.sum()],
    "luminance mean": lambda: [grey.mean()],
    "variance": lambda: [wide.var()],
    "min_max": lambda: [PICTURE.min(), PICTURE.max()],
    "mean_and_variance": lambda: [wide.mean(), wide.var()],
    "luminance percentile 50": lambda: [np.percentile(grey, 50)],
    "argmin": lambda: extremes(wide, np.argmin),
    "argmax": lambda: extremes(wide, np.argmax),
    "otsu count": lambda: [planes(otsu).sum()],
    "histogram 4": lambda: list(np.histogram(wide, 4, (0, 255))[0]),
    "luminance otsu thin": lambda: thin(otsu(grey)),
    "canny 1 0.05 0.15": lambda: feature.canny(grey, 1, 0.05, 0.15),
    "luminance equalize_hist": lambda: f32(exposure.equalize_hist(grey)),
    "equalize_adapthist 10 8 0.02": lambda: f32(exposure.equalize_adapthist(grey32, (10, 8), 0.02)),
    "to_unit bilateral 0.2 2 5": lambda: f32(bilateral(unit, 5, 0.2, 2, "reflect")),
    "luminance gauss 1 local_maxima": lambda: local_maxima(f32(gauss(grey, 1))),
    "peak_local_max 2 0.3": lambda: list(feature.peak_local_max(grey32, 2, 0.3).ravel()),
    "luminance otsu hough_line 4": lambda: list(
        hough_line(otsu(grey), np.linspace(-np.pi / 2, np.pi / 2, 4, endpoint=False))[0].ravel()),
    "stats": lambda: [v for c in range(3) for p in [wide[..., c]]
                      for v in (c, p.min(), p.max(), p.mean(), p.std(), p.sum())],
}


def line(chain):
    if chain not in EXPECTED:
        return f"{chain}: -"
    value = EXPECTED[chain]()
    if isinstance(value, list):
        return f"{chain}: numbers {' '.join(repr(float(v)) for v in value)}"
    name = {"uint8": "u8", "uint16": "u16", "float32": "f32", "float64": "f64", "bool": "bool"}[value.dtype.name]
    v = value.astype(np.float64)
    shape = "x".join(str(n) for n in (value.shape if value.ndim == 3 else (*value.shape, 1)))
    return f"{chain}: {name} {shape} {v.mean()!r} {(v * v).mean()!r}".replace("np.float64(", "").replace(")", "")


if __name__ == "__main__":
    rows = [row for row in PAGE.read_text().splitlines() if row.startswith("| `")]
    found = [re.search(r"\| `([^`]*)` \|$", row) for row in rows]
    examples = [chain.group(1) for chain in found if chain]
    unused = set(EXPECTED) - set(examples)
    assert not unused, unused
    OUT.write_text("".join(f"{line(chain)}\n" for chain in examples))
    known = sum(chain in EXPECTED for chain in examples)
    print(f"{known} of {len(examples)} examples")
