"""EXIF data, resolutions of prints and texts of people: written by Pillow or tifffile, run through Horus, read by Pillow."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image as Pillow
from PIL import PngImagePlugin

import horus_image as hi

EXPOSURE, PLACE = 0x8769, 0x8825
KINDS = ["jpg", "png", "tif"]


def camera(orientation: int = 1) -> Pillow.Exif:
    exif = Pillow.Exif()
    exif[0x10F], exif[0x110], exif[0x112] = "Ours", "One", orientation
    exif[0x13B], exif[0x8298] = "Ann", "2026 Ann"
    exposure = exif.get_ifd(EXPOSURE)
    exposure[0x829A], exposure[0x8827], exposure[0x9003] = 0.008, 400, "2026:11:28 16:39:37"
    exposure[0x9214], exposure[0x927C], exposure[0xA002], exposure[0xA003] = (3, 4), b"by maker", 30, 20
    place = exif.get_ifd(PLACE)
    place[1], place[2] = "N", (52.0, 31.0, 12.5)
    return exif


def pixels() -> np.ndarray[Any, Any]:
    return (np.arange(600) * 7 % 251).astype(np.uint8).reshape(20, 30)


def write(path: Path, exif: Pillow.Exif) -> None:
    more: dict[str, Any] = {"comment": b"by hand"} if path.suffix == ".jpg" else {}
    if path.suffix == ".png":
        texts = PngImagePlugin.PngInfo()
        texts.add_text("Title", "Sea")
        texts.add_itxt("Description", "καλημέρα")
        texts.add_text("Author", "Ann", zip=True)
        texts.add_text("Software", "a program")
        more["pnginfo"] = texts
    Pillow.fromarray(pixels()).save(path, exif=exif, dpi=(300, 150), **more)


def read(path: Path) -> tuple[dict[int, Any], dict[int, Any], dict[int, Any], tuple[float, ...]]:
    with Pillow.open(path) as file:
        exif = file.getexif()
        parts = [dict(exif), dict(exif.get_ifd(EXPOSURE)), dict(exif.get_ifd(PLACE))]
        return parts[0], parts[1], parts[2], tuple(round(float(n)) for n in file.info.get("dpi", ()))


@pytest.mark.parametrize("to", KINDS)
@pytest.mark.parametrize("of", KINDS)
def test_what_a_camera_noted_is_kept(tmp_path: Path, of: str, to: str, caplog: pytest.LogCaptureFixture) -> None:
    given, saved = tmp_path / f"in.{of}", tmp_path / f"out.{to}"
    if of == "tif":
        # Pillow writes no directories of exposures and places there, but reads them: see those of `to`.
        write(tmp_path / "first.jpg", camera())
        hi.save(given, hi.open(tmp_path / "first.jpg"))
    else:
        write(given, camera(6))
    with caplog.at_level(logging.WARNING):
        image = hi.open(given)
        hi.save(saved, image)
    assert not [r for r in caplog.records if "not stored" in r.getMessage()], caplog.text
    picture, exposure, place, dots = read(saved)
    assert (picture[0x10F], picture[0x110], picture[0x112]) == ("Ours", "One", 1)
    assert float(exposure[0x829A]) == pytest.approx(0.008) and exposure[0x8827] == 400
    assert exposure[0x9003] == "2026:11:28 16:39:37" and tuple(exposure[0x9214]) == (3, 4)
    assert 0x927C not in exposure
    assert (exposure[0xA002], exposure[0xA003]) == image.shape[1::-1]
    assert place[1] == "N" and [float(n) for n in place[2]] == [52.0, 31.0, 12.5]
    assert dots == ((300, 150) if of == "tif" else (150, 300)), "sides change places where the picture is turned"
    half = tmp_path / f"half.{to}"
    hi.save(half, image[::2, ::2])
    picture, exposure, _, dots = read(half)
    assert picture[0x10F] == "Ours" and 0x9214 not in exposure
    assert dots == ((150, 75) if of == "tif" else (75, 150))


@pytest.mark.parametrize("to", KINDS)
def test_texts_are_kept_where_files_have_them(tmp_path: Path, to: str) -> None:
    write(tmp_path / "in.png", Pillow.Exif())
    hi.save(tmp_path / f"out.{to}", hi.open(tmp_path / "in.png"))
    with Pillow.open(tmp_path / f"out.{to}") as file:
        if to == "png":
            assert isinstance(file, PngImagePlugin.PngImageFile)
            assert file.text == {"Title": "Sea", "Description": "καλημέρα", "Author": "Ann"}
            return
        tags = file.getexif()
        assert (tags[0x13B], tags[0x10D]) == ("Ann", "Sea")
        assert tags[0x10E] in ("καλημέρα", "καλημέρα".encode().decode("latin-1"))


def test_comments_stay_comments(tmp_path: Path) -> None:
    write(tmp_path / "in.jpg", Pillow.Exif())
    for to in ("jpg", "png", "tif"):
        hi.save(tmp_path / f"out.{to}", hi.open(tmp_path / "in.jpg"))
        with Pillow.open(tmp_path / f"out.{to}") as file:
            known = {"jpg": file.info.get("comment"), "png": file.info.get("Comment"), "tif": file.getexif().get(270)}
            assert known[to] in (b"by hand", "by hand")


def test_texts_of_programs_are_none(tmp_path: Path) -> None:
    for name, options in (
        ("shape.tif", {}),
        ("ome.ome.tif", {"metadata": {"axes": "YX"}}),
        ("imagej.tif", {"imagej": True}),
        ("json.tif", {"description": '{"a": 1}', "metadata": None}),
    ):
        tifffile.imwrite(tmp_path / name, pixels(), **options)
        hi.save(tmp_path / "out.tif", hi.open(tmp_path / name))
        with tifffile.TiffFile(tmp_path / "out.tif") as file:
            assert "ImageDescription" not in file.pages[0].tags, name
    more: dict[str, Any] = {"resolution": (300, 300), "resolutionunit": 2, "metadata": None}
    tifffile.imwrite(tmp_path / "a.tif", pixels(), description="of the sea", **more)
    hi.save(tmp_path / "out.tif", hi.open(tmp_path / "a.tif"))
    with tifffile.TiffFile(tmp_path / "out.tif") as file:
        tags = file.pages[0].tags
        dots, inches = tags["XResolution"].value
        assert tags["ImageDescription"].value == "of the sea"
        assert (dots, tags["ResolutionUnit"].value) == (300 * inches, 2)


def test_sizes_of_a_file_keep_their_places_with_texts(tmp_path: Path) -> None:
    """A text of people does not make smaller copies those of OME files."""
    tifffile.imwrite(tmp_path / "a.tif", pixels(), description="of the sea", metadata=None)
    hi.save(tmp_path / "out.tif", hi.open(tmp_path / "a.tif"), sizes=2)
    with tifffile.TiffFile(tmp_path / "out.tif") as file:
        assert [page.shape for page in file.pages] == [(20, 30), (10, 15)]
        assert file.pages[0].tags["ImageDescription"].value == "of the sea"
        assert "ImageDescription" not in file.pages[1].tags
