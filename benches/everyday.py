#!/usr/bin/env python3
"""Everyday functions at everyday sizes: `horus_image` beside OpenCV, SciPy, scikit-image and NumPy in one run.

    python benches/everyday.py                                        all of it: hours
    python benches/everyday.py --sizes 512 --types u8 --functions sobel,median     a minute

NumPy arrays in, NumPy arrays out. Calls of all libraries take turns, and the least time of each counts, so that a busy
machine disturbs ratios little. A ratio is the time of the fastest peer by Horus's: above 1 Horus is faster. The sign `~`
marks a row whose fastest peer computes something coarser (OpenCV: positions in 1/32 of a pixel, Gaussians of integers in
8 bits, float results of Otsu's histogram): its goal is 0.8, that of others is 1.

With `--channels 3,4`, arrays of colours: rows, columns and channels. A size of three numbers is that of a volume. With `--device cuda`, arrays of CuPy in and out, beside `cupyx.scipy.ndimage` and CuPy; every call is waited for.

Needs `pip install dist/horus_image-*.whl scipy opencv-python-headless scikit-image`, and CuPy for `--device cuda`.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import math
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import scipy.ndimage as sp
import skimage.feature as skf
import skimage.filters as ski
import skimage.morphology as skm
import skimage.segmentation as sks
import skimage.transform as skt

import horus_image as hi
from horus_image import filters as hf
from horus_image import ndimage as hn
from horus_image import segmentation as hs
from horus_image import transform as ht

Call = Callable[[], Any]
Array = Any
MIRRORED = cv2.BORDER_REFLECT
TYPES = {"bool": np.bool_, "u8": np.uint8, "u16": np.uint16, "f32": np.float32, "f64": np.float64}
SIZES = ["256", "512", "1024", "1000x1500", "2048", "4096"]
NUMBERS, FLOATS = "u8 u16 f32 f64", "f32 f64"

class Place:
    """Where arrays are, and whose functions are the peers there: SciPy's and NumPy's on the host, CuPy's on a GPU."""

    peer = sp
    names = {"horus": "horus", "scipy": "scipy", "numpy": "numpy"}
    on_gpu = False

    @classmethod
    def gpu(cls) -> None:
        import cupy
        from cupyx.scipy import ndimage

        cls.peer, cls.on_gpu, cls.cupy = ndimage, True, cupy
        cls.names = {"horus": "horus", "scipy": "cupyx", "numpy": "cupy"}

    @classmethod
    def put(cls, a: Array) -> Array:
        return cls.cupy.asarray(a) if cls.on_gpu else a

    @classmethod
    def result(cls, found: hi.Image) -> Any:
        """What a caller gets: an array on the host; on a GPU the image, which other libraries take as it is."""
        return found if cls.on_gpu else np.asarray(found)

    @classmethod
    def calls(cls, given: dict[str, Call]) -> dict[str, Call]:
        """The calls that can be made here; on a GPU each is waited for."""
        if not cls.on_gpu:
            return given

        def waited(call: Call) -> Any:
            found = call()
            if isinstance(found, hi.Image):
                found = cls.cupy.from_dlpack(found)
            cls.cupy.cuda.Device().synchronize()
            return found

        return {cls.names[who]: functools.partial(waited, call) for who, call in given.items() if who in cls.names}


CASES: dict[str, tuple[str, Callable[[Array], dict[str, Call]]]] = {}


def case(name: str, types: str = NUMBERS) -> Callable[[Callable[[Array], dict[str, Call]]], None]:
    """Registers a function: calls of an array by library; those of names that end in `~` are coarser."""

    def register(calls: Callable[[Array], dict[str, Call]]) -> None:
        CASES[name] = types, calls

    return register


def both(name: str, *args: Any, **more: Any) -> Callable[[Array], dict[str, Call]]:
    """A function of `scipy.ndimage` by ours and by SciPy."""

    def calls(a: Array) -> dict[str, Call]:
        peers = [Place.put(x) if isinstance(x, np.ndarray) else x for x in args]
        named = {key: Place.put(x) if isinstance(x, np.ndarray) else x for key, x in more.items()}
        return {
            "horus": lambda: getattr(hn, name)(a, *args, **more),
            "scipy": lambda: getattr(Place.peer, name)(a, *peers, **named),
        }

    return calls


