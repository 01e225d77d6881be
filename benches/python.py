#!/usr/bin/env python3
"""Times of `horus_image.ndimage` beside SciPy's, and OpenCV's where it is installed, in one run: python benches/python.py

NumPy arrays in, NumPy arrays out; medians of several calls, ratios to Horus's time. Run it on an idle machine, after
`pip install dist/horus_image-*.whl scipy opencv-python-headless`.
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

from horus_image import ndimage

try:
    import cv2
except ImportError:
    cv2 = None


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

    row("gaussian_filter sigma 3, f32 4096", 3, horus=lambda: ndimage.gaussian_filter(large, 3.0),
        scipy=lambda: scipy.ndimage.gaussian_filter(large, 3.0),
        **opencv(opencv=lambda: cv2.GaussianBlur(large, (25, 25), 3.0, **mirrored)))
    row("median_filter 5, u8 4096", 3, horus=lambda: ndimage.median_filter(grey, 5),
        scipy=lambda: scipy.ndimage.median_filter(grey, 5), **opencv(opencv=lambda: cv2.medianBlur(grey, 5)))
    row("median_filter 5, f32 4096", 3, horus=lambda: ndimage.median_filter(large, 5),
        scipy=lambda: scipy.ndimage.median_filter(large, 5), **opencv(opencv=lambda: cv2.medianBlur(large, 5)))
    row("grey_dilation 15x15, u8 4096", 3, horus=lambda: ndimage.grey_dilation(grey, 15),
        scipy=lambda: scipy.ndimage.grey_dilation(grey, 15),
        **opencv(opencv=lambda: cv2.dilate(grey, np.ones((15, 15), np.uint8))))
    for name, args in (("gaussian_filter", (3.0,)), ("median_filter", (5,)), ("maximum_filter", (3,)), ("sobel", ())):
        row(f"{name} f32 64x64", 1, horus=lambda n=name, a=args: getattr(ndimage, n)(small, *a),
            scipy=lambda n=name, a=args: getattr(scipy.ndimage, n)(small, *a))

    def imported(module: str) -> Callable[[], Any]:
        return lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    row("import", 3, horus=imported("horus_image"), scipy=imported("scipy.ndimage"), numpy=imported("numpy"))


if __name__ == "__main__":
    main()
