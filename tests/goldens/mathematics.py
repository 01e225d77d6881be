#!/usr/bin/env python3
"""Writes mathematics_*.npy with mpmath, and prints the coefficients of horus-base/src/dtype/math. See README.md.

A row of a golden holds the operands, the result rounded to f64, and what the exact result is more than that,
in units in the last place: exact functions of numbers all over the range of f64, and near the edges of what is easy."""
import random
import struct
import sys
from pathlib import Path

import mpmath as mp
import numpy as np

HERE = Path(__file__).resolve().parent
mp.mp.prec = 1500
ROWS = 400


def bits(v):
    return struct.unpack("<Q", struct.pack("<d", v))[0]


def number(b):
    return struct.unpack("<d", struct.pack("<Q", b))[0]


def exact(function, *operands):
    return function(*(mp.mpf(v) for v in operands))


def ulp(v):
    return max(2.0 ** (np.frexp(abs(v))[1] - 53) if v else 0.0, 5e-324)


def row(function, *operands):
    """Operands, nearest result, and the rest in ulp; nothing where the result is no finite number of full precision."""
    v = exact(function, *operands)
    if v == 0 or abs(v) > mp.mpf(2) ** 1023 or abs(v) < mp.mpf(2) ** -1021:
        return None
    near = float(v)
    return [*operands, near, float((v - mp.mpf(near)) / mp.mpf(ulp(near)))]


def table(name, function, draw):
    rows = []
    while len(rows) < ROWS:
        made = row(function, *draw())
        if made is not None:
            rows.append(made)
    np.save(HERE / f"mathematics_{name}.npy", np.array(rows, dtype=np.float64))


def golden():
    rnd = random.Random(7)

    def wide(low=-1022, high=1023):
        return rnd.choice((-1, 1)) * rnd.uniform(1, 2) * 2.0 ** rnd.randint(low, high - 1)

    def angle():
        quarter = float(mp.pi / 2 * rnd.randint(-(2**30), 2**30))
        return rnd.choice((wide(-30, 5), wide(), quarter, rnd.uniform(-10, 10), 6381956970095103 * 2.0**797))

    def base():
        return abs(rnd.choice((wide(), rnd.uniform(0, 3), 1 + wide(-52, -2), rnd.randint(1, 2**52) * 5e-324)))

    def pair():
        a = wide()
        return rnd.choice(((a, wide()), (a, a * rnd.uniform(0.2, 5)), (rnd.uniform(-3, 3), rnd.uniform(-3, 3))))

    def power():
        x = base()
        y = rnd.choice((rnd.uniform(-3, 3), rnd.uniform(-708, 708) / float(mp.log(mp.mpf(x)) or 1)))
        return (x, y)

    table("exp", mp.exp, lambda: (rnd.choice((rnd.uniform(-708, 709), rnd.uniform(-1, 1), wide(-60, 0))),))
    table("log", mp.log, lambda: (base(),))
    table("pow", mp.power, power)
    table("sin", mp.sin, lambda: (angle(),))
    table("cos", mp.cos, lambda: (angle(),))
    table("atan2", mp.atan2, pair)
    table("hypot", lambda a, b: mp.sqrt(a * a + b * b), pair)


def interpolant(function, low, high, degree):
    """At Chebyshev's nodes, nearly the best polynomial; lowest coefficient first."""
    n = degree + 1
    nodes = [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    a = mp.matrix(n, n)
    for i, x in enumerate(nodes):
        for j in range(n):
            a[i, j] = x**j
    return [float(c) for c in mp.lu_solve(a, mp.matrix([function(x) for x in nodes]))]


def coefficients():
    mp.mp.prec = 300
    tiny = mp.mpf(10) ** -40
    half_log = mp.log(2) / 2 * mp.mpf("1.0001")
    squares = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.0001")
    eighth = (mp.pi / 4 * mp.mpf("1.000001")) ** 2
    tangent = (mp.sqrt(2) - 1) ** 2 * mp.mpf("1.0001")

    def of_root(function, limit):
        return lambda z: function(mp.sqrt(z)) if z > tiny else limit

    def exp(r):
        return (mp.exp(r) - 1 - r) / r**2 if abs(r) > tiny else mp.mpf(1) / 2

    atanh = of_root(lambda s: (mp.atanh(s) / s - 1) / s**2, mp.mpf(1) / 3)
    sin = of_root(lambda r: (mp.sin(r) / r - 1) / r**2, -mp.mpf(1) / 6)
    cos = of_root(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4, mp.mpf(1) / 24)
    atan = of_root(lambda u: (mp.atan(u) / u - 1) / u**2, -mp.mpf(1) / 3)

    def show(name, values, kind=float):
        print(name, [str(kind(v)) for v in values])

    show("single exp (and the exponential of its pow)", interpolant(exp, -half_log, half_log, 4))
    show("double exp", interpolant(exp, -half_log, half_log, 10))
    show("single log", single_log(), np.float32)
    show("double log", interpolant(atanh, 0, squares, 8))
    show("single pow", interpolant(atanh, 0, squares, 4))
    fifth = of_root(lambda s: (atanh(s * s) - mp.mpf(1) / 3) / s**2, mp.mpf(1) / 5)
    show("double pow", interpolant(fifth, 0, squares, 9))
    show("single sine", interpolant(sin, 0, eighth, 3))
    show("single cosine", interpolant(cos, 0, eighth, 3))
    show("double sine", interpolant(sin, 0, eighth, 6))
    show("double cosine", interpolant(cos, 0, eighth, 6))
    show("single atan2", interpolant(atan, 0, mp.mpf(1), 11))
    show("double atan2", interpolant(atan, 0, tangent, 11))


def single_log(degree=7):
    """(log(1 + f) - f + f^2 / 2) / f^3, weighted by what it adds, coefficient after coefficient rounded to f32."""
    x = np.cos(np.pi * (np.arange(600) + 0.5) / 600) / 3
    exact_q = np.array([float((mp.log1p(v) - v + mp.mpf(v) ** 2 / 2) / mp.mpf(v) ** 3) for v in x])
    weight = np.abs(x) ** 3 + 1e-9
    done = []
    while len(done) <= degree:
        powers = np.stack([x**i for i in range(len(done), degree + 1)], 1)
        rest = exact_q - sum(c * x**i for i, c in enumerate(done))
        emphasis = np.ones_like(x)
        for _ in range(80):
            w = weight * np.sqrt(emphasis)
            c = np.linalg.lstsq(powers * w[:, None], rest * w, rcond=None)[0]
            error = np.abs((powers @ c - rest) * weight)
            emphasis *= error / error.max() + 1e-3
            emphasis /= emphasis.max()
        done.append(float(np.float32(c[0])))
    return done


if __name__ == "__main__":
    coefficients() if sys.argv[1:] == ["coefficients"] else golden()