def with_cv2(calls: Callable[[Array], dict[str, Call]], opencv: Callable[[Array], Any], coarser: bool = False) -> Any:
    return lambda a: {**calls(a), "opencv~" if coarser else "opencv": lambda: opencv(a)}


def ones(size: int) -> Array:
    return np.ones((size, size), np.uint8)


def bytes_of(a: Array) -> Array:
    return a.view(np.uint8) if a.dtype == np.bool_ else a


def scaled(a: Array) -> Array:
    """Pixels as floats that are small enough for an exponential."""
    return a if a.dtype.kind == "f" else a.astype(np.float32) / np.iinfo(a.dtype).max


DISC = skm.disk(15).astype(np.uint8)
CROSS = sp.generate_binary_structure(2, 1).astype(np.uint8)
KERNEL = np.array([[1, 2, 0], [-1, 3, 1], [0, 1, -2]], np.float64)
LINE = np.array([1, 3, 5, 7, 5, 3, 1], np.float64)

for sigma in (1.0, 3.0):
    width = 2 * int(4 * sigma + 0.5) + 1
    for types, coarser in (("u8 u16", True), (FLOATS, False)):
        case(f"gaussian {sigma:g}" + (" of integers" if coarser else ""), types)(
            with_cv2(both("gaussian_filter", sigma),
                     lambda a, s=sigma, w=width: cv2.GaussianBlur(a, (w, w), s, borderType=MIRRORED), coarser))
case("sobel")(with_cv2(both("sobel"), lambda a: cv2.Sobel(a, -1, 1, 0, borderType=MIRRORED)))
case("prewitt")(both("prewitt"))
case("laplace")(with_cv2(both("laplace"), lambda a: cv2.Laplacian(a, -1, borderType=MIRRORED)))
case("gradient magnitude 1")(both("gaussian_gradient_magnitude", 1.0))
case("correlate 3x3")(with_cv2(both("correlate", KERNEL), lambda a: cv2.filter2D(a, -1, KERNEL, borderType=MIRRORED)))
case("correlate1d 7")(with_cv2(both("correlate1d", LINE),
                               lambda a: cv2.filter2D(a, -1, LINE[None, :], borderType=MIRRORED)))
for size in (5, 31):
    case(f"uniform {size}")(with_cv2(both("uniform_filter", size),
                                     lambda a, s=size: cv2.blur(a, (s, s), borderType=MIRRORED)))
case("median 3", "u8 u16 f32")(with_cv2(both("median_filter", 3), lambda a: cv2.medianBlur(a, 3)))
case("median 5", "u8 u16 f32")(with_cv2(both("median_filter", 5), lambda a: cv2.medianBlur(a, 5)))
case("median 21", "u8 u16")(with_cv2(both("median_filter", 21), lambda a: cv2.medianBlur(a, 21)))
case("maximum 3")(with_cv2(both("maximum_filter", 3), lambda a: cv2.dilate(a, ones(3))))
for size in (3, 31):
    case(f"erosion {size}")(with_cv2(both("grey_erosion", size), lambda a, s=size: cv2.erode(a, ones(s))))
case("erosion disc 15")(with_cv2(both("grey_erosion", footprint=DISC), lambda a: cv2.erode(a, DISC)))
case("opening 9")(with_cv2(both("grey_opening", 9), lambda a: cv2.morphologyEx(a, cv2.MORPH_OPEN, ones(9))))
case("morphological gradient 3")(with_cv2(both("morphological_gradient", 3),
                                          lambda a: cv2.morphologyEx(a, cv2.MORPH_GRADIENT, ones(3))))
case("white tophat 9")(with_cv2(both("white_tophat", 9), lambda a: cv2.morphologyEx(a, cv2.MORPH_TOPHAT, ones(9))))
case("binary erosion", "bool")(with_cv2(both("binary_erosion"), lambda a: cv2.erode(bytes_of(a), CROSS)))
case("binary dilation", "bool")(with_cv2(both("binary_dilation"), lambda a: cv2.dilate(bytes_of(a), CROSS)))
case("binary erosion, 10 times", "bool")(
    with_cv2(both("binary_erosion", iterations=10), lambda a: cv2.erode(bytes_of(a), CROSS, iterations=10)))
