"""Statistics of the neighbourhood of each cell of a raster, with the rules of xarray-spatial."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ._floats import applied, image_of
from ._foreign import of_any_library
from ._image import Array, Image, stack, where
from ._linear import correlate, correlate1d
from ._order import maximum_filter, minimum_filter
from ._public import public
from ._terrain import recorded, shifted
from .typing import ArrayLike, Pixels

STATISTICS: Final = ("mean", "max", "min", "range", "std", "var", "sum")


class _Windows:
    """The cells that there are in the window around each, and sums over them."""

    def __init__(self, cells: Image, kernel: Array) -> None:
        self.cells = cells
        self.kernel = kernel
        self.there = cells == cells

    def total(self, cells: Image, kernel: Array) -> Image:
        """The sum of cells under a kernel, nothing beyond the edges."""
        if kernel.all():
            for axis, size in enumerate(kernel.shape):
                if size > 1:
                    cells = image_of(correlate1d(cells, np.ones(size), axis, mode="constant"))
            return cells
        return image_of(correlate(cells, kernel.astype(float), mode="constant"))

    @functools.cached_property
    def count(self) -> Image:
        return self.total(self.there.astype(np.float64), self.kernel)

    @functools.cached_property
    def sum(self) -> Image:
        return self.total(where(self.there, self.cells, 0.0), self.kernel)

    @functools.cached_property
    def mean(self) -> Image:
        return self.sum / self.count

    @functools.cached_property
    def var(self) -> Image:
        """Of deviations from the mean of each window, so that nothing cancels: those within the rows of a window, and
        of their means."""
        rows = [(y, tuple(np.flatnonzero(row) - row.size // 2)) for y, row in enumerate(self.kernel) if row.any()]
        moments = {columns: self._along(columns) for _, columns in rows}
        found = []
        for y, columns in rows:
            row = y - self.kernel.shape[0] // 2
            count, mean, within = (shifted(part, row, 0, "constant", 0.0) for part in moments[columns])
            found.append(within + count * _square(mean - self.mean))
        return _total(found) / self.count

    def _along(self, columns: tuple[int, ...]) -> tuple[Image, Image, Image]:
        """Number, mean and sum of squared deviations of cells in the same row."""
        reach = max(map(abs, columns))
        taps = np.zeros((1, 2 * reach + 1))
        taps[0, np.array(columns) + reach] = 1.0
        count = self.total(self.there.astype(np.float64), taps)
        some = count > 0.0
        mean = where(some, self.total(where(self.there, self.cells, 0.0), taps) / count, 0.0)
        beside = [shifted(self.cells, 0, column, "constant", float("nan")) for column in columns]
        return count, mean, _total([where(cell == cell, _square(cell - mean), 0.0) for cell in beside])

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
        if name == "std":
            return applied("sqrt", self.var)
        found: Image = getattr(self, name)
        return found


def _square(cells: Image) -> Image:
    return applied("square", cells)


def _total(images: Sequence[Image]) -> Image:
    return functools.reduce(operator.add, images)


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
