"""Labelled regions as a table, and as objects, as scikit-image's."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np

from . import _horus, _moments, _perimeters
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
    regions = _Regions("regionprops_table", label_image, intensity_image)
    table: dict[str, Array] = {}
    for name in properties:
        found = regions.measured(name)
        if isinstance(found, list):
            table.update({f"{name}{separator}{i}": column for i, column in enumerate(found)})
        else:
            table[name] = found
    return table


_OF_AXES: Final = ("bbox", "centroid", "centroid_weighted")
"""Properties of several numbers."""

_OF_ALL: Final = (
    *("label", "num_pixels", "area", "area_bbox", "equivalent_diameter_area", "extent", *_OF_AXES, *_FLAT, *_INTENSITIES),
)
"""Properties that are measured for all regions at once."""


class RegionProperties:
    """A labelled region, whose properties are measured when one is asked for: those of `regionprops_table` for all regions at once, others of
    the region alone.

    >>> from horus_image.measure import regionprops
    >>> region = regionprops([[0, 1, 1], [0, 1, 0]])[0]
    >>> region.bbox, region["perimeter"], region
    ((0, 1, 2, 3), 3.414213562373095, <RegionProperties: label=1, bbox=(0, 1, 2, 3)>)
    """

    def __init__(self, regions: _Regions, at: int) -> None:
        self._regions, self._at = regions, at

    def __getattr__(self, name: str) -> Any:
        """A property that is measured for all regions."""
        if name not in _OF_ALL:
            raise AttributeError(f"regionprops: no property {name!r} here; there are {', '.join(self)}")
        if name == "label":
            return int(self._regions.numbers[self._at])
        found = self._regions.measured(name)
        if isinstance(found, list):
            return tuple(int(one[self._at]) if name == "bbox" else one[self._at] for one in found)
        return found[self._at]

    def __getitem__(self, name: str) -> Any:
        """A property by its name."""
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        """The names of properties."""
        own = [name for name, one in vars(type(self)).items() if isinstance(one, functools.cached_property)]
        return iter(sorted([*_OF_ALL, *own]))

    def __repr__(self) -> str:
        """The label and the box."""
        return f"<RegionProperties: label={self.label}, bbox={self.bbox}>"

    @functools.cached_property
    def slice(self) -> tuple[slice, ...]:
        """The box as an index."""
        box = self.bbox
        return tuple(map(slice, box[: len(box) // 2], box[len(box) // 2 :]))

    @functools.cached_property
    def image(self) -> Array:
        """The mask of the region in its box."""
        mask: Array = self._regions.given[self.slice] == self._regions.numbers[self._at]
        return mask

    @functools.cached_property
    def image_intensity(self) -> Array:
        """The intensities of the region in its box, 0 elsewhere."""
        inside: Array = self._regions.brightness()[self.slice] * self.image
        return inside

    @functools.cached_property
    def coords(self) -> Array:
        """The positions of its pixels, a row each."""
        places: Array = np.argwhere(self.image) + [part.start for part in self.slice]
        return places

    @functools.cached_property
    def centroid_local(self) -> tuple[float, ...]:
        """The centre, counted from the corner of the box."""
        return tuple(at - part.start for at, part in zip(self.centroid, self.slice, strict=True))

    @functools.cached_property
    def perimeter(self) -> float:
        """See `horus_image.measure.perimeter`."""
        return _perimeters.perimeter(self.image)

    @functools.cached_property
    def perimeter_crofton(self) -> float:
        """See `horus_image.measure.perimeter_crofton`."""
        return _perimeters.perimeter_crofton(self.image)

    @functools.cached_property
    def euler_number(self) -> int:
        """See `horus_image.measure.euler_number`."""
        return _perimeters.euler_number(self.image)

    @functools.cached_property
    def moments(self) -> Array:
        """Those of the mask, up to the third order; see `horus_image.measure.moments`."""
        return _moments.moments(self.image)

    @functools.cached_property
    def moments_central(self) -> Array:
        """See `horus_image.measure.moments_central`."""
        return _moments.moments_central(self.image, self.centroid_local)

    @functools.cached_property
    def moments_normalized(self) -> Array:
        """See `horus_image.measure.moments_normalized`."""
        return _moments.moments_normalized(self.moments_central)

    @functools.cached_property
    def moments_hu(self) -> Array:
        """See `horus_image.measure.moments_hu`; of a plane."""
        return _moments.moments_hu(self.moments_normalized)

    @functools.cached_property
    def inertia_tensor(self) -> Array:
        """See `horus_image.measure.inertia_tensor`."""
        return _moments.inertia_tensor(self.image, self.moments_central)

    @functools.cached_property
    def inertia_tensor_eigvals(self) -> list[np.floating[Any]]:
        """See `horus_image.measure.inertia_tensor_eigvals`."""
        return _moments.inertia_tensor_eigvals(self.image, T=self.inertia_tensor)


@public(
    "measure", module="skimage.measure._regionprops", rust="`shapes` `mean` `min` `max` of `by_label`",
    opencv="cv.connectedComponentsWithStats", differs="the properties that it names; no `spacing`, `offset` or functions"
)
@of_any_library
def regionprops(label_image: ArrayLike, intensity_image: ArrayLike | None = None, cache: bool = True) -> list[RegionProperties]:
    """The region of each label but 0, in their order (``skimage.measure.regionprops``).

    Parameters
    ----------
    label_image : array_like or Image
        Integers, of two or three axes.
    intensity_image : array_like or Image, optional
        Pixels of the same shape, one channel.
    cache : bool, optional
        Ignored: what is measured is kept.

    Returns
    -------
    list of RegionProperties
        With the properties of `regionprops_table`, and ``slice``, ``image``, ``image_intensity``, ``coords``, ``centroid_local``, ``perimeter``,
        ``perimeter_crofton``, ``euler_number``, ``moments``, ``moments_central``, ``moments_normalized``, ``moments_hu``,
        ``inertia_tensor``, ``inertia_tensor_eigvals``; as attributes, and by name as an index.

    Examples
    --------
    >>> from horus_image.measure import regionprops
    >>> [(region.label, float(region.area)) for region in regionprops([[1, 1, 0], [0, 0, 4]])]
    [(1, 2.0), (4, 1.0)]
    """
    regions = _Regions("regionprops", label_image, intensity_image)
    return [RegionProperties(regions, at) for at in range(len(regions.numbers))]


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

    def __init__(self, name: str, labels: Any, intensities: Any) -> None:
        self.name = name
        given = np.asarray(on_host(labels))
        if given.dtype.kind not in "iub":
            raise TypeError(f"{name}: labels are integers")
        if given.ndim not in (2, 3):
            raise TypeError(f"{name}: labels of {given.ndim} axes; they have two or three")
        self.given = given
        self.numbers = _above_0(given)
        self.intensities = intensities
        if intensities is not None and np.shape(intensities) != given.shape:
            raise ValueError(
                f"{name}: labels of {given.shape} and intensities of {np.shape(intensities)}; they are of one shape"
            )
        self._groups: dict[bool, Groups] = {}
        self._known: dict[Any, Array] = {}

    def groups(self, of_intensities: bool) -> Groups:
        """The pixels of each label: intensities, or the labels themselves, of which positions alone are asked."""
        if of_intensities not in self._groups:
            pixels = self.intensities if of_intensities else self.given
            if pixels is None:
                raise AttributeError(f"{self.name}: no intensity image was given")
            self._groups[of_intensities] = Groups(self.name, pixels, self.given, self.numbers)
        return self._groups[of_intensities]

    def brightness(self) -> Array:
        """The intensities on the host."""
        if self.intensities is None:
            raise AttributeError(f"{self.name}: no intensity image was given")
        pixels: Array = on_host(self.intensities)
        self.intensities = pixels
        return pixels

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
                raise NotImplementedError(f"{self.name}: {name} is a measure of regions in a plane")
            return self.ellipse(name)
        if name in _INTENSITIES:
            how = _INTENSITIES[name]
            values = self.once(("of", how), lambda: self.groups(True).of(how))
            return np.sqrt(values) if name == "intensity_std" else values.astype(np.float64)
        if name == "centroid_weighted":
            groups = self.groups(True)
            return groups.centres() if self.numbers.size else [np.zeros(0)] * ndim
        raise NotImplementedError(f"{self.name}: no property {name!r} here")

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