case("binary opening 5x5", "bool")(
    with_cv2(both("binary_opening", np.ones((5, 5))), lambda a: cv2.morphologyEx(bytes_of(a), cv2.MORPH_OPEN, ones(5))))
case("fill holes", "bool")(both("binary_fill_holes"))


def turned(a: Array) -> Any:
    """As `rotate` of SciPy does with `reshape`."""
    height, width = a.shape[:2]
    cos, sin = np.cos(np.pi / 6), np.sin(np.pi / 6)
    size = int(width * cos + height * sin + 0.5), int(width * sin + height * cos + 0.5)
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), 30, 1)
    matrix[:, 2] += (size[0] - width) / 2, (size[1] - height) / 2
    return matrix, size


def by_matrix(how: int) -> Callable[[Array], Any]:
    def call(a: Array) -> Any:
        matrix, size = turned(a)
        return cv2.warpAffine(a, matrix, size, flags=how)

    return call


case("rotate 30 linear")(with_cv2(both("rotate", 30, order=1), by_matrix(cv2.INTER_LINEAR), True))
case("rotate 30 spline")(with_cv2(both("rotate", 30), by_matrix(cv2.INTER_CUBIC), True))
for factor in (0.5, 2):
    case(f"zoom {factor:g} linear")(
        with_cv2(both("zoom", factor, order=1),
                 lambda a, f=factor: cv2.resize(a, None, fx=f, fy=f, interpolation=cv2.INTER_LINEAR), True))
case("zoom 2 nearest")(
    with_cv2(both("zoom", 2, order=0), lambda a: cv2.resize(a, None, fx=2, fy=2, interpolation=cv2.INTER_NEAREST)))
SHIFTED = np.array([[1, 0, 2.25], [0, 1, 1.5]])
case("shift linear")(with_cv2(both("shift", (1.5, 2.25), order=1),
                              lambda a: cv2.warpAffine(a, SHIFTED, a.shape[1::-1], flags=cv2.INTER_LINEAR), True))


@case("map_coordinates linear", "f32")
def _(a: Array) -> dict[str, Call]:
    at = np.stack(np.mgrid[: a.shape[0], : a.shape[1]]).astype(np.float32) * np.float32(0.9) + np.float32(3.3)
    at = Place.put(at)
    return {
        "horus": lambda: hn.map_coordinates(a, at, order=1),
        "scipy": lambda: Place.peer.map_coordinates(a, at, order=1),
        "opencv~": lambda: cv2.remap(a, at[1], at[0], cv2.INTER_LINEAR),
    }


case("otsu", "u8 u16 f32")(lambda a: {
    "horus": lambda: hf.threshold_otsu(a),
    "skimage": lambda: ski.threshold_otsu(a),
    **({} if a.dtype == np.float32 else {"opencv": lambda: cv2.threshold(a, 0, 255, cv2.THRESH_OTSU)[0]}),
})


case("li", "u8 f32")(lambda a: {"horus": lambda: hf.threshold_li(a), "skimage": lambda: ski.threshold_li(a)})
EDGES = {"u": (12.0, 38.0), "f": (0.05, 0.15)}
case("canny", "u8 f32")(lambda a: {
    "horus": lambda: hf.canny(a, 1.0, *EDGES[a.dtype.kind]),
    "skimage": lambda: skf.canny(a, 1.0, *EDGES[a.dtype.kind]),
    **({"opencv~": lambda: cv2.Canny(cv2.GaussianBlur(a, (9, 9), 1), 50, 150)} if a.dtype == np.uint8 else {}),
})
case("distances", "bool")(lambda a: {
    "horus": lambda: hn.distance_transform_edt(a),
    "scipy": lambda: Place.peer.distance_transform_edt(a),
    "opencv~": lambda: cv2.distanceTransform(bytes_of(a), cv2.DIST_L2, cv2.DIST_MASK_PRECISE),
})


