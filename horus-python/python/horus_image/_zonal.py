"""Statistics of the zones of a raster, with the rules of xarray-spatial. They are evaluated at the call.

A raster is measured in bands of rows, which are joined in their order: the same numbers come of an array of Dask,
whatever its chunks.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import _horus
from ._foreign import of_any_library, read
from ._image import Array, Image, asarray, made, where
from ._measurements import FEW_LABELS
from ._public import public
from ._values import beside, enter
from .typing import ArrayLike

STATISTICS: Final = ("mean", "max", "min", "sum", "std", "var", "count")
BAND: Final = 512
"""Rows of a band."""

_NAME: Final = "zonal_statistics"
_NEEDS: Final = {"mean": {"sum"}, "var": {"sum", "variance"}, "std": {"sum", "variance"}, "count": set()}
"""What is measured of the bands for a statistic, where that is not the statistic itself."""


@dataclass(frozen=True)
class Zones:
    """Numbers of each zone of a band, or of several. Those that are not asked for are NaN."""

    ids: Array
    count: Array
    sum: Array
    squares: Array
    """Sums of squared deviations from the mean."""
    min: Array
    max: Array

    def joined(self, other: Zones) -> Zones:
        """Those of two bands, one after the other."""
        ids = np.union1d(self.ids, other.ids)
        a, b = (part._on(ids) for part in (self, other))
        count = a.count + b.count
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = np.square(a.sum / a.count - b.sum / b.count) * a.count * b.count / count
        squares = a.squares + b.squares + np.where((a.count > 0) & (b.count > 0), apart, 0.0)
        return Zones(ids, count, a.sum + b.sum, squares, np.fmin(a.min, b.min), np.fmax(a.max, b.max))

    def _on(self, ids: Array) -> Zones:
        """These numbers among more zones."""
        at = np.searchsorted(ids, self.ids)

        def spread(numbers: Array, empty: float) -> Array:
            found = np.full(len(ids), empty, numbers.dtype)
            found[at] = numbers
            return found

        nan = float("nan")
        return Zones(ids, spread(self.count, 0), spread(self.sum, 0.0), spread(self.squares, 0.0), spread(self.min, nan), spread(self.max, nan))

    def of(self, name: str) -> Array:
        """A statistic of each zone; NaN, and a sum too, without cells."""
        if name == "count":
            return self.count
        some = self.count > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            if name in ("var", "std"):
                found = self.squares / self.count
                return np.where(some, np.sqrt(found) if name == "std" else found, np.nan)
            found = self.sum / self.count if name == "mean" else getattr(self, name)
        return np.where(some, found, np.nan)


def checked(statistics: str | Iterable[str]) -> list[str]:
    """The names of statistics that there are."""
    names = [statistics] if isinstance(statistics, str) else list(statistics)
    for name in names:
        if name not in STATISTICS:
            raise ValueError(f"{_NAME}: there is no statistic {name!r}; there are {', '.join(STATISTICS)}")
    return names


def table(bands: Iterable[Zones], names: Sequence[str], zone_ids: Any) -> dict[str, Array]:
    """The statistics of the zones of bands that follow each other."""
    zones = functools.reduce(Zones.joined, bands)
    kept = np.ones(len(zones.ids), bool) if zone_ids is None else np.isin(zones.ids, np.asarray(zone_ids))
    return {"zone": zones.ids[kept]} | {name: zones.of(name)[kept] for name in names}


def entered(image: Any, zones: Any) -> tuple[Image, Image, np.dtype[Any]]:
    """Both rasters as lazy images of one session, and the type of the numbers of zones."""
    given = image if isinstance(image, Image) else read(image)
    if not isinstance(zones, Image):
        zones = beside(zones, given)
    values, _ = enter(given, _NAME)
    if values is None:
        raise ValueError(f"{_NAME}: a raster of shape {given.shape} has no cells")
    if tuple(zones.shape) != tuple(given.shape):
        raise ValueError(f"{_NAME}: zones of shape {tuple(zones.shape)} for a raster of shape {tuple(given.shape)}")
    if len(given.shape) != 2 or values.channels:
        raise ValueError(f"{_NAME}: a raster of shape {tuple(given.shape)}; it has rows and columns")
    numbers, _ = enter(zones, _NAME, values.session)
    assert numbers is not None, "it has the shape of a raster that has cells"
    return made(values.core, values.session, 2), made(numbers.core, numbers.session, 2), numbers.dtype


def measured(image: Image, zones: Image, dtype: np.dtype[Any], names: Sequence[str], nodata: float | None) -> Zones:
    """The numbers of the zones of a band."""
    labels, ids = _numbered(zones)
    cells = image.astype(np.uint8) if image.dtype.kind == "b" else image
    there = labels
    if cells.dtype.kind == "f":
        there = where(abs(cells) < float("inf"), there, 0)
    if nodata is not None:
        missing = float(cells.dtype.type(nodata)) if cells.dtype.kind == "f" else float(nodata)
        there = where(cells.astype(np.float64) == missing, 0, there)
    size = len(ids) + 1
    known = _horus.label_counts(labels._core, size)[1:] > 0
    count = _horus.label_counts(there._core, size)[1:].astype(np.int64)
    needed = set().union(*(_NEEDS.get(name, {name}) for name in names))

    def of(name: str) -> Array:
        if name not in needed:
            return np.full(int(known.sum()), np.nan)
        found: Array = _horus.by_label(cells._core, there._core, size, name)[1:]
        if name in ("sum", "variance"):
            found = np.where(count > 0, found, 0.0)
        return found[known]

    sums, variances = of("sum"), of("variance")
    return Zones(ids[known].astype(dtype), count[known], sums, variances * count[known], of("min"), of("max"))


def _numbered(zones: Image) -> tuple[Image, Array]:
    """Labels from 1 on, 0 outside of zones, and the number of the zone of each."""
    finite = abs(zones) < float("inf") if zones.dtype.kind == "f" else None
    numbers = zones.astype(np.float64)
    if finite is not None:
        numbers = where(finite, numbers, float("nan"))
    low, high = _horus.min_max(numbers._core)
    if low > high:  # all are NaN
        return (numbers * 0.0).astype(np.int32), np.empty(0)
    whole = finite is None or bool((where(finite, np.floor(numbers), 0.0) == where(finite, numbers, 0.0)).all())
    if whole and high - low < max(FEW_LABELS, zones.size):
        labels = numbers - (low - 1.0)
        return (labels if finite is None else where(finite, labels, 0.0)).astype(np.int32), np.arange(low, high + 1.0)
    host = numbers.compute()
    outside = np.isnan(host)
    ids, at = np.unique(host, return_inverse=True)
    numbered = np.where(outside, 0, at.reshape(host.shape) + 1).astype(np.int32)
    return asarray(numbered, session=zones.session), ids[: len(ids) - bool(outside.any())]


@public("raster", module="", rust="by_label")
@of_any_library
def zonal_statistics(
    image: ArrayLike,
    zones: ArrayLike,
    statistics: str | Iterable[str] = STATISTICS,
    *,
    zone_ids: npt.ArrayLike | None = None,
    nodata: float | None = None,
) -> dict[str, Array]:
    """Statistics of the cells of each zone of a raster (``xrspatial.zonal.stats``).

    Both rasters are evaluated at the call. `horus_image.dask.zonal_statistics` takes arrays of Dask.

    Parameters
    ----------
    image : array_like or Image
        Rows and columns. Cells that are no finite numbers do not count.
    zones : array_like or Image
        The number of the zone of each cell; NaN and infinities are outside. Numbers up to 2^53, not only whole ones.
    statistics : str or sequence of str, optional
        Any of ``mean``, ``max``, ``min``, ``sum``, ``std``, ``var`` (of the population) and ``count``; all by default.
        There is no ``majority``.
    zone_ids : array_like, optional
        The zones of the result. Those that no cell has are left out.
    nodata : float, optional
        The value of cells that do not count.

    Returns
    -------
    dict of ndarray
        Under ``zone`` the numbers of the zones, in order, and under each name the statistics, which
        ``pandas.DataFrame`` makes a table of. They are of ``float64``, and of ``int64`` for ``count``. Of a zone whose
        cells do not count they are NaN, and ``count`` is 0, where xarray-spatial has NaN.

    Examples
    --------
    >>> from horus_image import raster
    >>> raster.zonal_statistics([[1.0, 2.0, 6.0]], [[7, 7, 9]], ["mean", "count"])
    {'zone': array([7, 9]), 'mean': array([1.5, 6. ]), 'count': array([2, 1])}
    """
    names = checked(statistics)
    values, numbers, dtype = entered(image, zones)
    height = values.shape[0]
    if height > BAND:
        # What lies behind an image is computed once, not for each band.
        values.start()
        numbers.start()
    bands = (slice(start, min(start + BAND, height)) for start in range(0, height, BAND))
    return table((measured(values[band], numbers[band], dtype, names, nodata) for band in bands), names, zone_ids)
