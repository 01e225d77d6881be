#!/usr/bin/env python3
"""Writes the golden arrays of this folder with numpy and scipy, independently of Horus. See README.md."""
import math
from pathlib import Path

import numpy as np
from scipy import ndimage as ndi

HERE = Path(__file__).resolve().parent
ASSETS = HERE.parent.parent / "assets"

# In the order of the first axis of every array that has one result per border.
MODES = ("mirror", "reflect", "nearest", "grid-wrap", "grid-constant")
CVAL, CVAL_U8 = 0.75, 77
EPS = 1e-3


def save(name, array):
    np.save(HERE / f"{name}.npy", np.ascontiguousarray(array))


def per_border(filter_of, cval=CVAL):
    """One result per border, stacked."""
    return np.stack([filter_of(mode=m, cval=cval) for m in MODES])


def exact_sin_cos(degrees):
    """Like math.sin and math.cos, but exact at multiples of 90 degrees."""
    quarter = {0: (0.0, 1.0), 90: (1.0, 0.0), 180: (0.0, -1.0), 270: (-1.0, 0.0)}.get(degrees % 360)
    t = math.radians(degrees)
    return quarter or (math.sin(t), math.cos(t))


def gauss_1d(s, r, order=0):
    """The Gaussian, normalised to sum 1, or its derivative: taps rounded to f32, returned in f64."""
    x = np.arange(-r, r + 1, dtype=np.float64)
    g = np.exp(-x * x / (2 * s * s))
    g /= g.sum()
    if order == 1:
        g = -x / s**2 * g
    if order == 2:
        g = (x * x / s**4 - 1 / s**2) * g
    return g.astype(np.float32).astype(np.float64)


def gauss_2d(theta, su, sv, order_v):
    """The oriented Gaussian, derived `order_v` times (0 or 2) across: u = x cos t - y sin t, v = x sin t + y cos t."""
    r = math.ceil(3 * max(su, sv))
    y, x = np.mgrid[-r:r + 1, -r:r + 1].astype(np.float64)
    sin, cos = exact_sin_cos(theta)
    u, v = x * cos - y * sin, x * sin + y * cos
    k = np.exp(-u * u / (2 * su * su) - v * v / (2 * sv * sv))
    a = np.arange(-r, r + 1)
    k /= np.exp(-a * a / (2 * su * su)).sum() * np.exp(-a * a / (2 * sv * sv)).sum()
    if order_v == 2:
        k *= v * v / sv**4 - 1 / sv**2
    return k.astype(np.float32).astype(np.float64)


def sample(image, dy, dx):
    """image(p + (dy, dx)) for every p: bilinear, with the border `mirror` on the integer pixels."""
    pad = math.ceil(max(abs(dy), abs(dx))) + 1
    big = np.pad(image, pad, mode="reflect")
    y, x = np.mgrid[:image.shape[0], :image.shape[1]].astype(np.float64)
    return ndi.map_coordinates(big, [y + pad + dy, x + pad + dx], order=1, prefilter=False)


def along(image, taps, dy, dx):
    """Sum of taps[i] image(p + i (dy, dx)), i counted from the centre."""
    r = len(taps) // 2
    return sum(k * sample(image, i * dy, i * dx) for i, k in zip(range(-r, r + 1), taps))


def line_filter(taps, dy, dx):
    """The same as a sparse correlation: offsets (dy, dx) and f32 taps, those that fall on one pixel summed."""
    r, sparse = len(taps) // 2, {}
    for i, k in zip(range(-r, r + 1), taps):
        y, x = i * dy, i * dx
        fy, fx = math.floor(y), math.floor(x)
        for oy, wy in ((fy, 1 - (y - fy)), (fy + 1, y - fy)):
            for ox, wx in ((fx, 1 - (x - fx)), (fx + 1, x - fx)):
                if wy * wx != 0:
                    sparse[oy, ox] = sparse.get((oy, ox), 0.0) + k * wy * wx
    offsets = sorted(sparse)
    return np.array(offsets, np.int32), np.array([sparse[o] for o in offsets]).astype(np.float32)


