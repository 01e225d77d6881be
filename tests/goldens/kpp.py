#!/usr/bin/env python3
"""Writes fields/kpp_*.npy: an ocean, its densities by each equation of state, and its vertical mixing, column by column, by NumPy in f64
from the published equations. See README.md."""
from math import atan, exp, pi, sin, sqrt
from pathlib import Path

import numpy as np

GOLDENS = Path(__file__).resolve().parent / "fields"
# Layers in metres, and the middles and the lower ends of them.
LAYERS = np.array([10.0, 10, 20, 20, 40, 60, 80, 120, 180])
ENDS = np.cumsum(LAYERS)
DEPTHS = ENDS - LAYERS / 2
D, H, W = len(LAYERS), 5, 7
G, KAPPA = 9.806, 0.4


def bar(depth):
    return 0.059808 * (np.exp(-0.025 * depth) - 1) + 0.100766 * depth + 2.28405e-7 * depth**2


# Equations of state: powers of salinity, temperature and pressure with their coefficients.
def terms(table, s, t, p):
    return sum(c * s**i * t**j * p**k for (i, j, k), c in table.items())


# McDougall and others (2003); decibar.
OVER = {
    (0, 0, 0): 9.99843699e+2, (0, 1, 0): 7.35212840e+0, (0, 2, 0): -5.45928211e-2, (0, 3, 0): 3.98476704e-4,
    (1, 0, 0): 2.96938239e+0, (1, 1, 0): -7.23268813e-3, (2, 0, 0): 2.12382341e-3,
    (0, 0, 1): 1.04004591e-2, (0, 2, 1): 1.03970529e-7, (1, 0, 1): 5.18761880e-6,
    (0, 0, 2): -3.24041825e-8, (0, 2, 2): -1.23869360e-11,
}
UNDER = {
    (0, 0, 0): 1.0, (0, 1, 0): 7.28606739e-3, (0, 2, 0): -4.60835542e-5, (0, 3, 0): 3.68390573e-7, (0, 4, 0): 1.80809186e-10,
    (1, 0, 0): 2.14691708e-3, (1, 1, 0): -9.27062484e-6, (1, 3, 0): -1.78343643e-10,
    (1.5, 0, 0): 4.76534122e-6, (1.5, 2, 0): 1.63410736e-9,
    (0, 0, 1): 5.30848875e-6, (0, 3, 2): -3.03175128e-16, (0, 1, 3): -1.27934137e-17,
}
# UNESCO (1981), at the surface; bulk moduli in bar of UNESCO and of Jackett and McDougall (1995), table A1.
SURFACE = {
    (0, 0, 0): 999.842594, (0, 1, 0): 6.793952e-2, (0, 2, 0): -9.095290e-3, (0, 3, 0): 1.001685e-4, (0, 4, 0): -1.120083e-6,
    (0, 5, 0): 6.536332e-9, (1, 0, 0): 8.24493e-1, (1, 1, 0): -4.0899e-3, (1, 2, 0): 7.6438e-5, (1, 3, 0): -8.2467e-7,
    (1, 4, 0): 5.3875e-9, (1.5, 0, 0): -5.72466e-3, (1.5, 1, 0): 1.0227e-4, (1.5, 2, 0): -1.6546e-6, (2, 0, 0): 4.8314e-4,
}
UNESCO = {
    (0, 0, 0): 19652.21, (0, 1, 0): 148.4206, (0, 2, 0): -2.327105, (0, 3, 0): 1.360477e-2, (0, 4, 0): -5.155288e-5,
    (0, 0, 1): 3.239908, (0, 1, 1): 1.43713e-3, (0, 2, 1): 1.16092e-4, (0, 3, 1): -5.77905e-7,
    (0, 0, 2): 8.50935e-5, (0, 1, 2): -6.12293e-6, (0, 2, 2): 5.2787e-8,
    (1, 0, 0): 54.6746, (1, 1, 0): -0.603459, (1, 2, 0): 1.09987e-2, (1, 3, 0): -6.1670e-5,
    (1, 0, 1): 2.2838e-3, (1, 1, 1): -1.0981e-5, (1, 2, 1): -1.6078e-6,
    (1, 0, 2): -9.9348e-7, (1, 1, 2): 2.0816e-8, (1, 2, 2): 9.1697e-10,
    (1.5, 0, 0): 7.944e-2, (1.5, 1, 0): 1.6483e-2, (1.5, 2, 0): -5.3009e-4, (1.5, 0, 1): 1.91075e-4,
}
JACKETT = {
    (0, 0, 0): 1.965933e4, (0, 1, 0): 1.444304e2, (0, 2, 0): -1.706103, (0, 3, 0): 9.648704e-3, (0, 4, 0): -4.190253e-5,
    (0, 0, 1): 3.186519, (0, 1, 1): 2.212276e-2, (0, 2, 1): -2.984642e-4, (0, 3, 1): 1.956415e-6,
    (0, 0, 2): 2.102898e-4, (0, 1, 2): -1.202016e-5, (0, 2, 2): 1.394680e-7,
    (1, 0, 0): 5.284855e1, (1, 1, 0): -3.101089e-1, (1, 2, 0): 6.283263e-3, (1, 3, 0): -5.084188e-5,
    (1, 0, 1): 6.704388e-3, (1, 1, 1): -1.847318e-4, (1, 2, 1): 2.059331e-7,
    (1, 0, 2): -2.040237e-6, (1, 1, 2): 6.128773e-8, (1, 2, 2): 6.207323e-10,
    (1.5, 0, 0): 3.886640e-1, (1.5, 1, 0): 9.085835e-3, (1.5, 2, 0): -4.619924e-4, (1.5, 0, 1): 1.480266e-4,
}


