"""Calls that are written for `cupyx.scipy.ndimage` run with the import changed, and give SciPy's results."""

from __future__ import annotations

import inspect
from typing import Any, Final

import numpy as np
import pytest
import scipy.ndimage
from horus_image import ndimage

SIGNATURES: Final = """
correlate(input, weights, output=None, mode='reflect', cval=0.0, origin=0, *, axes=None)
convolve(input, weights, output=None, mode='reflect', cval=0.0, origin=0, *, axes=None)
correlate1d(input, weights, axis=-1, output=None, mode='reflect', cval=0.0, origin=0)
convolve1d(input, weights, axis=-1, output=None, mode='reflect', cval=0.0, origin=0)
uniform_filter1d(input, size, axis=-1, output=None, mode='reflect', cval=0.0, origin=0)
uniform_filter(input, size=3, output=None, mode='reflect', cval=0.0, origin=0, axes=None)
gaussian_filter1d(input, sigma, axis=-1, order=0, output=None, mode='reflect', cval=0.0, truncate=4.0)
gaussian_filter(input, sigma, order=0, output=None, mode='reflect', cval=0.0, truncate=4.0, radius=None, axes=None)
prewitt(input, axis=-1, output=None, mode='reflect', cval=0.0)
sobel(input, axis=-1, output=None, mode='reflect', cval=0.0)
laplace(input, output=None, mode='reflect', cval=0.0, *, axes=None)
gaussian_laplace(input, sigma, output=None, mode='reflect', cval=0.0, *, axes=None, **kwargs)
gaussian_gradient_magnitude(input, sigma, output=None, mode='reflect', cval=0.0, *, axes=None, **kwargs)
minimum_filter(input, size=None, footprint=None, output=None, mode='reflect', cval=0.0, origin=0, axes=None)
maximum_filter(input, size=None, footprint=None, output=None, mode='reflect', cval=0.0, origin=0, axes=None)
minimum_filter1d(input, size, axis=-1, output=None, mode='reflect', cval=0.0, origin=0)
maximum_filter1d(input, size, axis=-1, output=None, mode='reflect', cval=0.0, origin=0)
median_filter(input, size=None, footprint=None, output=None, mode='reflect', cval=0.0, origin=0, axes=None)
rank_filter(input, rank, size=None, footprint=None, output=None, mode='reflect', cval=0.0, origin=0, axes=None)
percentile_filter(input, percentile, size=None, footprint=None, output=None, mode='reflect', cval=0.0, origin=0, axes=None)
affine_transform(input, matrix, offset=0.0, output_shape=None, output=None, order=3, mode='constant', cval=0.0, prefilter=True, *, texture_memory=False, float64_coords=False)
map_coordinates(input, coordinates, output=None, order=3, mode='constant', cval=0.0, prefilter=True)
rotate(input, angle, axes=(1, 0), reshape=True, output=None, order=3, mode='constant', cval=0.0, prefilter=True)
shift(input, shift, output=None, order=3, mode='constant', cval=0.0, prefilter=True)
spline_filter(input, order=3, output=float64, mode='mirror')
spline_filter1d(input, order=3, axis=-1, output=float64, mode='mirror')
zoom(input, zoom, output=None, order=3, mode='constant', cval=0.0, prefilter=True, *, grid_mode=False)
find_objects(input, max_label=0)
label(input, structure=None, output=None)
sum(input, labels=None, index=None)
sum_labels(input, labels=None, index=None)
mean(input, labels=None, index=None)
variance(input, labels=None, index=None)
standard_deviation(input, labels=None, index=None)
minimum(input, labels=None, index=None)
maximum(input, labels=None, index=None)
median(input, labels=None, index=None)
minimum_position(input, labels=None, index=None)
maximum_position(input, labels=None, index=None)
extrema(input, labels=None, index=None)
fourier_gaussian(input, sigma, n=-1, axis=-1, output=None)
fourier_uniform(input, size, n=-1, axis=-1, output=None)
fourier_ellipsoid(input, size, n=-1, axis=-1, output=None)
fourier_shift(input, shift, n=-1, axis=-1, output=None)
center_of_mass(input, labels=None, index=None)
histogram(input, min, max, bins, labels=None, index=None)
generate_binary_structure(rank, connectivity)
iterate_structure(structure, iterations, origin=None)
binary_erosion(input, structure=None, iterations=1, mask=None, output=None, border_value=0, origin=0, brute_force=False, *, axes=None)
binary_dilation(input, structure=None, iterations=1, mask=None, output=None, border_value=0, origin=0, brute_force=False, *, axes=None)
binary_opening(input, structure=None, iterations=1, output=None, origin=0, mask=None, border_value=0, brute_force=False, *, axes=None)
binary_closing(input, structure=None, iterations=1, output=None, origin=0, mask=None, border_value=0, brute_force=False, *, axes=None)
binary_hit_or_miss(input, structure1=None, structure2=None, output=None, origin1=0, origin2=None, *, axes=None)
binary_fill_holes(input, structure=None, output=None, origin=0, *, axes=None)
binary_propagation(input, structure=None, mask=None, output=None, border_value=0, origin=0, *, axes=None)
grey_erosion(input, size=None, footprint=None, structure=None, output=None, mode='reflect', cval=0.0, origin=0, *, axes=None)
grey_dilation(input, size=None, footprint=None, structure=None, output=None, mode='reflect', cval=0.0, origin=0, *, axes=None)
grey_closing(input, size=None, footprint=None, structure=None, output=None, mode='reflect', cval=0.0, origin=0, *, axes=None)
grey_opening(input, size=None, footprint=None, structure=None, output=None, mode='reflect', cval=0.0, origin=0, *, axes=None)
morphological_gradient(input, size=None, footprint=None, structure=None, output=None, mode='reflect', cval=0.0, origin=0, *, axes=None)
morphological_laplace(input, size=None, footprint=None, structure=None, output=None, mode='reflect', cval=0.0, origin=0, *, axes=None)
white_tophat(input, size=None, footprint=None, structure=None, output=None, mode='reflect', cval=0.0, origin=0, *, axes=None)
black_tophat(input, size=None, footprint=None, structure=None, output=None, mode='reflect', cval=0.0, origin=0, *, axes=None)
distance_transform_edt(image, sampling=None, return_distances=True, return_indices=False, distances=None, indices=None, *, block_params=None, float64_distances=True)
"""
"""The functions of CuPy 15 that Horus has."""