def rotation(degrees, shape):
    """Output-to-input matrix and offset, in (row, column), of a rotation about the centre."""
    sin, cos = exact_sin_cos(degrees)
    m = np.array([[cos, sin], [-sin, cos]])
    centre = np.array([(shape[0] - 1) / 2, (shape[1] - 1) / 2])
    return m, centre - m @ centre


def rotate(image, degrees, order=1, mode="grid-constant"):
    m, offset = rotation(degrees, image.shape)
    return ndi.affine_transform(image, m, offset=offset, order=order, mode=mode, prefilter=False)


def bicubic_rotate(image, degrees, cval):
    """Cubic convolution with a = -0.5 (Keys 1981; OpenCV has -0.75), the constant `cval` outside."""
    def weight(x):
        x, a = abs(x), -0.5
        if x <= 1:
            return (a + 2) * x**3 - (a + 3) * x**2 + 1
        return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0

    m, offset = rotation(degrees, image.shape)
    out = np.zeros(image.shape)
    for p in np.ndindex(*image.shape):
        y, x = m @ p + offset
        for j in range(math.floor(y) - 1, math.floor(y) + 3):
            for i in range(math.floor(x) - 1, math.floor(x) + 3):
                inside = 0 <= j < image.shape[0] and 0 <= i < image.shape[1]
                out[p] += weight(y - j) * weight(x - i) * (image[j, i] if inside else cval)
    return out


THETAS = (0, 45, 90, 135)
SU, SVS = 3, (1, 2)


def contrast(f1, f2, scale):
    # A response next to the threshold would make the golden depend on the last bit.
    assert np.abs(np.abs(f2) - EPS).min() > 2e-6, "a response is too close to the threshold"
    small = np.abs(f2) < EPS
    return np.where(small, 0.0, np.abs(f1 / np.where(small, 1.0, f2)) * scale)


def conv_rot(image):
    result = np.zeros_like(image)
    for theta in THETAS:
        # Mirrored beyond its edges, so that the frame of the picture is no line; 0 outside on the way back.
        r = rotate(image, theta, mode="mirror")
        best = np.zeros_like(image)
        for sv in SVS:
            radius = math.ceil(3 * max(SU, sv))
            h = ndi.correlate1d(r, gauss_1d(SU, radius), axis=1, mode="mirror")
            f1 = ndi.correlate1d(h, gauss_1d(sv, radius, 2), axis=0, mode="mirror")
            f2 = ndi.correlate1d(h, gauss_1d(sv, radius, 0), axis=0, mode="mirror")
            best = np.maximum(best, contrast(f1, f2, SU * sv))
        result = np.maximum(result, rotate(best, -theta))
    return result


def conv_2d(image):
    result = np.zeros_like(image)
    for theta in THETAS:
        for sv in SVS:
            f1 = ndi.correlate(image, gauss_2d(theta, SU, sv, 2), mode="mirror")
            f2 = ndi.correlate(image, gauss_2d(theta, SU, sv, 0), mode="mirror")
            result = np.maximum(result, contrast(f1, f2, SU * sv))
    return result


def retina():
    """A 768x768 part of the photograph's green channel, shrunk to 96x96 by the mean of 8x8 pixels, in [0, 1]."""
    from PIL import Image
    green = np.asarray(Image.open(ASSETS / "retina.jpg").split()[1], np.float64)
    return (green[320:1088, 320:1088].reshape(96, 8, 96, 8).mean(axis=(1, 3)) / 255).astype(np.float32)


def statistics(image):
    return np.array([image.sum(), image.mean(), image.var(), image.min(), image.max()])