def compressed(modulus):
    return lambda s, t, p: terms(SURFACE, s, t, 0) / (1 - p / terms(modulus, s, t, p))


# Check values: McDougall and others (2003); Gill (1982), table A3.1; Jackett and McDougall (1995).
for s, t, p, rho in ((35, 25, 2000, 1031.654229), (20, 20, 1000, 1017.726743), (40, 12, 8000, 1062.928258)):
    assert abs(terms(OVER, s, t, p) / terms(UNDER, s, t, p) - rho) < 5e-7
for s, t, p, rho in ((0, 5, 0, 999.96675), (0, 5, 1000, 1044.12802), (35, 5, 0, 1027.67547), (35, 25, 1000, 1062.53817)):
    assert abs(compressed(UNESCO)(s, t, p) - rho) < 5e-6
assert abs(compressed(JACKETT)(35.5, 3.0, 300.0) - 1041.83267) < 5e-6

# Temperatures and salinities found at each 250 m, of which POP takes ten and five.
FOUND = {0: (-2, 29, 28.5, 37.0), 250: (-2, 19, 33.7, 36.6)}


def fitted(depth):
    """Bryan and Cox (1972): the cubic polynomial at one depth, and its limits."""
    coldest, warmest, freshest, saltiest = FOUND[depth // 250 * 250]
    p = bar(depth)
    t, s = (a.ravel() for a in np.meshgrid(np.linspace(coldest, warmest, 10), np.linspace(freshest, saltiest, 5), indexing="ij"))
    # Bryden (1973).
    theta = t - (
        p * (3.6504e-4 + 8.3198e-5 * t - 5.4065e-7 * t**2 + 4.0274e-9 * t**3) + p * (s - 35) * (1.7439e-5 - 2.9778e-7 * t)
        + p**2 * (8.9309e-7 - 3.1628e-8 * t + 2.1987e-10 * t**2) - 4.1057e-9 * (s - 35) * p**2 + p**3 * (-1.6056e-10 + 5.0484e-12 * t)
    )
    rho0, theta0, s0 = compressed(UNESCO)(s.mean(), t.mean(), p), theta.mean(), s.mean()
    powers = [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (3, 0), (1, 2), (2, 1), (0, 3)]
    columns = np.stack([(theta - theta0)**i * (s - s0)**j for i, j in powers], axis=1)
    scale = np.abs(columns).max(axis=0)
    c = np.linalg.lstsq(columns / scale, compressed(UNESCO)(s, t, p) - rho0, rcond=None)[0] / scale
    return lambda s, t: rho0 + sum(c * (t - theta0)**i * (s - s0)**j for c, (i, j) in zip(c, powers)), (coldest, warmest), (freshest, saltiest)


FITS = [fitted(depth) for depth in DEPTHS]


def density(equation, s, t, k, step_s=0, step_t=0):
    """Of water at the pressure of level k, temperature and salinity limited; steps are taken afterwards."""
    (low, high), (fresh, salt) = {
        "mwjf": ((-2, 999), (0, 999)), "jmcd": ((-2, 40), (0, 42)), "polynomial": FITS[k][1:], "linear": ((-2, 40), (0, 42)),
    }[equation]
    s, t, p = min(max(s, fresh), salt) + step_s, min(max(t, low), high) + step_t, bar(DEPTHS[k])
    if equation == "mwjf":
        return terms(OVER, s, t, 10 * p) / terms(UNDER, s, t, 10 * p)
    if equation == "jmcd":
        return compressed(JACKETT)(s, t, p)
    if equation == "polynomial":
        return FITS[k][0](s, t)
    return 1025.022 + 0.764 * (s - 35) - 0.255 * (t - 19)


def by_temperature(equation, s, t, k):
    return density(equation, s, t, k, step_t=1e-200j).imag / 1e-200


def by_salinity(equation, s, t, k):
    return density(equation, s, t, k, step_s=1e-200j).imag / 1e-200


def scales(d, friction, b):
    """Velocity scales of momentum and of tracers: Large, McWilliams and Doney (1994), 13, B1, B2."""
    z = KAPPA * d * b / (friction**3 + 1e-16)
    if z >= 0:
        return KAPPA * friction / (1 + 5 * z), KAPPA * friction / (1 + 5 * z)
    wm = (1 - 16 * z)**0.25 * friction if z >= -0.2 else (1.26 * friction**3 - 8.38 * KAPPA * d * b)**(1 / 3)
    ws = (1 - 16 * z)**0.5 * friction if z >= -1 else (-28.86 * friction**3 - 98.96 * KAPPA * d * b)**(1 / 3)
    return KAPPA * wm, KAPPA * ws


def left(depth):
    """Of sunlight in water of type IB, POP's default: `jerlov_water_type = 3` in sw_absorption.F90 of POP 2, with the numbers of Paulson
    and Simpson (1977), table 2."""
    return 0 if depth > 200 else 0.67 * exp(-depth / 1.0) + 0.33 * exp(-depth / 17)


class Column:
    """One column of water above `floor` levels, by levels from 1, as in POP. `shears[k]` and `largest[k]` are squares of differences
    of velocity from the level below, and from the uppermost."""

    def __init__(self, floor, t, s, shears, largest, friction, heat, salt, sunlight, coriolis):
        self.floor, self.shears, self.largest, self.friction = floor, shears, largest, friction
        self.coriolis = coriolis
        self.z = {k + 1: DEPTHS[k] for k in range(D)}
        self.z[0] = 0.0
        self.end = {k + 1: ENDS[k] for k in range(D)} | {0: 0.0}
        water = range(1, floor + 1)
        rho = lambda of, at: density("mwjf", s[of - 1], t[of - 1], at - 1)
        self.from_surface = {k: G * (1 - rho(1, k) / rho(k, k)) for k in water}
        self.from_below = {k: G * (1 - rho(k, k + 1) / rho(k + 1, k + 1)) for k in range(1, floor)} | {floor: 0.0}
        if floor:
            self.bo = -G * (by_temperature("mwjf", s[0], t[0], 0) * heat + by_salinity("mwjf", s[0], t[0], 0) * salt) / rho(1, 1)
            self.sun = -G * by_temperature("mwjf", s[0], t[0], 0) * sunlight / rho(1, 1)
        self.interior(t, s)

    def force(self, depth):
        b = self.bo + self.sun * (1 - left(depth))
        return (b + 1e-14, True) if b >= 0 else (b, False)

    def interior(self, t, s):
        """Internal waves, shear (27, 28), double diffusion (30 to 34)."""
        f = self.floor
        gap = lambda k: self.z[k + 1] - self.z[k] if k < D else 0.0
        ri = [self.from_below[k] * gap(k) / (self.shears[k] + 1e-14) for k in range(1, f + 1)]
        if f >= 3:
            padded = [ri[0]] + ri + [ri[-1] if f == D else 0.0]
            ri = [0.25 * padded[i - 1] + 0.5 * padded[i] + 0.25 * padded[i + 1] for i in range(1, f + 1)]
        self.visc, self.heat, self.salt = ({k: 0.0 for k in range(D + 2)} for _ in range(3))
        self.kinds = set()
        for k in range(1, f):
            shear = 5e-3 * (1 - (min(max(ri[k - 1], 0), 0.8) / 0.8)**2)**3
            self.visc[k] = 1e-4 + shear
            alpha, beta = (
                sum(of("mwjf", s[i], t[i], i) for i in (k - 1, k)) / 2 for of in (by_temperature, by_salinity)
            )
            a, b = -alpha * (t[k - 1] - t[k]), beta * (s[k - 1] - s[k])
            heat, salt = 0.0, 0.0
            if a > b > 0:
                salt = 1e-4 * (1 - (min(a / b, 2.55) - 1) / 1.55)**3
                heat = 0.7 * salt
                self.kinds.add("fingers")
            elif 0 > a > b:
                heat = 1.5e-6 * 0.909 * exp(4.6 * exp(-0.54 * (b / a - 1)))
                salt = heat * (0.15 * a / b if a / b <= 0.5 else 1.85 * a / b - 0.85)
                self.kinds.add("layers")
            self.heat[k], self.salt[k] = 1e-5 + shear + heat, 1e-5 + shear + salt

    def bulk(self, k):
        """The bulk Richardson number (21, 23)."""
        d = self.z[k]
        gap = self.z[k + 1] - d if k < D else self.end[D] - d
        n = sqrt(max(self.from_below[k], 0.0) / gap + 0.5e-22 / gap)
        ws = scales(0.1 * d, self.friction, self.force(d)[0])[1]
        turbulent = d * ws * n * sqrt(0.2 / 98.96 / 0.1) / KAPPA**2 / 0.3 * max(2.1 - 200 * n, 1.7)
        return (d - self.z[1]) * self.from_surface[k] / (self.largest[k] + turbulent + 1e-14)

    def boundary(self):
        """The depth of the boundary layer before neighbours are regarded."""
        if self.floor == 0:
            return 0.0
        h = self.z[self.floor]
        rib = {-1: 0.0, 0: 0.0, 1: 0.0}
        for k in range(2, self.floor + 1):
            rib[k] = self.bulk(k)
            if rib[k] > 0.3:
                # The parabola with the values at levels k - 1 and k and the slope of the line above, by distance from k - 1.
                dz, slope = self.z[k] - self.z[k - 1], (rib[k - 1] - rib[k - 2]) / (self.z[k - 1] - self.z[k - 2])
                a = (rib[k] - rib[k - 1] - slope * dz) / dz**2
                linear = slope - 2 * a * self.z[k - 1]
                root = slope**2 - 4 * a * (rib[k - 1] - 0.3)
                if root <= 0 or abs(linear) > 1e-8 and abs(a / linear) <= 1e-8:
                    h = self.z[k - 1] + dz * (0.3 - rib[k - 1]) / (rib[k] - rib[k - 1])
                    self.kinds.add("line")
                else:
                    h = self.z[k - 1] + (-slope + sqrt(root)) / (2 * a)
                    self.kinds.add("parabola")
                break
        if self.coriolis is None:
            return h
        # The Monin-Obukhov depth where it meets the depth for which it holds, at the deepest place; Ekman's below the first stable level.
        length = {}
        for k in range(1, D + 1):
            b, stable = self.force(self.z[k])
            length[k] = self.friction**3 / KAPPA / b if stable else self.z[D]
        length[1] = max(length[1], self.z[1] + 1e-12)
        limit = self.z[D]
        for k in range(2, D + 1):
            if length[k] <= self.z[k] and length[k - 1] > self.z[k - 1]:
                over, under = length[k - 1] - self.z[k - 1], length[k] - self.z[k]
                limit = self.z[k - 1] + (self.z[k] - self.z[k - 1]) * over / (over - under)
        stable = [k for k in range(2, D + 1) if self.force(self.z[k])[1]]
        ekman = max(self.z[stable[0]], 0.7 * self.friction / (abs(self.coriolis) + 1e-10)) if stable else self.z[D]
        if min(limit, ekman) < h:
            self.kinds.add("obukhov" if limit < ekman else "ekman")
        return min(h, limit, ekman)

    def mix(self, h):
        """Coefficients with those of the boundary layer of depth h (10, 11, 18, 20, appendix D), and convection below it."""
        f = self.floor
        results = [[0.0] * D for _ in range(4)]
        if f == 0:
            return results
        below = max(next(k for k in range(1, D + 1) if self.z[k] >= h), 2)
        b, stable = self.force(h)
        self.kinds.add("stable" if stable else "unstable")
        # The layer with the depth in it.
        upper = self.end[below - 1] >= h
        layer = below - 1 if upper else below
        self.kinds.add("upper" if upper else "lower")
        tracers = lambda d: scales(min(d, 0.1 * h), self.friction, b)[1]
        momentum = lambda d: scales(min(d, 0.1 * h), self.friction, b)[0]
        for i, (v, w) in enumerate(((self.visc, momentum), (self.heat, tracers), (self.salt, tracers))):
            width = lambda k: self.end[k] - self.end[k - 1] if k <= D else self.end[D]
            part = (h - self.end[layer - 1]) / width(layer)
            down, up = (v[layer - 1] - v[layer]) / width(layer), (v[layer] - v[layer + 1]) / width(layer + 1)
            slope = (1 - part) * max(down, 0) + part * max(up, 0)
            value = v[layer] + slope * (self.end[layer] - h)
            at_h = w(0.1 * h) + 1e-12
            g1 = value / h / at_h
            d1 = min(-slope / at_h + (5 * b / (self.friction**4 + 1e-18) * value if stable else 0), 0)

            def k_profile(d):
                x = d / h
                return h * w(d) * (x + x**2 * (x - 2 + (3 - 2 * x) * g1 + (x - 1) * d1))

            for k in range(1, f):
                k_here = v[k]
                if k < below:
                    k_here = k_profile(self.end[k])
                    if k == below - 1:
                        x = (h - self.z[k]) / (self.z[below] - self.z[k])
                        beside = v[k] if upper else k_here
                        k_here = (1 - x) * v[k] + x * ((1 - x)**2 * k_profile(self.z[k]) + x**2 * beside)
                elif self.from_below[k] <= 0:
                    k_here += 0.1
                    self.kinds.add("convection")
                results[i][k - 1] = k_here
        for k in range(1, min(below, f)):
            if not stable and not (upper and k == below - 1):
                results[3][k - 1] = 10 * KAPPA * (98.96 * KAPPA * 0.1)**(1 / 3) / (tracers(self.end[k]) * h + 1e-14)
        return results


def mixing(t, s, u, v, x_stress, y_stress, heat, salt, sunlight, coriolis, floor):
    """All columns. Neighbours beyond the edges are the cells at the edges."""
    d, rows, columns = t.shape
    clip = lambda j, i: (min(max(j, 0), rows - 1), min(max(i, 0), columns - 1))
    # Velocities at corners that touch land are 0.
    u, v = u.copy(), v.copy()
    for j, i in np.ndindex(rows, columns):
        water = int(min(floor[clip(j + dj, i + di)] for dj in (0, 1) for di in (0, 1)))
        u[water:, j, i] = v[water:, j, i] = 0
    each = {}
    for j, i in np.ndindex(rows, columns):
        corners = [clip(j - dj, i - di) for dj in (0, 1) for di in (0, 1)]
        square = lambda k, of, at: (u[k][at] - u[of][at])**2 + (v[k][at] - v[of][at])**2
        shears = {k + 1: sum(square(k, min(k + 1, d - 1), at) for at in corners) / 4 for k in range(d)}
        largest = {k + 1: max(square(k, 0, at) for at in corners) for k in range(d)}
        friction = (x_stress[j, i]**2 + y_stress[j, i]**2)**0.25
        each[j, i] = Column(
            int(floor[j, i]), t[:, j, i], s[:, j, i], shears, largest, friction, heat[j, i], salt[j, i], sunlight[j, i],
            None if coriolis is None else coriolis[j, i],
        )
    raw = {at: column.boundary() for at, column in each.items()}
    depth, results = np.zeros((rows, columns)), np.zeros((4, d, rows, columns))
    for (j, i), column in each.items():
        if column.floor:
            beside = [clip(*at) for at in ((j, i + 1), (j, i - 1), (j + 1, i), (j - 1, i))]
            h = 0.5 * raw[j, i] + 0.125 * sum(raw[at] if floor[at] else raw[j, i] for at in beside)
            depth[j, i] = max(min(h, column.z[column.floor]), column.z[1])
            results[:, :, j, i] = column.mix(depth[j, i])
    return results, depth, each


z, y, x = np.meshgrid(np.arange(D), np.arange(H), np.arange(W), indexing="ij")
floor = np.clip((5 * x[0] + 3 * y[0] + 2) % 11, 0, D).astype(float)
deep = DEPTHS[:, None, None]
# Some columns are mixed deep.
calm = (x % 5 == 1) & (y % 2 == 1)
t = 3 + 15 * np.exp(-np.where(calm, np.clip(deep - 100, 0.001 * deep, None), deep) / (60 + 25 * x)) * np.where(x > 3, 0.3, 1)
t += np.where(calm, 0, 0.8 * np.sin(1.9 * z + 1.3 * y + x) * (y != 1))
s = 34.5 + np.where(calm, 0, 0.4 * np.sin(0.6 * z + 0.9 * x) + 0.1 * np.cos(y + z))
# Too cold, and too fresh, for the equations.
t[2:5, 4] -= 16
s[0, :, 5] = -0.3
u = 0.4 * np.exp(-deep / 60) * np.sin(0.8 * x + y) + 0.02 * np.cos(z + 0.5 * x)
v = 0.3 * np.exp(-deep / 90) * np.cos(0.5 * x - y) + 0.02 * np.sin(0.9 * z + y)
x_stress, y_stress = 1.2e-4 * np.sin(0.9 * x[0] + 0.4 * y[0] + 0.3), 0.8e-4 * np.cos(0.7 * y[0] - 0.2 * x[0])
weak = np.select([x[0] > 3, x[0] == 1], [0.04, -1.0], 1.0)
heat, salt = 4e-5 * weak * np.sin(1.1 * x[0] + 0.8 * y[0] + 1), 5e-7 * weak * np.cos(x[0] + 2 * y[0])
# Negative in places: it counts in the buoyancy (`bldepth`), and heats no water (`add_sw_absorb`).
sunlight = 5e-5 * abs(weak) * np.clip(np.sin(0.6 * x[0] - 0.5 * y[0]), -0.05, None)
coriolis = 1.4e-4 * np.sin(np.radians(60 * (y[0] / 2 - 1) + x[0]))
# No number where there is no water.
dry = z >= floor
for field in (t, s):
    field[dry] = np.nan
u[dry], v[dry] = np.nan, np.nan

given = [t, s, u, v, x_stress, y_stress, heat, salt, sunlight, coriolis, floor]


def bend(temperature):
    """Of the bulk Richardson numbers of a column that passes 0.3 at level 4: how far they are from a line."""
    t[3, 1, 3] = temperature
    column = mixing(*given)[2][1, 3]
    two, three, four = (column.bulk(k) for k in (2, 3, 4))
    return (four - three) / (DEPTHS[3] - DEPTHS[2]) - (three - two) / (DEPTHS[2] - DEPTHS[1])


# That column gets a line, through which no parabola goes.
low, high = t[3, 1, 3], t[2, 1, 3]
assert bend(low) > 0 > bend(high)
for _ in range(60):
    middle = (low + high) / 2
    low, high = (middle, high) if bend(middle) > 0 else (low, middle)

results, depth, columns = mixing(*given)
kinds = [sum(kind in column.kinds for column in columns.values()) for kind in (
    "fingers", "layers", "line", "parabola", "obukhov", "ekman", "stable", "unstable", "upper", "lower", "convection")]
print("columns of each kind:", kinds)
assert min(kinds) >= 1 and np.isfinite(results).all()
# Far from where a rounding decides.
random = np.random.default_rng(1)
near, near_depth, _ = mixing(*(f * (1 + 1e-13 * random.standard_normal(f.shape)) for f in given[:-1]), floor)
assert np.abs(near - results).max() < 1e-8 * np.abs(results).max() and np.abs(near_depth - depth).max() < 1e-7

np.save(GOLDENS / "kpp_given.npy", np.concatenate([f.reshape(-1, H, W) for f in given]))
np.save(GOLDENS / "kpp_mixing.npy", np.concatenate([results.reshape(-1, H, W), depth[None]]))
free, free_depth, _ = mixing(*given[:-2], None, floor)
np.save(GOLDENS / "kpp_free.npy", np.concatenate([free[0], free_depth[None]]))
# Columns alone.
alone = []
for j, i in ((0, 0), (1, 3), (2, 6), (4, 2)):
    one, one_depth, _ = mixing(*(f[..., j:j + 1, i:i + 1] for f in given))
    alone.append(np.append(one.ravel(), one_depth))
np.save(GOLDENS / "kpp_alone.npy", np.array(alone))
states = np.zeros((3, 3, D, H, W))
for e, equation in enumerate(("jmcd", "polynomial", "linear")):
    for at in np.argwhere(~dry):
        k, j, i = at
        for f, of in enumerate((density, by_temperature, by_salinity)):
            states[e, f, k, j, i] = of(equation, s[k, j, i], t[k, j, i], k)
np.save(GOLDENS / "kpp_states.npy", states.reshape(-1, H, W))
