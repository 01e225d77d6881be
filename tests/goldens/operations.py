"""Goldens of operations that are made of others: colour, sizes, morphology. numpy, scipy and scikit-image; see README.md."""
from pathlib import Path

import cv2
import numpy as np
import scipy.ndimage as ndi
from PIL import Image
from skimage import color, morphology, transform

HERE = Path(__file__).parent / "operations"


def save(name, array):
    HERE.mkdir(exist_ok=True)
    np.save(HERE / f"{name}.npy", np.ascontiguousarray(array))


def main():
    rng = np.random.default_rng(10)
    rgb = rng.random((9, 11, 3))
    rgb[0, :5] = [[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.5], [1, 0, 0], [0, 0, 1]]
    rgb = rgb.astype(np.float32)
    save("rgb", rgb)
    save("lab", color.rgb2lab(rgb.astype(np.float64)))
    save("hsv", color.rgb2hsv(rgb.astype(np.float64)))
    r, g, b = np.moveaxis(rgb.astype(np.float64), 2, 0)
    y = 0.299 * r + 0.587 * g + 0.114 * b  # JFIF 1.02
    save("ycbcr", np.stack([y, (b - y) / 1.772 + 0.5, (r - y) / 1.402 + 0.5], axis=2))

    grey = ndi.gaussian_filter(rng.random((40, 53)), 1.0).astype(np.float32)
    save("grey", grey)
    for height, width in [(13, 20), (40, 21), (17, 80)]:
        # Edges: ours mirror while smoothing and repeat while sampling, so only the inside can agree.
        save(f"resized_{height}x{width}", transform.resize(
            grey.astype(np.float64), (height, width), order=1, mode="reflect", anti_aliasing=True))
    disc = morphology.disk(2).astype(bool)
    odd = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0]], bool)
    for name, footprint in [("disc", disc), ("odd", odd)]:
        how = dict(footprint=footprint, mode="mirror")
        save(f"opening_{name}", ndi.grey_opening(grey, **how))
        save(f"closing_{name}", ndi.grey_closing(grey, **how))
        save(f"gradient_{name}", ndi.morphological_gradient(grey, **how))
        save(f"top_hat_{name}", ndi.white_tophat(grey, **how))

    # The same numbers as `noise` of the test: it needs no golden.
    noise = (np.arange(6 * 31 * 40, dtype=np.uint64) * 2654435761 % 2**32 >> 16).reshape(6, 31, 40)
    there = noise % 100 < 55
    for name, picture in [("image", there[0]), ("volume", there)]:
        for kind in range(1, picture.ndim + 1):
            structure = ndi.generate_binary_structure(picture.ndim, kind)
            save(f"labels_{name}_{kind}", ndi.label(picture, structure)[0].astype(np.int16))
    far = noise[0] % 100 < 97
    distances, (rows, columns) = ndi.distance_transform_edt(far, return_indices=True)
    save("distances", distances)
    save("distances_spaced", ndi.distance_transform_edt(far, sampling=(0.7, 1.9)))
    save("distances_rows", rows.astype(np.int16))
    save("distances_columns", columns.astype(np.int16))
    for metric in ["taxicab", "chessboard"]:
        save(f"distances_{metric}", ndi.distance_transform_cdt(far, metric).astype(np.int16))
    far = noise % 100 < 97
    distances, places = ndi.distance_transform_edt(far, return_indices=True)
    save("volume_distances", distances)
    save("volume_distances_spaced", ndi.distance_transform_edt(far, sampling=(3.3, 0.7, 1.9)))
    for axis, found in zip(["levels", "rows", "columns"], places):
        save(f"volume_distances_{axis}", found.astype(np.int16))
    for metric in ["taxicab", "chessboard"]:
        save(f"volume_distances_{metric}", ndi.distance_transform_cdt(far, metric).astype(np.int16))
    bytes_, floats = (noise % 251).astype(np.uint8), (noise % 997 / 31).astype(np.float32)
    save("volume_median_5", ndi.median_filter(bytes_, 5, mode="mirror"))
    ball = np.add.outer(np.add.outer(2 * np.arange(-1, 2) ** 2, np.arange(-2, 3) ** 2), np.arange(-2, 3) ** 2) <= 5
    save("volume_rank_ball", ndi.rank_filter(floats, 20, footprint=ball, mode="wrap"))
    save("volume_percentile", ndi.percentile_filter(floats, 30, (7, 3, 5), mode="constant", cval=2.5))
    volume = (noise % 1000 / 1000).astype(np.float64)
    steps = [np.arange(17)[:, None], np.arange(19)[None, :]]
    rows, columns = 1.9 * steps[0] - 0.13 * steps[1] - 1.703, 2.3 * steps[1] + 0.21 * steps[0] - 2.607
    levels = 0.31 * steps[0] + 0.17 * steps[1] - 1.301
    for order in range(6):
        how = dict(order=order, prefilter=False)
        save(f"sampled_{order}", np.stack([
            ndi.map_coordinates(volume[0], [rows, columns], mode=mode, cval=0.75, **how)
            for mode in ["mirror", "reflect", "grid-wrap", "grid-constant"]]))
        save(f"sampled_volume_{order}", ndi.map_coordinates(volume, [levels, rows, columns], mode="mirror", **how))
    for order in range(2, 6):
        save(f"coefficients_{order}", np.stack([
            ndi.spline_filter(volume[0], order=order, mode=mode) for mode in ["mirror", "reflect", "grid-wrap"]]))
        save(f"coefficients_row_{order}", ndi.spline_filter1d(volume[0], order=order, axis=1, mode="mirror")[30])
    # Of axes as short as this one's levels, scipy's coefficients of mode `reflect` are wrong from the eighth digit on.
    save("coefficients_volume", ndi.spline_filter(volume, order=3, mode="mirror"))
    mask = ndi.gaussian_filter(volume[0], 1.5)
    save("reconstruction_mask", mask)
    for kind, footprint in [(1, ndi.generate_binary_structure(2, 1)), (2, np.ones((3, 3)))]:
        save(f"reconstruction_{kind}", morphology.reconstruction(mask - 0.02, mask, footprint=footprint))
        save(f"reconstruction_erosion_{kind}",
             morphology.reconstruction(mask + 0.02, mask, method="erosion", footprint=footprint))
    kernels = {"box": "BOX", "triangle": "BILINEAR", "hamming": "HAMMING", "cubic": "BICUBIC", "lanczos": "LANCZOS"}
    for height, width in [(13, 20), (95, 77), (17, 80)]:
        for ours, theirs in kernels.items():
            save(f"resized_{ours}_{height}x{width}",
                 Image.fromarray(grey).resize((width, height), Image.Resampling[theirs]))
        if (height, width) != (17, 80):  # one axis grows, one shrinks: OpenCV interpolates
            save(f"resized_area_{height}x{width}", cv2.resize(grey, (width, height), interpolation=cv2.INTER_AREA))


if __name__ == "__main__":
    main()