def windows(image, image_u8):
    """Means of rectangles, one larger than the image, and ranks under footprints."""
    for size in ((5, 4), (1, 9), (40, 3)):
        name = f"mean_{size[0]}x{size[1]}"
        # SciPy's second pass continues the result of the first: the mean of constants is the constant.
        save(name, per_border(lambda **b: ndi.uniform_filter(image.astype(np.float64), size=size, **b)))
        save(f"{name}_u8", per_border(
            lambda **b: ndi.uniform_filter(image_u8.astype(np.float64), size=size, **b), CVAL_U8))
    y, x = np.mgrid[-3:4, -3:4]
    for name, footprint in (("square_7", np.ones((7, 7), bool)), ("disc_3", y * y + x * x <= 9)):
        for place in (5, 20):
            of = dict(rank=place, footprint=footprint)
            save(f"rank_{place}_{name}", per_border(lambda **b: ndi.rank_filter(image, **of, **b)))
            save(f"rank_{place}_{name}_u8", per_border(lambda **b: ndi.rank_filter(image_u8, **of, **b), CVAL_U8))


def main():
    rng = np.random.default_rng(20)
    h, w = 15, 11
    y, x = np.mgrid[:h, :w]
    structure = 0.4 * np.sin(0.9 * x) + 0.03 * y - 0.02 * x + np.where(np.hypot(y - 6, x - 4) < 3.5, 0.6, 0)
    image = (structure + 0.2 * rng.standard_normal((h, w))).astype(np.float32)
    image_u8 = np.clip(np.rint(110 + 90 * image + 20 * rng.standard_normal((h, w))), 0, 255).astype(np.uint8)
    # The largest filter reaches 13 rows and 10 columns, less than four times the image: at coordinates -4n, -6n, ...
    # of an axis of n pixels, scipy's n-dimensional `reflect` reads outside of the array.
    tiny = rng.standard_normal((4, 3)).astype(np.float32)
    save("image", image)
    save("image_u8", image_u8)
    save("tiny", tiny)
    exact, exact_tiny = image.astype(np.float64), tiny.astype(np.float64)

    # Linear filters. Taps are f32 numbers, so that rounding them to the image's type changes nothing.
    for size in ((3, 3), (5, 4), (1, 7), (9, 1), (27, 21)):
        taps = rng.standard_normal(size).astype(np.float32)
        name = f"{size[0]}x{size[1]}"
        save(f"taps_{name}", taps)
        result = per_border(lambda **b: ndi.correlate(exact, taps.astype(np.float64), **b))
        save(f"correlate_{name}", result if size == (5, 4) else result.astype(np.float32))
        if size == (5, 4):
            save("convolve_5x4", per_border(lambda **b: ndi.convolve(exact, taps.astype(np.float64), **b))
                 .astype(np.float32))
        if size == (27, 21):
            save("correlate_27x21_tiny", per_border(
                lambda **b: ndi.correlate(exact_tiny, taps.astype(np.float64), **b)).astype(np.float32))

    # Separable Gaussians: sigma 2 and 1.25 at the radius of the larger; rows smooth, columns derive.
    radius = 6
    save("taps_gauss_row", gauss_1d(2.0, radius).astype(np.float32))
    for order in (0, 1, 2):
        row, column = gauss_1d(2.0, radius), gauss_1d(1.25, radius, order)
        save(f"taps_gauss_column_{order}", column.astype(np.float32))
        save(f"gauss_order_{order}", per_border(
            lambda **b: ndi.correlate1d(ndi.correlate1d(exact, row, axis=1, **b), column, axis=0, **b))
            .astype(np.float32))

    # Oriented Gaussians at 30 degrees, su 2, sv 1.
    save("taps_gauss_2d_30", gauss_2d(30, 2, 1, 2).astype(np.float32))
    save("gauss_2d_30", per_border(lambda **b: ndi.correlate(exact, gauss_2d(30, 2, 1, 2), **b)).astype(np.float32))
    sin, cos = exact_sin_cos(30)
    ku, kv = gauss_1d(2, 6), gauss_1d(1, 6, 2)
    save("gauss_uv_30", along(along(exact, ku, -sin, cos), kv, cos, sin))
    for name, taps, dy, dx in (("u", ku, -sin, cos), ("v", kv, cos, sin)):
        offsets, sparse = line_filter(taps, dy, dx)
        save(f"offsets_uv_30_{name}", offsets)
        save(f"taps_uv_30_{name}", sparse)

    # Order filters: flat, flat of even size, and weighted (the structuring function is not flat).
    weights = rng.standard_normal((3, 4)).astype(np.float32)
    save("weights_3x4", weights)
    for name, filter_of in (("erosion", ndi.grey_erosion), ("dilation", ndi.grey_dilation)):
        for size in ((3, 5), (4, 2)):
            save(f"{name}_{size[0]}x{size[1]}", per_border(lambda **b: filter_of(image, size=size, **b)))
        save(f"{name}_3x5_u8", per_border(lambda **b: filter_of(image_u8, size=(3, 5), **b), CVAL_U8))
        save(f"{name}_weighted", per_border(lambda **b: filter_of(
            exact, size=weights.shape, structure=weights.astype(np.float64), **b)).astype(np.float32))
    for size in (3, 5):
        save(f"median_{size}", per_border(lambda **b: ndi.median_filter(image, size=size, **b)))
        save(f"median_{size}_u8", per_border(lambda **b: ndi.median_filter(image_u8, size=size, **b), CVAL_U8))

    windows(image, image_u8)

    # Geometry. The affine map shrinks and shears to 13x16 pixels and reads beyond every edge.
    for degrees in (30, 45):
        save(f"rotate_{degrees}_nearest", rotate(image, degrees, order=0))
        save(f"rotate_{degrees}_bilinear", rotate(exact, degrees))
        save(f"rotate_{degrees}_bicubic", bicubic_rotate(exact, degrees, CVAL))
    matrix = np.array([[1.375, 0.21, -4.3], [-0.17, 0.87, -1.9]])
    save("affine_matrix", matrix)
    save("affine_bilinear", per_border(lambda **b: ndi.affine_transform(
        exact, matrix[:, :2], offset=matrix[:, 2], output_shape=(13, 16), order=1, prefilter=False, **b))
         .astype(np.float32))
    save("affine_nearest", per_border(lambda **b: ndi.affine_transform(
        image, matrix[:, :2], offset=matrix[:, 2], output_shape=(13, 16), order=0, prefilter=False, **b)))
    # Resize to 21x7 with pixel centres at half-integers: input = (output + 0.5) * ratio - 0.5.
    ratio = np.array([h / 21, w / 7])
    save("resize_bilinear", ndi.affine_transform(
        exact, ratio, offset=0.5 * ratio - 0.5, output_shape=(21, 7), order=1, mode="nearest", prefilter=False))

    # Reductions.
    save("image_statistics", statistics(exact))
    save("row_sums", exact.sum(axis=1))
    save("column_sums", exact.sum(axis=0))
    save("histogram", np.histogram(exact, bins=12, range=(-0.5, 1.0))[0].astype(np.float64))
    save("histogram_u8", np.histogram(image_u8, bins=16, range=(0, 256))[0].astype(np.float64))
    save("histogram_u8_levels", np.histogram(np.arange(256), bins=255, range=(0, 255))[0].astype(np.float64))

    # Line detectors; the input also serves as one that is wider than the 64 lanes of a reduction.
    detector_input = retina()
    save("detector_input", detector_input)
    save("detector_input_statistics", statistics(detector_input.astype(np.float64)))
    save("taps_detector_row", gauss_1d(SU, 9).astype(np.float32))
    for sv in SVS:
        for order in (0, 2):
            save(f"taps_detector_column_{sv}_{order}", gauss_1d(sv, 9, order).astype(np.float32))
            save(f"taps_detector_2d_{sv}_{order}",
                 np.stack([gauss_2d(t, SU, sv, order) for t in THETAS]).astype(np.float32))
    save("conv_rot", conv_rot(detector_input.astype(np.float64)).astype(np.float32))
    save("conv_2d", conv_2d(detector_input.astype(np.float64)).astype(np.float32))


main()
