#!/usr/bin/env python3
"""Calls of the Python package on arrays of CuPy, beside CuPy, in one run; medians, each call waited for.

    python3 benches/gpu_arrays.py [deconvolution] [map] [label] [--runs 5]

deconvolution: ten steps of Richardson-Lucy, 512x1024x1024 with a point spread function of 31x61x61, beside two programs of `cupyx.scipy.fft`
with transforms of the function kept: dark beyond the edges (the same result), and periodic without padding. map: a Gaussian of many small
pictures. label: components of noise and of blobs.
"""
import argparse
import statistics
import time

import cupy as cp
import cupyx.scipy.fft as fft
import cupyx.scipy.ndimage
import numpy as np

import horus_image as hi
from horus_image import ndimage, restoration

parser = argparse.ArgumentParser()
parser.add_argument("what", nargs="*", default=["deconvolution", "map", "label"])
parser.add_argument("--runs", type=int, default=5)
args = parser.parse_args()
RNG = cp.random.default_rng(0)


def ms(work):
    times = []
    for _ in range(args.runs + 1):
        start = time.perf_counter()
        result = work()
        cp.cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times[1:]), result


def row(name, ours, **peers):
    told = [f"{peer} {time:.3f} ms, ratio {time / ours:.2f}" for peer, time in peers.items()]
    print(f"{name}: {ours:.3f} ms; {'; '.join(told)}", flush=True)


def deconvolution(shape=(512, 1024, 1024), size=(31, 61, 61), steps=10):
    image = RNG.random(shape, dtype=cp.float32)
    at = np.meshgrid(*[np.linspace(-3, 3, n) for n in size], indexing="ij")
    psf = np.exp(-sum(a**2 for a in at) / 2)
    psf = cp.asarray(psf / psf.sum(), cp.float32)

    def by_transforms(extents):
        padded = extents != shape
        forth, back = fft.rfftn(psf, extents), fft.rfftn(psf[::-1, ::-1, ::-1], extents)
        inside = tuple(slice((m - 1) // 2, (m - 1) // 2 + n) if padded else slice(None) for m, n in zip(size, shape))
        estimate = cp.full_like(image, 0.5)
        for _ in range(steps):
            again = fft.irfftn(fft.rfftn(estimate, extents) * forth, extents)[inside]
            ratio = image / (again + 1e-12)
            estimate *= fft.irfftn(fft.rfftn(ratio, extents) * back, extents)[inside]
        return cp.clip(estimate, -1, 1)

    ours, near = ms(lambda: restoration.richardson_lucy(image, psf, steps))
    extents = tuple(fft.next_fast_len(n + m - 1, real=True) for n, m in zip(shape, size))
    padded, exact = ms(lambda: by_transforms(extents))
    print("largest difference", float(cp.abs(cp.from_dlpack(near) - exact).max()))
    del near, exact
    periodic, _ = ms(lambda: by_transforms(shape))
    row("deconvolution", ours, padded=padded, periodic=periodic)


def small_pictures():
    for count, side in ((1000, 64), (500, 256), (200, 512)):
        pictures = RNG.random((count, side, side), dtype=cp.float32)
        width = round((count * side * side) ** 0.5)
        one = RNG.random((width, width), dtype=cp.float32)
        mapped, _ = ms(lambda: hi.map(lambda picture: ndimage.gaussian_filter(picture, 2.0), pictures))
        call, _ = ms(lambda: ndimage.gaussian_filter(pictures, (0, 2, 2)))
        picture, _ = ms(lambda: ndimage.gaussian_filter(one, 2.0))
        peer, _ = ms(lambda: cupyx.scipy.ndimage.gaussian_filter(pictures, (0, 2, 2)))
        row(f"map, {count} of {side}", mapped, one_call=call, one_picture=picture, cupy=peer)
        host = cp.asnumpy(pictures)
        mapped, _ = ms(lambda: hi.map(lambda picture: ndimage.gaussian_filter(picture, 2.0), host))
        picture, _ = ms(lambda: ndimage.gaussian_filter(cp.asnumpy(one), 2.0))
        peer, _ = ms(lambda: cp.asnumpy(cupyx.scipy.ndimage.gaussian_filter(cp.asarray(host), (0, 2, 2))))
        row(f"the same from arrays of NumPy", mapped, one_picture=picture, cupy=peer)


def labels(side=4096):
    noise = RNG.random((side, side)) > 0.5
    blobs = cupyx.scipy.ndimage.gaussian_filter(RNG.random((side, side), dtype=cp.float32), 6) > 0.5
    for name, mask in (("noise", noise), ("blobs", blobs)):
        ours, found = ms(lambda: ndimage.label(mask))
        peer, want = ms(lambda: cupyx.scipy.ndimage.label(mask))
        assert found[1] == want[1]
        row(f"label, {name}", ours, cupy=peer)


for name, work in (("deconvolution", deconvolution), ("map", small_pictures), ("label", labels)):
    if name in args.what:
        work()