MISSING: Final = {"generic_filter", "generic_filter1d", "generic_gradient_magnitude", "generic_laplace", "labeled_comprehension"}
"""Those that it does not have."""

OF_CUPY: Final = {"texture_memory", "float64_coords", "block_params", "float64_distances"}
"""Parameters that SciPy does not have."""

FIRST: Final = {"distance_transform_edt": "image"}
"""First parameters of another name than SciPy's and Horus's: they are given by their place."""


def signatures() -> dict[str, inspect.Signature]:
    found: dict[str, Any] = {}
    for line in SIGNATURES.strip().splitlines():
        scope: dict[str, Any] = {"float64": np.float64}
        exec(f"def {line}: pass", scope)
        name = line[: line.index("(")]
        found[name] = inspect.signature(scope[name])
    return found


ALL: Final = signatures()
CROSS: Final = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
FLOATS: Final = np.random.default_rng(3).random((13, 16))
BYTES: Final = (FLOATS * 255).astype(np.uint8)
MASK: Final = FLOATS > 0.5
LABELS: Final = (FLOATS * 5).astype(np.int32)


def values(name: str, parameter: str) -> list[Any]:
    """Arguments other than the default."""
    if name.startswith("binary") and parameter in ("origin", "origin1", "origin2"):
        return [1, (0, -1)]
    if parameter in ("structure", "structure1", "structure2") and not name.startswith(("grey", "morph", "white", "black")):
        return [CROSS] if name == "label" else [CROSS, np.ones((3, 3)), np.ones((2, 3), bool)]
    if name == "rotate" and parameter == "axes":
        return [(0, 1)]
    if parameter == "order":
        return [1, 2, (0, 1)] if name == "gaussian_filter" else [1, 2] if "gaussian" in name else [2, 5] if "spline" in name else [0, 1, 2]
    if parameter == "mode":
        several = name in SEVERAL
        return ["mirror", "nearest", "wrap", "constant", *([("reflect", "wrap"), ["nearest", "constant"]] if several else [])]
    if parameter == "size":
        return [3, 4, 7] if name.endswith("1d") else [3, (2, 5)]
    if parameter == "output":
        if name.startswith("fourier"):
            return [np.complex64, "array"]
        return [np.float32, "f8", "array"] if not name.startswith("binary") else ["array"]
    if parameter == "sigma":
        return [1.5, 2] if name.endswith("1d") else [1.5, (0.7, 2)]
    if parameter == "weights":
        return [[1, 2, 3], np.array([0.5, -1.0])] if name.endswith("1d") else [CROSS, np.arange(6.0).reshape(2, 3)]
    if parameter == "axes":
        return [(0,), (1,), (0, 1), 1]
    return {
        "axis": [0, 1, -2],
        "cval": [2.5],
        "origin": [1, -1] if name.endswith("1d") else [(0, 1), -1],
        "truncate": [2.0],
        "radius": [2, (1, 3)],
        "footprint": [CROSS, np.ones((2, 3)), CROSS == 1],
        "structure": [CROSS * 0.0, np.zeros((3, 2))],  # SciPy adds other heights in the type of the pixels
        "rank": [2, -3],
        "percentile": [30, -25.0],
        "matrix": [np.array([[0.9, 0.2], [-0.1, 1.1]]), [0.5, 2.0], np.array([[1, 0.5, 1], [0, 1, -2], [0, 0, 1]])],
        "offset": [1.5, (1.0, -2.0)],
        "output_shape": [(9, 20)],
        "prefilter": [False],
        "texture_memory": [False, True],
        "float64_coords": [True],
        "coordinates": [np.array([[1.5, 2.0, 11.0], [3.25, 0.0, 20.0]])],
        "angle": [30, 90.0],
        "reshape": [False],
        "shift": [1.5, (2.0, -0.75)],
        "zoom": [1.8, (2, 0.6)],
        "grid_mode": [True],
        "max_label": [3],
        "labels": [LABELS, LABELS.astype(np.int64), MASK],
        "index": [2, [1, 3], np.array([4, 1])],
        "min": [0.1],
        "max": [0.9],
        "bins": [5],
        "n": [30],
        "connectivity": [1, 2],
        "iterations": [2, 3],
        "mask": [FLOATS > 0.3],
        "border_value": [1],
        "brute_force": [True],
        "sampling": [2.0, (1.0, 3.0)],
        "return_distances": [True],
        "return_indices": [True],
        "distances": ["array"],
        "indices": ["array"],
        "block_params": [(4, 4, 4)],
        "float64_distances": [True, False],
        "kwargs": [2.0],
    }[parameter]


