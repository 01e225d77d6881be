#!/usr/bin/env python3
"""Writes loops/*.npy: what the programs `jacobi` and `perona_malik` compute, by NumPy in f64. See README.md."""
from pathlib import Path

import numpy as np
from skimage import io

HERE = Path(__file__).resolve().parent
GOLDENS = HERE / "loops"


def repeated(step, u, most, tolerance=None):
    """The state after `most` steps, or the first multiple of ten of them whose last changed less than the tolerance."""
    for done in range(1, most + 1):
        before, u = u, step(u)
        change = np.abs(u - before).max()
        if tolerance is not None and done % 10 == 0 and change < tolerance:
            break
    return u, done, change


def jacobi(n):
    h = 1 / (n + 1)
    x = (np.arange(n) + 1) * h
    f = 2 * np.pi**2 * np.sin(np.pi * x)[:, None] * np.sin(np.pi * x)[None, :]

    def step(u):
        p = np.pad(u, 1)
        return (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] + h * h * f) / 4

    return step


def jacobi_in_space(d, n):
    h = 1 / (n + 1)
    x, z = (np.arange(n) + 1) * h, (np.arange(d) + 1) * h
    f = 3 * np.pi**2 * np.sin(np.pi * z)[:, None, None] * np.sin(np.pi * x)[:, None] * np.sin(np.pi * x)

    def step(u):
        p = np.pad(u, 1)
        c = slice(1, -1)
        around = p[:-2, c, c] + p[2:, c, c] + p[c, :-2, c] + p[c, 2:, c] + p[c, c, :-2] + p[c, c, 2:]
        return (around + h * h * f) / 6

    return step


def perona_malik(kappa, rate):
    def step(u):
        p = np.pad(u, ((1, 1), (1, 1)) + ((0, 0),) * (u.ndim - 2), mode="edge")
        slopes = p[:-2, 1:-1] - u, p[2:, 1:-1] - u, p[1:-1, :-2] - u, p[1:-1, 2:] - u
        return u + rate * sum(np.exp(-(d / kappa)**2) * d for d in slopes)

    return step


def save(name, array):
    np.save(GOLDENS / f"{name}.npy", np.asarray(array, np.float64))


def ends(name, step, u, most, tolerance):
    """Number of steps and the change of the last, which must not hang on roundings."""
    state, done, change = repeated(step, u, most, tolerance)
    earlier = repeated(step, u, done - 10)[2]
    assert change < tolerance * 0.995 and earlier > tolerance * 1.005 and done < most, (earlier, change)
    save(name, [[done, change]])


GOLDENS.mkdir(exist_ok=True)
begin = np.zeros((37, 37))
save("jacobi", repeated(jacobi(37), begin, 200)[0])
save("jacobi_in_space", repeated(jacobi_in_space(9, 13), np.zeros((9, 13, 13)), 60)[0])
ends("jacobi_ends", jacobi(37), begin, 1000, 9.8e-4)

# The formula of the eigenvector gives the same.
h = 1 / 38
wave = np.sin(np.pi * (np.arange(37) + 1) * h)
rho = np.cos(np.pi * h)
closed = h * h * np.pi**2 / 2 / (1 - rho) * (1 - rho**200) * np.outer(wave, wave)
assert np.abs(closed - repeated(jacobi(37), begin, 200)[0]).max() < 1e-14

picture = io.imread(HERE.parent.parent / "assets" / "small.png")
unit = (picture / np.float32(255)).astype(np.float32).astype(np.float64)
save("perona_malik", repeated(perona_malik(0.05, 0.2), unit, 15)[0])
ends("perona_malik_ends", perona_malik(0.05, 0.2), unit, 1000, 3e-4)
