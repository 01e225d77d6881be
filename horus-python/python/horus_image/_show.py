"""Images to be looked at: in notebooks, and in the system's viewer."""

from __future__ import annotations

import base64
import html
import os
import pathlib
import tempfile
import webbrowser
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from ._image import Image
    from .typing import ArrayLike

_SIDE: Final = 512
"""Rows and columns of a picture at most: a larger image is averaged."""


def picture(image: Image) -> tuple[bytes, str]:
    """A PNG of an image, and what it shows: of a volume the middle level, of channels that are no colours the first. Masks and
    ``uint8`` are shown as they are, others from their smallest to their largest finite value."""
    told = []
    if image._ndim == 3:
        middle = image.shape[0] // 2
        told.append(f"level {middle}")
        image = image[middle]
    if image._channels and image.shape[-1] not in (3, 4):
        told.append("channel 0")
        image = image[..., 0]
    if image.dtype == bool:
        image = image.astype(np.uint8) * 255
    rows, columns = image._core.shape[1:3]
    if max(rows, columns) > _SIDE:
        scale = _SIDE / max(rows, columns)
        smaller = max(1, round(rows * scale)), max(1, round(columns * scale))
        told.append("{}x{} pixels of it".format(*smaller))
        image = image.resize(smaller, "area")
    pixels = np.atleast_2d(image.compute())
    if pixels.dtype != np.uint8:
        finite = pixels[np.isfinite(pixels)].astype(np.float64)
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
        told.append(f"{low:g} to {high:g}")
        # Halves: the difference of the largest numbers is none.
        span = max(high / 2 - low / 2, 1e-300)
        halves = np.nan_to_num(pixels.astype(np.float64), nan=low, posinf=high, neginf=low) / 2 - low / 2
        pixels = np.rint(255 * (halves / span)).astype(np.uint8)
    from ._image import asarray

    shown = asarray(pixels, channels=pixels.ndim == 3, session=image.session)
    return shown._core.encode("png"), ", ".join(told)


def page(image: Image) -> str:
    """HTML of an image: a picture, shape and type, the size of its pixels, and, folded, the plans of a session that keeps them."""
    png, told = picture(image)
    size = image.pixel_size
    about = [repr(image).strip("<>").removeprefix("horus_image.")]
    if size is not None:
        about.append("pixels of " + " x ".join(f"{side:g}" for side in size) + " µm")
    if told:
        about.append(told)
    plans = ""
    if image.session._explains:
        text = html.escape(image.session.explain())
        plans = f"<details><summary>plans</summary><pre>{text}</pre></details>"
    data = base64.b64encode(png).decode()
    caption = html.escape(", ".join(about))
    return f'<figure style="margin: 0"><img alt="{caption}" src="data:image/png;base64,{data}"><figcaption>{caption}</figcaption>{plans}</figure>'


def show(image: ArrayLike) -> None:
    """Evaluate an image, or an array, and show a picture of it: in a notebook below the cell, else by the system's viewer.

    Of a volume the middle level is shown, of large images an average of some pixels. Masks and ``uint8`` are shown as they are,
    others from their smallest to their largest value.

    Parameters
    ----------
    image : Image or array_like
        The image to show.

    Raises
    ------
    RuntimeError
        If there is neither a notebook nor a viewer; the message names the file with the picture.
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
    file, path = tempfile.mkstemp(".png", "horus-")
    with os.fdopen(file, "wb") as out:
        out.write(picture(image)[0])
    if not webbrowser.open(pathlib.Path(path).as_uri()):
        raise RuntimeError(f"no viewer was found; the picture is {path}")
