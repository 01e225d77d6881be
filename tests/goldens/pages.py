"""Writes pages/*.tif: files whose pages are an image of several channels, levels and times, by tifffile.

The pixels of each count from 0 on in the order time, level, channel, row, column. tifffile reads each file as the array again.
"""

import pathlib
import struct

import numpy as np
import tifffile

FOLDER = pathlib.Path(__file__).parent / "pages"
T, Z, C, Y, X = 2, 3, 2, 5, 7
IMAGEJ = {"imagej": True, "metadata": {"axes": "TZCYX", "spacing": 2.0, "unit": "um"}, "resolution": (4.0, 2.0)}


def counted(*shape, dtype="uint16"):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def write(name, array, **options):
    tifffile.imwrite(FOLDER / f"{name}.tif", array, **options)
    check(name, array)


def check(name, array):
    with tifffile.TiffFile(FOLDER / f"{name}.tif") as file:
        assert np.array_equal(np.squeeze(file.asarray()), np.squeeze(array)), name


def followed(name, array, **options):
    """One directory, and the planes of all pages behind it."""
    path = FOLDER / f"{name}.tif"
    tifffile.imwrite(path, array[0], metadata=None, **options)
    with tifffile.TiffFile(path) as file:
        (offset,), (count,) = file.pages[0].dataoffsets, file.pages[0].databytecounts
        assert offset + count == path.stat().st_size
    with path.open("ab") as file:
        file.write(array[1:].tobytes())
    check(name, array)


def main():
    FOLDER.mkdir(exist_ok=True)
    all_axes = counted(T, Z, C, Y, X)
    write("imagej-pages", all_axes, **IMAGEJ)
    write("imagej-one-directory", all_axes, **IMAGEJ, truncate=True, byteorder=">")
    colours = counted(Z, 3, Y, X, dtype="uint8")
    write("imagej-colours", np.moveaxis(colours, 1, -1), imagej=True, metadata={"axes": "ZYXS"}, truncate=True)
    tables = [np.arange(768, dtype="uint8").reshape(3, 256), np.zeros((3, 256), "uint8")]
    look = {"axes": "CYX", "LUTs": tables, "mode": "composite"}
    table = np.arange(768, dtype="uint16").reshape(3, 256)
    write("imagej-composite", counted(C, Y, X, dtype="uint8"), imagej=True, metadata=look, colormap=table)
    # Levels only, as ImageJ itself writes them, with its name of a micrometre.
    text = "ImageJ=1.53t\nimages=4\nslices=4\nunit=\\u00B5m\nspacing=-0.5\nloop=false\n"
    followed("imagej-images", counted(4, Y, X), description=text, resolution=(10.0, 10.0), resolutionunit="none")
    write("tifffile-pages", all_axes, metadata={"axes": "TZCYX"}, photometric="minisblack")
    write("tifffile-one-directory", all_axes, metadata={"axes": "TZCYX"}, photometric="minisblack", truncate=True)
    # Levels are the fastest.
    turned = np.moveaxis(all_axes[0], 1, 0)
    write("tifffile-turned", turned, metadata={"axes": "CZYX"}, photometric="minisblack", truncate=True)
    write("tifffile-no-axes", counted(Z, Y, X), photometric="minisblack", truncate=True)
    planar = {"photometric": "rgb", "planarconfig": "separate", "truncate": True}
    write("tifffile-planes", colours, metadata={"axes": "ZSYX"}, **planar)
    halves = counted(Z, Y, X, dtype="float16")
    write("tifffile-halves", halves, metadata={"axes": "ZYX"}, photometric="minisblack", truncate=True)
    # MetaMorph: a tag of six numbers for each plane, but the count of planes.
    planes = [(33628, 5, Z, (1, 1) * Z, True), (33629, 5, Z, (1, 1) * Z, True)]
    followed("metamorph", counted(Z, Y, X), extratags=planes)
    zeiss("zeiss", 3)
    zeiss("zeiss-two", 2)
    micromanager()


