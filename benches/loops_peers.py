#!/usr/bin/env python3
"""Steps of loops in other libraries, beside `horus-loop-bench`: what many steps take more than a few, on the device.

    python3 benches/loops_peers.py [--size 1024,4096,16384] [--steps 100,1100] [--only SUBSTRING] [--json OUT]

GPU: JAX (`lax.fori_loop`), torch.compile, CuPy (a fused kernel of its own, and slices). CPU: numba (all threads), and the
Richardson-Lucy of scikit-image. A library that is not there is left out, with a line that says so.
"""
import argparse
import json
import os
import statistics
import time

import numpy as np

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
parser = argparse.ArgumentParser()
parser.add_argument("--size", default="1024,4096,16384")
parser.add_argument("--steps", default="100,1100")
parser.add_argument("--cpu-size", default="1024,2048,4096")
parser.add_argument("--cpu-steps", default="10,60")
parser.add_argument("--only", default="", help="names that contain this")
parser.add_argument("--runs", type=int, default=5)
parser.add_argument("--budget", type=float, default=5.0, help="seconds after which no further run of a row begins")
parser.add_argument("--json", default="")
args = parser.parse_args()
SIZES, CPU_SIZES = ([int(n) for n in text.split(",")] for text in (args.size, args.cpu_size))
STEPS, CPU_STEPS = (tuple(int(n) for n in text.split(",")) for text in (args.steps, args.cpu_steps))
KAPPA, RATE = np.float32(0.05), np.float32(0.2)
RESULTS = []


def median(work, steps):
    times, begin = [], time.perf_counter()
    while not times or len(times) < args.runs and time.perf_counter() - begin < args.budget:
        start = time.perf_counter()
        work(steps)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def row(op, peer, size, bytes_per_pixel, prepare, steps):
    """`prepare(size)` yields what makes so many steps and waits for the last."""
    if args.only not in f"{op} {peer}":
        return
    try:
        work, (few, many) = prepare(size), steps
        work(few)
        work(many)  # a count of steps may be compiled in
        short, long = median(work, few), median(work, many)
        step = (long - short) / (many - few)
        if step <= 0:
            raise RuntimeError("runs differ by more than the steps take: more steps, please")
        rate = size * size * bytes_per_pixel / step / 1e9
        print(f"{op:17} {peer:18} {size:6} {step * 1e3:11.4f} ms a step {1 / step:11.1f} steps/s {rate:9.1f} GB/s", flush=True)
        RESULTS.append({"op": op, "peer": peer, "size": size, "ms_per_step": step * 1e3, "few_ms": short * 1e3})
    except Exception as error:  # what a peer cannot do is a result, too
        print(f"{op:17} {peer:18} {size:6} failed: {str(error)[:160]}", flush=True)
        RESULTS.append({"op": op, "peer": peer, "size": size, "error": str(error)[:200]})


def factors(n, dtype):
    """A column and a row whose product is h^2 f / 4."""
    x = (np.arange(n) + 1) / (n + 1)
    wave = np.sin(np.pi * x)
    return wave[:, None].astype(dtype), (wave[None, :] * (np.pi / (n + 1))**2 / 2).astype(dtype)


def noise(n):
    return np.random.default_rng(7).random((n, n), dtype=np.float32)


def spread():
    y, x = np.mgrid[-4:5, -4:5]
    psf = np.exp(-(x - 0.7 * y)**2 / 2 - (y + 0.3 * x)**2 / 8)
    return (psf / psf.sum()).astype(np.float32)


TYPES = (("jacobi", np.float32, 8), ("jacobi-f64", np.float64, 16))