SEVERAL: Final = {
    *("uniform_filter", "gaussian_filter", "prewitt", "sobel", "laplace", "gaussian_laplace", "gaussian_gradient_magnitude", "minimum_filter", "maximum_filter"),
    *("grey_erosion", "grey_dilation", "grey_closing", "grey_opening", "morphological_gradient", "morphological_laplace", "white_tophat", "black_tophat"),
}
"""Functions that have a border mode for each axis."""

SIZED: Final = {*("minimum_filter", "maximum_filter", "median_filter", "rank_filter", "percentile_filter"), *(name for name in SEVERAL if name.startswith(("grey", "morph", "white", "black")))}


def inputs(name: str) -> list[Any]:
    if name == "iterate_structure":
        return [CROSS]
    if name == "find_objects":
        return [LABELS]
    if name.startswith("binary") or name in ("label", "distance_transform_edt"):
        return [MASK]
    # SciPy takes any of several equal extremes.
    floats = name in ("spline_filter", "spline_filter1d", "extrema", "maximum_position", "minimum_position")
    return [FLOATS] if floats else [FLOATS, BYTES]


def calls(name: str) -> list[dict[str, Any]]:
    """Calls in which each parameter has each of its values, with the required ones, and in which all have their last."""
    parameters = ALL[name].parameters
    first = next(iter(parameters))
    needed = {p.name: values(name, p.name)[0] for p in parameters.values() if p.default is p.empty and p.name != first and p.kind != p.VAR_KEYWORD}
    if name in SIZED:
        needed["size"] = 3
    if name == "generate_binary_structure":
        return [{"connectivity": one} for one in values(name, "connectivity")]
    found = [needed]
    for parameter in parameters.values():
        if parameter.name == first:
            continue
        key = "truncate" if parameter.kind == parameter.VAR_KEYWORD else parameter.name
        for value in values(name, key):
            call = {**needed, key: value}
            if key in ("footprint", "structure") and name in SIZED:
                call.pop("size")
            if key == "axes" and "weights" in call:
                call["weights"] = np.ones((3,) * np.size(value))
            if key == "axes" and name == "rotate":
                call["reshape"] = True
            if key in ("index",):
                call["labels"] = LABELS
            if key == "indices":
                call["return_indices"] = True
            found.append(call)
    return found


