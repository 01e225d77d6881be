"""A reader of napari, which shows images that are read and computed as they are looked at."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from . import _files
from ._image import Image

Layer = tuple[Any, dict[str, Any], str]


def reader(path: str | Sequence[str]) -> Callable[[str | Sequence[str]], list[Layer]] | None:
    """The reader of a picture, or None for several, which are no image together."""
    return layers if _one(path) is not None else None


def layers(path: str | Sequence[str]) -> list[Layer]:
    """The layers of a picture: one of colours, else one for each channel; with all sizes that the file has.

    Raises
    ------
    OSError
        If the file cannot be read or decoded.
    """
    one = _one(path)
    if one is None:
        raise ValueError(f"{path}: several files; an image is one")
    sizes = _sizes(one)
    first = sizes[0]
    about: dict[str, Any] = {"name": os.path.basename(os.fspath(one).rstrip("/"))}
    if first.pixel_size is not None:
        about["scale"] = first.pixel_size
    if not first._channels:
        return [_layer(sizes, about)]
    channels = first.shape[-1]
    # Channels may be planes of their own, and a fourth is not always alpha.
    if first._core.is_colour() and first.dtype == "uint8":
        return [_layer(sizes, {**about, "rgb": True})]
    each = range(channels)
    return [_layer([size.channel(k) for size in sizes], {**about, "name": f"{about['name']} {k}"}) for k in each]


def _one(path: str | Sequence[str]) -> str | None:
    if isinstance(path, (str, os.PathLike)):
        return os.fspath(path)
    return path[0] if len(path) == 1 else None


def _layer(sizes: list[Image], about: dict[str, Any]) -> Layer:
    several = len(sizes) > 1
    return (sizes if several else sizes[0], {**about, "multiscale": several}, "image")


def _sizes(path: str) -> list[Image]:
    """All sizes, the largest first: of the volume of a TIFF file whose pages are alike, and of the first of several times."""
    if os.path.isdir(path):
        ways: list[dict[str, Any]] = [{}, {"page": 0}]
    elif path.lower().endswith((".tif", ".tiff")):
        ways = [{"volume": True}, {"volume": True, "page": 0}, {}]
    else:
        ways = [{}]
    for way in ways:
        try:
            first = _files.open(path, **way)
        except OSError:
            if way is ways[-1]:
                raise
            continue
        break
    sizes = [first]
    with contextlib.suppress(OSError):
        while True:
            sizes.append(_files.open(path, size=len(sizes), **way))
    return [size[0] for size in sizes] if "volume" in way and first.shape[0] == 1 else sizes
