#!/usr/bin/env python3
"""Times of `horus_image.ndimage` beside SciPy's, and those of OpenCV and scikit-image where they are installed, in one run: python benches/python.py

NumPy arrays in, NumPy arrays out; medians of several calls, ratios to Horus's time. Run it on an idle machine, after
`pip install dist/horus_image-*.whl scipy opencv-python-headless scikit-image`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage

from horus_image import filters as ours
from horus_image import ndimage

try:
    import cv2
except ImportError:
    cv2 = None
try:
    from skimage import filters
except ImportError:
    filters = None


def median_ms(call: Callable[[], Any], seconds: float) -> float:
    call()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 2000):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def row(name: str, seconds: float, **calls: Callable[[], Any]) -> None:
    times = {who: median_ms(call, seconds) for who, call in calls.items()}
    ours = times.pop("horus")
    others = "  ".join(f"{who} {ms:.3f} ({ms / ours:.2f}x)" for who, ms in times.items())
    print(f"{name:36} horus {ours:.3f} ms  {others}", flush=True)


def main() -> None:
    rng = np.random.default_rng(1)
    large = rng.random((4096, 4096), dtype=np.float32)
    grey = rng.integers(0, 256, (4096, 4096), dtype=np.uint8)
    small = rng.random((64, 64), dtype=np.float32)
    mirrored = {} if cv2 is None else {"borderType": cv2.BORDER_REFLECT}

    def opencv(**calls: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
        return {} if cv2 is None else calls

    def skimage(**calls: Callable[[], Any]) -> dict[str, Callable[[], Any]]:
        return {} if filters is None else calls

    row("gaussian_filter sigma 3, f32 4096", 3, horus=lambda: ndimage.gaussian_filter(large, 3.0),
        scipy=lambda: scipy.ndimage.gaussian_filter(large, 3.0),
        **opencv(opencv=lambda: cv2.GaussianBlur(large, (25, 25), 3.0, **mirrored)),
        **skimage(skimage=lambda: filters.gaussian(large, 3.0)))
    for side in (5, 15):
        # OpenCV has medians of float32 up to 5x5, and SciPy takes minutes for large ones: of a part.
        for name, image, rows in (("u8", grey, 4096 if side == 5 else 256), ("f32", large, 4096 if side == 5 else 256)):
            part = np.ascontiguousarray(image[:rows])
            known = side == 5 or name == "u8"
            row(f"median_filter {side}, {name} {rows}x4096", 3, horus=lambda a=part, k=side: ndimage.median_filter(a, k),
                scipy=lambda a=part, k=side: scipy.ndimage.median_filter(a, k),
                **(opencv(opencv=lambda a=part, k=side: cv2.medianBlur(a, k)) if known else {}))
    row("median_filter 15, u8 4096", 3, horus=lambda: ndimage.median_filter(grey, 15),
        **opencv(opencv=lambda: cv2.medianBlur(grey, 15)))
    row("median_filter 15, f32 4096", 3, horus=lambda: ndimage.median_filter(large, 15))
    for name, image in (("u8", grey), ("f32", large)):
        row(f"grey_dilation 15x15, {name} 4096", 3, horus=lambda a=image: ndimage.grey_dilation(a, 15),
            scipy=lambda a=image: scipy.ndimage.grey_dilation(a, 15),
            **opencv(opencv=lambda a=image: cv2.dilate(a, np.ones((15, 15), np.uint8))))
        row(f"uniform_filter 101, {name} 4096", 3, horus=lambda a=image: ndimage.uniform_filter(a, 101),
            scipy=lambda a=image: scipy.ndimage.uniform_filter(a, 101),
            **opencv(opencv=lambda a=image: cv2.blur(a, (101, 101), **mirrored)))
    if filters is not None:
        photo = large[:1024, :1024]
        row("frangi, f32 1024", 3, horus=lambda: ours.frangi(photo), skimage=lambda: filters.frangi(photo))
    mask = grey > 128
    row("label, 4096", 3, horus=lambda: ndimage.label(mask), scipy=lambda: scipy.ndimage.label(mask),
        **opencv(opencv=lambda: cv2.connectedComponents(mask.view(np.uint8), connectivity=4)))
    at = np.stack(np.mgrid[:1024, :1024]) * 0.9 + 3.3
    row("map_coordinates order 3, f32 1024", 3, horus=lambda: ndimage.map_coordinates(large[:1024, :1024], at),
        scipy=lambda: scipy.ndimage.map_coordinates(large[:1024, :1024], at))
    for name, args in (("gaussian_filter", (3.0,)), ("median_filter", (5,)), ("maximum_filter", (3,)), ("sobel", ())):
        row(f"{name} f32 64x64", 1, horus=lambda n=name, a=args: getattr(ndimage, n)(small, *a),
            scipy=lambda n=name, a=args: getattr(scipy.ndimage, n)(small, *a))

    def imported(module: str) -> Callable[[], Any]:
        return lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    row("import", 3, horus=imported("horus_image"), scipy=imported("scipy.ndimage"), numpy=imported("numpy"))


if __name__ == "__main__":
    main()