@case("nuclei", "u8")
def _(a: Array) -> dict[str, Call]:
    """Smoothed, cut at Otsu's threshold, opened, labelled, and the area of each."""

    def by(filters: Any, threshold: Callable[[Array], Any]) -> Call:
        def call() -> Any:
            smooth = filters.gaussian_filter(a, 2)
            mask = filters.binary_opening(smooth > threshold(smooth), np.ones((3, 3)))
            marked, count = filters.label(mask)
            return filters.sum_labels(mask, marked, np.arange(1, count + 1))

        return call

    def opencv() -> Any:
        smooth = cv2.GaussianBlur(a, (17, 17), 2, borderType=MIRRORED)
        mask = cv2.threshold(smooth, 0, 255, cv2.THRESH_OTSU)[1]
        return cv2.connectedComponentsWithStats(cv2.morphologyEx(mask, cv2.MORPH_OPEN, ones(3)), connectivity=4)[2]

    return {"horus": by(hn, hf.threshold_otsu), "scipy": by(sp, ski.threshold_otsu), "opencv~": opencv}


@case("median 1001 of a line", "f32")
def _(a: Array) -> dict[str, Call]:
    line = a.ravel()
    return {"horus": lambda: hn.median_filter(line, 1001), "scipy": lambda: Place.peer.median_filter(line, 1001)}


def labels(picture: Callable[[tuple[int, ...]], Array]) -> Callable[[Array], dict[str, Call]]:
    def calls(a: Array) -> dict[str, Call]:
        mask = Place.put(picture(a.shape))
        return {
            "horus": lambda: hn.label(mask),
            "scipy": lambda: Place.peer.label(mask),
            **({"opencv": lambda: cv2.connectedComponents(bytes_of(mask), connectivity=4)} if mask.ndim == 2 else {}),
        }

    return calls


def blobs(shape: tuple[int, ...]) -> Array:
    noise = np.random.default_rng(7).random(shape, dtype=np.float32)
    return sp.gaussian_filter(noise, 4.0) > 0.5


case("label blobs", "bool")(labels(blobs))
case("label noise", "bool")(labels(lambda shape: np.random.default_rng(8).random(shape) > 0.5))


@case("find_objects", "bool")
def _(a: Array) -> dict[str, Call]:
    found = Place.put(sp.label(blobs(a.shape))[0])
    return {"horus": lambda: hn.find_objects(found), "scipy": lambda: Place.peer.find_objects(found)}


@case("watershed", "u8 f32")
def _(a: Array) -> dict[str, Call]:
    height, width = a.shape
    smooth = sp.gaussian_filter(a.get() if Place.on_gpu else a, 4.0)
    markers = np.zeros((height, width), np.int32)
    markers[8::16, 8::16] = np.arange(1, markers[8::16, 8::16].size + 1).reshape(markers[8::16, 8::16].shape)
    return {"horus": lambda: hs.watershed(smooth, markers), "skimage": lambda: sks.watershed(smooth, markers)}


@case("median of labels", NUMBERS)
def _(a: Array) -> dict[str, Call]:
    marked, count = sp.label(blobs(a.shape))
    found, index = Place.put(marked), np.arange(1, count + 1)
    wanted = Place.put(index)
    return {"horus": lambda: hn.median(a, found, index), "scipy": lambda: Place.peer.median(a, found, wanted)}


@case("sums of labels", NUMBERS)
def _(a: Array) -> dict[str, Call]:
    marked, count = sp.label(blobs(a.shape))
    found, index = Place.put(marked), np.arange(1, count + 1)
    wanted = Place.put(index)
    return {"horus": lambda: hn.sum_labels(a, found, index), "scipy": lambda: Place.peer.sum_labels(a, found, wanted)}


@case("hough_line", "bool")
def _(a: Array) -> dict[str, Call]:
    edges = np.random.default_rng(9).random(a.shape) < 0.05
    return {"horus": lambda: ht.hough_line(edges), "skimage": lambda: skt.hough_line(edges)}


