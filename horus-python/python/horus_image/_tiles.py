"""Reductions of tiles of lazy images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _horus

if TYPE_CHECKING:
    from ._image import Image


class Tiles:
    """The tiles of an image, which are reduced separately; see `Image.tiles`.

    Each method returns a lazy image with a pixel for each tile, of the axes of the image: of a volume tiles are those of each level, and of
    channels those of each channel. Masks count as 0 and 1. Results have the same bits on every device.
    """

    __slots__ = ("_height", "_image", "_width")

    def __init__(self, image: Image, height: int, width: int) -> None:
        self._image, self._height, self._width = image, height, width

    def sum(self) -> Image:
        """The sum of the pixels of each tile, in ``float64``."""
        return self._reduced("sum")

    def mean(self) -> Image:
        """The mean of the pixels of each tile, in ``float64``."""
        return self._reduced("mean")

    def var(self) -> Image:
        """The variance of the pixels of each tile, in ``float64``, over their number: about the mean of the tile, which is computed first.

        Examples
        --------
        >>> import horus_image as hi
        >>> hi.asarray([[1.0, 3.0, 10.0, 10.0, 7.0]]).tiles(1, 2).var().compute()
        array([[1., 0., 0.]])
        """
        return self._reduced("variance")

    def std(self) -> Image:
        """The standard deviation of the pixels of each tile, the root of `var`."""
        found = self.var()
        return found._with(_horus.unary("sqrt", found._core))

    def min(self) -> Image:
        """The smallest pixel of each tile, in the type of the image; NaN is ignored, and of a tile with nothing else it is infinity."""
        return self._reduced("min")

    def max(self) -> Image:
        """The largest pixel of each tile, in the type of the image; NaN is ignored, and of a tile with nothing else it is minus infinity."""
        return self._reduced("max")

    def __repr__(self) -> str:
        return f"<horus_image.Tiles of {self._height}x{self._width} pixels of {self._image!r}>"

    def _reduced(self, name: str) -> Image:
        image = self._image
        core = _horus.tiled(image._numbers(), name, self._height, self._width)
        return image._with(_horus.convert(core, "bool") if image.dtype.kind == "b" and name in ("min", "max") else core)
