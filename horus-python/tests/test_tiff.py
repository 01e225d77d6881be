"""TIFF files of other programs: stacks of pages that descriptions tell of, and alpha where a file says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from horus_image import ndimage

import horus_image as hi

EXTENTS = {"T": 2, "Z": 3, "C": 2, "Y": 6, "X": 9}


def counted(axes: str) -> np.ndarray[Any, Any]:
    shape = tuple(EXTENTS[axis] for axis in axes)
    return np.arange(np.prod(shape)).reshape(shape).astype("uint16")


@pytest.mark.parametrize("truncate", [False, True], ids=["directories", "one directory"])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("axes", ["ZYX", "CYX", "ZCYX", "TZCYX", "TCYX"])
def test_imagej_files_have_levels_channels_and_times(tmp_path: Path, axes: str, order: Any, truncate: bool) -> None:
    array = counted(axes)
    path = tmp_path / "stack.tif"
    about = {"axes": axes, "spacing": 2.0, "unit": "um"}
    tifffile.imwrite(path, array, imagej=True, metadata=about, resolution=(4, 2), byteorder=order, truncate=truncate)
    missing = tuple(k for k, axis in enumerate("TZCYX") if axis not in axes)
    every = np.expand_dims(array, missing).transpose(0, 1, 3, 4, 2)
    for time in range(len(every)):
        image = hi.open(path, volume=True, page=time if len(every) > 1 else None)
        expected = every[time] if "C" in axes else every[time][..., 0]
        np.testing.assert_array_equal(image.compute(), expected)
        assert image.pixel_size == (2.0 if "Z" in axes else image.pixel_size[0], 0.5, 0.25)
        last = hi.open(path, volume=True, page=time if len(every) > 1 else None)[-1]
        np.testing.assert_array_equal(last.compute(), expected[-1])
    if len(every) > 1:
        with pytest.raises(OSError, match="it has 2 times, of which one is read as a volume"):
            hi.open(path, volume=True)
    # A filter of a volume does not mix channels.
    if axes == "ZCYX":
        smooth = ndimage.gaussian_filter(hi.open(path, volume=True).astype("float32"), 1.0).compute()
        one = ndimage.gaussian_filter(array[:, 0].astype("float32"), 1.0)
        np.testing.assert_array_equal(smooth[..., 0], np.asarray(one))


@pytest.mark.parametrize("truncate", [False, True], ids=["directories", "one directory"])
@pytest.mark.parametrize("axes", ["ZYX", "CZYX", "ZCYX", "TCZYX", ""])
def test_shaped_files_of_tifffile_too(tmp_path: Path, axes: str, truncate: bool) -> None:
    array = counted(axes or "ZYX")
    path = tmp_path / "shaped.tif"
    metadata = {"axes": axes} if axes else {}
    tifffile.imwrite(path, array, photometric="minisblack", metadata=metadata, truncate=truncate)
    known = axes or "ZYX"
    order = [known.index(axis) for axis in "TZCYX" if axis in known]
    every = array.transpose(order).reshape([EXTENTS[axis] if axis in known else 1 for axis in "TZCYX"])
    image = hi.open(path, volume=True, page=1 if "T" in known else None).compute()
    expected = every[-1].transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(image, expected if "C" in known else expected[..., 0])


def test_descriptions_of_missing_planes_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "stack.tif"
    tifffile.imwrite(path, counted("ZYX"), imagej=True, metadata={"axes": "ZYX"}, truncate=True)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(OSError, match="its ImageJ description names 3 planes, and the file has 1"):
        hi.open(path, volume=True)
    np.testing.assert_array_equal(hi.open(path).compute(), counted("ZYX")[0])


@pytest.mark.parametrize(("said", "kept"), [("unspecified", 0), ("assocalpha", 1), ("unassalpha", 2)])
@pytest.mark.parametrize("samples", [2, 4])
def test_alpha_is_what_a_file_says(tmp_path: Path, samples: int, said: str, kept: int) -> None:
    array = (np.arange(20 * 30 * samples) % 251).reshape(20, 30, samples).astype("uint8")
    photometric = "rgb" if samples == 4 else "minisblack"
    path, again = tmp_path / "in.tif", tmp_path / "out.tif"
    tifffile.imwrite(path, array, photometric=photometric, planarconfig="contig", extrasamples=[said])
    image = hi.open(path)
    for result in (image, ndimage.median_filter(image, 3)):
        hi.save(again, result)
        with tifffile.TiffFile(again) as file:
            assert [int(extra) for extra in file.pages[0].extrasamples] == [kept]
            np.testing.assert_array_equal(file.pages[0].asarray(), result.compute())
    if kept == 0:
        with pytest.raises(ValueError, match=rf"an image of {samples} channels, none of them known to be alpha.*channel\(0\)"):
            image.luminance()
    else:
        colours = array[..., :-1].astype(float)
        weights = [1.0] if samples == 2 else [0.299, 0.587, 0.114]
        np.testing.assert_allclose(image.luminance().compute(), colours @ weights / 255, rtol=1e-6)
