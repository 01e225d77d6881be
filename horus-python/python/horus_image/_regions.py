"""A table of labelled regions, as scikit-image's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from . import _horus
from ._foreign import of_any_library, on_host
from ._image import Array
from ._measurements import FEW_LABELS, Groups
from ._public import Terms, public
from .typing import ArrayLike

_FLAT: Final = ("axis_major_length", "axis_minor_length", "eccentricity", "orientation")
_INTENSITIES: Final = {"intensity_mean": "mean", "intensity_min": "min", "intensity_max": "max", "intensity_std": "variance"}


@public(
    "measure", module="skimage.measure._regionprops", rust="`shapes` `mean` `min` `max` of `by_label`",
    opencv="cv.connectedComponentsWithStats", differs="the properties that it names; no `spacing` or functions",
    accel=Terms("measured", (1e-7, 1e-7))
)
@of_any_library
def regionprops_table(
    label_image: ArrayLike, intensity_image: ArrayLike | None = None, properties: Iterable[str] = ("label", "bbox"), *, separator: str = "-"
) -> dict[str, Array]:
    """Measures of each label but 0, a column each (``skimage.measure.regionprops_table``).

    Parameters
    ----------
    label_image : array_like or Image
        Integers, of two or three axes.
    intensity_image : array_like or Image, optional
        Pixels of the same shape, one channel.
    properties : iterable of str
        Of ``label``, ``num_pixels``, ``area``, ``area_bbox``, ``bbox``, ``centroid``, ``equivalent_diameter_area``, ``extent``; in the
        plane ``orientation`` (radians), ``axis_major_length``, ``axis_minor_length``, ``eccentricity``; of intensities
        ``intensity_mean``, ``intensity_min``, ``intensity_max``, ``intensity_std``, ``centroid_weighted``.
    separator : str
        Between a name and the number of an axis, in the names of columns such as ``bbox-0``.

    Examples
    --------
    >>> from horus_image.measure import regionprops_table
    >>> table = regionprops_table([[0, 1, 1], [2, 0, 1]], properties=("label", "area", "bbox"))
    >>> table["label"], table["area"], table["bbox-3"]
    (array([1, 2]), array([3., 1.]), array([3, 1]))
    """
    regions = _Regions(label_image, intensity_image)
    table: dict[str, Array] = {}
    for name in properties:
        found = regions.measured(name)
        if isinstance(found, list):
            table.update({f"{name}{separator}{i}": column for i, column in enumerate(found)})
        else:
            table[name] = found
    return table


def _above_0(labels: Array) -> Array:
    """The labels above 0 that some pixel has, in order."""
    if labels.size and labels.dtype.kind != "b" and labels.min() >= 0 and labels.max() < max(FEW_LABELS, labels.size):
        there = np.zeros(int(labels.max()) + 1, bool)
        there[labels] = True
        found: Array = np.flatnonzero(there[1:]) + 1
        return found
    rest: Array = np.unique(labels[labels > 0]).astype(np.int64)
    return rest


class _Regions:
    """Labels that some pixel has, and their measures, each computed at most once."""

    def __init__(self, labels: Any, intensities: Any) -> None:
        given = np.asarray(on_host(labels))
        if given.dtype.kind not in "iub":
            raise TypeError("regionprops_table: labels are integers")
        if given.ndim not in (2, 3):
            raise TypeError(f"regionprops_table: labels of {given.ndim} axes; they have two or three")
        self.given = given
        self.numbers = _above_0(given)
        self.intensities = intensities
        if intensities is not None and np.shape(intensities) != given.shape:
            raise ValueError(
                f"regionprops_table: labels of {given.shape} and intensities of {np.shape(intensities)}; they are of one shape"
            )
        self._groups: dict[bool, Groups] = {}
        self._known: dict[Any, Array] = {}

    def groups(self, of_intensities: bool) -> Groups:
        """The pixels of each label: intensities, or the labels themselves, of which positions alone are asked."""
        if of_intensities not in self._groups:
            pixels = self.intensities if of_intensities else self.given
            if pixels is None:
                raise AttributeError("regionprops_table: no intensity image was given")
            name = "regionprops_table"
            self._groups[of_intensities] = Groups(name, pixels, self.given, self.numbers)
        return self._groups[of_intensities]

    def once(self, key: Any, measure: Callable[[], Array]) -> Array:
        if key not in self._known:
            self._known[key] = measure() if self.numbers.size else np.zeros(0)
        return self._known[key]

    def position(self, how: str, axis: int) -> Array:
        """A measure of the positions along an axis."""
        groups = self.groups(False)
        return self.once((how, axis), lambda: groups.of(how, groups.pixels.positions(axis)))

    def counts(self) -> Array:
        if self.given.ndim == 2:
            return self.shapes()[:, 0]
        return self.once("counts", lambda: self.groups(False).counts())

    def shapes(self) -> Array:
        """In the plane, a row of each label: its pixels, its centre, variances of rows and columns, and their covariance."""

        def measure() -> Array:
            groups = self.groups(False)
            assert groups.labels is not None
            found: Array = _horus.label_shapes(groups.labels, groups.count)[groups.places]
            return found

        return self.once("shapes", measure).reshape(-1, 6)

    def measured(self, name: str) -> Array | list[Array]:
        """The column of a property, or one for each axis."""
        ndim = self.given.ndim
        axes = range(ndim)
        if name == "label":
            return self.numbers.astype(np.int64)
        if name == "num_pixels":
            return self.counts().astype(np.int64)
        if name == "area":
            return self.counts().astype(np.float64)
        if name == "bbox":
            low, high = ([self.position(end, axis) for axis in axes] for end in ("min", "max"))
            return [v.astype(np.int64) for v in low] + [v.astype(np.int64) + 1 for v in high]
        if name == "area_bbox":
            sides = [self.position("max", axis) - self.position("min", axis) + 1.0 for axis in axes]
            boxes: Array = np.prod(sides, axis=0, dtype=np.float64)
            return boxes
        if name == "extent":
            shares: Array = self.counts() / np.asarray(self.measured("area_bbox"))
            return shares
        if name == "equivalent_diameter_area":
            volume = np.pi / 4.0 if ndim == 2 else np.pi / 6.0
            found: Array = (self.counts() / volume) ** (1.0 / ndim)
            return found
        if name == "centroid":
            if ndim == 2:
                return [self.shapes()[:, 1 + axis] for axis in axes]
            return [self.position("mean", axis) for axis in axes]
        if name in _FLAT:
            if ndim != 2:
                raise NotImplementedError(f"regionprops_table: {name} is a measure of regions in a plane")
            return self.ellipse(name)
        if name in _INTENSITIES:
            how = _INTENSITIES[name]
            values = self.once(("of", how), lambda: self.groups(True).of(how))
            return np.sqrt(values) if name == "intensity_std" else values.astype(np.float64)
        if name == "centroid_weighted":
            groups = self.groups(True)
            return groups.centres() if self.numbers.size else [np.zeros(0)] * ndim
        raise NotImplementedError(f"regionprops_table: no property {name!r} here")

    def ellipse(self, name: str) -> Array:
        """A measure of the ellipse with the region's second central moments."""
        rows, columns, across = self.shapes()[:, 3:].T
        if name == "orientation":
            turned = 0.5 * np.arctan2(2.0 * across, rows - columns)
            return np.where(rows == columns, np.where(across > 0.0, np.pi / 4, -np.pi / 4), turned)
        middle, half = (rows + columns) / 2.0, np.hypot((rows - columns) / 2.0, across)
        large, small = middle + half, np.maximum(middle - half, 0.0)
        if name == "eccentricity":
            with np.errstate(divide="ignore", invalid="ignore"):
                found: Array = np.where(large > 0.0, np.sqrt(1.0 - small / large), 0.0)
            return found
        lengths: Array = 4.0 * np.sqrt(large if name == "axis_major_length" else small)
        return lengths
