"""Random calls of every function of `ndimage` with everything that SciPy allows: SciPy is the oracle of values, types, shapes and errors.

A call follows from its function and a number alone. `HORUS_CASES` says how many of each function there are; one by hand, and what both
sides made of it: ``python horus-python/tests/test_random.py FUNCTION NUMBER``.

What is meant to differ is the table of docs/python.md, whose names `MEANT` explains to this test.
"""

from __future__ import annotations

import copy
import inspect
import os
import re
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import scipy.ndimage

from horus_image import ndimage
from test_fuzz import FORMS, MODES, formed

CASES: Final = int(os.environ.get("HORUS_CASES", "12"))
DTYPES: Final = ["?", "u1", "i1", "u2", "i2", "u4", "i4", "i8", "u8", "f4", "f8"]
Array = np.ndarray[Any, Any]


class Draw:
    """The random generator of a call."""

    def __init__(self, name: str, number: int) -> None:
        self.rng = np.random.default_rng([zlib.crc32(name.encode()), number])

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def of(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def whole(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        return int(self.rng.integers(low, high + 1))

    def array(self, dtype: Any, shape: tuple[int, ...]) -> Array:
        """Pixels of a type: of few values, of all, of zeros; floats with a NaN or an infinity now and then."""
        kind = np.dtype(dtype)
        style = self.of("few", "few", "all", "zeros" if self.chance(0.2) else "few")
        if style == "zeros":
            return np.zeros(shape, kind)
        if kind.kind == "b":
            return self.rng.random(shape) < 0.6
        if kind.kind in "iu":
            limits = np.iinfo(kind)
            most = 2**53 if self.chance(0.9) else 2**63 - 1
            low, high = (max(limits.min, -most), min(limits.max, most)) if style == "all" else (-4 if kind.kind == "i" else 0, 9)
            return self.rng.integers(low, high, shape, kind, endpoint=True)
        if kind.kind == "c":
            found = np.empty(shape, kind)
            found.real, found.imag = self.array(found.real.dtype, shape), self.array(found.real.dtype, shape)
            return found
        pixels = np.asarray(self.rng.integers(-4, 9, shape) if self.chance(0.4) else self.rng.normal(0, 50, shape))
        if style == "all" and self.chance(0.3):
            pixels = pixels * self.of(1e-3, 1e6, 1e12)
        pixels = pixels.astype(kind)
        if pixels.size and self.chance(0.12):
            pixels.flat[self.whole(0, pixels.size - 1)] = self.of(np.nan, np.inf, -np.inf)
        return pixels

    def each(self, count: int, value: Callable[[], Any], share: float = 0.4) -> Any:
        """One value for all axes, or a sequence of values."""
        if not self.chance(share):
            return value()
        values = [value() for _ in range(count + (self.of(1, -1) if self.chance(0.04) else 0))]
        return self.of(list, tuple, np.array)(values)


class Call:
    """A function and its arguments, drawn in the order of its parameters."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.number = name, number
        self.draw = draw = Draw(name, number)
        self.arguments: dict[str, Any] = {}
        self.input = np.zeros(0)
        if "output" in inspect.signature(getattr(scipy.ndimage, name)).parameters:
            self.alias = draw.chance(0.04)
        for parameter in inspect.signature(getattr(scipy.ndimage, name)).parameters.values():
            if parameter.kind == parameter.VAR_KEYWORD:
                if draw.chance(0.3):
                    self.arguments["truncate"] = draw.of(1.0, 2.5)
            elif parameter.name != "output" and (parameter.default is parameter.empty or draw.chance(0.45)):
                self.arguments[parameter.name] = getattr(self, f"_{parameter.name}")()
        self._settle()
        if "output" in inspect.signature(getattr(scipy.ndimage, name)).parameters and draw.chance(0.5):
            self.arguments["output"] = self._output()
            if name in RANKS and self.input.ndim == 1:
                # SciPy 1.15 and newer write the numbers of the input into any output.
                self.arguments.pop("output")

    @property
    def axes(self) -> int:
        """Of how many axes arguments tell."""
        axes = self.arguments.get("axes")
        return self.input.ndim if axes is None or self.name == "rotate" else np.size(axes)

    def _input(self) -> Any:
        draw = self.draw
        axes = draw.of(1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 0 if draw.chance(0.3) else 2, 4 if draw.chance(0.1) else 1)
        # SciPy divides by 0 in masks without pixels or axes.
        least = 0 if draw.chance(0.1) and "binary" not in self.name else 2
        axes = axes or ("binary" in self.name)
        shape = tuple(draw.of(1, 2, 3, 4, 5, 6, 8, 11 if axes < 3 else 3, least) for _ in range(axes))
        dtype = draw.of("c8", "c16") if draw.chance(0.04) else draw.of(*DTYPES, "f4", "f8", "u1")
        if self.name in ("find_objects", "value_indices"):
            dtype = draw.of(*DTYPES[1:9])
        self.input = np.asarray(draw.array(dtype, shape))
        if self.name == "find_objects":
            self.input = self.input % 7 if self.input.size else self.input
        form = draw.of(*FORMS[:7]) if draw.chance(0.4) else "plain"
        given = formed(self.input, "list" if draw.chance(0.02) else form)
        self.input = np.asarray(given)
        return given

    _arr = _input

    # Edges.

    def _mode(self) -> Any:
        draw = self.draw
        several = self.name not in ONE_MODE and draw.chance(0.25)
        if draw.chance(0.02):
            return draw.of("edge", None, 3, "")
        return draw.each(self.axes, lambda: draw.of(*MODES), 1.0 if several else 0.0)

    def _cval(self) -> Any:
        return 1j if self.draw.chance(0.02) else self.draw.of(0, 0.0, 1, 2.5, -7, 300.0, np.nan if self.draw.chance(0.4) else -0.75, 1e6)

    # Windows.

    def _axis(self) -> int:
        most = max(self.input.ndim, 1)
        return self.draw.whole(-most, most - 1) if not self.draw.chance(0.03) else most

    def _axes(self) -> Any:
        draw, count = self.draw, self.input.ndim
        if self.name == "rotate":
            return draw.of((1, 0), (0, 1), (-1, 0), (0, 2), [1, 2], (-2, -1), (0, -1))
        if not count:
            return None
        if draw.chance(0.1):
            return draw.of(None, 0, -1)
        axes = draw.rng.permutation(count)[: draw.whole(1, count)].tolist()
        if draw.chance(0.04):
            axes = draw.of([0, 0], [count], [0.5], "0")
        return tuple(axes) if draw.chance(0.5) else [axis - count if isinstance(axis, int) and draw.chance(0.2) else axis for axis in axes]

    def _origin(self) -> Any:
        draw = self.draw
        several = 0.0 if self.name.endswith("1d") else 0.4
        return draw.each(self.axes, lambda: draw.of(0, 0, -1, 1 if draw.chance(0.6) else 0, 2 if draw.chance(0.1) else 0), several)

    _origin1 = _origin2 = _origin

    def _size(self) -> Any:
        draw = self.draw
        if self.name.endswith("1d"):
            return draw.of(1, 2, 3, 4, 5, 7, 12, 50 if draw.chance(0.2) else 3, 0 if draw.chance(0.2) else 1)
        return draw.each(self.axes, lambda: draw.of(1, 2, 3, 3, 4, 5 if self.axes < 3 else 2, 0 if draw.chance(0.1) else 3))

    def _extents(self) -> tuple[int, ...]:
        draw, count = self.draw, self.axes
        if draw.chance(0.03):
            count += draw.of(-1, 1)
        return tuple(draw.of(1, 2, 3, 3, 4 if count < 3 else 2, 5 if count < 2 else 3) for _ in range(max(count, 0)))

    def _footprint(self) -> Any:
        draw = self.draw
        if draw.chance(0.3):
            return None
        found = draw.rng.random(self._extents()) < draw.of(0.5, 0.8, 1.1, 0.0 if draw.chance(0.1) else 0.9)
        return draw.of(found, found, found.astype(int), found.tolist(), np.asfortranarray(found))

    def _structure(self) -> Any:
        draw, given = self.draw, self.input
        if self.name == "iterate_structure":
            return draw.array(draw.of("?", "i4"), tuple(draw.of(1, 2, 3) for _ in range(draw.whole(1, 3))))
        if self.name == "label":
            found = ndimage.generate_binary_structure(given.ndim, draw.whole(1, 3))
            extra = draw.rng.random(found.shape) < 0.3
            return draw.of(found, found | extra | extra[(slice(None, None, -1),) * found.ndim], draw.array("?", found.shape) if draw.chance(0.1) else found)
        if draw.chance(0.3):
            return None
        if "binary" in self.name:
            found = draw.rng.random(self._extents()) < draw.of(0.5, 0.8, 1.1)
            return draw.of(found, found, found.astype(int), found.tolist())
        under = self.arguments.get("footprint")
        shape = np.shape(under) if under is not None else self._extents()
        return draw.of(np.zeros(shape), draw.rng.integers(-3, 9, shape), draw.rng.normal(0, 3, shape), np.ones(shape, bool))

    _structure1 = _structure2 = _structure

    def _weights(self) -> Any:
        draw = self.draw
        shape = (draw.whole(1, 7),) if self.name.endswith("1d") else self._extents()
        if draw.chance(0.02):
            shape = draw.of((), (0,), (2, 2))
        kind = draw.of("whole", "whole", "float", "float", "complex" if draw.chance(0.2) else "bool")
        whole = draw.rng.integers(-3, 5, shape)
        found = {"whole": whole, "float": draw.rng.normal(0, 1, shape), "bool": whole > 0, "complex": whole + 1j}[kind]
        return found.tolist() if draw.chance(0.2) else np.asarray(found)

    def _rank(self) -> Any:
        return self.draw.whole(-4, 8) if self.name != "generate_binary_structure" else self.draw.whole(-1, 5)

    def _percentile(self) -> Any:
        return self.draw.of(0, 20, 50.0, 75, 99.5, 100, -10, -30.5, 100.5 if self.draw.chance(0.3) else 33, -101 if self.draw.chance(0.2) else 66)

    # Gaussians.

    def _sigma(self) -> Any:
        draw = self.draw
        return draw.each(self.axes if self.name != "gaussian_filter1d" else 1, lambda: draw.of(0.3, 0.5, 1, 1.0, 1.7, 2.5, 0 if draw.chance(0.3) else 1),
                         0.0 if self.name == "gaussian_filter1d" else 0.4)  # fmt: skip

    def _order(self) -> Any:
        draw = self.draw
        if "gaussian" in self.name:
            return draw.each(self.axes, lambda: draw.of(0, 0, 1, 2, 3, -1 if draw.chance(0.1) else 0), 0.0 if self.name.endswith("1d") else 0.5)
        return draw.of(0, 1, 2, 3, 4, 5, 6 if draw.chance(0.1) else 1, -1 if draw.chance(0.1) else 3)

    def _truncate(self) -> Any:
        return self.draw.of(4.0, 1.0, 2.5, 3, 0.0)

    def _radius(self) -> Any:
        draw = self.draw
        one = 0.0 if self.name.endswith("1d") else 0.3
        return draw.each(self.axes, lambda: draw.of(None, 0, 1, 3, 4, 2.5 if draw.chance(0.1) else 2, -1 if draw.chance(0.1) else 1), one)

    # Geometry.

    def _zoom(self) -> Any:
        draw = self.draw
        return draw.each(self.axes, lambda: draw.of(1, 2, 0.5, 1.5, 0.3, 2.4, draw.rng.uniform(0.2, 2.5)))

    def _shift(self) -> Any:
        draw = self.draw
        return draw.each(self.axes, lambda: draw.of(0, 1, -2, 0.5, -1.5, 30, draw.rng.normal(0, 3)), 0.7)

    def _angle(self) -> Any:
        return self.draw.of(0, 90, 180, -90, 270.0, 45, 30, 450, self.draw.rng.uniform(-400, 400))

    def _matrix(self) -> Any:
        draw, count = self.draw, max(self.input.ndim, 1)
        if draw.chance(0.35):
            return draw.of(np.ones(count), draw.rng.uniform(0.3, 2, count), draw.of(1.0, 2.0, 0.5, -1.0) * np.ones(count))
        square = draw.of(np.eye(count), draw.rng.permutation(np.eye(count)), np.eye(count) + draw.rng.normal(0, 0.3, (count, count)))
        if draw.chance(0.2):
            square = np.c_[square, draw.rng.normal(0, 2, count)]
            if draw.chance(0.6):
                square = np.r_[square, [[0] * count + [1 if draw.chance(0.9) else 2]]]
        return square if not draw.chance(0.04) else square[:, 1:]

    def _offset(self) -> Any:
        draw = self.draw
        return draw.each(self.axes, lambda: draw.of(0, 1, -2.0, 0.5, draw.rng.normal(0, 3)), 0.6)

    def _output_shape(self) -> Any:
        draw = self.draw
        extents = [draw.of(1, 2, 3, 5, 8) for _ in range(self.axes + (1 if draw.chance(0.04) else 0))]
        return None if draw.chance(0.2) else tuple(extents)

    def _coordinates(self) -> Any:
        draw, shape = self.draw, tuple(self.draw.of(1, 2, 4, 6) for _ in range(self.draw.of(1, 1, 2, 2, 3, 4)))
        count = self.input.ndim + (1 if draw.chance(0.03) else 0)
        near = np.array(self.input.shape + (3,), float)[:count].reshape((count,) + (1,) * len(shape))
        found = np.asarray(draw.rng.uniform(-0.3, 1.3, (count, *shape)) * near)
        found = draw.of(found, np.rint(found), np.rint(2 * found) / 2, found.astype("f4"), np.rint(found).astype("i4"))
        if found.size and found.dtype.kind == "f" and draw.chance(0.04):
            found.flat[0] = draw.of(np.nan, np.inf)
        return found

    def _mapping(self) -> Any:
        by, scale, count = self.draw.rng.normal(0, 2), self.draw.of(1.0, 0.5, -1.0, 1.3), self.draw.of(None, None, None, 1)
        return lambda at, more=0.0, less=0.0: tuple(scale * one + by + more - less for one in at)[:count]

    def _extra_arguments(self) -> Any:
        return self.draw.of((), (0.25,))

    def _extra_keywords(self) -> Any:
        return self.draw.of(None, {}, {"less": 1.5})

    def _prefilter(self) -> bool:
        return self.draw.chance(0.5)

    _reshape = _grid_mode = _brute_force = _prefilter

    # Morphology.

    def _iterations(self) -> Any:
        draw = self.draw
        return draw.of(1, 2, 3, 4, 7, 0, -1, 2.0 if draw.chance(0.1) else 2)

    def _mask(self) -> Any:
        draw = self.draw
        found = draw.array(draw.of("?", "u1", "f8"), self.input.shape)
        return None if draw.chance(0.4) else found if not draw.chance(0.04) else found[..., None]

    def _border_value(self) -> Any:
        return self.draw.of(0, 1, True, False, 2)

    def _connectivity(self) -> int:
        return self.draw.whole(-1, 4)

    # Measurements.

    def _labels(self) -> Any:
        draw = self.draw
        found = draw.rng.integers(0, 5, self.input.shape).astype(draw.of("i4", "u1", "i8", "i2"))
        if draw.chance(0.1):
            found = draw.of(found > 2, found * 1.5, found - 2)
        return None if draw.chance(0.2) else found if not found.ndim or not draw.chance(0.05) else found[:1]

    def _index(self) -> Any:
        draw = self.draw
        return draw.of(None, 1, 3, 9, np.arange(5), [1, 2], [[3, 0], [1, 1]], [2], [1.5, 2.0], (), np.int32(2))

    def _min(self) -> Any:
        return self.draw.of(0, -3, 0.5, 2)

    def _max(self) -> Any:
        return self.draw.of(8, 3.5, 200, 1)

    def _bins(self) -> Any:
        return self.draw.of(1, 2, 5, 16)

    def _ignore_value(self) -> Any:
        return self.draw.of(0, 3, None, 2.5, 70000 if self.draw.chance(0.2) else 1)

    # Transforms.

    def _n(self) -> int:
        return self.draw.of(-1, -7, 1, 4, 13)  # type: ignore[no-any-return]

    def _max_label(self) -> Any:
        return self.draw.of(0, 3, 9, -1)

    # Distances.

    def _sampling(self) -> Any:
        draw = self.draw
        return None if draw.chance(0.2) else draw.each(max(self.input.ndim, 1), lambda: draw.of(1, 2.0, 0.5, draw.rng.uniform(0.3, 3)), 0.6)

    def _metric(self) -> Any:
        draw = self.draw
        return draw.of("taxicab", "chessboard", "cityblock", "manhattan", "euclidean" if draw.chance(0.2) else "taxicab")

    def _return_distances(self) -> bool:
        return self.draw.chance(0.8)

    def _return_indices(self) -> bool:
        return self.draw.chance(0.5 if self.name.endswith("edt") else 0.1)

    def _distances(self) -> Any:
        kind = np.float64 if self.name.endswith("edt") else np.int32
        return None if self.draw.chance(0.6) else np.zeros(self.input.shape, kind if not self.draw.chance(0.05) else np.int16)

    def _indices(self) -> Any:
        draw = self.draw
        if draw.chance(0.9 if self.name.endswith("cdt") else 0.6):
            return None
        return np.zeros((max(self.input.ndim, 1), *self.input.shape), np.int32 if not draw.chance(0.05) else np.int64)

    def _settle(self) -> None:
        """Excludes calls for which SciPy would not end, or reads beyond arrays."""
        given = self.arguments
        if "structure" in given and given.get("footprint") is not None and not np.any(given["footprint"]):
            given.pop("structure")
        if "binary" in self.name or self.name == "iterate_structure":
            for structure, origin in (("structure", "origin"), ("structure1", "origin1"), ("structure2", "origin2")):
                if origin not in given:
                    continue
                if not rising(self):
                    # SciPy looks at the extent along another axis.
                    given.pop(origin)
                    continue
                shape = np.shape(given.get(structure)) if given.get(structure) is not None else (3,) * self.axes
                origins = np.zeros(len(shape), int) + given[origin] if np.size(given[origin]) in (1, len(shape)) else np.zeros(len(shape), int)
                # Of the element and of the one that is turned.
                given[origin] = [int(np.clip(at, -((size - 1) // 2), (size - 1) // 2)) for at, size in zip(origins, shape, strict=True)]
            if self.name == "binary_hit_or_miss" and np.shape(given.get("structure1")) != np.shape(given.get("structure2")):
                given.pop("origin1", None), given.pop("origin2", None)
            endless = self.name in ("binary_propagation", "binary_fill_holes") or given.get("iterations", 1) < 1
            if endless and given.get("structure") is not None:
                # Without its centre an element may take a mask back and forth for ever.
                element = np.asarray(self.draw.rng.random([size | 1 for size in np.shape(given["structure"])]) < 0.7)
                element[tuple(size // 2 for size in element.shape)] = True
                given["structure"] = element
            if endless or (given.get("iterations", 1) != 1 and not given.get("brute_force")):
                # SciPy writes beyond its memory.
                given.pop("origin", None)

    def _output(self) -> Any:
        draw = self.draw
        dtype = np.dtype(draw.of(*DTYPES) if not draw.chance(0.03) else "c16")
        if self.input.dtype.kind == "c" or any(np.iscomplexobj(self.arguments.get(name)) for name in ("weights",)):
            dtype = np.dtype(draw.of("c8", "c16", "c16", "f8"))
        how = draw.of("array", "array", "array", "type", "type", "name", "input" if draw.chance(0.2) else "array")
        if how == "type":
            return draw.of(dtype, dtype.type)
        if how == "name":
            return draw.of(dtype.name, dtype.str)
        if how == "input" and isinstance(self.arguments.get("input"), np.ndarray) and self.arguments["input"].flags.writeable:
            return self.arguments["input"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                made = getattr(scipy.ndimage, self.name)(**copy.deepcopy(self.arguments))
                shape = (made[0] if self.name == "label" else made).shape
            except Exception:
                shape = self.input.shape
        if draw.chance(0.04) and self.name != "affine_transform":
            shape = (*shape, 2)
        output = draw.rng.integers(0, 2, shape).astype(dtype)
        return formed(output, draw.of(*FORMS[:6]) if draw.chance(0.3) else "plain")

    def made_by(self, module: Any) -> Any:
        """The result that the function returns or stores, or the exception that it raises."""
        given = copy.deepcopy(self.arguments)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found = getattr(module, self.name)(**given)
            except Exception as error:
                return error
        output = given.get("output")
        if isinstance(output, np.ndarray):
            if self.name == "label":
                return output, found
            assert found is None or found is output or np.shares_memory(found, output) or not output.size, "a result that is not the output"
            return output
        return found

    def __repr__(self) -> str:
        with np.printoptions(threshold=400, linewidth=150):
            return f"{self.name} {self.number}:\n" + "\n".join(f"  {name} = {value!r}" for name, value in self.arguments.items())


RANKS: Final = {"rank_filter", "median_filter", "percentile_filter"}
ONE_MODE: Final = {
    "correlate", "convolve", "correlate1d", "convolve1d", "gaussian_filter1d", "uniform_filter1d", "minimum_filter1d", "maximum_filter1d",
    "affine_transform", "geometric_transform", "map_coordinates", "rotate", "shift", "zoom", "spline_filter", "spline_filter1d", "rank_filter",
    "median_filter", "percentile_filter",
}  # fmt: skip


# Comparison of both results.

FLOATING: Final = {"sum", "sum_labels", "mean", "variance", "standard_deviation", "center_of_mass"}
FOURIER: Final = {"fourier_ellipsoid", "fourier_gaussian", "fourier_shift", "fourier_uniform"}
GEOMETRY: Final = {"affine_transform", "geometric_transform", "map_coordinates", "rotate", "shift", "zoom", "spline_filter", "spline_filter1d"}
GREY: Final = {
    "grey_erosion", "grey_dilation", "grey_opening", "grey_closing", "morphological_gradient", "morphological_laplace", "white_tophat",
    "black_tophat",
}  # fmt: skip
ORDER: Final = {
    "minimum_filter", "maximum_filter", "minimum_filter1d", "maximum_filter1d", "rank_filter", "median_filter", "percentile_filter",
}  # fmt: skip
PLACES: Final = {"extrema", "maximum_position", "minimum_position"}
MEASURES: Final = {*FLOATING, *PLACES, "median", "minimum", "maximum", "histogram", "find_objects", "label"}
LINEAR: Final = {
    "correlate", "convolve", "correlate1d", "convolve1d", "gaussian_filter", "gaussian_filter1d", "gaussian_laplace", "laplace", "sobel",
    "gaussian_gradient_magnitude", "prewitt", "uniform_filter", "uniform_filter1d",
}  # fmt: skip


def gain(call: Call) -> float:
    """By how much a filter makes the largest pixel larger, at most."""
    given, count = call.arguments, max(call.input.ndim, 1)
    if call.name in FOURIER:
        return 1.0
    if "weights" in given:
        return float(np.abs(np.asarray(given["weights"])).sum()) + 1.0
    if call.name in ("sobel", "prewitt", "laplace"):
        return 2.0 * 4.0**count
    if "gaussian" in call.name:
        smallest = min((float(one) for one in np.ravel(given["sigma"]) if one > 0), default=1.0)
        orders = np.max(np.ravel(given.get("order", 2 if "laplace" in call.name else 1 if "gradient" in call.name else 0)), initial=0)
        return float(4.0 / min(smallest, 1.0)) ** (max(orders, 0) * (count if np.ndim(given.get("order", 0)) == 0 else 2))
    if call.name in GEOMETRY and given.get("order", 3) > 1:
        return 12.0**count
    return 1.0


def totals(call: Call) -> list[float]:
    """The sums of the pixels of each group of labels."""
    pixels, labels = call.input.astype(np.float64), call.arguments.get("labels")
    if labels is None:
        return [float(pixels.sum())]
    there = np.broadcast_to(labels, pixels.shape)
    return [float(pixels[there > 0].sum()), *(float(pixels[there == label].sum()) for label in np.unique(there))]


def slack(call: Call, expected: Array) -> float:
    """Tolerance of a float against SciPy's: rounding of sums in another order, relative to the terms."""
    if call.name not in LINEAR | GEOMETRY | FLOATING | FOURIER:
        return 0.0
    numbers = np.abs(np.concatenate([np.ravel(call.input).astype(np.complex128), np.ravel(call.arguments.get("cval", 0.0))]))
    largest = float(numbers[np.isfinite(numbers)].max(initial=0.0))
    single = call.input.dtype.char == "F" or (call.input.dtype.char == "f" and expected.dtype.char in "fF")
    share = 4e-6 if single else 1e-12
    if call.name in GEOMETRY and call.arguments.get("order", 3) < 2:
        share = max(share, 1e-9)  # positions in planes are held to 2^-32
    if call.name in FLOATING:
        if call.name == "center_of_mass":
            # Quotients of sums: of both signs these may be far smaller than their terms.
            least = min(abs(total) for total in totals(call))
            far = max(call.input.shape, default=1) + float(np.abs(expected).max(initial=0.0, where=np.isfinite(expected)))
            return (4e-6 if call.input.dtype.char == "f" else share) * largest * call.input.size * far / least if least > 0 else np.inf
        # SciPy adds up `float32` in this type.
        return (4e-6 if call.input.dtype.char == "f" else share) * largest ** (2 if call.name == "variance" else 1) * call.input.size
    if expected.dtype.char in "fF":
        share = max(share, 1.2e-7)
    return share * largest * gain(call)


def differs(call: Call, found: Any, expected: Any) -> str | None:
    """The difference of our result, or exception, from SciPy's."""
    if isinstance(expected, Exception) or isinstance(found, Exception):
        if not isinstance(expected, Exception) or not isinstance(found, Exception):
            return "raised"
        # Of others SciPy says nothing: they come from within.
        kinds = TypeError, ValueError, RuntimeError
        alike = not isinstance(expected, kinds) or any(isinstance(expected, kind) and isinstance(found, kind) for kind in kinds)
        return None if alike else f"another exception: {type(expected).__name__} is {type(found).__name__}"
    if isinstance(expected, (tuple, list)):
        if type(found) is not type(expected) or len(found) != len(expected):
            return "another sequence"
        return next(filter(None, (differs(call, ours, theirs) for ours, theirs in zip(found, expected, strict=True))), None)
    if isinstance(expected, dict):
        keys = isinstance(found, dict) and [(type(key), key) for key in found] == [(type(key), key) for key in expected]
        return differs(call, tuple(found.values()), tuple(expected.values())) if keys else "other keys"
    if isinstance(expected, (int, slice)) or expected is None:
        return None if found == expected else "another value"
    if not isinstance(found, type(expected)) and not np.isscalar(expected):
        return f"type {type(found).__name__}"
    if np.shape(found) != np.shape(expected):
        return f"shape {np.shape(found)}, not {np.shape(expected)}"
    ours, theirs = np.asarray(found), np.asarray(expected)
    if theirs.dtype.newbyteorder("=") != ours.dtype.newbyteorder("="):
        return f"type {ours.dtype}, not {theirs.dtype}"
    if theirs.dtype.kind == "O":
        return None if all(np.array_equal(a, b) for a, b in zip(ours.ravel(), theirs.ravel(), strict=True)) else "values"
    if theirs.dtype.kind in "fc":
        with np.errstate(all="ignore"):
            away = np.abs(np.where(ours == theirs, 0, ours - theirs))
        good = (away <= slack(call, theirs)) | (np.isnan(ours) & np.isnan(theirs))
        return None if good.all() else f"values, by {np.max(away, where=~good, initial=0):.3g} ({slack(call, theirs):.3g})"
    if np.array_equal(ours, theirs):
        return None
    if theirs.dtype.kind == "b":
        return None if np.array_equal(ours.view(np.uint8) != 0, theirs.view(np.uint8) != 0) else "values"
    # Around the range of the type: 0 is next to its largest number.
    away = (ours - theirs).astype(theirs.dtype)
    return f"values, by {int(np.minimum(away, -away).max() if theirs.dtype.kind == 'u' else np.abs(away).max())}"


# Intended differences.


def rising(call: Call) -> bool:
    """Returns true unless there are axes in another order than the image's."""
    axes = call.arguments.get("axes")
    if axes is None or call.name == "rotate" or not all(isinstance(axis, (int, np.integer)) for axis in np.ravel(axes).tolist()):
        return True
    return bool((np.diff(np.ravel(axes) % max(call.input.ndim, 1)) > 0).all())


def is_ranked(call: Call, found: Any, expected: Any) -> bool:
    """Of one axis SciPy 1.15 and newer take footprints without their gaps, and no NaN."""
    one = call.name in RANKS and call.input.ndim == 1
    return one and (call.arguments.get("footprint") is not None or (isinstance(expected, Exception) and "NaN" in str(expected)))


def limits(call: Call) -> tuple[float, bool]:
    """The largest number that a call may meet, and whether all pixels are finite."""
    numbers = np.abs(np.concatenate([np.ravel(call.input).astype(np.complex128), np.ravel(call.arguments.get("cval", 0.0))]))
    structure = call.arguments.get("structure")
    heights = np.zeros(1) if structure is None else np.ravel(structure)
    found = float(numbers[np.isfinite(numbers)].max(initial=0.0)) * gain(call) + 2 * float(np.abs(heights.astype(float)).max(initial=0))
    return found * (4 if call.name in GREY else 1), bool(np.isfinite(numbers).all())


def is_wide(call: Call, found: Any, expected: Any) -> bool:
    """Integers of 64 bits, above 2^53, or less than 0 of a type without sign."""
    results = [np.asarray(one) for one in (found, expected) if isinstance(one, (np.ndarray, np.generic))]
    kinds = [call.input.dtype, *(result.dtype for result in results)]
    if isinstance(found, ValueError):
        return "2^53" in str(found)
    wide = any(kind.kind in "iu" and kind.itemsize == 8 for kind in kinds)
    unsigned = [result for result in results if result.dtype.kind == "u" and result.dtype.itemsize == 8]
    less = call.input.dtype.kind in "if" or any(bool(np.any(result > 2**53)) for result in unsigned)
    return wide and ((bool(unsigned) and (less or "gaussian" in call.name)) or limits(call)[0] > 2**53)


def is_cut(call: Call, found: Any, expected: Any) -> bool:
    """Geometry: numbers whole but for a rounding that are cut to integers: off by one, and what later passes make of that."""
    if not isinstance(expected, np.ndarray) or not isinstance(found, np.ndarray) or expected.dtype.kind not in "iu":
        return False
    if call.name not in GEOMETRY:
        return False
    passes = call.name == "spline_filter"
    away = (found - expected).astype(expected.dtype)
    far = np.minimum(away, -away) if expected.dtype.kind == "u" else np.abs(away)
    return bool((far <= 1).all() or (passes and (expected.dtype.kind == "u" or np.mean(far > 1) < 0.75)))


def is_undefined(call: Call, found: Any, expected: Any) -> bool:
    """Numbers that the integers of the result do not hold, where C leaves open what they become."""
    if not isinstance(expected, np.ndarray) or expected.dtype.kind not in "iu":
        return False
    largest, finite = limits(call)
    return not finite or largest >= min(2.0**31, float(np.iinfo(expected.dtype).max) if expected.dtype.itemsize > 2 else np.inf)


def is_not_finite(call: Call, found: Any, expected: Any) -> bool:
    """NaN and infinities among the pixels."""
    if call.name in MEASURES:
        return not limits(call)[1] and not isinstance(found, Exception)
    if call.name not in LINEAR | GEOMETRY | GREY | ORDER or limits(call)[1]:
        return False
    if not isinstance(expected, np.ndarray) or not isinstance(found, np.ndarray) or call.name not in LINEAR or expected.dtype.kind != "f":
        return isinstance(expected, np.ndarray) and isinstance(found, np.ndarray)
    both = np.isfinite(found) & np.isfinite(expected)
    return bool((np.abs(found[both] - expected[both]) <= slack(call, expected)).all())


def has_no_label(call: Call, found: Any, expected: Any) -> bool:
    """Labels that no pixel has, in a median."""
    if call.name != "median" or np.shape(found) != np.shape(expected) or np.ndim(found) == 0:
        return False
    there = np.isin(call.arguments["index"], call.arguments["labels"])
    return bool(np.isnan(found[~there]).all() and (found == expected)[there].all())


def is_tied(call: Call, found: Any, expected: Any) -> bool:
    """Positions of several labels, each of an extreme that more than one pixel has."""
    labels = call.arguments.get("labels")
    if call.name not in PLACES or labels is None or np.ndim(call.arguments.get("index")) == 0 or not isinstance(found, type(expected)):
        return False
    if call.name == "extrema" and not (np.array_equal(found[0], expected[0]) and np.array_equal(found[1], expected[1])):
        return False
    there = np.broadcast_to(labels, call.input.shape)
    sides = zip(found[2:], expected[2:], strict=True) if call.name == "extrema" else [(found, expected)]
    pairs = [pair for ours, theirs in sides for pair in zip(ours, theirs, strict=True)]
    return all(call.input[one] == call.input[other] and there[one] == there[other] for one, other in pairs)


def is_height(call: Call, found: Any, expected: Any) -> bool:
    """Structures with heights, in other types than `float64`."""
    return call.name in GREY and call.arguments.get("structure") is not None and call.input.dtype.char != "d"


def is_mask(call: Call, found: Any, expected: Any) -> bool:
    if call.input.dtype.kind == "b" and call.name in GREY and call.arguments.get("cval", 0) not in (0, 1):
        return True
    return isinstance(expected, np.ndarray) and expected.dtype.kind == "b" and call.name in LINEAR | GEOMETRY | GREY | ORDER


def is_spline(call: Call, found: Any, expected: Any) -> bool:
    """Prefilters at the edges."""
    given = call.arguments
    filters = call.name in GEOMETRY and given.get("order", 3) > 1 and given.get("prefilter", True)
    return filters and given.get("mode", "constant") not in ("constant", "mirror", "grid-wrap", "wrap") and min(call.input.shape, default=1) < 40


def is_lenient(call: Call, found: Any, expected: Any) -> bool:
    given = call.arguments
    if call.name == "value_indices":
        return not call.input.dtype.isnative or isinstance(expected, MemoryError)
    if not isinstance(expected, Exception):
        return False
    if not isinstance(given.get("input"), np.ndarray):
        return call.name in GREY | MEASURES
    if np.isscalar(given.get("axes")) and given["axes"] < 0:
        return True
    if call.name in FOURIER:
        return isinstance(given.get("output"), (str, np.dtype))
    if call.name == "label":
        return not call.input.dtype.isnative or "endian" in str(expected)
    if call.name in MEASURES:
        return np.size(given.get("index", 0)) == 0 or (call.name == "histogram" and given.get("index") is not None)
    return call.name == "gaussian_filter1d" and given["sigma"] == 0


def has_no_pixels(call: Call, found: Any, expected: Any) -> bool:
    return call.input.size == 0 and (isinstance(expected, Exception) or isinstance(found, Exception))


def is_complex(call: Call, found: Any, expected: Any) -> bool:
    given, output = call.arguments, call.arguments.get("output")
    made = output is not None and np.dtype(output.dtype if isinstance(output, np.ndarray) else output).kind == "c"
    if call.name == "zoom" and call.input.dtype.kind == "c":
        return bool(given.get("grid_mode"))
    if call.name in LINEAR - {"gaussian_gradient_magnitude"} and call.input.dtype.kind == "c":
        return isinstance(expected, RuntimeError) and "complex" in str(expected)
    return isinstance(found, (TypeError, RuntimeError)) and (made or (call.input.dtype.kind == "c" and call.name not in GEOMETRY))


def is_strict(call: Call, found: Any, expected: Any) -> bool:
    if call.name == "label":
        return isinstance(found, RuntimeError) and "bit-depth" in str(found)
    return isinstance(found, TypeError) and "cval" in str(found) and np.iscomplexobj(call.arguments.get("cval"))


def is_edge(call: Call, found: Any, expected: Any) -> bool:
    """Positions on an edge, but for a rounding: on one side the constant."""
    given = call.arguments
    if call.name not in GEOMETRY or given.get("mode", "constant") != "constant" or not isinstance(expected, np.ndarray) or not isinstance(found, np.ndarray):
        return False
    with np.errstate(all="ignore"):
        fill = np.asarray(np.real(given.get("cval", 0.0)), np.float64).astype(expected.dtype)
        return bool(((found == fill) | (expected == fill) | (np.abs(found - expected) <= slack(call, expected))).all())


def is_in_place(call: Call, found: Any, expected: Any) -> bool:
    output = call.arguments.get("output")
    return isinstance(output, np.ndarray) and np.shares_memory(output, call.input)


def is_far(call: Call, found: Any, expected: Any) -> bool:
    return call.name == "distance_transform_edt" and bool(call.input.all())


MEANT: Final[dict[str, Callable[[Call, Any, Any], bool]]] = {
    "four axes": lambda call, found, _: call.input.ndim > 3 and isinstance(found, NotImplementedError),
    "distances": lambda call, found, _: call.name.startswith("distance") and isinstance(found, NotImplementedError),
    "background": is_far,
    "ranks": is_ranked,
    "axes": lambda call, _found, _expected: not rising(call),
    "complex": is_complex,
    "64 bits": is_wide,
    "cut": is_cut,
    "undefined": is_undefined,
    "truth values": is_mask,
    "heights": is_height,
    "not finite": is_not_finite,
    "no label": has_no_label,
    "ties": is_tied,
    "halves": lambda call, found, expected: call.name in GEOMETRY and call.arguments.get("order") == 0 and isinstance(found, np.ndarray),
    "splines": is_spline,
    "edges": is_edge,
    "in place": is_in_place,
    "no pixels": has_no_pixels,
    "lenient": is_lenient,
    "strict": is_strict,
    "masks": lambda call, found, _: call.arguments.get("mask") is not None and np.asarray(call.arguments["mask"]).dtype.kind != "b",
}
"""Of each row of the table in docs/python.md, whether a call is one of it."""


def several_faults(call: Call, found: Any, expected: Any) -> bool:
    """Returns true if another fault of the same call raises our exception: the order of detection does not matter."""
    for name in list(call.arguments)[1:]:
        less = copy.copy(call)
        less.arguments = {key: value for key, value in call.arguments.items() if key != name}
        ours, theirs = less.made_by(ndimage), less.made_by(scipy.ndimage)
        if (isinstance(theirs, Exception) and differs(call, found, theirs) is None) or (isinstance(ours, Exception) and differs(call, ours, expected) is None):
            return True
    return False


def tried(name: str, number: int) -> tuple[Call, Any, Any, str | None]:
    call = Call(name, number)
    expected, found = call.made_by(scipy.ndimage), call.made_by(ndimage)
    how = differs(call, found, expected)
    if how is not None and any(row(call, found, expected) for row in MEANT.values()):
        how = None
    elif how is not None and "another exception" in how and several_faults(call, found, expected):
        how = None
    return call, found, expected, how


@pytest.mark.parametrize("name", ndimage.__all__)
def test_a_call_does_what_scipys_does(name: str) -> None:
    calls = (tried(name, number) for number in range(CASES))
    found = [f"{call!r}\n  {how}\n  SciPy: {expected!r}\n  Horus: {ours!r}" for call, ours, expected, how in calls if how is not None]
    assert not found, "\n".join(found)


def test_what_is_meant_to_differ_is_documented() -> None:
    pages = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
    table = pages.split("## Where results differ from SciPy's")[1].split("\n## ")[0]
    assert re.findall(r"^\| \*(.+?)\* \|", table, re.MULTILINE) == list(MEANT)


def tell(name: str, numbers: range) -> None:
    """Which calls differ, and how."""
    for number in numbers:
        call, found, expected, how = tried(name, number)
        if how is not None or len(numbers) == 1:
            print(f"{call!r}\n  {how}\n  SciPy: {expected!r}\n  Horus: {found!r}\n", flush=True)


if __name__ == "__main__":
    first, *last = map(int, sys.argv[2].split("-"))
    tell(sys.argv[1], range(first, (last or [first])[0] + 1))
