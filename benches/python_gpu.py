#!/usr/bin/env python3
"""Programs on arrays that are on a GPU, beside CuPy, cuCIM, PyTorch (compiled) and JAX (compiled) in one run: python benches/python_gpu.py [SIDE ...]

For each side, by default 1024 and 4096, two programs of square float32 images. The first: Gaussian of sigma 2, Sobel in x and y, hypot, Gaussian
of sigma 4, divide, edges mirrored. The second: Frangi's filter at its default scales, beside cuCIM. Horus replays a program that was recorded once (`hi.jit`); "recorded" is what
it takes if each call records it. Arrays are on the GPU before and after, each call is waited for; medians, ratios to Horus's time. What is not
installed is left out, and said so.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage

import horus_image as hi
from horus_image import ndimage as ours

SIDES = [int(side) for side in sys.argv[1:]] or [1024, 4096]


def taps(sigma: float) -> np.ndarray:
    """SciPy's Gaussian, cut at 4 sigma."""
    radius = int(4 * sigma + 0.5)
    x = np.arange(-radius, radius + 1)
    g = np.exp(-0.5 * x**2 / sigma**2)
    return (g / g.sum()).astype(np.float32)


def program(nd: Any, hypot: Callable[[Any, Any], Any], image: Any) -> Any:
    """The program in the names of SciPy."""
    smooth = nd.gaussian_filter(image, 2.0, mode="mirror")
    edges = hypot(nd.sobel(smooth, axis=1, mode="mirror"), nd.sobel(smooth, axis=0, mode="mirror"))
    return edges / nd.gaussian_filter(edges, 4.0, mode="mirror")


def kernels(made: Callable[[np.ndarray], Any]) -> list[Any]:
    """The taps of `separable`."""
    rows = (taps(2), taps(4), np.array([1, 2, 1], np.float32), np.array([-1, 0, 1], np.float32))
    return [made(row) for row in rows]


def separable(correlate: Callable[[Any, Any, int], Any], hypot: Callable[[Any, Any], Any], rows: list[Any], image: Any) -> Any:
    """The program by correlations along an axis."""
    narrow, wide, smooth, difference = rows

    def both(a: Any, down: Any, across: Any) -> Any:
        return correlate(correlate(a, down, 0), across, 1)

    smoothed = both(image, narrow, narrow)
    edges = hypot(both(smoothed, smooth, difference), both(smoothed, difference, smooth))
    return edges / both(edges, wide, wide)


def median_ms(call: Callable[[], Any]) -> float:
    for _ in range(5):
        call()
    times: list[float] = []
    end = time.perf_counter() + 1
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 1000):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


Made = tuple[Callable[[], Any], Callable[[Any], np.ndarray]]


def on_cupy(pixels: np.ndarray, function: Callable[[Any], Any]) -> Made:
    """A function of an array of CuPy, waited for."""
    import cupy

    image = cupy.asarray(pixels)
    cupy.cuda.Device().synchronize()

    def call() -> Any:
        out = function(image)
        cupy.cuda.Device().synchronize()
        return out

    return call, cupy.asnumpy


def of_horus(pixels: np.ndarray, function: Callable[[Any], Any]) -> Made:
    """A function of Horus, whose result CuPy takes when it is there."""
    import cupy

    return on_cupy(pixels, lambda image: cupy.from_dlpack(function(image)))


def jitted(pixels: np.ndarray) -> Made:
    return of_horus(pixels, hi.jit(lambda image: program(ours, np.hypot, image)))


def recorded(pixels: np.ndarray) -> Made:
    return of_horus(pixels, lambda image: program(ours, np.hypot, hi.asarray(image)))


def of_cupy(pixels: np.ndarray) -> Made:
    import cupy
    from cupyx.scipy import ndimage

    return on_cupy(pixels, lambda image: program(ndimage, cupy.hypot, image))


def of_cucim(pixels: np.ndarray) -> Made:
    import cupy
    from cucim.skimage._vendored import ndimage

    return on_cupy(pixels, lambda image: program(ndimage, cupy.hypot, image))


