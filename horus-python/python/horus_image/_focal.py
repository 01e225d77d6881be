"""Statistics of the neighbourhood of each cell of a raster, with the rules of xarray-spatial."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import _horus
from ._floats import applied, image_of
from ._foreign import of_any_library
from ._image import Array, Image, stack, where
from ._linear import correlate, correlate1d
from ._operators import larger
from ._order import maximum_filter, minimum_filter
from ._public import public
from ._terrain import recorded, shifted
from .typing import ArrayLike, Pixels

STATISTICS: Final = ("mean", "max", "min", "range", "std", "var", "sum")


@dataclass(frozen=True)
class _Part:
    """Parts of windows: how many cells are there, their sum, and that of their squared deviations from the mean."""

    count: Image
    sum: Image
    squares: Image

    def moved(self, rows: int, columns: int) -> _Part:
        """The parts that are so many rows down and columns to the right of each."""
        return _Part(*(shifted(each, rows, columns, "constant", 0.0) for each in (self.count, self.sum, self.squares)))

    def joined(self, other: _Part) -> _Part:
        """Two parts as one, by Chan's formula."""
        count = self.count + other.count
        apart = applied("square", self.sum * other.count - other.sum * self.count) / (self.count * other.count * count)
        # NaN where one of them is empty, which the larger of both is not.
        return _Part(count, self.sum + other.sum, self.squares + other.squares + larger(apart, 0.0))


class _Line:
    """Parts in a line along rows or columns, each of which is joined of parts of half its size."""

    def __init__(self, first: _Part, row: int, column: int) -> None:
        self.step = row, column
        self.powers = [first]

    def _at(self, part: _Part, place: int) -> _Part:
        return part.moved(self.step[0] * place, self.step[1] * place)

    def of(self, size: int) -> _Part:
        """The part of so many, which begins at each."""
        while 2 ** len(self.powers) <= size:
            half = self.powers[-1]
            self.powers.append(half.joined(self._at(half, 2 ** (len(self.powers) - 1))))
        found, place = None, 0
        for power in reversed(range(len(self.powers))):
            if size & 2**power:
                part = self._at(self.powers[power], place)
                found = part if found is None else found.joined(part)
                place += 2**power
        assert found is not None, "a size is positive"
        return found


