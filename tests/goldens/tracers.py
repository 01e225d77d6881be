#!/usr/bin/env python3
"""Writes fields/tracers.npy: temperature and salinity after a step of advection, of horizontal and of vertical diffusion, cell by cell
and column by column, by NumPy in f64 from the equations of POP's reference manual. Takes the ocean and the mixing of kpp.py. See
README.md."""
from pathlib import Path

import numpy as np

GOLDENS = Path(__file__).resolve().parent / "fields"
LAYERS = np.array([10.0, 10, 20, 20, 40, 60, 80, 120, 180])
DEPTHS = np.cumsum(LAYERS) - LAYERS / 2
D, H, W = len(LAYERS), 5, 7
RADIUS, DIFFUSIVITY, SOUTH, STEP = 6.37122e6, 900.0, 28.0, 0.25

file, fields, first = np.load(GOLDENS / "kpp_given.npy"), [], 0
for levels in (D, D, D, D, 1, 1, 1, 1, 1, 1, 1):
    fields.append(file[first:first + levels].squeeze())
    first += levels
t, s, u, v, _, _, heat, salt, sunlight, _, floor = fields
_, vdc_t, vdc_s, nonlocal_, _ = (np.load(GOLDENS / "kpp_mixing.npy")[i * D:(i + 1) * D] for i in range(5))
floor = floor.astype(int)

# The sphere: lengths of sides, and what lies between middles, of cell (j, i); of corners to its north-east.
lat = np.radians(SOUTH + STEP * np.arange(H))
half = np.radians(STEP / 2)
length = RADIUS * np.radians(STEP)
HTE, HTN = lambda j: length, lambda j: length * np.cos(lat[j] + half)
HUS, HUW = lambda j: length * np.cos(lat[j]), lambda j: length
DYU, DXU = lambda j: length, lambda j: length * np.cos(lat[j] + half)
TAREA = lambda j: length * length * (np.cos(lat[j] + half) + np.cos(lat[j] - half)) / 2


def wet(k, j, i):
    return 0 <= j < H and 0 <= i < W and k < floor[j, i]


def corner(f, k, j, i):
    """At the north-east of cell (j, i): 0 if one of the four cells around is land."""
    return f[k, j, i] if all(wet(k, j + dj, i + di) for dj in (0, 1) for di in (0, 1)) else 0.0


def passing(k, j, i):
    """Volumes per second and metre of height through the eastern and the northern side of a cell."""
    return (
        (corner(u, k, j, i) * DYU(j) + (corner(u, k, j - 1, i) * DYU(j - 1) if j > 0 else 0.0)) / 2,
        (corner(v, k, j, i) * DXU(j) + (corner(v, k, j, i - 1) * DXU(j) if i > 0 else 0.0)) / 2,
    )


def sides(k, j, i):
    """The four neighbours of a cell: which, what flows there, and the length of the side over the distance."""
    yield k, j, i + 1, passing(k, j, i)[0], HTE(j) / HUS(j)
    yield k, j, i - 1, -passing(k, j, i - 1)[0] if i > 0 else 0.0, HTE(j) / HUS(j)
    yield k, j + 1, i, passing(k, j, i)[1], HTN(j) / HUW(j)
    yield k, j - 1, i, -passing(k, j - 1, i)[1] if j > 0 else 0.0, HTN(j - 1) / HUW(j - 1) if j > 0 else 0.0


def light(depth):
    """Of water of type IB, POP's default."""
    return 0.0 if depth > 200 else 0.67 * np.exp(-depth / 1.0) + 0.33 * np.exp(-depth / 17)


def step(before, now, vdc, flux, sun, interval):
    after = np.zeros((D, H, W))
    # POP's add_sw_absorb.
    sun = np.maximum(sun, 0)
    for j, i in np.ndindex(H, W):
        n = floor[j, i]
        if n == 0:
            continue
        # Water that rises through the upper face of each cell makes up for what leaves through the sides below.
        rises = np.zeros(n + 1)
        for k in reversed(range(n)):
            rises[k] = rises[k + 1] - LAYERS[k] * sum(flow for *_, flow, _ in sides(k, j, i)) / TAREA(j)
        rate = np.zeros(n)
        for k in range(n):
            for _, y, x, flow, shape in sides(k, j, i):
                if wet(k, y, x):
                    rate[k] -= flow * (now[k, j, i] + now[k, y, x]) / 2 / TAREA(j)
                    rate[k] += DIFFUSIVITY * shape * (before[k, y, x] - before[k, j, i]) / TAREA(j)
                else:
                    assert flow == 0
            over = now[k - 1, j, i] if k > 0 else now[0, j, i]
            rate[k] -= rises[k] * (over + now[k, j, i]) / 2 / LAYERS[k]
            if k < n - 1:
                rate[k] += rises[k + 1] * (now[k, j, i] + now[k + 1, j, i]) / 2 / LAYERS[k]
        # Down through the lower face of each cell: without gradients; by gradients, in a matrix.
        matrix = np.zeros((n, n))
        down = np.zeros(n + 1)
        down[0] = flux[j, i] + sun[j, i]
        for k in range(n - 1):
            down[k + 1] = vdc[k, j, i] * nonlocal_[k, j, i] * flux[j, i] + sun[j, i] * light(LAYERS[:k + 1].sum())
            conducts = vdc[k, j, i] / (DEPTHS[k + 1] - DEPTHS[k])
            for row, sign in ((k, -1), (k + 1, 1)):
                matrix[row, k] += sign * conducts / LAYERS[row]
                matrix[row, k + 1] -= sign * conducts / LAYERS[row]
        rate += (down[:-1] - down[1:]) / LAYERS[:n]
        # (after - before) / interval = rate + matrix after
        after[:n, j, i] = np.linalg.solve(np.eye(n) - interval * matrix, before[:n, j, i] + interval * rate)
    return after


# Fields now: those of before, changed.
z, y, x = np.meshgrid(np.arange(D), np.arange(H), np.arange(W), indexing="ij")
t_now, s_now = t + 0.05 * np.cos(0.7 * z + y - 0.8 * x), s + 0.01 * np.sin(z - 0.9 * y + x)
none = np.zeros((H, W))
results = [
    step(t, t_now, vdc_t, heat, sunlight, 7200.0), step(s, s_now, vdc_s, salt, none, 7200.0),
    step(t, t, vdc_t, heat, sunlight, 3600.0), step(s, s, vdc_s, salt, none, 3600.0),
]
for name, before, after in zip(("t", "s", "t, Euler", "s, Euler"), (t, s, t, s), results):
    change = np.abs(after - before)[z < floor]
    print(f"{name}: changes up to {change.max():.3e}, median {np.median(change):.3e}")
    assert np.isfinite(after).all()
np.save(GOLDENS / "tracers.npy", np.concatenate(results))
