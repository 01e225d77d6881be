#!/usr/bin/env python3
"""Writes fields/*.npy: what the programs `hirlam` and `pop` compute, by NumPy in f64. See README.md."""
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

def tendencies(ps, T, u, v, q):
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
    return ps_t, T_t, u_t, v_t, q_t


GOLDENS.mkdir(exist_ok=True)
now = (ps, T, u, v, q)
for name, array in zip(("surface_pressure", "temperature", "u", "v", "humidity"), tendencies(*now)):
    print(f"{name}: {np.abs(array).min():.3e} .. {np.abs(array).max():.3e}")
    np.save(GOLDENS / f"hirlam_{name}.npy", array)

# A forecast of three steps of 10 s: Euler, leapfrog, leapfrog.
DT, FOURTH, FILTER = 10.0, 2e12, 0.05
from_edge = np.minimum(np.minimum(np.arange(ROWS), np.arange(ROWS)[::-1])[:, None], np.minimum(np.arange(COLUMNS), np.arange(COLUMNS)[::-1]))
alpha = np.where(from_edge < 8, 1 - np.tanh(from_edge / 2), 0.0)


def del2(a):
    return (at(a, 0, 1) - 2 * a + at(a, 0, -1)) / hx**2 + (at(a, 1, 0) - 2 * a + at(a, -1, 0)) / hy**2


def leap(before, now, interval):
    after = []
    for i, (a, a_t) in enumerate(zip(before, tendencies(*now))):
        new = a + interval * (a_t - (FOURTH * del2(del2(a)) if i > 0 else 0))
        after.append((1 - alpha) * new + alpha * (ps, T, u, v, q)[i])
    return after


before, now = now, leap(now, now, DT)
for _ in range(2):
    after = leap(before, now, 2 * DT)
    before, now = [n + FILTER * (a - 2 * n + b) for b, n, a in zip(before, now, after)], after
moved = [np.abs(a - b).max() for a, b in zip(now, (ps, T, u, v, q))]
print("changes in three steps:", moved)
np.save(GOLDENS / "hirlam_forecast.npy", np.concatenate([now[0][None], *now[1:]]))

# The ocean: from the equations of McDougall and others (2003), A1 to A3, of Large and others (1994), 30 to 34, and, for salt fingers, of
# Danabasoglu and others (2006). Powers of salinity, temperature and pressure with their coefficients.
NUMERATOR = {
    (0, 0, 0): 9.99843699e+2, (0, 1, 0): 7.35212840e+0, (0, 2, 0): -5.45928211e-2, (0, 3, 0): 3.98476704e-4,
    (1, 0, 0): 2.96938239e+0, (1, 1, 0): -7.23268813e-3, (2, 0, 0): 2.12382341e-3,
    (0, 0, 1): 1.04004591e-2, (0, 2, 1): 1.03970529e-7, (1, 0, 1): 5.18761880e-6,
    (0, 0, 2): -3.24041825e-8, (0, 2, 2): -1.23869360e-11,
}
DENOMINATOR = {
    (0, 0, 0): 1.0, (0, 1, 0): 7.28606739e-3, (0, 2, 0): -4.60835542e-5, (0, 3, 0): 3.68390573e-7, (0, 4, 0): 1.80809186e-10,
    (1, 0, 0): 2.14691708e-3, (1, 1, 0): -9.27062484e-6, (1, 3, 0): -1.78343643e-10,
    (1.5, 0, 0): 4.76534122e-6, (1.5, 2, 0): 1.63410736e-9,
    (0, 0, 1): 5.30848875e-6, (0, 3, 2): -3.03175128e-16, (0, 1, 3): -1.27934137e-17,
}


def density(s, t, p):
    over, under = (sum(c * s**i * t**j * p**k for (i, j, k), c in terms.items()) for terms in (NUMERATOR, DENOMINATOR))
    return over / under


# The check values of the paper.
for s, t, p, rho in ((35, 25, 2000, 1031.654229), (20, 20, 1000, 1017.726743), (40, 12, 8000, 1062.928258)):
    assert abs(density(s, t, p) - rho) < 5e-7

z, y, x = np.meshgrid(np.arange(5.0), np.arange(7.0), np.arange(9.0), indexing="ij")
t = 16 + (y - 3) * 0.7 * z + 0.3 * np.sin(x * 1.7)
s = 34.5 + (x - 4) * 0.15 * z + 0.05 * np.cos(y * 2.3)
depth = 5 + 40 * z**2
# POP's pressure, in bar and here in decibar.
p = 10 * (0.059808 * (np.exp(-0.025 * depth) - 1) + 0.100766 * depth + 2.28405e-7 * depth**2)
rho = density(s, t, p)
# Derivatives by a step along the imaginary axis: all digits.
by_t = density(s, t + 1e-200j, p).imag / 1e-200
by_s = density(s + 1e-200j, t, p).imag / 1e-200

# A parcel of the surface, or of the level above, brought to the pressure of a level.
g = 9.806
from_surface = g * (1 - density(s[0], t[0], p) / rho)
from_below = np.zeros_like(rho)
from_below[:-1] = g * (1 - density(s[:-1], t[:-1], p[1:]) / rho[1:])

# What temperature and salt add to stability between a level and the one below.
heat, salt = np.zeros_like(rho), np.zeros_like(rho)
alpha = -(by_t[:-1] + by_t[1:]) / 2 * (t[:-1] - t[1:])
beta = (by_s[:-1] + by_s[1:]) / 2 * (s[:-1] - s[1:])
kinds = np.zeros(3, int)
fingers = []
for at in np.ndindex(*alpha.shape):
    a, b = alpha[at], beta[at]
    if a > b > 0:
        kinds[0] += 1
        fingers.append(a / b)
        salt[at] = 1e-4 * (1 - (min(a / b, 2.55) - 1) / (2.55 - 1)) ** 3
        heat[at] = 0.7 * salt[at]
    elif 0 > a > b:
        kinds[1] += 1
        R = a / b
        heat[at] = 1.5e-6 * 0.909 * np.exp(4.6 * np.exp(-0.54 * (1 / R - 1)))
        salt[at] = heat[at] * (0.15 * R if R <= 0.5 else 1.85 * R - 0.85)
    else:
        kinds[2] += 1
# Of each kind, and fingers from strong to none.
assert kinds.min() > 5 and min(fingers) < 1.3 and any(1.6 < R < 2.3 for R in fingers) and max(fingers) > 2.55
print(kinds, np.sort(fingers))
pop = dict(density=rho, by_temperature=by_t, by_salinity=by_s, from_surface=from_surface, from_below=from_below, of_heat=heat, of_salt=salt)
for name, array in pop.items():
    np.save(GOLDENS / f"pop_{name}.npy", array)
