"""Writes the picture files of other programs that these tests read: pnm/ by OpenCV, webp/ by Pillow, slides/ by tifffile, jpeg2000/ by
OpenJPEG (Pillow, imagecodecs).

python3 -m venv venv && venv/bin/pip install numpy opencv-python-headless==5.0.0.93 pillow==13.0.0 tifffile==2026.3.3 imagecodecs==2026.3.6
venv/bin/python make.py

The folders exr/ and jpeg/ are older: OpenEXR 3.5 and jpeg/make.sh wrote their files.
"""

import io
import pathlib
import struct

import cv2
import imagecodecs
import numpy as np
import tifffile
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


def jpeg2000():
    """Grey and colours without loss, in one tile and in many, files and code streams; with loss, and the pixels of that."""
    folder = FOLDER / "jpeg2000"
    folder.mkdir(exist_ok=True)
    y, x = np.mgrid[:23, :37]
    colour = np.stack([7 * x, 11 * y, 5 * (x ^ y), 255 - 6 * x], -1).astype(np.uint8)
    wide = ((y * 37 + x) * 76).astype(np.uint16)
    lossless = {"level": 0, "reversible": True}
    for name, pixels, options in (
        ("colour.jp2", colour[..., :3], lossless | {"codecformat": "jp2"}),
        ("wide.j2k", wide, lossless | {"codecformat": "j2k"}),
        ("twelve.jp2", wide >> 4, lossless | {"codecformat": "jp2", "bitspersample": 12}),
        ("lossy.jp2", colour[..., :3], {"level": 34, "codecformat": "jp2"}),
    ):
        data = imagecodecs.jpeg2k_encode(np.ascontiguousarray(pixels), **options)
        (folder / name).write_bytes(data)
        read = imagecodecs.jpeg2k_decode(data)
        if name == "lossy.jp2":
            (folder / "lossy.ppm").write_bytes(b"P6\n37 23\n255\n" + read.tobytes())
        else:
            assert np.array_equal(read, pixels), name
    tiles = {"tile_size": (16, 16), "num_resolutions": 3, "progression": "RPCL", "precinct_size": (32, 32), "codeblock_size": (8, 8)}
    Image.fromarray(colour).save(folder / "alpha.jp2", **tiles)
    Image.fromarray(colour[..., 0]).save(folder / "grey.j2k", progression="PCRL", plt=True)
    assert np.array_equal(np.asarray(Image.open(folder / "alpha.jp2")), colour)
    # A plain picture in blocks of 4 x 4 pixels; the same in precincts of 2 x 2, in 32 layers, which its bytes cannot hold.
    plain = Image.fromarray(np.zeros((400, 400), np.uint8))
    plain.save(folder / "small-blocks.j2k", codeblock_size=(4, 4))
    small = bytearray((folder / "small-blocks.j2k").read_bytes())
    at = small.index(b"\xff\x52")
    length, levels = small[at + 3], small[at + 9]
    small[at + 6 : at + 8] = b"\0\x20"
    small[at + 4] |= 1
    small[at + 3] += levels + 1
    small[at + 2 + length : at + 2 + length] = bytes([0x11] * (levels + 1))
    (folder / "small-precincts.j2k").write_bytes(small)


def smooth(height, width, step):
    """Colours that JPEG keeps within some greys; step: columns and rows of the largest size for a pixel."""
    y, x = (step * (side + 0.5) for side in np.mgrid[:height, :width])
    return np.stack([x, 200 - y, 60 + (x + y) / 4], -1).astype(np.uint8)


