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
    zeiss()


def zeiss():
    """Pages of three channels beside each other, for each level and time."""
    array = counted(T, Z, 3, Y, X, dtype="uint16")
    sizes = struct.pack("<4s7i2i3d", b"LI\0\x04", 512, X, Y, Z, 3, T, 2, 0, 0, 0.25e-6, 0.5e-6, 2e-6)
    sizes += bytes(512 - len(sizes))
    with tifffile.TiffWriter(FOLDER / "zeiss.tif", byteorder="<") as file:
        for k, page in enumerate(array.reshape(T * Z, 3, Y, X)):
            tags = [(34412, 1, len(sizes), sizes, True)] if k == 0 else ()
            file.write(page, photometric="minisblack", planarconfig="separate", metadata=None, extratags=tags)
    with tifffile.TiffFile(FOLDER / "zeiss.tif") as file:
        assert np.array_equal([page.asarray() for page in file.pages], array.reshape(T * Z, 3, Y, X))
        told = file.pages[0].tags[34412].value
        assert told["DimensionZ"] == Z and told["DimensionTime"] == T and told["VoxelSizeZ"] == 2e-6, told


if __name__ == "__main__":
    main()