def with_jax():
    import jax
    import jax.numpy as jnp
    jax.config.update("jax_enable_x64", True)
    if jax.default_backend() == "cpu":
        raise ImportError("JAX has no GPU")

    def looped(step, begin):
        run = jax.jit(lambda u, steps: jax.lax.fori_loop(0, steps, lambda _, v: step(v), u))
        return lambda steps: jax.block_until_ready(run(begin, steps))

    def jacobi(dtype):
        def prepare(n):
            column, line = (jax.device_put(a) for a in factors(n, dtype))

            def step(u):
                p = jnp.pad(u, 1)
                return (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]) * dtype(0.25) + column * line

            return looped(step, jnp.zeros((n, n), dtype))
        return prepare

    def diffusion(n):
        def step(u):
            p = jnp.pad(u, 1, mode="edge")
            slopes = p[:-2, 1:-1] - u, p[2:, 1:-1] - u, p[1:-1, :-2] - u, p[1:-1, 2:] - u
            return u + RATE * sum(jnp.exp(-(d / KAPPA)**2) * d for d in slopes)

        return looped(step, jax.device_put(noise(n)))

    for size in SIZES:
        for op, dtype, moved in TYPES:
            row(op, "jax fori_loop", size, moved, jacobi(dtype), STEPS)
        row("perona-malik", "jax fori_loop", size, 8, diffusion, STEPS)