def of_torch(pixels: np.ndarray) -> Made:
    import torch
    import torch.nn.functional as F

    image = torch.from_numpy(pixels).cuda()[None, None]

    rows = kernels(lambda row: torch.from_numpy(row).cuda())

    def correlate(a: Any, kernel: Any, axis: int) -> Any:
        r = len(kernel) // 2
        weight = kernel.reshape((1, 1, -1, 1) if axis == 0 else (1, 1, 1, -1))
        return F.conv2d(F.pad(a, (0, 0, r, r) if axis == 0 else (r, r, 0, 0), mode="reflect"), weight)

    # Rounded to TF32 the results of convolutions would not be comparable.
    torch.backends.cudnn.allow_tf32 = False
    compiled = torch.compile(lambda a: separable(correlate, torch.hypot, rows, a))

    def call() -> Any:
        with torch.inference_mode():
            out = compiled(image)
        torch.cuda.synchronize()
        return out

    return call, lambda out: out[0, 0].cpu().numpy()


def of_jax(pixels: np.ndarray) -> Made:
    import jax
    import jax.numpy as jnp

    if not any(device.platform == "gpu" for device in jax.devices()):
        raise ImportError("JAX has no GPU")
    image = jax.device_put(pixels)

    def correlate(a: Any, kernel: list[float], axis: int) -> Any:
        r = len(kernel) // 2
        padded = jnp.pad(a, ((r, r), (0, 0)) if axis == 0 else ((0, 0), (r, r)), mode="reflect")
        # Sums of slices, which XLA fuses: several times faster than its convolution of one channel.
        extent = a.shape[axis]
        parts = [jax.lax.slice_in_dim(padded, i, i + extent, axis=axis) * w for i, w in enumerate(kernel)]
        return sum(parts[1:], parts[0])

    rows = kernels(lambda row: row.tolist())
    compiled = jax.jit(lambda a: separable(correlate, jnp.hypot, rows, a))
    return lambda: compiled(image).block_until_ready(), np.asarray


def jitted_frangi(pixels: np.ndarray) -> Made:
    return of_horus(pixels, hi.jit(hi.filters.frangi))


def recorded_frangi(pixels: np.ndarray) -> Made:
    return of_horus(pixels, lambda image: hi.filters.frangi(hi.asarray(image)))


def frangi_of_cucim(pixels: np.ndarray) -> Made:
    from cucim.skimage.filters import frangi

    return on_cupy(pixels, frangi)


Make = Callable[[np.ndarray], Made]


def compare(title: str, pixels: np.ndarray, want: np.ndarray | None, peers: dict[str, Make]) -> None:
    """A line for each of the peers, Horus first."""
    print(title, flush=True)
    found: dict[str, float] = {}
    for name, make in peers.items():
        try:
            call, fetch = make(pixels)
            out = fetch(call())
            # Without SciPy's result, beside Horus's.
            want = out if want is None else want
            off = float(np.abs(out - want).max())
            found[name] = median_ms(call)
        except ImportError as error:
            print(f"{name}: left out: {error}")
            continue
        print(f"{name:8} {found[name]:9.3f} ms   {found[name] / found['horus']:6.2f}x   off by {off:.1e}", flush=True)


def main() -> None:
    draw = np.random.default_rng(1)
    for side in SIDES:
        pixels = draw.random((side, side), dtype=np.float32)
        want = program(scipy.ndimage, np.hypot, pixels.astype(np.float64))
        peers: dict[str, Make] = {"horus": jitted, "recorded": recorded, "cupy": of_cupy, "cucim": of_cucim, "torch": of_torch, "jax": of_jax}
        compare(f"gaussian, sobel, hypot, gaussian, divide: {side}x{side}", pixels, want, peers)
        compare(f"frangi: {side}x{side}", pixels, None, {"horus": jitted_frangi, "recorded": recorded_frangi, "cucim": frangi_of_cucim})


if __name__ == "__main__":
    main()
