"""Ten calls of SciPy and scikit-image on a picture, with the time of each. No line is of Horus, which serves them if it is asked to:

    python ten_calls.py 4096
    python -m horus_image.accel --profile ten_calls.py 4096
"""

# mypy: disallow-untyped-calls=False

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage as ndi  # type: ignore[import-untyped]
from skimage import filters, morphology, transform


def timed(name: str, call: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call, and its seconds."""
    began = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - began
    print(f"{name:24} {seconds * 1e3:10.1f} ms")
    return result, seconds


def main(size: int) -> None:
    y, x = np.mgrid[:size, :size]
    rng = np.random.default_rng(1)
    waves = np.sin(x / 23.0) * np.sin(y / 31.0) + 0.3 * rng.standard_normal((size, size))
    picture = np.clip(waves * 60.0 + 110.0, 0, 255).astype(np.uint8)

    times = []

    def step(name: str, call: Callable[[], Any]) -> Any:
        result, seconds = timed(name, call)
        times.append(seconds)
        return result

    smooth = step("gaussian", lambda: filters.gaussian(picture, 2.0))
    edges = step("sobel", lambda: filters.sobel(smooth))
    sharp = step("unsharp_mask", lambda: filters.unsharp_mask(picture, 3.0))
    clean = step("median_filter", lambda: ndi.median_filter(picture, 5))
    even = step("opening", lambda: morphology.opening(clean, morphology.disk(7)))
    threshold = step("threshold_otsu", lambda: filters.threshold_otsu(clean))
    mask = step("binary_fill_holes", lambda: ndi.binary_fill_holes(clean > threshold))
    depth = step("distance_transform_edt", lambda: ndi.distance_transform_edt(mask))
    _labels, count = step("label", lambda: ndi.label(mask))
    half = step("rescale", lambda: transform.rescale(smooth, 0.5, anti_aliasing=True))
    print(f"{'together':24} {sum(times) * 1e3:10.1f} ms")

    assert edges.dtype == sharp.dtype == half.dtype == np.float64 and even.dtype == np.uint8
    assert count > 0 and depth.max() > 1.0


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 256)
