"""Images to be looked at: in notebooks, and in the system's browser."""

from __future__ import annotations

import base64
import html
import math
import os
import pathlib
import tempfile
import webbrowser
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ._image import Image
    from ._session import Session
    from .typing import ArrayLike

_SIDE: Final = 512
"""Rows and columns of a picture at most: a larger image is averaged."""
_LEVELS: Final = 64
"""Levels of a volume that are shown at most."""
_PIXELS: Final = 1 << 21
"""Pixels of all levels at most."""
_BINS: Final = 64
_COLOURS: Final = ("#c33", "#393", "#36c")


class Shown(NamedTuple):
    """Pixels of an image as they are shown."""

    pixels: np.ndarray[Any, Any]
    """Levels, rows, columns, channels: 1 for grey, 3 for colours, 4 for colours and alpha."""
    levels: list[int]
    """The level of the image that each level is; none of a plane."""
    scale: tuple[float, float]
    """The numbers that are black and white."""
    told: str
    """What is shown of the image."""


def shown(image: Image, widest: int = _SIDE) -> Shown:
    """What is shown of an image: some levels of a large volume, averages of a large plane; of channels that are no colours the first.
    Masks and ``uint8`` are shown as they are, others from their smallest to their largest finite value."""
    told = []
    if image._channels and image.shape[-1] not in (3, 4):
        told.append("channel 0")
        image = image[..., 0]
    if image.dtype == bool:
        image = image.astype(np.uint8) * 255
    depth, rows, columns = image._core.shape[:3]
    levels = []
    if image._ndim == 3:
        levels = np.unique(np.linspace(0, depth - 1, min(depth, _LEVELS)).round().astype(int)).tolist()
        if len(levels) < depth:
            told.append(f"{len(levels)} of {depth} levels")
    side = min(widest, math.isqrt(_PIXELS // max(1, len(levels))))
    if max(rows, columns) > side:
        scale = side / max(rows, columns)
        smaller = max(1, round(rows * scale)), max(1, round(columns * scale))
        told.append("{}x{} pixels of it".format(*smaller))
    else:
        smaller = None
    parts = [image[level] for level in levels] or [image]
    if smaller is not None:
        parts = [part.resize(smaller, "area") for part in parts]
    for part in parts:
        part.start()
    arrays = [np.atleast_2d(part.compute()) for part in parts]
    pixels = np.stack([array if array.ndim == 3 else array[..., np.newaxis] for array in arrays])
    # Alpha is on a scale of its own.
    colours = pixels[..., :3]
    if pixels.dtype == np.uint8:
        low, high = 0.0, 255.0
    else:
        finite = colours[np.isfinite(colours)].astype(np.float64)
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        told.append(f"{low:g} to {high:g}")
    return Shown(pixels, levels, (low, high), ", ".join(told))


def in_bytes(of: Shown) -> np.ndarray[Any, Any]:
    """The pixels in 8 bits."""
    pixels, (low, high) = of.pixels, of.scale
    if pixels.dtype == np.uint8:
        return pixels

    def scaled(part: np.ndarray[Any, Any], low: float, high: float) -> np.ndarray[Any, Any]:
        # Halves: the difference of the largest numbers is none.
        span = max(high / 2 - low / 2, 1e-300)
        halves = np.nan_to_num(part.astype(np.float64), nan=low, posinf=high, neginf=low).clip(low, high) / 2 - low / 2
        return np.asarray(np.rint(255 * (halves / span)), np.uint8)

    parts = [scaled(pixels[..., :3], low, high)]
    if pixels.shape[-1] == 4:
        parts.append(scaled(pixels[..., 3:], 0.0, 1.0 if pixels.dtype.kind == "f" else float(np.iinfo(pixels.dtype).max)))
    return np.concatenate(parts, axis=-1)


def png(of: Shown, session: Session) -> bytes:
    """A PNG: of a volume its levels, one below the other."""
    from ._image import asarray

    pixels = in_bytes(of)
    pixels = pixels.reshape(-1, *pixels.shape[2:])
    pixels = pixels if pixels.shape[-1] > 1 else pixels[..., 0]
    return asarray(pixels, channels=pixels.ndim == 3, session=session)._core.encode("png")


def thumbnail(image: Image) -> bytes:
    """A small PNG of an image, of a volume of its middle level."""
    if image._ndim == 3:
        image = image[image.shape[0] // 2]
    return png(shown(image, widest=160), image.session)


def bars(of: Shown) -> str:
    """A histogram of the pixels that are shown, as SVG: a line for each colour."""
    low, high = of.scale
    colours = of.pixels[..., :3]
    lines = []
    for channel in range(colours.shape[-1]):
        values = colours[..., channel].astype(np.float64).ravel()
        # Halves: the difference of the largest numbers is none.
        values = values[np.isfinite(values)] / 2
        span = (low / 2, high / 2) if high > low else (low / 2 - 0.5, low / 2 + 0.5)
        counts, _ = np.histogram(values, _BINS, span)
        top = max(1, int(counts.max()))
        points = "".join(f"V{96 - 90 * count / top:.1f}h3" for count in counts.tolist())
        fill = "#789" if colours.shape[-1] == 1 else "none"
        stroke = "#456" if colours.shape[-1] == 1 else _COLOURS[channel]
        lines.append(f'<path d="M2 96{points}V96" fill="{fill}" stroke="{stroke}"/>')
    text = 'font-family="sans-serif" font-size="10" fill="#333"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="histogram of the pixels shown" width="{3 * _BINS + 4}" height="112" '
        f'style="background: #fff">{"".join(lines)}<path d="M2 96.5h{3 * _BINS}" stroke="#999"/>'
        f'<text x="2" y="109" {text}>{low:g}</text><text x="{3 * _BINS + 2}" y="109" text-anchor="end" {text}>{high:g}</text></svg>'
    )


def page(image: Image) -> str:
    """HTML of an image, which needs no other file: a picture, of a volume with a slider over its levels; a histogram, shape and type, the
    size of its pixels, and, folded, the plans of a session that keeps them."""
    of = shown(image)
    rows, columns = of.pixels.shape[1:3]
    size = image.pixel_size
    about = [repr(image).strip("<>").removeprefix("horus_image.")]
    if size is not None:
        about.append("pixels of " + " x ".join(f"{side:g}" for side in size) + " µm")
    if of.told:
        about.append(of.told)
    plans = ""
    if image.session._explains:
        text = html.escape(image.session.explain())
        plans = f"<details><summary>plans</summary><pre>{text}</pre></details>"
    caption = html.escape(", ".join(about))
    data = base64.b64encode(png(of, image.session)).decode()
    drawn = f'<img alt="{caption}" style="display: block; max-width: none" src="data:image/png;base64,{data}">'
    if len(of.levels) > 1:
        # All levels are one picture, of which a window shows one.
        first = len(of.levels) // 2
        moved = "this.previousElementSibling.firstElementChild.style.marginTop=-this.value*{}+'px';this.nextElementSibling.textContent='level '+{}[this.value]"
        drawn = (
            f'<div style="width: {columns}px; height: {rows}px; overflow: hidden">{drawn.replace("display", f"margin-top: {-first * rows}px; display", 1)}</div>'
            f'<input type="range" aria-label="level" min="0" max="{len(of.levels) - 1}" value="{first}" style="width: {max(columns, 160)}px" '
            f'oninput="{moved.format(rows, of.levels)}"><span>level {of.levels[first]}</span>'
        )
    return (
        f'<figure style="margin: 0"><div style="display: flex; flex-wrap: wrap; gap: 1em; align-items: flex-end"><div>{drawn}</div>{bars(of)}</div>'
        f"<figcaption>{caption}</figcaption>{plans}</figure>"
    )


def show(image: ArrayLike) -> None:
    """Evaluate an image, or an array, and show it with a histogram: in a notebook below the cell, else as a page in the system's browser.

    A slider chooses the level of a volume. Colours are shown as such; of other channels the first is shown. Large images are averaged, to
    at most 512 rows and columns; of volumes at most 64 levels are shown, together of 2 million pixels. Masks and ``uint8`` are shown as
    they are, others from their smallest to their largest value. The histogram counts the pixels that are shown.

    Parameters
    ----------
    image : Image or array_like
        The image to show.

    Raises
    ------
    RuntimeError
        If there is neither a notebook nor a browser; the message names the file with the page.
    """
    from ._image import asarray

    image = asarray(image)
    try:
        from IPython import get_ipython  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        shell = None
    else:
        shell = get_ipython()
    if shell is not None and hasattr(shell, "kernel"):
        from IPython.display import HTML, display  # type: ignore[import-not-found, unused-ignore]

        display(HTML(page(image)))
        return
    file, path = tempfile.mkstemp(".html", "horus-")
    with os.fdopen(file, "w", encoding="utf-8") as out:
        out.write(f'<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>Horus</title>\n{page(image)}\n')
    if not webbrowser.open(pathlib.Path(path).as_uri()):
        raise RuntimeError(f"no browser was found; the page is {path}")