def made(name: str, given: Any, call: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """The arguments, with arrays for the results, and these."""
    arrays = []
    arguments = dict(call)
    for key in ("output", "distances", "indices"):
        if isinstance(arguments.get(key), str) and arguments[key] == "array":
            plain = {k: v for k, v in call.items() if k not in ("output", "distances", "indices", *OF_CUPY)}
            shape = (2, *given.shape) if key == "indices" else given.shape
            dtype: Any = np.int32 if key == "indices" else np.float64 if key == "distances" or name != "label" else np.int32
            dtype = np.complex128 if name.startswith("fourier") else dtype
            if key == "output" and name != "label":
                shape = np.shape(getattr(scipy.ndimage, name)(given, **plain))
            arguments[key] = np.zeros(shape, dtype)
            arrays.append(arguments[key])
    return arguments, arrays


def run(function: Any, name: str, given: Any, call: dict[str, Any], by_place: bool, order: list[str]) -> list[Any]:
    """The results, returned and written."""
    arguments, arrays = made(name, given, call)
    first: list[Any] = [given]
    if by_place:
        parameters = ALL[name].parameters
        for key in order:
            if key not in arguments and not any(later in arguments for later in order[order.index(key) + 1 :]):
                break
            first.append(arguments.pop(key, parameters[key].default))
    with np.errstate(all="ignore"):
        found = function(*first, **arguments)
    return [found, *arrays]


TOLERANCE: Final = {np.dtype("f4"): 1e-5, np.dtype("f8"): 1e-8, np.dtype("c8"): 1e-5, np.dtype("c16"): 1e-8}
"""Roundings of the largest pixels; positions of affine maps of planes are held to 2^-32 of a pixel."""


def near(ours: Any, theirs: Any, what: str) -> None:
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), what
        for one, other in zip(ours, theirs, strict=True):
            near(one, other, what)
    elif isinstance(theirs, np.ndarray) and theirs.dtype != object:
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, what
        # Samples of integers half way between two whole numbers are rounded to one or the other, by a rounding of the position.
        whole = 1.0 if theirs.dtype.kind == "u" and what.startswith(GEOMETRY) else 0.0
        tolerance = TOLERANCE.get(theirs.dtype, 0.0)
        wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(ours.astype(wide), theirs.astype(wide), rtol=tolerance, atol=tolerance + whole, err_msg=what)
    elif isinstance(theirs, np.ndarray):
        near(list(ours), list(theirs), what)
    elif isinstance(theirs, (float, np.floating)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, err_msg=what)
    elif theirs is not None:  # where SciPy returns nothing, as it wrote to `output`, that is returned
        assert ours == theirs, what


GEOMETRY: Final = ("affine_transform", "map_coordinates", "rotate", "shift", "zoom")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALL)
def test_calls_of_cupyx_run_with_the_import_changed(name: str) -> None:
    ours, theirs = getattr(ndimage, name), getattr(scipy.ndimage, name)
    kinds = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD
    order = [p.name for p in ALL[name].parameters.values() if p.kind not in kinds][1:]
    if name == "generate_binary_structure":
        for connectivity in values(name, "connectivity"):
            np.testing.assert_array_equal(ours(2, connectivity=connectivity), theirs(2, connectivity))
        return
    for given in inputs(name):
        for call in calls(name):
            what = f"{name} of {np.asarray(given).dtype} with {call}"
            plain = {key: value for key, value in call.items() if key not in OF_CUPY}
            wanted = run(theirs, name, given, plain, False, order)
            if call.get("float64_distances") is False:
                wanted = [wanted[0].astype(np.float32)]
            for by_place in (False, True):
                near(run(ours, name, given, call, by_place, order), wanted, what)


def test_signatures_are_of_functions_that_there_are() -> None:
    assert not MISSING & set(dir(ndimage)) and not MISSING & ALL.keys()
    assert ALL.keys() <= set(ndimage.__all__)
    for name, signature in ALL.items():
        ours = list(inspect.signature(getattr(ndimage, name)).parameters)
        wanted = [parameter for parameter in signature.parameters if parameter not in ("image", "input")]
        assert [parameter for parameter in wanted if parameter not in ours] == [], name
