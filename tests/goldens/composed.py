"""Goldens of functions composed of other operations: Canny's edges, equalized histograms, local maxima, the bilateral filter.
scikit-image, OpenCV and numpy; see README.md."""
from pathlib import Path

import cv2
import numpy as np
from scipy import ndimage as ndi
from skimage import exposure, feature, morphology

HERE = Path(__file__).parent / "composed"


def save(name, array):
    HERE.mkdir(exist_ok=True)
    np.save(HERE / f"{name}.npy", np.ascontiguousarray(array))


def scene(rng, shape):
    """Discs and a slope with noise, from 0 to 1."""
    y, x = np.mgrid[:shape[0], :shape[1]]
    image = 0.3 * x / shape[1] + 0.02 * rng.normal(size=shape)
    for _ in range(6):
        at, radius = rng.random(2) * shape, rng.uniform(3, 12)
        image += rng.uniform(0.1, 0.4) * (np.hypot(y - at[0], x - at[1]) < radius)
    return np.clip(image / image.max(), 0, 1)


def edges(rng):
    wide = scene(rng, (61, 83))
    flat = np.zeros((9, 14))
    flat[:, 7:] = 1  # both sides of the edge are equally steep
    images = {"u8": (wide * 255).astype(np.uint8), "i16": (wide * 60000 - 30000).astype(np.int16), "f32": wide.astype(np.float32),
              "f64": wide, "step": flat, "row": wide[:1], "two": wide[:2, :2], "pixel": wide[:1, :1]}
    for name, image in images.items():
        white = np.iinfo(image.dtype).max if image.dtype.kind in "iu" else 1
        save(f"canny_image_{name}", image)
        for sigma in (0, 1, 2.3):
            save(f"canny_{name}_{sigma}", feature.canny(image, sigma, 0.1 * white, 0.35 * white))
    save("canny_f64_mirror", feature.canny(wide, 1, 0.1, 0.35, mode="mirror"))
    save("canny_f64_constant", feature.canny(wide, 1, 0.1, 0.35, cval=0.5))
    found = np.load(HERE / "canny_f64_1.npy")
    assert 100 < found.sum() < wide.size / 4


def histograms(rng):
    wide = scene(rng, (47, 65)) ** 3
    images = {"u8": (wide * 255).astype(np.uint8), "i16": (wide * 900 - 300).astype(np.int16), "u16": (wide * 40000).astype(np.uint16),
              "f32": wide.astype(np.float32), "f64": wide, "flat": np.full((5, 7), 0.25), "pixel": wide[:1, :1]}
    # Their bins are raised to the limit, in different ways.
    images["ramp"] = (np.linspace(0, 255, 150 * 163).reshape(150, 163)).astype(np.uint8)
    images["steps"] = (rng.integers(0, 4, (90, 80)) * 85).astype(np.uint8)
    for name, image in images.items():
        save(f"equalize_image_{name}", image)
        if name not in ("ramp", "steps"):
            save(f"equalize_{name}", exposure.equalize_hist(image, 100))
        if name != "i16":
            for tile, limit, bins in ((None, 0.01, 256), ((7, 11), 0.02, 64), ((100, 3), 0.0, 256), ((16, 16), 0.5, 1)):
                kernel = "eighth" if tile is None else tile[0]
                found = exposure.equalize_adapthist(image, tile, limit, bins)
                save(f"adapted_{name}_{kernel}", found.astype(np.float32) if image.dtype.kind == "u" else found)
    colour = rng.integers(0, 60, (21, 17, 3)).astype(np.uint8)
    save("equalize_image_colour", np.moveaxis(colour, 2, 0))
    save("equalize_colour", np.moveaxis(exposure.equalize_hist(colour), 2, 0))


def maxima(rng):
    # Few levels, so that plateaus are everywhere.
    images = {"u8": rng.integers(0, 4, (33, 46)).astype(np.uint8), "i32": ndi.gaussian_filter(rng.integers(-9, 9, (40, 31)) * 1000, 1).astype(np.int32),
              "f32": scene(rng, (52, 37)).astype(np.float32), "flat": np.ones((4, 5)), "pixel": np.ones((1, 1)), "row": rng.normal(size=(1, 40)),
              "volume": rng.integers(0, 5, (5, 9, 11)).astype(np.int16)}
    for name, image in images.items():
        save(f"maxima_image_{name}", image)
        for connectivity in range(1, image.ndim + 1):
            save(f"maxima_{name}_{connectivity}", morphology.local_maxima(image, connectivity=connectivity))
        found = []
        for distance in (0, 1, 2, 5):
            for border in (0, 1, 4):
                peaks = feature.peak_local_max(image, distance, exclude_border=border)
                found += [(distance, border, *at) for at in peaks]
        save(f"peaks_{name}", np.array(found, np.int32).reshape(-1, 2 + image.ndim))
        save(f"peaks_{name}_high", feature.peak_local_max(image, 1, image.max() - 1, exclude_border=0).astype(np.int32))


def bilateral(image, size, colour, space, mode):
    """OpenCV's formula without its table of weights."""
    radius, (h, w) = size // 2, image.shape[:2]
    padded = np.pad(image.astype(np.float64), [(radius, radius)] * 2 + [(0, 0)] * (image.ndim - 2), mode=mode)
    total, weights = np.zeros(image.shape), np.zeros((h, w) + (1,) * (image.ndim - 2))
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            if dy * dy + dx * dx <= radius * radius:
                other = padded[radius + dy:radius + dy + h, radius + dx:radius + dx + w]
                apart = abs(other - image)
                apart = apart if image.ndim == 2 else apart.sum(axis=2, keepdims=True)
                weight = np.exp(-(dy * dy + dx * dx) / (2 * space**2) - apart**2 / (2 * colour**2))
                total, weights = total + weight * other, weights + weight
    return total / weights


def smooth(rng):
    wide = scene(rng, (41, 53))
    colour = np.stack([wide, scene(rng, wide.shape), wide**2], axis=-1)
    images = {"f64": wide, "f32": wide.astype(np.float32), "u8": (wide * 255).astype(np.uint8), "colour": colour.astype(np.float32),
              "pixel": wide[:1, :1], "row": wide[:1]}
    for name, image in images.items():
        white = 255 if image.dtype == np.uint8 else 1
        save(f"bilateral_image_{name}", image if image.ndim == 2 else np.moveaxis(image, 2, 0))
        for size, sigma, space in ((1, 0.1, 1), (5, 0.1, 1.5), (9, 0.3, 4)):
            found = bilateral(image, size, sigma * white, space, "reflect" if min(image.shape[:2]) > 1 else "edge")
            save(f"bilateral_{name}_{size}", found if found.ndim == 2 else np.moveaxis(found, 2, 0))
            if image.dtype != np.float64 and size > 1:
                # Weights come from a table. Of bytes the result is rounded, for some sizes down.
                theirs = cv2.bilateralFilter(image, size, sigma * white, space)
                assert abs(theirs - found).max() <= (1 if white == 255 else 1e-6), (name, size)


if __name__ == "__main__":
    edges(np.random.default_rng(30))
    histograms(np.random.default_rng(31))
    maxima(np.random.default_rng(32))
    smooth(np.random.default_rng(33))
