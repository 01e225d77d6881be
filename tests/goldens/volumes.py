"""Goldens of volumes (`volumes/*.npy`), by scipy in f64 on numbers that are exactly f32: filters, order filters, shifts.

Arrays whose first axis is 5 hold one result per border: mirror, reflect, nearest, grid-wrap, grid-constant (0.75).
"""

from pathlib import Path

import numpy as np
from scipy import ndimage as ndi

FOLDER = Path(__file__).parent / "volumes"
MODES = ["mirror", "reflect", "nearest", "grid-wrap", "grid-constant"]
CONSTANT = 0.75


def save(name, array):
    np.save(FOLDER / f"{name}.npy", array)


def every(f):
    return np.stack([f(mode) for mode in MODES])


def main():
    FOLDER.mkdir(exist_ok=True)
    random = np.random.default_rng(14)
    z, y, x = np.indices((7, 6, 9))
    image = (np.sin(z * 0.9) + np.cos(y * 0.7 + x * 0.4) + 0.3 * random.standard_normal(z.shape)).astype(np.float32)
    image[3:, 2:, 4:] += 1.5
    save("image", image)
    wide = image.astype(np.float64)
    border = {"cval": CONSTANT}

    # Taps are rounded to f32, as the library's are.
    cube = random.standard_normal((3, 3, 3)).astype(np.float32)
    even = random.standard_normal((2, 4, 3)).astype(np.float32)
    line = random.standard_normal(9).astype(np.float32)
    save("taps_cube", cube)
    save("taps_even", even)
    save("taps_line", line)
    save("correlate_cube", every(lambda m: ndi.correlate(wide, cube.astype(np.float64), mode=m, **border)))
    save("convolve_cube", every(lambda m: ndi.convolve(wide, cube.astype(np.float64), mode=m, **border)))
    save("correlate_even", every(lambda m: ndi.correlate(wide, even.astype(np.float64), mode=m, **border)))
    save("correlate_line", every(lambda m: ndi.correlate1d(wide, line.astype(np.float64), axis=0, mode=m, **border)))

    def gauss(sigma, order):
        # The library's radius, and its taps: normalised, then derived, then rounded.
        return ndi.gaussian_filter(
            wide, sigma, order=order, mode="mirror", radius=[int(np.ceil(3 * s)) for s in sigma]
        )

    save("gauss", gauss([1.0, 1.0, 1.0], [0, 0, 0]))
    save("gauss_aniso", gauss([0.7, 1.0, 1.4], [0, 0, 0]))
    save("gauss_z", gauss([1.0, 0.8, 1.2], [1, 0, 0]))
    save("gauss_zzx", gauss([1.1, 0.8, 1.2], [2, 0, 1]))
    save("laplace", ndi.laplace(wide, mode="mirror"))

    save("median", every(lambda m: ndi.median_filter(image, size=3, mode=m, **border)))
    odd = np.array(
        [
            [[1, 1, 0], [0, 1, 0], [0, 0, 0]],
            [[0, 1, 0], [1, 0, 1], [0, 1, 0]],
            [[0, 0, 1], [0, 0, 1], [0, 0, 0]],
        ],
        bool,
    )
    save("footprint", odd.astype(np.uint8))
    save("erosion_odd", every(lambda m: ndi.grey_erosion(image, footprint=odd, mode=m, **border)))
    save("dilation_odd", every(lambda m: ndi.grey_dilation(image, footprint=odd, mode=m, **border)))
    box = np.ones((5, 3, 1), bool)
    save("erosion_box", every(lambda m: ndi.grey_erosion(image, footprint=box, mode=m, **border)))
    save("dilation_box", every(lambda m: ndi.grey_dilation(image, footprint=box, mode=m, **border)))

    for k, by in enumerate([(1, 0, 0), (-3, 2, 0), (0, -1, 4), (2, 1, -2)]):
        save(f"shift_{k}", every(lambda m: ndi.shift(image, by, order=0, mode=m, **border)))


if __name__ == "__main__":
    main()
