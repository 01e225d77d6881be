"""Writes the picture files of other programs that these tests read: pnm/ by OpenCV, webp/ by Pillow.

python3 -m venv venv && venv/bin/pip install numpy opencv-python-headless==5.0.0.93 pillow==13.0.0
venv/bin/python make.py

The folders exr/ and jpeg/ are older: OpenEXR 3.5 and jpeg/make.sh wrote their files.
"""

import pathlib

import cv2
import numpy as np
from PIL import Image

FOLDER = pathlib.Path(__file__).parent


def pnm():
    """Floats that count from -2 in eighths, in colours also doubled and negated; a mask of diagonals."""
    folder = FOLDER / "pnm"
    folder.mkdir(exist_ok=True)
    y, x = np.mgrid[:5, :11]
    grey = ((y * 11 + x) / 8 - 2).astype(np.float32)
    cv2.imwrite(str(folder / "grey.pfm"), grey)
    # OpenCV has blue first, and writes red first.
    cv2.imwrite(str(folder / "colour.pfm"), np.stack([-grey, grey * 2, grey], -1))
    cv2.imwrite(str(folder / "diagonals.pbm"), ((x + y) % 3 == 0).astype(np.uint8) * 255)


def webp():
    """Colours and colours with alpha, without loss, and the same with loss and its pixels by libwebp as PNM; EXIF data."""
    folder = FOLDER / "webp"
    folder.mkdir(exist_ok=True)
    y, x = np.mgrid[:23, :37]
    colour = np.stack([7 * x, 11 * y, 5 * (x ^ y), 255 - 6 * x], -1).astype(np.uint8)
    for name, pixels in (("colour", colour[..., :3]), ("alpha", colour)):
        image = Image.fromarray(np.ascontiguousarray(pixels))
        # Colours of transparent pixels, too.
        image.save(folder / f"{name}.webp", lossless=True, exact=True)
        image.save(folder / f"{name}-lossy.webp", quality=70, alpha_quality=60)
        with Image.open(folder / f"{name}-lossy.webp") as read:
            depth = pixels.shape[2]
            kind = {3: "RGB", 4: "RGB_ALPHA"}[depth]
            head = f"P7\nWIDTH 37\nHEIGHT 23\nDEPTH {depth}\nMAXVAL 255\nTUPLTYPE {kind}\nENDHDR\n"
            (folder / f"{name}-lossy.pam").write_bytes(head.encode() + np.asarray(read).tobytes())
    exif = Image.Exif()
    exif[0x010F], exif[0x0112] = "a camera", 6
    Image.fromarray(np.ascontiguousarray(colour[..., :3])).save(folder / "turned.webp", lossless=True, exif=exif.tobytes())
    frames = [Image.fromarray(np.full((4, 4, 3), v, np.uint8)) for v in (0, 200)]
    frames[0].save(folder / "film.webp", save_all=True, append_images=frames[1:])


if __name__ == "__main__":
    pnm()
    webp()
