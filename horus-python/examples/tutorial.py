"""The program of the book's tutorial, which marks blood vessels: python tutorial.py [PICTURE RESULT]"""

from __future__ import annotations

import sys
from pathlib import Path

import horus_image as hi
from horus_image import ndimage

PICTURE = Path(__file__).parents[2] / "assets" / "vessels.png"


def vessels(image: hi.Image) -> hi.Image:
    """The pixels that are darker than the light around them."""
    clean: hi.Image = ndimage.median_filter(image, 5, mode="mirror")
    light: hi.Image = ndimage.gaussian_filter(clean, 8.0, mode="mirror", truncate=3.0)
    return light - clean > 0.03


def main(picture: str, result: str) -> None:
    with hi.session(explain=True) as session:
        found = vessels(hi.open(picture).luminance())
        count = int(found.sum())
        found.save(result)
        if session.rank == 0:
            print(f"{count} pixels of vessels")
            print(session.explain())


if __name__ == "__main__":
    main(*(sys.argv[1:] or [str(PICTURE), "tutorial.png"]))
