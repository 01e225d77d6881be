"""Marks the edges of a picture: smoothing, gradient, threshold and marking are computed at once."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import horus_image as hi
from horus_image import ndimage


def marked(picture: hi.Image, sigma: float) -> hi.Image:
    """The picture, white where it changes most."""
    slope: hi.Image = ndimage.gaussian_gradient_magnitude(picture, sigma)
    return hi.where(slope > slope.max() / 2, 1.0, picture)


def main() -> None:
    y, x = np.mgrid[:200, :300]
    disc = ((y - 100) ** 2 + (x - 150) ** 2 < 60**2).astype(np.float32) * 0.5
    with hi.session(device="cpu", explain=True) as session:
        result = marked(hi.asarray(disc), 2.0)
        with tempfile.TemporaryDirectory() as folder:
            result.save(Path(folder) / "marked.png")
            again = hi.open(Path(folder) / "marked.png")
        print(again, session.explain().splitlines()[0])
    assert result.compute()[100, 90] == 1.0, "the edge is marked"
    assert result.compute()[100, 150] == 0.5, "and what is even is not"


if __name__ == "__main__":
    main()
