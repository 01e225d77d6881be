"""Goldens of statistics: along axes, of a film, where pixels are, order, thresholds. numpy and scikit-image; see README.md."""
from pathlib import Path

import numpy as np
from skimage import filters

HERE = Path(__file__).parent / "statistics"


def save(name, array):
    HERE.mkdir(exist_ok=True)
    np.save(HERE / f"{name}.npy", np.ascontiguousarray(array))


def main():
    rng = np.random.default_rng(14)
    # Wider than the lanes of the fixed order, with pixels that occur twice; a NaN in one place.
    colour = (rng.normal(size=(37, 70, 3)) * 8).astype(np.float32).round(2)
    save("colour", colour)
    exact = colour.astype(np.float64)
    for i, axis in enumerate(["rows", "columns", "channels"]):
        for name, of in [("sum", np.sum), ("mean", np.mean), ("min", np.min), ("max", np.max)]:
            save(f"{name}_{axis}", of(exact, axis=i, keepdims=True))
        save(f"cumsum_{axis}", np.cumsum(exact, axis=i))
    save("channels", np.stack([of(exact, axis=(0, 1)) for of in (np.sum, np.mean, np.min, np.max)]))

    for count in (1, 2, 5, 8):
        film = (rng.normal(size=(count, 9, 11)) * 50 + 128).clip(0, 255)
        save(f"film_{count}", film.astype(np.float32))
        save(f"median_{count}", np.median(film.astype(np.float32), axis=0))
        save(f"film_u8_{count}", film.astype(np.uint8))
        save(f"median_u8_{count}", np.median(film.astype(np.uint8), axis=0))

    grey = {
        "u8": (rng.normal(size=(41, 67)) * 20 + 90 + 70 * (rng.random((41, 67)) > 0.6)).clip(0, 255).astype(np.uint8),
        "u16": (rng.normal(size=(41, 67)) * 900 + 20000 + 9000 * (rng.random((41, 67)) > 0.6)).astype(np.uint16),
        "i32": (rng.normal(size=(41, 67)) * 1e8).astype(np.int32),
        "f32": (rng.normal(size=(41, 67)) * np.exp(rng.normal(size=(41, 67)) * 20)).astype(np.float32),
        "f64": rng.normal(size=(41, 67)) * np.exp(rng.normal(size=(41, 67)) * 90),
        "smooth": (rng.normal(size=(41, 67)) * 0.1 + 0.3 + 0.4 * (rng.random((41, 67)) > 0.6)).astype(np.float32),
    }
    grey["f32"][3, 4] = grey["f64"][3, 4] = np.nan
    # The smallest and the largest occur again later.
    for image in grey.values():
        low, high = np.nanargmin(image), np.nanargmax(image)
        image.flat[-5], image.flat[-9] = image.flat[low], image.flat[high]
    percents = np.array([0, 0.1, 5, 25, 33.3, 50, 75, 99, 99.99, 100])
    for name, image in grey.items():
        save(name, image)
        save(f"{name}_arg", np.array([np.unravel_index(of(image), image.shape) for of in (np.nanargmin, np.nanargmax)]))
        save(f"{name}_percentiles", np.nanpercentile(image.astype(np.float64), percents))
    save("percents", percents)
    save("otsu", np.array([filters.threshold_otsu(grey[name]) for name in ("u8", "u16", "smooth")], np.float64))
    mask = rng.random((41, 67)) > 0.7
    save("mask", mask.astype(np.uint8))
    inside = grey["u16"].astype(np.float64)[mask]
    save("masked", np.array([inside.sum(), inside.mean(), inside.var(), inside.min(), inside.max()]))
    # Added later, with numbers of their own, so that what is above stays as it was.
    rng = np.random.default_rng(31)
    two = 70 * (rng.random((41, 67)) > 0.6)
    more = {
        "i8": (rng.normal(size=(41, 67)) * 12 - 60 + two).clip(-128, 127).astype(np.int8),
        "i16": (rng.normal(size=(41, 67)) * 900 - 5000 + 130 * two).astype(np.int16),
        "u32": (rng.normal(size=(41, 67)) * 6e8 + 2 ** 31).clip(0, 2 ** 32 - 1).astype(np.uint32),
    }
    for name, image in more.items():
        low, high = image.argmin(), image.argmax()
        image.flat[-5], image.flat[-9] = image.flat[low], image.flat[high]
        save(name, image)
        save(f"{name}_arg", np.array([np.unravel_index(of(image), image.shape) for of in (np.argmin, np.argmax)]))
        save(f"{name}_percentiles", np.percentile(image.astype(np.float64), percents))
    save("otsu_signed", np.array([filters.threshold_otsu(more[name]) for name in ("i8", "i16")], np.float64))


if __name__ == "__main__":
    main()
