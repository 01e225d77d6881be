"""Goldens of operations on the integer types of pixels: order and linear filters, means, histograms. numpy and scipy; see README.md."""
from pathlib import Path

import numpy as np
import scipy.ndimage as ndi

HERE = Path(__file__).parent / "integers"


def save(name, array):
    HERE.mkdir(exist_ok=True)
    np.save(HERE / f"{name}.npy", np.ascontiguousarray(array))


def main():
    rng = np.random.default_rng(32)
    taps = np.array([[1, -2, 0.5], [3, 0.25, -1], [2, 1, -0.5]])
    save("taps", taps)
    for dtype in (np.uint8, np.uint16, np.uint32, np.int8, np.int16, np.int32):
        name, limits = np.dtype(dtype).name, np.iinfo(dtype)
        image = rng.integers(limits.min, limits.max, size=(23, 31), dtype=dtype, endpoint=True)
        image[3, 4], image[17, 20] = limits.min, limits.max
        save(f"{name}", image)
        save(f"{name}_eroded", ndi.grey_erosion(image, size=(3, 5), mode="mirror"))
        save(f"{name}_dilated", ndi.grey_dilation(image, size=(5, 3), mode="nearest"))
        save(f"{name}_median", ndi.median_filter(image, size=3, mode="mirror"))
        save(f"{name}_median_5", ndi.median_filter(image, size=5, mode="mirror"))
        save(f"{name}_correlated", ndi.correlate(image.astype(np.float64), taps, mode="mirror"))
        exact = image.astype(np.float64)
        save(f"{name}_statistics", np.array([exact.sum(), exact.mean(), exact.var(), exact.min(), exact.max()]))
        span = (float(limits.min), float(limits.max))
        save(f"{name}_histogram", np.histogram(exact, bins=13, range=span)[0].astype(np.float64))


if __name__ == "__main__":
    main()