for name in ("sum", "mean", "maximum", "variance"):
    numpy_name = {"maximum": "max", "variance": "var"}.get(name, name)
    case(name)(lambda a, n=name, m=numpy_name: {
        "horus": lambda: getattr(hn, n)(a),
        "scipy": lambda: getattr(Place.peer, n)(a),
        "numpy": lambda: getattr(a, m)(),
    })


@case("histogram")
def _(a: Array) -> dict[str, Call]:
    end = 1.0 if a.dtype.kind == "f" else float(np.iinfo(a.dtype).max) + 1
    return {
        "horus": lambda: hn.histogram(a, 0, end, 256),
        "numpy": lambda: np.histogram(a, 256, (0, end)),
        **({"opencv": lambda: cv2.calcHist([a], [0], None, [256], [0, end])} if a.dtype != np.float64 else {}),
    }


case("exp(a) * sqrt(a) + a", FLOATS)(lambda a: {
    "horus": lambda: (lambda i: Place.result(np.exp(i) * np.sqrt(i) + i))(hi.asarray(a, copy=False)),
    "numpy": lambda: np.exp(a) * np.sqrt(a) + a,
})
case("threshold")(lambda a: {
    "horus": lambda: Place.result(hi.asarray(a, copy=False) > a.dtype.type(1)),
    "numpy": lambda: a > a.dtype.type(1),
    "opencv": lambda: cv2.compare(a, 1, cv2.CMP_GT),
})
case("unsharp mask", FLOATS)(lambda a: {
    "horus": lambda: hf.unsharp_mask(a, 2.0), "skimage": lambda: ski.unsharp_mask(a, 2.0)})
case("sauvola", "f32")(lambda a: {
    "horus": lambda: hf.threshold_sauvola(a), "skimage": lambda: ski.threshold_sauvola(a)})
case("frangi", "f32")(lambda a: {"horus": lambda: hf.frangi(a), "skimage": lambda: ski.frangi(a)})


VOLUME: dict[str, tuple[str, Callable[[Array], dict[str, Call]]]] = {
    "gaussian 1": (NUMBERS, both("gaussian_filter", 1.0)),
    "uniform 5": (NUMBERS, both("uniform_filter", 5)),
    "median 3": ("u8 u16 f32", both("median_filter", 3)),
    "erosion 3": (NUMBERS, both("grey_erosion", 3)),
    "sobel": (NUMBERS, both("sobel")),
    "zoom 0.5 linear": (NUMBERS, both("zoom", 0.5, order=1)),
    "shift spline": (NUMBERS, both("shift", (0.5, 1.5, 2.25))),
    "sum": (NUMBERS, lambda a: {"horus": lambda: hn.sum(a), "numpy": lambda: a.sum()}),
    "distances": ("bool", both("distance_transform_edt")),
    "label blobs": ("bool", labels(blobs)),
}


COLOUR: dict[str, tuple[str, Callable[[Array], dict[str, Call]]]] = {}
COLOUR_SIZES, COLOUR_TYPES = "480x640,1080x1920,3000x4000", "u8,u16,f32"


def colour(name: str, calls: Callable[[Array], dict[str, Call]], types: str = "u8 u16 f32") -> None:
    """Registers a function of arrays of colours."""
    COLOUR[name] = types, calls


def on_image(ours: Callable[[hi.Image], Any], **peers: Callable[[Array], Any]) -> Any:
    """An expression of an image with channels, and of arrays; a peer whose name ends in `_` is coarser."""

    def calls(a: Array) -> dict[str, Call]:
        found = {"horus": lambda: Place.result(ours(hi.asarray(a, channels=True, copy=False)))}
        found.update({who.replace("_", "~"): functools.partial(peer, a) for who, peer in peers.items()})
        return found

    return calls


def grey(a: Array) -> Any:
    return cv2.cvtColor(a, cv2.COLOR_RGB2GRAY if a.shape[2] == 3 else cv2.COLOR_RGBA2GRAY)


def three(call: Callable[[Array], dict[str, Call]]) -> Callable[[Array], dict[str, Call]]:
    """Of three channels alone."""
    return lambda a: call(a) if a.shape[2] == 3 else {}


colour("gaussian 2", with_cv2(both("gaussian_filter", (2, 2, 0)),
                              lambda a: cv2.GaussianBlur(a, (17, 17), 2, borderType=MIRRORED), True), "u8 u16")
