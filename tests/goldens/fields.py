#!/usr/bin/env python3
"""Writes fields/*.npy: what the program `hirlam` computes, by NumPy in f64. See README.md."""
from pathlib import Path

import numpy as np

GOLDENS = Path(__file__).resolve().parent / "fields"
LEVELS, ROWS, COLUMNS = 7, 11, 14
R, CP, RADIUS, ROTATION = 287.04, 1004.64, 6.371e6, 7.292e-5


def at(f, dj, di):
    """The neighbour so many rows north and columns east, as at the edge beyond it."""
    j = np.clip(np.arange(f.shape[-2]) + dj, 0, f.shape[-2] - 1)
    i = np.clip(np.arange(f.shape[-1]) + di, 0, f.shape[-1] - 1)
    return f[..., j[:, None], i]


# Half levels k = 0 .. LEVELS.
s = np.arange(LEVELS + 1) / LEVELS
eta = 3 * s**2 - 2 * s**3
A, B = 101325 * (eta - eta**2), eta**2
# Rows: of temperature and u, and of v, in metres and radians.
step = np.radians(0.1)
north_of = np.pi / 4 + (np.arange(ROWS) - (ROWS - 1) / 2) * step
hx = (RADIUS * step * np.cos(north_of))[:, None]
hx_v = (RADIUS * step * np.cos(north_of + step / 2))[:, None]
hy = RADIUS * step
f = (2 * ROTATION * np.sin(north_of + step / 2))[:, None]

# The weather.
y, x = np.meshgrid(2 * np.pi * np.arange(ROWS) / ROWS, 2 * np.pi * np.arange(COLUMNS) / COLUMNS, indexing="ij")
z = ((np.arange(LEVELS) + 0.5) / LEVELS)[:, None, None]
ground = 3000 * (1 + np.sin(x) * np.cos(y))
ps = 101325 * np.exp(-ground / (R * 285)) + 600 * np.sin(x + y)
T = 212 + 75 * z + 3 * np.cos(x) * np.sin(y)
u = 5 + 30 * (1 - z) + 6 * np.cos(x) * np.sin(y)
v = 5 * np.sin(x) * (z + 0.5) + 2 * np.cos(y)
q = z**3 * (0.009 + 0.003 * np.sin(x - y))

# Masses and pressures, mass fluxes, divergence: level by level.
half = [A[k] + B[k] * ps for k in range(LEVELS + 1)]
dp = [half[k + 1] - half[k] for k in range(LEVELS)]
p = [(half[k + 1] + half[k]) / 2 for k in range(LEVELS)]
Tv = T * (1 + 0.608 * q)
dp_u = [(d + at(d, 0, 1)) / 2 for d in dp]
dp_v = [(d + at(d, 1, 0)) / 2 for d in dp]
dp_z = [(d + at(d, 0, 1) + at(d, 1, 0) + at(d, 1, 1)) / 4 for d in dp]
U = [u[k] * dp_u[k] * hy for k in range(LEVELS)]
V = [v[k] * dp_v[k] * hx_v for k in range(LEVELS)]
area = hx * hy
D = [(U[k] - at(U[k], 0, -1) + V[k] - at(V[k], -1, 0)) / area for k in range(LEVELS)]
ps_t = -sum(D)

# The flux of mass through half level k + 1, from above; nothing passes the top and the ground.
sunk, flux = np.zeros_like(ps), [np.zeros_like(ps)]
for k in range(LEVELS):
    sunk = sunk + D[k]
    flux.append(-B[k + 1] * ps_t - sunk)
assert np.abs(flux[-1]).max() < 1e-13
# Where it is wanted.
flux_u = [(w + at(w, 0, 1)) / 2 for w in flux]
flux_v = [(w + at(w, 1, 0)) / 2 for w in flux]


def vertical(a, w, k):
    up = w[k] * (a[k] - a[k - 1]) if k > 0 else 0
    down = w[k + 1] * (a[k + 1] - a[k]) if k < LEVELS - 1 else 0
    return (up + down) / 2


# Geopotential from the ground up.
phi, under = [None] * LEVELS, ground
for k in reversed(range(LEVELS)):
    thick = R * Tv[k] * dp[k] / p[k]
    phi[k] = under + thick / 2
    under = under + thick

T_t, u_t, v_t, q_t = (np.zeros_like(T) for _ in range(4))
above = np.zeros_like(ps)
for k in range(LEVELS):
    b = (B[k] + B[k + 1]) / 2
    # R Tv times the difference of the logarithm of pressure.
    force_u = R * (Tv[k] + at(Tv[k], 0, 1)) / 2 * b * (at(ps, 0, 1) - ps) / ((p[k] + at(p[k], 0, 1)) / 2)
    force_v = R * (Tv[k] + at(Tv[k], 1, 0)) / 2 * b * (at(ps, 1, 0) - ps) / ((p[k] + at(p[k], 1, 0)) / 2)

    def advected(a, add_u=0.0, add_v=0.0):
        east, north = U[k] * (at(a, 0, 1) - a - add_u), V[k] * (at(a, 1, 0) - a - add_v)
        return (east + at(east, 0, -1) + north + at(north, -1, 0)) / 2 / (area * dp[k])

    omega = -(above + D[k] / 2) / p[k]
    T_t[k] = R / CP * Tv[k] * omega - advected(T[k], force_u / CP, force_v / CP) - vertical(T, flux, k) / dp[k]
    q_t[k] = -advected(q[k]) - vertical(q, flux, k) / dp[k]
    above = above + D[k]

    kinetic = ((u[k]**2 + at(u[k], 0, -1)**2) / 2 + (hx_v * v[k]**2 + at(hx_v * v[k]**2, -1, 0)) / 2 / hx) / 2
    head = phi[k] + kinetic
    vorticity = ((at(v[k], 0, 1) - v[k]) * hy - (at(u[k] * hx, 1, 0) - u[k] * hx)) / (hx_v * hy)
    Z = (f + vorticity) / dp_z[k]
    zv = Z * (V[k] + at(V[k], 0, 1)) / 2
    zu = Z * (U[k] + at(U[k], 1, 0)) / 2
    u_t[k] = ((zv + at(zv, -1, 0)) / 2 - (at(head, 0, 1) - head) - force_u) / hx - vertical(u, flux_u, k) / dp_u[k]
    v_t[k] = (-(zu + at(zu, 0, -1)) / 2 - (at(head, 1, 0) - head) - force_v) / hy - vertical(v, flux_v, k) / dp_v[k]

GOLDENS.mkdir(exist_ok=True)
for name, array in dict(surface_pressure=ps_t, temperature=T_t, u=u_t, v=v_t, humidity=q_t).items():
    print(f"{name}: {np.abs(array).min():.3e} .. {np.abs(array).max():.3e}")
    np.save(GOLDENS / f"hirlam_{name}.npy", array)
