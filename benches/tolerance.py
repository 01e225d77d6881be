#!/usr/bin/env python3
"""Linear filters within a tolerance: `horus_image` beside OpenCV in one run, with the errors of both.

    python benches/tolerance.py --size 4096 --threads 2

NumPy arrays in, NumPy arrays out. Calls take turns and the least time of each counts; beside it is the least time of the
process on all processors, which a busy machine disturbs less. Errors are the largest of all pixels of the middle, by
`max|pixel| * sum|taps|`, against sums in float64 (`scipy.ndimage.correlate` of float64 arrays).

Needs `pip install dist/horus_image-*.whl scipy opencv-python-headless`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import scipy.ndimage as sp

import horus_image as hi
from horus_image import filters as hf
from horus_image import ndimage as hn


def least(calls: dict[str, Callable[[], Any]], runs: int) -> dict[str, tuple[float, float]]:
    """The least milliseconds of each call, of the clock and of all processors together."""
    found = {name: (float("inf"), float("inf")) for name in calls}
    for _ in range(runs):
        for name, call in calls.items():
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            took = 1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu)
            found[name] = min(found[name][0], took[0]), min(found[name][1], took[1])
    return found


def within(t: float, call: Callable[[], Any]) -> Callable[[], Any]:
    def near() -> Any:
        with hi.within(t):
            return call()

    return near


def error(result: Any, image: Any, taps: Any) -> float:
    """The error of the middle of a result."""
    middle = tuple(slice(n // 2 - 64, n // 2 + 64) for n in image.shape)
    around = tuple(slice(n // 2 - 64 - k, n // 2 + 64 + k) for n, k in zip(image.shape, taps.shape, strict=True))
    inner = tuple(slice(k, k + 128) for k in taps.shape)
    exact = sp.correlate(image[around].astype(np.float64), taps)[inner]
    return float(np.abs(result[middle] - exact).max() / (np.abs(image).max() * np.abs(taps).sum()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--taps", default="9,11,15,21,31,43,63,101", help="sizes of filters")
    parser.add_argument("--conv2d", type=int, default=0, help="also conv2d of a picture of this size")
    options = parser.parse_args()
    cv2.setNumThreads(options.threads)
    rng = np.random.default_rng(1)
    image = rng.random((options.size, options.size), np.float32)
    with hi.session(device="cpu", threads=options.threads):
        print("| taps | direct | within 1e-5 | OpenCV | OpenCV / within | direct / within | error, within | error, OpenCV |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for size in map(int, options.taps.split(",")):
            taps = rng.standard_normal((size, size)).astype(np.float32).astype(np.float64)
            single = taps.astype(np.float32)
            exact = lambda taps=taps: hn.correlate(image, taps, mode="mirror")  # noqa: E731
            calls = {"direct": exact, "within": within(1e-5, exact)}
            calls["cv"] = lambda single=single: cv2.filter2D(image, -1, single)
            results = {name: call() for name, call in calls.items()}
            took = least(calls, options.runs)
            cells = [f"{wall:.1f} ({cpu:.0f})" for wall, cpu in took.values()]
            ratio = lambda of: f"{of[0]:.2f} ({of[1]:.2f})"  # noqa: E731
            by = [tuple(a / b for a, b in zip(took[name], took["within"], strict=True)) for name in ("cv", "direct")]
            errors = [f"{error(results[name], image, taps):.1e}" for name in ("within", "cv")]
            print("|", " | ".join([f"{size}x{size}", *cells, *map(ratio, by), *errors]), "|", flush=True)
        if options.conv2d:
            picture = rng.random((options.conv2d, options.conv2d), np.float32)
            exact = lambda: hf.conv2d(picture)  # noqa: E731
            near = within(1e-4, exact)
            off = np.abs(exact() - near()).max()
            took = least({"direct": exact, "within": near}, 3)
            print(f"conv2d of {options.conv2d}: {took}, ratio", [a / b for a, b in zip(took["direct"], took["within"], strict=True)])
            print(f"largest difference of the response: {off:.1e}")


if __name__ == "__main__":
    main()