def _padded(cells: Image, height: int, width: int) -> Image:
    """Cells with zeros around, so that windows begin at the first row and column."""
    return cells._with(_horus.pad(cells._core, (height // 2,) * 2, (width // 2,) * 2, "constant", 0.0))


class _Windows:
    """The cells that there are in the window around each, and their statistics."""

    def __init__(self, cells: Image, kernel: Array) -> None:
        self.cells = cells
        self.kernel = kernel
        self.there = cells == cells
        self.numbers = self.there.astype(np.float64)
        self.filled = where(self.there, cells, 0.0)
        self.count = self._total(self.numbers)
        self.sum = self._total(self.filled)
        self.mean = self.sum / self.count

    def _total(self, cells: Image) -> Image:
        """The sum of cells in each window, nothing beyond the edges."""
        if not self.kernel.all():
            return image_of(correlate(cells, self.kernel.astype(float), mode="constant"))
        for axis, size in enumerate(self.kernel.shape):
            if size > 1:
                cells = image_of(correlate1d(cells, np.ones(size), axis, mode="constant"))
        return cells

    def var(self) -> Image:
        """Of deviations from means, so that nothing cancels where cells are large. With infinite cells it is NaN, as of
        NumPy."""
        squares = self._squares_by_parts() if self.kernel.all() else self._squares()
        return squares / self.count + (self.mean - self.mean)

    def _squares_by_parts(self) -> Image:
        """The squared deviations in rectangles, of those in parts, whose number grows with the logarithm of a side."""
        height, width = self.kernel.shape
        count, cells = (_padded(each, height, width) for each in (self.numbers, self.filled))
        row = _Line(_Part(count, cells, count * 0.0), 0, 1).of(width)
        rows, columns = self.cells.shape
        return _Line(row, 1, 0).of(height).squares[:rows, :columns]

    def _squares(self) -> Image:
        """The squared deviations in other windows, of each cell. They are added row by row: a long sum would have all
        its terms in memory."""
        middle = [side // 2 for side in self.kernel.shape]
        rows = []
        for y, marks in enumerate(self.kernel):
            beside = [shifted(self.cells, y - middle[0], int(x) - middle[1], "constant") for x in np.flatnonzero(marks)]
            # NaN for missing cells, which the larger of both is not.
            terms = [larger(applied("square", cell - self.mean), 0.0) for cell in beside]
            rows += [functools.reduce(Image.__add__, terms)] if terms else []
        return functools.reduce(Image.__add__, rows)

    def extreme(self, name: str) -> Image:
        least = name == "min"
        beyond = float("inf") if least else float("-inf")
        find = minimum_filter if least else maximum_filter
        window: dict[str, Any] = {"size": self.kernel.shape} if self.kernel.all() else {"footprint": self.kernel}
        found = image_of(find(where(self.there, self.cells, beyond), mode="constant", cval=beyond, **window))
        return where(self.count > 0.0, found, float("nan"))

    def of(self, name: str) -> Image:
        if name in ("min", "max"):
            return self.extreme(name)
        if name == "range":
            return self.extreme("max") - self.extreme("min")
        if name in ("var", "std"):
            return applied("sqrt", self.var()) if name == "std" else self.var()
        found: Image = getattr(self, name)
        return found


def _kernel(kernel: Any) -> Array:
    """Which cells around one are its neighbourhood."""
    marks: Array = np.asarray(kernel)
    if marks.ndim == 0 or (marks.ndim == 1 and marks.size == 2):
        sides = np.broadcast_to(marks, 2)
        if marks.dtype.kind not in "iu" or (sides < 1).any():
            raise ValueError(f"focal_statistics: kernel is {kernel}; sides of a window are positive whole numbers")
        marks = np.ones(tuple(sides), bool)
    if marks.ndim != 2 or not all(side % 2 for side in marks.shape):
        raise ValueError(f"focal_statistics: a kernel of shape {marks.shape}; it has rows and columns, and an odd number of each")
    marks = marks == 1
    if not marks.any():
        raise ValueError("focal_statistics: no element of the kernel is 1")
    return marks


@public("raster", module="")
@of_any_library
def focal_statistics(
    image: ArrayLike,
    kernel: npt.ArrayLike = 3,
    statistics: str | Iterable[str] = STATISTICS,
    *,
    nodata: float | None = None,
) -> Pixels:
    """Statistics of the cells around each cell of a raster (``xrspatial.focal.focal_stats``).

    Parameters
    ----------
    image : array_like or Image
        Rows and columns, of any type. NaN are missing cells, and do not count.
    kernel : array_like or int or pair of int, optional
        An array of rows and columns, an odd number of each: where it is 1, the cell counts. Or the side of a square, or
        the height and the width of a rectangle.
    statistics : str or sequence of str, optional
        Any of ``mean``, ``max``, ``min``, ``range``, ``std``, ``var`` (of the population) and ``sum``; all by default.
    nodata : float, optional
        The value of missing cells.

    Returns
    -------
    ndarray or Image
        Of ``float64`` if the input is, else of ``float32``. Given one name, its rows and columns; of a sequence, a
        level for each. Windows end at the edges. Where no cell of a window is there, the sum is 0 and others are NaN.

    Examples
    --------
    >>> from horus_image import raster
    >>> raster.focal_statistics([[1.0, 2.0, 6.0]], 3, "mean")
    array([[1.5, 3. , 4. ]])
    >>> raster.focal_statistics([[1.0, 2.0, 6.0]], [[1, 0, 1]], ["min", "max"])
    array([[[2., 1., 2.]],
    <BLANKLINE>
           [[2., 6., 2.]]])
    """
    names = [statistics] if isinstance(statistics, str) else list(statistics)
    for name in names:
        if name not in STATISTICS:
            raise ValueError(f"focal_statistics: there is no statistic {name!r}; there are {', '.join(STATISTICS)}")
    if not names:
        raise ValueError("focal_statistics: no statistic is given")
    marks = _kernel(kernel)

    def record(cells: Image) -> Image:
        windows = _Windows(cells, marks)
        found = [windows.of(name) for name in names]
        return found[0] if isinstance(statistics, str) else stack(found)

    return recorded("focal_statistics", image, nodata, record)