def slides():
    """Slides as Aperio and Hamamatsu write them: sizes are pages, among pages that are none."""
    folder = FOLDER / "slides"
    folder.mkdir(exist_ok=True)
    sizes = [smooth(128, 192, 1), smooth(64, 96, 2), smooth(32, 48, 4)]
    label, macro = np.full((20, 24), 77, np.uint8), smooth(30, 60, 2)
    text = "Aperio Image Library v12.0.15\r\n192x128 [0,0 192x128] (64x64) JPEG/RGB Q=95|AppMag = 20|MPP = 0.4990|Left = 25.691574"
    for name, colours in (("ycbcr", "YCBCR"), ("rgb", "RGB")):
        jpeg = {"photometric": "RGB", "compression": "jpeg", "compressionargs": {"level": 95, "outcolorspace": colours}}
        jpeg |= {"subsampling": (2, 1)} if colours == "YCBCR" else {}
        with tifffile.TiffWriter(folder / f"{name}.svs") as file:
            file.write(sizes[0], tile=(64, 64), description=text, metadata=None, **jpeg)
            file.write(smooth(80, 120, 1.6), rowsperstrip=16, description=text.split("\r")[0], metadata=None, **jpeg)
            for side, pixels in zip((32, 16), sizes[1:]):
                file.write(pixels, tile=(side, side), description=text.split("\r")[0], metadata=None, **jpeg)
            file.write(label, subfiletype=1, rowsperstrip=20, compression="lzw", description="Aperio\r\nlabel", metadata=None)
            file.write(macro, subfiletype=9, rowsperstrip=30, description="Aperio\r\nmacro", metadata=None, **jpeg)
        with tifffile.TiffFile(folder / f"{name}.svs") as file:
            assert file.is_svs and [level.shape for level in file.series[0].levels] == [pixels.shape for pixels in sizes]
            assert all(np.abs(level.asarray().astype(int) - pixels).max() < 6 for level, pixels in zip(file.series[0].levels, sizes))
    for name, number in (("ycbcr-2000", 33003), ("rgb-2000", 33005)):
        with tifffile.TiffWriter(folder / f"{name}.svs") as file:
            for side, pixels in zip((64, 32), sizes[:2]):
                if number == 33003:
                    pixels = cv2.cvtColor(pixels, cv2.COLOR_RGB2YCrCb)[..., [0, 2, 1]]
                lossless = {"level": 0, "reversible": True, "mct": number == 33005}
                of = {"photometric": "RGB", "compression": number, "compressionargs": lossless}
                file.write(pixels, tile=(side, side), description=text, metadata=None, **of)
    ndpi(folder / "three.ndpi", [(sizes[0], 20.0, 0), (sizes[0][::-1], 20.0, 400), (sizes[1], 10.0, 0), (macro, -1.0, 0), (label, -2.0, 0)])


def ndpi(path, pages):
    """Pages with a lens and a position of the focus, each a strip of JPEG data; directories have offsets of 64 bits."""
    out = bytearray(b"II*\0" + bytes(8))
    link = 4
    for pixels, lens, focus in pages:
        data = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(pixels)).save(data, "JPEG", quality=95)
        strip = len(out)
        out += data.getvalue() + bytes(len(data.getvalue()) % 2)
        colours, (height, width) = pixels.ndim > 2, pixels.shape[:2]
        many = b"".join(struct.pack("<H", 8) for _ in range(3 if colours else 1))
        text = b"Hamamatsu\0"
        density = struct.pack("<II", 20000, 1)
        tags = [
            (256, 4, 1, struct.pack("<I", width)),
            (257, 4, 1, struct.pack("<I", height)),
            (258, 3, len(many) // 2, many),
            (259, 3, 1, struct.pack("<H", 7)),
            (262, 3, 1, struct.pack("<H", 6 if colours else 1)),
            (271, 2, len(text), text),
            (273, 4, 1, struct.pack("<I", strip)),
            (277, 3, 1, struct.pack("<H", len(many) // 2)),
            (278, 4, 1, struct.pack("<I", height)),
            (279, 4, 1, struct.pack("<I", len(data.getvalue()))),
            (282, 5, 1, density),
            (283, 5, 1, density),
            (296, 3, 1, struct.pack("<H", 3)),
            (65420, 4, 1, struct.pack("<I", 1)),
            (65421, 11, 1, struct.pack("<f", lens)),
            (65424, 9, 1, struct.pack("<i", focus)),
        ]
        entries = bytearray()
        for tag, kind, count, value in tags:
            if len(value) > 4:
                value, at = struct.pack("<I", len(out)), value
                out += at + bytes(len(at) % 2)
            entries += struct.pack("<HHI", tag, kind, count) + value.ljust(4, b"\0")
        out[link : link + 8] = struct.pack("<Q", len(out))
        out += struct.pack("<H", len(tags)) + entries
        link = len(out)
        # The next directory, and the upper halves of values.
        out += bytes(8 + 4 * len(tags))
    path.write_bytes(out)
    with tifffile.TiffFile(path) as file:
        assert file.is_ndpi and len(file.pages) == len(pages)
        assert all(abs(page.asarray().astype(int) - pixels).max() < 6 for page, (pixels, *_) in zip(file.pages, pages))


if __name__ == "__main__":
    pnm()
    webp()
    jpeg2000()
    slides()