def with_torch():
    import torch
    if not torch.cuda.is_available():
        raise ImportError("torch has no GPU")

    def looped(step, begin):
        step = torch.compile(step)

        def run(steps):
            u = begin
            for _ in range(steps):
                u = step(u)
            torch.cuda.synchronize()
        return run

    def jacobi(dtype):
        def prepare(n):
            column, line = (torch.as_tensor(a, device="cuda") for a in factors(n, dtype))

            def step(u):
                p = torch.nn.functional.pad(u, (1, 1, 1, 1))
                return (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]) * 0.25 + column * line

            return looped(step, torch.zeros((n, n), device="cuda", dtype=torch.float32 if dtype is np.float32 else torch.float64))
        return prepare

    def diffusion(n):
        kappa, rate = float(KAPPA), float(RATE)

        def step(u):
            p = torch.nn.functional.pad(u[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
            slopes = p[:-2, 1:-1] - u, p[2:, 1:-1] - u, p[1:-1, :-2] - u, p[1:-1, 2:] - u
            return u + rate * sum(torch.exp(-(d / kappa)**2) * d for d in slopes)

        return looped(step, torch.as_tensor(noise(n), device="cuda"))

    for size in SIZES:
        for op, dtype, moved in TYPES:
            row(op, "torch.compile", size, moved, jacobi(dtype), STEPS)
        row("perona-malik", "torch.compile", size, 8, diffusion, STEPS)


def with_cupy():
    import cupy as cp
    from cupyx.scipy import ndimage

    def waited(step, begin):
        def run(steps):
            u, v = begin.copy(), cp.empty_like(begin)
            for _ in range(steps):
                u, v = step(u, v), u
            cp.cuda.Device().synchronize()
        return run

    def jacobi(dtype):
        def prepare(n):
            column, line = (cp.asarray(a).ravel() for a in factors(n, dtype))
            fused = cp.ElementwiseKernel(
                "raw T u, raw T column, raw T row, int64 n", "T v",
                """long long y = i / n, x = i - y * n;
                   T sum = (y > 0 ? u[i - n] : T(0)) + (y + 1 < n ? u[i + n] : T(0))
                         + (x > 0 ? u[i - 1] : T(0)) + (x + 1 < n ? u[i + 1] : T(0));
                   v = sum * T(0.25) + column[y] * row[x];""", "jacobi")
            return waited(lambda u, v: fused(u, column, line, n, v), cp.zeros((n, n), dtype))
        return prepare

    def slices(n):
        column, line = (cp.asarray(a) for a in factors(n, np.float32))

        def step(u, v):
            v[...] = column * line
            v[1:] += cp.float32(0.25) * u[:-1]
            v[:-1] += cp.float32(0.25) * u[1:]
            v[:, 1:] += cp.float32(0.25) * u[:, :-1]
            v[:, :-1] += cp.float32(0.25) * u[:, 1:]
            return v

        return waited(step, cp.zeros((n, n), np.float32))

    @cp.fuse()
    def flow(u, a, b, c, d):
        a, b, c, d = a - u, b - u, c - u, d - u
        g = lambda s: cp.exp(-(s / KAPPA) * (s / KAPPA)) * s
        return u + RATE * (g(a) + g(b) + g(c) + g(d))

    def diffusion(n):
        def step(u, _):
            p = cp.pad(u, 1, mode="edge")
            return flow(u, p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:])

        return waited(step, cp.asarray(noise(n)))

    def lucy(n):
        psf = cp.asarray(spread())
        turned, blurred = psf[::-1, ::-1].copy(), ndimage.convolve(cp.asarray(noise(n)), psf, mode="constant")

        def step(u, _):
            ratio = blurred / (ndimage.convolve(u, psf, mode="constant") + cp.float32(1e-12))
            return u * ndimage.convolve(ratio, turned, mode="constant")

        return waited(step, cp.full((n, n), 0.5, np.float32))

    for size in SIZES:
        for op, dtype, moved in TYPES:
            row(op, "cupy one kernel", size, moved, jacobi(dtype), STEPS)
        row("jacobi", "cupy slices", size, 8, slices, STEPS)
        row("perona-malik", "cupy", size, 8, diffusion, STEPS)
        if size <= 4096:
            row("richardson-lucy", "cupy", size, 24, lucy, CPU_STEPS)


def with_numba():
    import math

    import numba

    # Sums keep their order, as those of Horus do.
    @numba.njit(parallel=True)
    def relax(u, v, column, line, steps):
        n = u.shape[0]
        quarter = u.dtype.type(0.25)
        for _ in range(steps):
            for y in numba.prange(n):
                for x in range(n):
                    north = u[y - 1, x] if y > 0 else 0 * quarter
                    south = u[y + 1, x] if y + 1 < n else 0 * quarter
                    west = u[y, x - 1] if x > 0 else 0 * quarter
                    east = u[y, x + 1] if x + 1 < n else 0 * quarter
                    v[y, x] = (north + south + west + east) * quarter + column[y] * line[x]
            u, v = v, u
        return u

    @numba.njit(parallel=True)
    def padded(u, v, column, line, steps):
        """The same with a frame of zeros, which vectorises."""
        n = u.shape[0] - 2
        quarter = u.dtype.type(0.25)
        for _ in range(steps):
            for y in numba.prange(1, n + 1):
                for x in range(1, n + 1):
                    v[y, x] = (u[y - 1, x] + u[y + 1, x] + u[y, x - 1] + u[y, x + 1]) * quarter + column[y - 1] * line[x - 1]
            u, v = v, u
        return u

    @numba.njit(parallel=True, fastmath=True)
    def diffuse(u, v, steps):
        n = u.shape[0]
        for _ in range(steps):
            for y in numba.prange(n):
                for x in range(n):
                    c = u[y, x]
                    a, b = u[max(y - 1, 0), x] - c, u[min(y + 1, n - 1), x] - c
                    d, e = u[y, max(x - 1, 0)] - c, u[y, min(x + 1, n - 1)] - c
                    v[y, x] = c + RATE * (math.exp(-(a / KAPPA)**2) * a + math.exp(-(b / KAPPA)**2) * b
                                          + math.exp(-(d / KAPPA)**2) * d + math.exp(-(e / KAPPA)**2) * e)
            u, v = v, u
        return u

    def jacobi(kernel, dtype, frame):
        def prepare(n):
            column, line = (a.ravel() for a in factors(n, dtype))
            shape = (n + frame, n + frame)
            return lambda steps: kernel(np.zeros(shape, dtype), np.zeros(shape, dtype), column, line, steps)
        return prepare

    def diffusion(n):
        begin = noise(n)
        return lambda steps: diffuse(begin.copy(), np.empty_like(begin), steps)

    peer = f"numba {numba.get_num_threads()} threads"
    for size in CPU_SIZES:
        for op, dtype, moved in TYPES:
            row(op, peer, size, moved, jacobi(relax, dtype, 0), CPU_STEPS)
            row(op, f"{peer} padded", size, moved, jacobi(padded, dtype, 2), CPU_STEPS)
        row("perona-malik", peer, size, 8, diffusion, CPU_STEPS)


def with_skimage():
    from skimage import restoration

    def lucy(n):
        image, psf = noise(n), spread()
        return lambda steps: restoration.richardson_lucy(image, psf, num_iter=steps)

    for size in CPU_SIZES:
        row("richardson-lucy", "scikit-image", size, 24, lucy, (2, 5))


for library in (with_jax, with_torch, with_cupy, with_numba, with_skimage):
    try:
        library()
    except ImportError as missing:
        print(f"{library.__name__[5:]} is left out: {missing}", flush=True)
if args.json:
    with open(args.json, "w") as file:
        json.dump({"results": RESULTS}, file)