colour("gaussian 2 of floats", with_cv2(both("gaussian_filter", 2, axes=(0, 1)),
                                        lambda a: cv2.GaussianBlur(a, (17, 17), 2, borderType=MIRRORED)), "f32")
colour("uniform 5", with_cv2(both("uniform_filter", (5, 5, 1)), lambda a: cv2.blur(a, (5, 5), borderType=MIRRORED)))
colour("median 3", with_cv2(both("median_filter", (3, 3, 1)), lambda a: cv2.medianBlur(a, 3)))
colour("erosion 5", with_cv2(both("grey_erosion", (5, 5, 1)), lambda a: cv2.erode(a, ones(5))))
colour("maximum 3", with_cv2(both("maximum_filter", (3, 3, 1)), lambda a: cv2.dilate(a, ones(3))))
colour("opening 9", with_cv2(both("grey_opening", (9, 9, 1)), lambda a: cv2.morphologyEx(a, cv2.MORPH_OPEN, ones(9))))
colour("correlate 3x3", with_cv2(both("correlate", KERNEL[:, :, None]),
                                 lambda a: cv2.filter2D(a, -1, KERNEL, borderType=MIRRORED)))
colour("laplace", with_cv2(both("laplace", axes=(0, 1)), lambda a: cv2.Laplacian(a, -1, borderType=MIRRORED)))
colour("rotate 30 linear", with_cv2(both("rotate", 30, order=1), by_matrix(cv2.INTER_LINEAR), True))
colour("zoom 0.5 linear", with_cv2(both("zoom", (0.5, 0.5, 1), order=1),
                                   lambda a: cv2.resize(a, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_LINEAR), True))
colour("luminance", on_image(lambda i: (i.with_alpha() if i.shape[2] == 4 else i).luminance(), opencv_=grey))
colour("hsv", three(on_image(lambda i: i.convert_colour("rgb", "hsv"),
                             opencv=lambda a: cv2.cvtColor(a, cv2.COLOR_RGB2HSV))), "f32")
colour("lab", three(on_image(lambda i: i.convert_colour("rgb", "lab"),
                             opencv_=lambda a: cv2.cvtColor(a, cv2.COLOR_RGB2Lab))), "f32")
colour("a * 2 + 1", on_image(lambda i: i * 2 + 1, numpy=lambda a: a * a.dtype.type(2) + a.dtype.type(1)))
colour("threshold", on_image(lambda i: i > 1, numpy=lambda a: a > 1))
colour("mean of channels", on_image(lambda i: i.mean(axis=(0, 1)), numpy=lambda a: a.mean(axis=(0, 1)),
                                    opencv=lambda a: cv2.mean(a)))


def picture(size: str, dtype: Any, channels: int = 0) -> Array:
    """Smooth blobs under noise."""
    if channels:
        planes = [np.roll(picture(size, dtype), 7 * c, 1) for c in range(channels)]
        return np.ascontiguousarray(np.stack(planes, 2))
    shape = tuple(map(int, size.split("x")))
    shape = shape * 2 if len(shape) == 1 else shape
    rng = np.random.default_rng(1)
    grey = sp.gaussian_filter(rng.random(shape, dtype=np.float32), 3.0)
    grey = (grey - grey.min()) / (grey.max() - grey.min())
    grey = np.clip(0.9 * grey + 0.1 * rng.random(shape, dtype=np.float32), 0, 1)
    if dtype == np.bool_:
        return np.ascontiguousarray(grey > 0.5)
    return np.ascontiguousarray((grey * np.iinfo(dtype).max).astype(dtype) if np.dtype(dtype).kind in "iu" else grey.astype(dtype))


SLOW: set[tuple[str, str]] = set()
"""Functions and peers that took 20 times as long as the fastest: they are not waited for again."""


