#!/usr/bin/env python3
"""Valid but unusual picture files, read by Horus and by tifffile, GDAL, Pillow, imagecodecs, OpenEXR, NumPy and zarr.

    python scripts/odd_files.py [--files 1000] [--seed 1] [--folder F] [--only WORDS]

Writes files of each kind in turn, of all formats that Horus reads and some that it does not, again and again with other sizes and pixels, until
there are as many as asked for; reads each by Horus and by the references of its kind, and prints a table, then each difference and each refusal.
What Horus does by its documentation to samples that a reference returns as stored, `seen` does to these.

Exit status 1 if a file has the pixels of no reference that reads it, or if reading ends in anything but pixels or an `OSError`. The last file in
the folder (by default a new one, which is removed) is the one being read: if the program dies, or ends after a minute, it is that file's fault.

Needs `pip install horus_image-*.whl pillow tifffile imagecodecs rasterio zarr OpenEXR`.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import logging
import struct
import sys
import tempfile
import warnings
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import imagecodecs
import numcodecs
import numpy as np
import OpenEXR
import rasterio
import rasterio.windows
import tifffile
import zarr
from PIL import Image as Pillow
from PIL import ImageOps

import horus_image as hi

Array = np.ndarray[Any, Any]
Options = dict[str, Any]
Random = np.random.Generator
Write = Callable[[Path, Random], Any]


@dataclass(frozen=True)
class Case:
    """A kind of file: how it is written (which may yield its pixels by the definition of the format), and who reads it."""

    format: str
    kind: str
    name: str
    write: Write
    readers: tuple[Callable[[Path, Options], Array], ...]
    suffix: str
    opened: Options = field(default_factory=dict)
    loss: float = 0
    """The largest difference between decoders of a format that is not exact."""


class Lacking(Exception):
    """A reference does not have such pixels."""


# References: each returns pixels as Horus does.


def by_pillow(path: Path, opened: Options) -> Array:
    with Pillow.open(path) as image:
        image.seek(opened.get("page", 0))
        image.load()
        tags = getattr(image, "tag_v2", {})
        if max(tags.get(258, (8,))) > 8 and len(image.getbands()) > 1:
            raise Lacking
        # Pillow turns TIFF files itself.
        turned: Pillow.Image = image if tags else ImageOps.exif_transpose(image)
        if image.mode == "P" and image.format != "TIFF":
            turned = turned.convert("RGBA" if "transparency" in image.info else "RGB")
        elif image.mode in ("CMYK", "YCbCr", "RGBX"):
            turned = turned.convert("RGB")
        pixels = np.asarray(turned)
        if image.mode == "1":
            return pixels * np.uint8(255)
        return pixels.astype(np.uint16 if image.mode == "I" and path.suffix == ".pnm" else pixels.dtype.newbyteorder("="))


def by_imagecodecs(path: Path, opened: Options) -> Array:
    return np.asarray(imagecodecs.imread(path))


def seen(samples: Array, page: Any) -> Array:
    """Stored samples of a TIFF page, channels last: turned, of the full range of a type, 0 black, and red, green and blue instead of inks."""
    samples = samples.astype({"b": np.uint8, "f": np.float64 if samples.dtype.itemsize == 8 else np.float32}.get(samples.dtype.kind, samples.dtype))
    most: Any = np.iinfo(samples.dtype).max if samples.dtype.kind in "iu" else 1
    if samples.dtype.kind == "u" and page.photometric != 3 and page.bitspersample < 8 * samples.itemsize:
        samples = np.round(samples * (most / ((1 << page.bitspersample) - 1))).astype(samples.dtype)
    if page.photometric == 0:
        samples[..., 0] = most - samples[..., 0] if samples.dtype.kind != "i" else -1 - samples[..., 0]
    if page.photometric == 5:
        lights = (most - samples[..., :3].astype(float)) * (1 - samples[..., 3:4] / most)
        samples = np.concatenate([np.round(lights).astype(samples.dtype), samples[..., 4:]], axis=2)
    orientation = page.tags["Orientation"].value if "Orientation" in page.tags else 1
    left, up, turn = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1), (1, 0, 1)][orientation - 1]
    samples = samples[:: -1 if up else 1, :: -1 if left else 1]
    samples = np.swapaxes(samples, 0, 1) if turn else samples
    return samples[..., 0] if samples.shape[2] == 1 else samples


def by_tifffile(path: Path, opened: Options) -> Array:
    with tifffile.TiffFile(path) as file:
        if opened.get("volume"):
            axes, pixels = file.series[0].axes, file.series[0].asarray()
            order = [axes.index(axis) for axis in axes if axis not in "CS"] + [axes.index(axis) for axis in axes if axis in "CS"]
            pixels = pixels[opened.get("page", 0)].transpose(np.subtract(order[1:], 1)) if axes[0] == "T" else pixels.transpose(order)
            return pixels if "Z" in axes or "C" not in axes else pixels[np.newaxis]
        page: Any = file.pages[opened.get("page", 0)]
        page = page.pages[opened["size"] - 1] if opened.get("size") else page
        samples = page.asarray()
        samples = samples[..., np.newaxis] if samples.ndim == 2 else np.moveaxis(samples, 0, -1) if page.axes[0] == "S" else samples
        return seen(samples, page)


def by_gdal(path: Path, opened: Options) -> Array:
    page = opened.get("page", 0)
    with rasterio.open(f"GTIFF_DIR:{page + 1}:{path}" if page else path) as file, tifffile.TiffFile(path) as tiff:
        samples, of = np.moveaxis(file.read(), 0, -1), tiff.pages[page]
        if of.photometric == 5 and file.colorinterp[0] == rasterio.enums.ColorInterp.red:  # type: ignore[union-attr]
            raise Lacking  # It makes them colours itself.
        return seen(samples, of)


def by_numpy(path: Path, opened: Options) -> Array:
    array: Array = np.load(path) if path.suffix == ".npy" else np.asarray(zarr.open_array(path, mode="r")[...])
    return array.astype(np.uint8 if array.dtype == bool else array.dtype.newbyteorder("="))


# Pixels.


def sides(random: Random) -> tuple[int, int]:
    """Rows and columns: some one, few a multiple of anything."""
    height, width = random.choice([1, 2, 7, 16, 33, 61, 97, 128, 201], 2)
    return int(height), int(width)


def noise(random: Random, shape: tuple[int, ...], dtype: str, bits: int = 0) -> Array:
    kind = np.dtype(dtype).newbyteorder("=")
    if kind.kind in "fc":
        return random.standard_normal(shape).astype(kind)
    low, high = (0, 1 << (bits or 1)) if bits or kind.kind == "b" else (np.iinfo(kind).min, int(np.iinfo(kind).max) + 1)
    values = random.integers(low, high, shape, np.int64 if kind.kind == "b" else kind).astype(kind)
    # Runs, so that compressions have something to find.
    return np.where(random.random(shape) < 0.5, values, np.roll(values, 1, -1))


def smooth(random: Random, shape: tuple[int, ...]) -> Array:
    """A picture for lossy compression: slopes, and a little noise."""
    slopes: Any = np.ix_(*(random.uniform(20, 235) + np.linspace(0, random.uniform(-100, 100), n) for n in shape))
    pixels: Array = np.clip(sum(slopes) / len(shape) + random.normal(0, 2, shape), 0, 255).astype(np.uint8)
    return pixels


# Files of TIFF.


def tiff(dtype: str = "uint8", channels: int = 1, planar: bool = False, bits: int = 0, pages: int = 0, lossy: bool = False, **options: Any) -> Write:
    def write(path: Path, random: Random) -> None:
        height, width = sides(random)
        shape = (channels, height, width) if planar else (height, width, channels) if channels > 1 else (height, width)
        shape = (pages, *shape) if pages else shape
        pixels = smooth(random, shape) if lossy else noise(random, shape, dtype, bits)
        given = {"photometric": "rgb" if channels in (3, 4) else "minisblack", **options} | ({"bitspersample": bits} if bits else {})
        if channels > 1:
            given["planarconfig"] = "separate" if planar else "contig"
        if given["photometric"] == "palette":
            given["colormap"] = random.integers(0, 1 << 16, (3, 1 << 8 * pixels.itemsize), np.uint16)
        tifffile.imwrite(path, pixels, metadata=None, **given)

    return write


def gdal(
    dtype: str = "uint8", channels: int = 1, bits: int = 0, lossy: bool = False, mask: bool = False, sparse: bool = False, **options: Any
) -> Write:
    def write(path: Path, random: Random) -> None:
        height, width = (n + 40 for n in sides(random))
        shape = (channels, height, width)
        pixels = smooth(random, shape) if lossy else noise(random, shape, dtype.replace("complex_", ""), bits)
        given = {"driver": "GTiff", **options} | ({"nbits": bits} if bits else {})
        given |= {"blockxsize": 64, "blockysize": 32} if options.get("tiled") else {}
        with (
            rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
            rasterio.open(path, "w", **given, width=width, height=height, count=channels, dtype=dtype, sparse_ok=sparse) as file,
        ):
            window = rasterio.windows.Window(0, 0, width, 16 if sparse else height)
            file.write(pixels[:, : window.height], window=window)
            if mask:
                file.write_mask(noise(random, (height, width), "bool"))

    return write


def pillow(mode: str, **options: Any) -> Write:
    def write(path: Path, random: Random) -> None:
        shape, bands = sides(random), len(Pillow.new(mode, (1, 1)).getbands())
        if mode in ("I", "F", "I;16"):
            image = Pillow.fromarray(noise(random, shape, {"I": "int32", "F": "float32", "I;16": "uint16"}[mode]))
        else:
            image = Pillow.fromarray(smooth(random, (*shape, bands) if bands > 1 else shape), mode if bands > 2 else None).convert(mode)
        image.save(path, **options)

    return write


def ome_tiff(axes: str, shape: tuple[int, ...], **options: Any) -> Write:
    def write(path: Path, random: Random) -> None:
        photometric: Any = "rgb" if "S" in axes else "minisblack"
        tifffile.imwrite(path, noise(random, shape, "uint16"), ome=True, metadata={"axes": axes}, photometric=photometric, **options)

    return write


def sized_tiff(path: Path, random: Random) -> None:
    with tifffile.TiffWriter(path) as file:
        pixels = noise(random, (97, 61), "uint16")
        file.write(pixels, subifds=2, metadata=None)
        file.write(pixels[::2, ::2], subfiletype=1, metadata=None)
        file.write(pixels[::4, ::4], subfiletype=1, metadata=None)


def tiff_cases() -> Iterator[Case]:
    both: Any = (by_tifffile, by_gdal)

    def case(kind: str, name: str, write: Write, readers: Any = both, **more: Any) -> Case:
        return Case("TIFF", kind, name, write, readers, ".tif", **more)

    three = (*both, by_pillow)
    layouts: Iterator[Options] = itertools.cycle([{}, {"rowsperstrip": 1}, {"tile": (16, 32)}, {"rowsperstrip": 7}, {"tile": (64, 48)}])
    headers: Iterator[Options] = itertools.cycle([{}, {"byteorder": ">"}, {"bigtiff": True}, {"byteorder": ">", "bigtiff": True}])
    colours = itertools.cycle([(1, False), (3, False), (3, True), (2, False), (4, False), (5, False), (6, True)])
    types = ["uint8", "uint16", "uint32", "int8", "int16", "int32", "float16", "float32", "float64"]
    codecs = ["lzw", "deflate", "zstd", "packbits", None]
    for dtype, codec in itertools.product(types, [*codecs, "adobe_deflate"]):
        for predictor in (None, None) if codec in (None, "packbits") else (None, 3 if dtype[0] == "f" else 2):
            (channels, planar), layout, header = next(colours), next(layouts), next(headers)
            name = f"{dtype}, {channels} {'planes' if planar else 'channels'}, {codec}, predictor {predictor}, {layout | header}"
            yield case("all types", name, tiff(dtype, channels, planar, compression=codec, predictor=predictor, **layout, **header))
    for dtype, tiled in itertools.product(["float32", "float64", "uint32"], [False, True]):
        yield case("all types", f"{dtype}, predictor 2 by GDAL", gdal(dtype, 3, compress="lzw", predictor=2, tiled=tiled))
    for dtype in types:
        yield case("0 is white", dtype, tiff(dtype, photometric="miniswhite", **next(layouts)), three if dtype == "uint8" else both)
    yield case("0 is white", "and alpha", tiff(channels=2, photometric="miniswhite", extrasamples=[2]), (by_tifffile,))
    for bits, codec in itertools.product(range(1, 17), codecs):
        dtype, kind = "uint8" if bits <= 8 else "uint16", "bits of grey" if bits in (1, 2, 4, 8, 16) else "odd numbers of bits"
        yield case(kind, f"{bits} bits, {codec}", gdal(dtype, bits=bits, compress=codec, tiled=bits % 2 == 0))
        if codec is None:
            yield case(kind, f"{bits} bits, 0 is white", tiff(dtype, bits=bits, photometric="miniswhite", **next(headers)))
            yield case("odd numbers of bits", f"{bits} bits, 3 channels", tiff(dtype, 3, bits=bits, **next(layouts)))
    for bits, codec in itertools.product([1, 2, 4, 8, 16], codecs[:3]):
        if bits < 8:
            yield case("colour table", f"{bits} bits, {codec}", gdal(bits=bits, compress=codec, photometric="palette"))
        else:
            yield case("colour table", f"{bits} bits, {codec}", tiff(f"uint{bits}", photometric="palette", compression=codec, **next(headers)))
    for orientation, channels in itertools.product(range(1, 9), (1, 3)):
        yield case("orientation", f"{orientation}, {channels} channels", tiff("uint8", channels, extratags=[(274, 3, 1, orientation, True)]), three)
    for alpha, dtype, predicted, planar in itertools.product([0, 1, 2], ["uint8", "uint16", "float32"], [False, True], [False, True]):
        more: Options = {"compression": "deflate", "predictor": 3 if dtype == "float32" else 2} if predicted else {}
        name = f"{['unspecified', 'multiplied alpha', 'alpha'][alpha]}, {dtype}, {'planes' if planar else 'chunky'}, {more}"
        yield case("a fourth sample", name, tiff(dtype, 4, planar, extrasamples=[alpha], **more))
    for n, predicted in itertools.product([2, 3], [False, True]):
        write = tiff("uint8", 3 + n, extrasamples=[0] * n, compression="lzw", predictor=predicted, photometric="rgb")
        yield case("more samples", f"3 and {n}", write)
    for page in range(3):
        yield case("pages", f"page {page}", tiff("uint16", pages=3), three, opened={"page": page})
    for channels in (1, 3):
        yield case("pages as levels", f"{channels} channels", tiff("uint16", channels, pages=4), (by_tifffile,), opened={"volume": True})
    for size in range(3):
        yield case("smaller copies", f"SubIFD {size}", sized_tiff, (by_tifffile,), opened={"size": size} if size else {})
    stacks = {"ZYX": (4, 33, 17), "CZYX": (2, 3, 17, 33), "ZCYX": (3, 2, 17, 33), "CYX": (3, 20, 30), "ZYXS": (2, 20, 30, 3), "TZYX": (2, 3, 20, 30)}
    for axes, shape in stacks.items():
        opened = {"volume": True, "page": 1} if axes[0] == "T" else {"volume": True}
        yield case("OME-TIFF", axes, ome_tiff(axes, shape, **next(headers)), (by_tifffile,), opened=opened)
    cuts: list[Options] = [{}, {"tile": (32, 48)}, {"rowsperstrip": 16}]
    for subsampling, layout in itertools.product([(1, 1), (2, 1), (2, 2)], cuts):
        write = tiff(channels=3, lossy=True, photometric="ycbcr", compression="jpeg", subsampling=subsampling, **layout)
        yield case("JPEG inside", f"YCbCr {subsampling}, {layout}", write, three, loss=16)
    for (photometric, channels), tiled in itertools.product({"ycbcr": 3, "rgb": 3, "minisblack": 1, "cmyk": 4}.items(), [False, True]):
        write = gdal(channels=channels, lossy=True, compress="jpeg", photometric=photometric, tiled=tiled)
        yield case("JPEG inside", f"{photometric} by GDAL, {'tiles' if tiled else 'strips'}", write, three, loss=16)
    tags: dict[str, dict[int, int]] = {"": {}, "0 is white": {262: 0}, "low bits first": {266: 2}}
    for codec, (name, info) in itertools.product(["group4", "group3", "tiff_ccitt"], tags.items()):
        yield case("CCITT group 4" if codec == "group4" else "older CCITT", f"{codec}, {name}", pillow("1", compression=codec, tiffinfo=info), three)
    for codec, mode in itertools.product(["tiff_lzw", "tiff_adobe_deflate", "packbits", "zstd"], ["1", "L", "RGB"]):
        yield case("low bits first", f"{mode}, {codec}", pillow(mode, compression=codec, tiffinfo={266: 2}), three)
    for dtype, planar, codec in itertools.product(["uint8", "uint16"], [False, True], [None, "lzw"]):
        write = tiff(dtype, 4, planar, photometric="separated", compression=codec)
        yield case("inks", f"{dtype}, {'planes' if planar else 'chunky'}, {codec}", write, three)
    yield case("inks", "5 of them", tiff("uint8", 5, photometric="separated", extrasamples=[0]))
    for name in ("ycbcr", "cielab", "icclab", "logluv"):
        more = {"subsampling": (1, 1)} if name == "ycbcr" else {}
        yield case("other colours", name, tiff("uint8", 3, photometric=name, **more))
    for dtype in ("int64", "uint64", "complex64", "complex128"):
        yield case("other types", dtype, tiff(dtype))
    yield case("other types", "complex of int16", gdal("complex_int16"))
    for dtype, codec, tiled in itertools.product(["uint8", "float32"], [None, "lzw"], [False, True]):
        yield case("left out", f"{dtype}, {codec}, {'tiles' if tiled else 'strips'}", gdal(dtype, sparse=True, compress=codec, tiled=tiled, nodata=7))
    yield case("left out", "JPEG", gdal(channels=3, lossy=True, sparse=True, compress="jpeg", photometric="ycbcr", tiled=True), loss=16)
    for channels, page in itertools.product([1, 3], [0, 1]):
        write = gdal(channels=channels, mask=True, compress="deflate")
        yield case("a page and its mask", f"{channels} channels, page {page}", write, opened={"page": page})
    for codec, differences in itertools.product(["lzw", "deflate", "zstd"], ["no", "yes"]):
        write = gdal("uint16", 3, driver="COG", compress=codec, predictor=differences)
        yield case("cloud optimized", f"{codec}, predictor {differences}", write)
    for codec in ("lzma", "webp", "lerc", "jpeg2000", "jpegxl", "png"):
        yield case("other compressions", codec, tiff("uint8", 3, lossy=True, compression=codec))
    for mode, codec in itertools.product(["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I", "F", "I;16"], [None, "tiff_lzw", "tiff_adobe_deflate"]):
        yield case("by Pillow", f"{mode}, {codec}", pillow(mode, compression=codec), three)


# Files of other formats.


def packed(samples: Array, bits: int) -> bytes:
    """Samples of so many bits, the high ones first."""
    return np.packbits(samples.reshape(-1, 1) >> np.arange(bits)[::-1] & 1).tobytes()


def png(colour: int, depth: int, laced: bool, *chunks: tuple[bytes, Any]) -> Write:
    """A writer of PNG files in several pieces, with any filter in each row."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    def write(path: Path, random: Random) -> None:
        (height, width), channels = sides(random), {2: 3, 4: 2, 6: 4}.get(colour, 1)
        samples = random.integers(0, 1 << depth, (height, width, channels))
        step, raw = max(1, channels * depth // 8), b""
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)] if laced else [(0, 0, 1, 1)]
        for part in (samples[y::dy, x::dx] for x, y, dx, dy in passes):
            up = np.zeros(len(packed(part[0], depth)) if part.size else 0, int)
            for row in part if part.size else ():
                here = np.frombuffer(packed(row, depth), np.uint8).astype(int)
                left, corner = (np.concatenate([np.zeros(step, int), line])[: len(line)] for line in (here, up))
                a, b, c = (abs(left + up - corner - line) for line in (left, up, corner))
                paeth = np.where((a <= b) & (a <= c), left, np.where(b <= c, up, corner))
                kind = int(random.integers(5))
                raw += bytes([kind]) + (here - [0, left, up, (left + up) // 2, paeth][kind]).astype(np.uint8).tobytes()
                up = here
        data = zlib.compress(raw, int(random.integers(10)))
        cut = int(random.integers(len(data)))
        before = [(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, laced)), *chunks]
        all_chunks = [*before, (b"IDAT", data[:cut]), (b"IDAT", b""), (b"IDAT", data[cut:]), (b"IEND", b"")]
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(name, body(random) if callable(body) else body) for name, body in all_chunks))

    return write


