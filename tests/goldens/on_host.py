"""Goldens of functions that the host computes: watersheds, medians of labels, lines. scikit-image and scipy; see README.md."""
from pathlib import Path

import numpy as np
from scipy import ndimage as ndi
from skimage.morphology import thin
from skimage.segmentation import watershed
from skimage.transform import hough_line

HERE = Path(__file__).parent / "on_host"


def save(name, array):
    HERE.mkdir(exist_ok=True)
    np.save(HERE / f"{name}.npy", np.ascontiguousarray(array))


def watersheds(rng):
    # Few levels, so that plateaus and markers of equal pixels are everywhere; NaN in some places.
    shape = (41, 57)
    flat = rng.integers(0, 6, shape).astype(np.uint8)
    rough = rng.normal(size=shape).astype(np.float32).round(1)
    rough[rng.random(shape) < 0.02] = np.nan
    markers = np.where(rng.random(shape) < 0.05, rng.integers(-3, 40, shape), 0).astype(np.int32)
    markers[10:14, 20:29] = 77
    mask = rng.random(shape) < 0.8
    save("watershed_markers", markers)
    save("watershed_mask", mask)
    for name, image in [("u8", flat), ("f32", rough)]:
        save(f"watershed_image_{name}", image)
        for connectivity in (1, 2):
            save(f"watershed_{name}_{connectivity}", watershed(image, markers, connectivity))
            save(f"watershed_{name}_{connectivity}_mask", watershed(image, markers, connectivity, mask=mask))
    volume = rng.integers(0, 4, (5, 9, 11)).astype(np.int16)
    seeds = np.where(rng.random(volume.shape) < 0.04, rng.integers(1, 30, volume.shape), 0).astype(np.int32)
    save("watershed_volume", volume)
    save("watershed_volume_markers", seeds)
    for connectivity in (1, 2, 3):
        save(f"watershed_volume_{connectivity}", watershed(volume, seeds, connectivity))


def medians(rng):
    labels = rng.integers(0, 12, (33, 47)).astype(np.int16)
    labels[labels == 5] = 12
    save("labels", labels)
    pixels = rng.normal(size=labels.shape) * np.exp(rng.normal(size=labels.shape) * 20)
    for name, image in [("u8", rng.integers(0, 256, labels.shape).astype(np.uint8)), ("f32", pixels.astype(np.float32)), ("f64", pixels)]:
        save(f"median_image_{name}", image)
        # Every label but 5 has pixels.
        save(f"median_{name}", np.asarray(ndi.median(image, labels, [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12]), np.float64))


def lines(rng):
    # Halves are frequent at 0, 30, 60 and 90 degrees.
    mask = rng.random((34, 51)) < 0.1
    mask[12] = True
    mask[np.arange(34), np.arange(34) + 3] = True
    counts, angles, _ = hough_line(mask, np.radians(np.linspace(-90, 90, 24, endpoint=False)))
    save("line_mask", mask)
    save("line_normals", np.stack([np.cos(angles), np.sin(angles)], axis=1))
    save("line_counts", counts.T.astype(np.uint16))


def thinned(rng):
    for name, mask in (("blobs", ndi.gaussian_filter(rng.random((67, 83)), 2) > 0.5), ("noise", rng.random((40, 51)) < 0.6)):
        save(f"thin_mask_{name}", mask)
        save(f"thin_{name}", thin(mask))


if __name__ == "__main__":
    watersheds(np.random.default_rng(20))
    medians(np.random.default_rng(21))
    lines(np.random.default_rng(22))
    thinned(np.random.default_rng(23))