def least_ms(name: str, calls: dict[str, Call], seconds: float) -> dict[str, float]:
    """The least time of each call; those that raise are left out."""
    times: dict[str, float] = {}
    for who, call in calls.items():
        if (name, who) in SLOW:
            continue
        try:
            start = time.perf_counter()
            call()
            times[who] = time.perf_counter() - start
        except (cv2.error, TypeError, ValueError, RuntimeError, AttributeError) as error:
            if who == "horus" and not Place.on_gpu:
                raise
            print(f"  {who}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
    near = min((t for who, t in times.items() if who != "horus"), default=0.0)
    SLOW.update((name, who) for who, took in times.items() if who != "horus" and took > max(20 * near, 0.01))
    running = [who for who in times if (name, who) not in SLOW]
    end = time.perf_counter() + seconds * len(running)
    while time.perf_counter() < end:
        for who in running:
            # Some calls of one library in a row: its memory stays in the cache, as in a user's loop.
            part = time.perf_counter() + seconds / 8
            while True:
                start = time.perf_counter()
                calls[who]()
                took = time.perf_counter() - start
                times[who] = min(times[who], took)
                if start + took > part:
                    break
    return {who: 1e3 * t for who, t in times.items()}


def imports(seconds: float) -> None:
    """How long it takes to import each library, in milliseconds."""
    calls = {module: functools.partial(subprocess.run, [sys.executable, "-c", f"import {module}"], check=True)
             for module in ("horus_image", "scipy.ndimage", "numpy", "cv2")}
    print("import: " + "  ".join(f"{who} {ms:.0f} ms" for who, ms in least_ms("import", calls, seconds).items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="", help="512, or 1000x1500: rows and columns")
    parser.add_argument("--types", default="", help=",".join(TYPES))
    parser.add_argument("--channels", default="", help="3,4: arrays of colours")
    parser.add_argument("--functions", default="", help="parts of names; all by default")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=0.25, help="for each call")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda for arrays of CuPy")
    parser.add_argument("--imports", action="store_true", help="also how long imports take")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    wanted = [part for part in given.functions.split(",") if part]
    if given.device == "cuda":
        Place.gpu()
    sizes = given.sizes or (COLOUR_SIZES if given.channels else ",".join(SIZES))
    codes = given.types or (COLOUR_TYPES if given.channels else ",".join(TYPES))
    kinds = list(itertools.product(codes.split(","), map(int, given.channels.split(",") if given.channels else [0])))
    ratios: list[tuple[float, str]] = []
    for threads in map(int, given.threads.split(",")):
        cv2.setNumThreads(threads)
        for size in sizes.split(","):
            for code, channels in kinds:
                array = picture(size, TYPES[code], channels)
                cases = COLOUR if channels else VOLUME if array.ndim == 3 else CASES
                for name, (types, calls) in cases.items():
                    if code not in types.split() or (wanted and not any(part in name for part in wanted)):
                        continue
                    found = Place.calls(calls(Place.put(array)))
                    if not found:
                        continue
                    with hi.session(device="cpu", threads=threads) if not Place.on_gpu else contextlib.nullcontext():
                        times = least_ms(f"{name} {code}", found, given.seconds)
                    ours = times.pop("horus", math.inf)
                    if not times:
                        continue
                    best = min(times, key=times.__getitem__)
                    ratio, mark = times[best] / ours, "~" if best.endswith("~") else " "
                    of = size if not channels else f"{size}x{channels}"
                    row = f"{name:26} {code:4} {of:>11} " + ("GPU" if Place.on_gpu else f"{threads} threads")
                    ratios.append((ratio, row + mark))
                    others = "  ".join(f"{who} {ms:.3f}" for who, ms in times.items())
                    print(f"{row}  {ratio:6.2f}{mark}  horus {ours:.3f} ms  {others}", flush=True)
    print(f"{len(ratios)} rows, {sum(ratio < 1 for ratio, _ in ratios)} below 1, "
          f"{sum(ratio < 0.5 for ratio, _ in ratios)} below 0.5, {sum(ratio < 0.2 for ratio, _ in ratios)} below 0.2; "
          f"median {statistics.median(ratio for ratio, _ in ratios):.2f}; the worst ten:")
    for ratio, row in sorted(ratios)[:10]:
        print(f"  {ratio:6.3f} {row}")
    if given.imports:
        imports(given.seconds)


if __name__ == "__main__":
    main()