def png_cases() -> Iterator[Case]:
    kinds = [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (2, 8), (2, 16), (3, 1), (3, 2), (3, 4), (3, 8), (4, 8), (4, 16), (6, 8), (6, 16)]
    more = {b"gAMA": struct.pack(">I", 100000), b"sRGB": b"\0", b"pHYs": struct.pack(">IIB", 300, 200, 1), b"tEXt": b"a\0b"}
    more[b"cHRM"] = struct.pack(">8I", *range(30000, 38000, 1000))
    for (colour, depth), laced in itertools.product(kinds, [False, True]):
        table = [(b"PLTE", lambda random, n=3 << depth: random.bytes(n))] if colour == 3 else []
        chosen = struct.pack(">H", (1 << depth) // 2) * (3 if colour == 2 else 1)
        clear = [(b"tRNS", bytes(range(1 << depth)) if colour == 3 else chosen)]
        every: dict[str, Any] = {"samples": table} | ({"transparent colours": table + clear} if colour in (0, 2, 3) else {})
        every |= {f"{name.decode()} chunk": [(name, body), *table] for name, body in more.items() if depth == 8}
        for kind, chunks in every.items():
            name = f"colour type {colour}, {depth} bits{', interlaced' * laced}"
            # Pillow has 8 bits of colours, and takes transparent grey of few bits for another.
            exact = kind != "transparent colours" and (depth <= 8 or colour == 0)
            readers = (by_imagecodecs, by_pillow) if exact else (by_imagecodecs,)
            yield Case("PNG", "other chunks" if "chunk" in kind else kind, f"{name}, {kind}", png(colour, depth, laced, *chunks), readers, ".png")


def jpeg_cases() -> Iterator[Case]:
    def case(kind: str, name: str, write: Write, *readers: Any) -> Case:
        return Case("JPEG", kind, name, write, (by_pillow, *readers), ".jpg", loss=16)

    def subsampled(factors: str) -> Write:
        return lambda path, random: path.write_bytes(imagecodecs.jpeg_encode(smooth(random, (*sides(random), 3)), subsampling=factors))

    kinds = {"L": "grey", "RGB": "colours", "CMYK": "inks"}
    options: list[Options] = [{"quality": 95}, {"quality": 30, "optimize": True}, {"restart_marker_blocks": 3}, {"restart_marker_rows": 1}]
    for mode, progressive, subsampling, more in itertools.product(kinds, [False, True], [0, 1, 2], options):
        name = f"{'progressive' if progressive else 'baseline'}, subsampling {subsampling}, {more}"
        write = pillow(mode, progressive=progressive, subsampling=subsampling, **more)
        yield case(kinds[mode], name, write, *([by_imagecodecs] if mode != "CMYK" else []))
    for orientation in range(1, 9):
        exif = Pillow.Exif()
        exif[274] = orientation
        yield case("orientation", f"{orientation}", pillow("RGB", exif=exif.tobytes(), quality=95, subsampling=0))
    for factors in ("411", "420", "422", "440", "444"):
        yield case("subsampling", factors, subsampled(factors), by_imagecodecs)
    segments: dict[str, Options] = {"RGB": {"keep_rgb": True}, "a profile": {"icc_profile": b"x" * 70000}, "a comment": {"comment": b"by hand"}}
    for name, more in segments.items():
        yield case("other segments", name, pillow("RGB", **more), by_imagecodecs)


def pnm(magic: int, most: int, channels: int, between: str, kind: str = "") -> Write:
    """A writer of PNM files, which yields their pixels by Netpbm's definition: scaled to the range of their type."""

    def write(path: Path, random: Random) -> Array:
        height, width = sides(random)
        samples = random.integers(0, most + 1, (height, width, channels))
        head = f"P{magic}{between}{width} {between}{height}\n" + f"{most}\n" * (magic not in (1, 4))
        if magic == 7:
            head = f"P7\n# by hand\nWIDTH {width}\nHEIGHT {height}\nDEPTH {channels}\nMAXVAL {most}\nTUPLTYPE {kind}\nENDHDR\n"
        text = " \n".join(str(sample) for sample in samples.ravel()).encode()
        body = b"".join(packed(row, 1) for row in samples) if magic == 4 else samples.astype(">u2" if most > 255 else "u1").tobytes()
        path.write_bytes(head.encode() + (text if magic < 4 else body))
        top = 255 if most <= 255 else 65535
        pixels = (samples * top + most // 2) // most if magic not in (1, 4) else 255 - 255 * samples
        return np.squeeze(pixels, 2).astype(f"u{top.bit_length() // 8}") if channels == 1 else pixels.astype(f"u{top.bit_length() // 8}")

    return write


def pnm_cases() -> Iterator[Case]:
    for magic, most, between in itertools.product(range(1, 7), [255, 65535, 1, 15, 100, 1023], ["\n", " # a comment\n", "\t\r\n"]):
        if magic not in (1, 4) or most == 1:
            kind = "bitmap" if magic in (1, 4) else "the range of a type" if most in (255, 65535) else "other ranges"
            write = pnm(magic, most, 3 if magic in (3, 6) else 1, between)
            readers = () if most > 255 and magic in (3, 6) else (by_pillow,)
            yield Case("PNM", kind, f"P{magic} up to {most}, {between!r}", write, readers, ".pnm", loss=most in (100, 1023))
    flags = [("BLACKANDWHITE", 1, 1), ("BLACKANDWHITE_ALPHA", 2, 1)]
    for name, channels, most in [*flags, ("GRAYSCALE", 1, 65535), ("GRAYSCALE_ALPHA", 2, 255), ("RGB", 3, 1000), ("RGB_ALPHA", 4, 255)]:
        yield Case("PNM", "PAM", f"{name} up to {most}", pnm(7, most, channels, "", name), (), ".pam", loss=1)


def bmp(bits: int, header: int = 40, down: bool = False, masks: tuple[int, ...] = (), runs: bool = False) -> Write:
    def write(path: Path, random: Random) -> None:
        height, width = sides(random)
        table = b"" if bits > 8 else b"".join(random.bytes(3) + b"\0" * (header > 12) for _ in range(1 << bits))
        pixels = random.bytes((bits * width + 31) // 32 * 4 * height)
        if runs:
            lengths = [2] * (width // 2) + [1] * (width % 2)
            pixels = b"\0\0".join(b"".join(struct.pack("BB", n, random.integers(256)) for n in lengths) for _ in range(height)) + b"\0\1"
        fields = b"".join(struct.pack("<I", mask) for mask in masks)
        compression = 3 if masks else {8: 1, 4: 2}[bits] if runs else 0
        head = struct.pack("<IiiHHIIiiII", header, width, -height if down else height, 1, bits, compression, len(pixels), 2835, 2835, 0, 0)
        head += fields if header == 40 else (fields + bytes(84))[: max(0, header - 40)]
        head = struct.pack("<IHHHH", 12, width, height, 1, bits) if header == 12 else head
        at = 14 + len(head) + len(table)
        path.write_bytes(b"BM" + struct.pack("<IHHI", at + len(pixels), 0, 0, at) + head + table + pixels)

    return write


def bmp_cases() -> Iterator[Case]:
    def case(kind: str, name: str, write: Write, **more: Any) -> Case:
        return Case("BMP", kind, name, write, (by_pillow, by_imagecodecs), ".bmp", **more)

    for bits, down in itertools.product([1, 4, 8, 16, 24, 32], [False, True]):
        yield case("colour table" if bits <= 8 else "colours", f"{bits} bits{', from the top' * down}", bmp(bits, 40, down), loss=bits == 16)
    for bits, header in itertools.product([1, 4, 8, 24], [12, 108, 124]):
        yield case("other headers", f"{bits} bits, header of {header} bytes", bmp(bits, header))
    for bits in (4, 8):
        yield case("run lengths", f"{bits} bits", bmp(bits, runs=True))
    fields = [(16, (0xF800, 0x7E0, 0x1F)), (16, (0x7C00, 0x3E0, 0x1F)), (32, (0xFF0000, 0xFF00, 0xFF)), (32, (0xFF0000, 0xFF00, 0xFF, 0xFF000000))]
    for bits, masks in fields:
        yield case("fields", f"{masks[0]:x} of {bits} bits", bmp(bits, 124 if len(masks) == 4 else 40, masks=masks), loss=bits == 16)


def by_openexr(path: Path, opened: Options) -> Array:
    with OpenEXR.File(str(path)) as file:
        part = file.parts[0].channels
        found = {name: channel.pixels for name, channel in part.items()}
    colours = next((name for name in ("RGBA", "RGB", "Y") if name in found), next(iter(found)))
    pixels = [found[colours], found["A"]] if colours == "Y" and "A" in found else [found[colours]]
    return np.dstack(pixels).squeeze(2).astype(np.float32) if len(pixels) == 1 and pixels[0].ndim == 2 else np.dstack(pixels).astype(np.float32)


def exr(channels: str, dtype: str, compression: Any, tile: int = 0, window: tuple[int, int] = (0, 0), **others: str) -> Write:
    def write(path: Path, random: Random) -> None:
        height, width = sides(random)

        def pixels(channels: int) -> Array:
            shape = (height, width, channels) if channels > 1 else (height, width)
            return (random.normal(size=shape) * 10 ** random.uniform(-3, 3, shape)).astype(dtype)

        corner = [[window[0], window[1]], [window[0] + width - 1, window[1] + height - 1]]
        header: dict[str, Any] = {"compression": compression, "type": OpenEXR.scanlineimage}
        header["dataWindow"] = tuple(np.array(at, np.int32) for at in corner)
        header["displayWindow"] = (np.zeros(2, np.int32), np.array([299, 199], np.int32))
        if tile:
            header["type"] = OpenEXR.tiledimage
            header["tiles"] = OpenEXR.TileDescription()
            header["tiles"].xSize, header["tiles"].ySize = tile, tile + 3
        stored = {"Y": pixels(1), "A": pixels(1)} if channels == "YA" else {channels: pixels(len(channels) if channels.startswith("RGB") else 1)}
        stored |= {name: pixels(1).astype(kind) for name, kind in others.items()}
        with OpenEXR.File(header, stored) as file:
            file.write(str(path))

    return write


def exr_cases() -> Iterator[Case]:
    def case(kind: str, name: str, write: Write, **more: Any) -> Case:
        return Case("OpenEXR", kind, name, write, (by_openexr,), ".exr", **more)

    exact = ["NO", "RLE", "ZIPS", "ZIP", "PIZ", "PXR24"]
    channels = itertools.cycle(["Y", "RGB", "RGBA", "YA", "depth.Z"])
    for compression, dtype, tile in itertools.product([*exact, "B44", "B44A"], ["f2", "f4"], [0, 13]):
        of = next(channels)
        name = f"{of}, {dtype}, {compression}{', tiles' * bool(tile)}"
        yield case("lines and tiles", name, exr(of, dtype, getattr(OpenEXR, f"{compression}_COMPRESSION"), tile))
    for compression, dtype, of in itertools.product(["DWAA", "DWAB"], ["f2", "f4"], ["Y", "RGB"]):
        name = f"{of}, {dtype}, {compression}"
        yield case("DWA", name, exr(of, dtype, getattr(OpenEXR, f"{compression}_COMPRESSION")))
    for window in [(-7, 5), (1000, -2000)]:
        yield case("windows", f"from {window}", exr("RGB", "f2", OpenEXR.ZIP_COMPRESSION, window=window))
    yield case("other channels", "depth and a number", exr("RGBA", "f2", OpenEXR.ZIP_COMPRESSION, Z="f4", id="u4"))
    yield case("other channels", "integers", exr("Y", "u4", OpenEXR.ZIP_COMPRESSION))


def array_cases() -> Iterator[Case]:
    def npy(dtype: str, shape: tuple[int, ...], fortran: bool, number: tuple[int, int]) -> Write:
        def write(path: Path, random: Random) -> None:
            with path.open("wb") as file:
                np.lib.format.write_array(file, noise(random, shape, dtype).astype(dtype, order="F" if fortran else "C"), number)

        return write

    def store(dtype: str, number: Any, **options: Any) -> Write:
        def write(path: Path, random: Random) -> None:
            shape = sides(random)
            array = zarr.create_array(path, shape=shape, dtype=dtype, zarr_format=number, **{"chunks": (24, 16), **options})
            array[...] = noise(random, shape, dtype)

        return write

    shapes = itertools.cycle([(7, 9), (1, 1), (33, 65, 3), (12, 5, 2), (2, 3, 4, 5)])
    types = ["b1", "u1", "i1", "<u2", ">u2", ">i2", "<u4", ">u4", ">i4", "<f4", ">f4", ">f8", "<i8", "<f2"]
    for dtype, fortran, number in itertools.product(types, [False, True], [(1, 0), (2, 0), (3, 0)]):
        shape = next(shapes)
        name = f"{dtype} {shape}, {'by columns' if fortran else 'by rows'}, version {number[0]}"
        yield Case("npy", "other types" if dtype in ("<i8", "<f2") else "arrays", name, npy(dtype, shape, fortran, number), (by_numpy,), ".npy")
    codecs = {"none": None, "gzip": zarr.codecs.GzipCodec(), "zstd": zarr.codecs.ZstdCodec(), "Blosc": zarr.codecs.BloscCodec()}
    for dtype, (name, codec) in itertools.product(["uint8", ">u2", "int32", "float64", "bool"], codecs.items()):
        kind = "Blosc" if name == "Blosc" else "version 3"
        yield Case("Zarr", kind, f"{dtype}, {name}", store(dtype, 3, compressors=codec), (by_numpy,), ".zarr")
    for dtype in ("uint16", "float32"):
        yield Case("Zarr", "version 3", f"{dtype}, shards", store(dtype, 3, shards=(96, 64)), (by_numpy,), ".zarr")
    former = [None, numcodecs.Zlib(), numcodecs.GZip(), numcodecs.Zstd()]
    for dtype, old, order in itertools.product(["uint8", ">u2", "<i4", ">f8"], former, ["C", "F"]):
        yield Case("Zarr", "version 2", f"{dtype}, {old}, {order}", store(dtype, 2, compressors=old, order=order), (by_numpy,), ".zarr")


def other_cases() -> Iterator[Case]:
    for mode in ("RGB", "RGBA"):
        yield Case("QOI", mode, "by Pillow", pillow(mode), (by_pillow,), ".qoi")
    modes = {"gif": "P", "webp": "RGB", "avif": "RGB", "jp2": "RGB", "ico": "RGBA", "tga": "RGB", "dds": "RGBA", "pcx": "L", "pfm": "F"}
    for suffix, mode in modes.items():
        yield Case("others", suffix, "by Pillow", pillow(mode), (by_pillow,), f".{suffix}")


def read(case: Case, path: Path, random: Random) -> tuple[str, float, list[tuple[str, float]]]:
    """Writes and reads a file: what became of it, the difference from the nearest reference, and what is to be told, with differences."""
    defined = case.write(path, random)
    references: dict[str, Array] = {"the definition": defined} if isinstance(defined, np.ndarray) else {}
    told: list[tuple[str, float]] = []
    for reader in case.readers:
        name = reader.__name__[3:]
        try:
            references[name] = reader(path, case.opened)
        except Lacking:
            pass
        except Exception as e:  # Of any library.
            told.append((f"{name} refuses it ({type(e).__name__})", 0))
    try:
        pixels = hi.open(path, **case.opened).compute()
    except OSError as e:
        return "refused", 0, [("refused: " + str(e).partition(f"{path}: ")[2].replace("tile", "strip"), 0)]
    except Exception as e:  # What must not be.
        return "fault", 0, [(f"FAULT: {type(e).__name__}: {e}", 0)]
    least = np.inf
    for name, other in references.items():
        if (pixels.shape, pixels.dtype) == (other.shape, other.dtype):
            one, other = pixels.astype(float), other.astype(float)
            most = float(np.where((one == other) | (np.isnan(one) & np.isnan(other)), 0, abs(one - other)).max())
            note = f"differs from {name}"
        else:
            now, then = (f"{a.dtype}, {'x'.join(str(n) for n in a.shape[2:]) or 1} channels" for a in (pixels, other))
            most, note = np.inf, f"differs from {name}: {now}, instead of {then}" if now != then else f"differs from {name} in its sides"
        least = min(least, most)
        told += [(note, most)] if most > case.loss else []
    return ("unread" if not references else "equal" if least == 0 else "near" if least <= case.loss else "differs"), least, told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", default="", metavar="WORDS", help="cases whose format, kind and name have all the words")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    generators = (tiff_cases, png_cases, jpeg_cases, pnm_cases, bmp_cases, exr_cases, array_cases, other_cases)
    cases = [case for cases in generators for case in cases()]
    cases = [case for case in cases if all(word in f"{case.format} {case.kind} {case.name}" for word in given.only.split())]
    table: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    largest: dict[tuple[str, str], float] = defaultdict(float)
    notes: dict[tuple[str, str, str], list[tuple[float, str]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for number, case in zip(range(given.files), itertools.cycle(cases), strict=False):
            faulthandler.dump_traceback_later(60, exit=True)
            row = (case.format, case.kind)
            became, most, told = read(case, folder / f"{number:04}{case.suffix}", np.random.default_rng([given.seed, number]))
            table[row][became] += 1
            largest[row] = max(largest[row], most if became == "near" else 0)
            for note, apart in told:
                notes[(*row, note)].append((apart, f"{number:04} {case.name}"))
    faulthandler.cancel_dump_traceback_later()
    libraries = ("horus-image", "tifffile", "imagecodecs", "rasterio", "pillow", "OpenEXR", "numpy", "zarr")
    print(", ".join(f"{name} {version(name)}" for name in libraries) + f", GDAL {rasterio.__gdal_version__}, seed {given.seed}\n")
    columns = ["format", "kind", "files", "equal", "nearly (at most)", "differ", "refused", "read by Horus only"]
    print("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for (kind, name), of in table.items():
        nearly = f"{of['near']} ({largest[kind, name]:g})" if of["near"] else ""
        cells = [of.total(), of["equal"] or "", nearly, of["differs"] + of["fault"] or "", of["refused"] or "", of["unread"] or ""]
        print("| " + " | ".join([kind, name, *map(str, cells)]) + " |")
    total = sum(table.values(), Counter())
    print(f"\n{total.total()} files: " + ", ".join(f"{total[name]} {name}" for name in ("equal", "near", "differs", "refused", "unread", "fault")) + "\n")
    for (kind, name, note), files in notes.items():
        most = max(apart for apart, _ in files)
        print(f"- {kind}, {name}: {note}{f' by up to {most:g}' if 0 < most < np.inf else ''} (files: {len(files)}, first: {files[0][1]})")
    return 1 if total["differs"] or total["fault"] else 0


if __name__ == "__main__":
    sys.exit(main())