def zeiss(name, channels):
    """Pages of channels beside each other, for each level and time; two have thumbnails, and are called colours, as Zeiss does."""
    array = counted(T, Z, channels, Y, X, dtype="uint16")
    sizes = struct.pack("<4s7i2i3d", b"LI\0\x04", 512, X, Y, Z, channels, T, 2, 0, 0, 0.25e-6, 0.5e-6, 2e-6)
    sizes += bytes(512 - len(sizes))
    path = FOLDER / f"{name}.tif"
    # tifffile takes two numbers of bits in a Zeiss file for a place, as some old ones have it: it reads them without that tag.
    own = 34412 if channels > 2 else 65000
    with tifffile.TiffWriter(path, byteorder="<") as file:
        for k, page in enumerate(array.reshape(T * Z, channels, Y, X)):
            tags = [(own, 1, len(sizes), sizes, True)] if k == 0 else ()
            file.write(page, photometric="minisblack", planarconfig="separate", metadata=None, extratags=tags)
            if channels == 2:
                thumbnail = np.full((3, 2, 3), 9, "uint8")
                file.write(thumbnail, photometric="rgb", planarconfig="separate", metadata=None, subfiletype=1)
    with tifffile.TiffFile(path) as file:
        pages = [page.asarray() for page in file.pages if page.subfiletype == 0]
        assert np.array_equal(pages, array.reshape(T * Z, channels, Y, X))
        if channels > 2:
            told = file.pages[0].tags[34412].value
            assert told["DimensionZ"] == Z and told["DimensionTime"] == T and told["VoxelSizeZ"] == 2e-6, told
            return
    tag, grey, colour = struct.Struct("<2HI"), struct.pack("<2HI2H", 262, 3, 1, 1, 0), struct.pack("<2HI2H", 262, 3, 1, 2, 0)
    written = path.read_bytes()
    assert written.count(tag.pack(own, 1, 512)) == 1 and written.count(grey) == T * Z
    path.write_bytes(written.replace(tag.pack(own, 1, 512), tag.pack(34412, 1, 512)).replace(grey, colour))


def micromanager():
    """Directories behind an index of planes and a summary, the first with two descriptions; levels are written first."""
    array = counted(T, Z, C, Y, X)
    order = [(t, z, c) for t in range(T) for c in range(C) for z in range(Z)]
    summary = b'{"MicroManagerVersion": "2.0"}'
    xml = f'<?xml version="1.0"?><OME><Image><Pixels DimensionOrder="XYZCT" Type="uint16" SizeX="{X}" SizeY="{Y}" SizeZ="{Z}" '
    xml += f'SizeC="{C}" SizeT="{T}" PhysicalSizeX="0.25" PhysicalSizeY="0.5" PhysicalSizeZ="2.0"><TiffData IFD="0" '
    xml += f'PlaneCount="{len(order)}"/></Pixels></Image></OME>'
    texts = [xml.encode() + b"\0", f"ImageJ=1.52p\nimages={len(order)}\n".encode() + b"\0"]
    out = bytearray(b"II*\0" + bytes(36) + summary)
    struct.pack_into("<2I", out, 32, 2355492, len(summary))
    places, link = [], 4
    for k, (t, z, c) in enumerate(order):
        out += bytes(-len(out) % 2)
        at = len(out)
        struct.pack_into("<I", out, link, at)
        places.append(at)
        described = [*texts, b'{"Frame": 0}\0'] if k == 0 else []
        entries = 9 + len(described)
        behind = at + 2 + 12 * entries + 4
        text_at = [behind + sum(map(len, described[:i])) for i in range(len(described))]
        data = behind + sum(map(len, described))
        tags = [(256, 4, 1, X), (257, 4, 1, Y), (258, 3, 1, 16), (259, 3, 1, 1), (262, 3, 1, 1)]
        told = [(270, 2, len(text), place) for text, place in zip(described, text_at, strict=True)]
        tags += told[:2]
        tags += [(273, 4, 1, data), (277, 3, 1, 1), (278, 4, 1, Y), (279, 4, 1, 2 * X * Y)]
        tags += [(51123, *text[1:]) for text in told[2:]]
        out += struct.pack("<H", entries) + b"".join(struct.pack("<2H2I", *tag) for tag in tags) + bytes(4)
        link = behind - 4
        out += b"".join(described) + array[t, z, c].astype("<u2").tobytes()
    struct.pack_into("<2I", out, 8, 54773648, len(out))
    out += struct.pack("<2I", 3453623, len(order))
    for (t, z, c), at in zip(order, places, strict=True):
        out += struct.pack("<5I", c, z, t, 0, at)
    path = FOLDER / "micromanager.tif"
    path.write_bytes(out)
    with tifffile.TiffFile(path) as file:
        assert file.is_micromanager
        index = file.micromanager_metadata["IndexMap"]
        assert index.tolist() == [[c, z, t, 0, at] for (t, z, c), at in zip(order, places, strict=True)]
        pages = [page.asarray() for page in file.pages]
        assert np.array_equal(pages, [array[place] for place in order])


if __name__ == "__main__":
    main()
