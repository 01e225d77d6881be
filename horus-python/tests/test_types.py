"""Types of public functions: what editors show, and what checkers infer of a program."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import generate
import horus_image as hi
import mypy.api
import pytest
from horus_image import accel, ndimage

dask = pytest.importorskip("horus_image.dask")

MODULES = {"accel": accel, "dask": dask, "hi": hi, **{area: importlib.import_module(f"horus_image.{area}") for area in generate.AREAS}}
CLASSES = {"Image": hi.Image, "Session": hi.Session, "Tiles": hi.Tiles}

ANY_RESULTS = {
    # Numbers in the type of the pixels, or in one that is asked for, as of NumPy; overloads tell images and floats.
    *(f"Image.{name}" for name in ("min", "max", "sum", "mean", "var", "std")),
    # An array, a list, or several of these, as the program returns them.
    "hi.map",
}
"""Functions whose result is `Any`."""

ANY_ARGUMENTS = {
    # Passed on.
    "dask.map_overlap(kwargs)",
    "ndimage.gaussian_gradient_magnitude(kwargs)",
    "ndimage.gaussian_laplace(kwargs)",
    # Stores with a shape, a type and slices, and whatever Dask takes as chunks: Dask's own types differ by version.
    "dask.map_overlap(arrays)",
    "dask.map_overlap(chunks)",
    *(f"dask.zonal_statistics({name})" for name in ("image", "zones", "zone_ids")),
}
"""Arguments that are `Any`."""


def public() -> dict[str, Callable[..., Any]]:
    """All public functions, and methods and properties of classes."""
    found = {f"{name}.{each}": getattr(module, each) for name, module in MODULES.items() for each in module.__all__}
    found |= {f"{name}.{each}": method for name, kind in CLASSES.items() for each, method in inspect.getmembers(kind) if each[0] != "_"}
    found = {name: each.fget if isinstance(each, property) else each for name, each in found.items()}
    return {name: each for name, each in found.items() if inspect.isfunction(each)}


def test_every_result_and_argument_has_a_type() -> None:
    results, arguments, missing = set(), set(), set()
    functions = public()
    assert len(functions) > 120
    for name, function in functions.items():
        signature = inspect.signature(function)
        if signature.return_annotation is signature.empty:
            missing.add(name)
        if signature.return_annotation == "Any":
            results.add(name)
        for parameter in signature.parameters.values():
            if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls"):
                missing.add(f"{name}({parameter.name})")
            if parameter.annotation == "Any":
                arguments.add(f"{name}({parameter.name})")
    assert not missing
    assert results == ANY_RESULTS
    assert arguments == ANY_ARGUMENTS


def test_types_are_there_at_run_time() -> None:
    for name in ("gaussian_filter", "label", "distance_transform_edt", "sum", "grey_erosion", "map_coordinates", "rotate"):
        hints = get_type_hints(getattr(ndimage, name))
        assert hints["return"] is not Any and hints["input"] is not Any


def test_what_is_made_of_the_table_of_functions_is() -> None:
    changed = [str(path) for path, text in generate.files().items() if not path.exists() or path.read_text() != text]
    assert not changed, "run python horus-python/tests/generate.py"


def test_numbers_alone_have_any_type() -> None:
    # A number has the type of the pixels, or another: no checker knows it.
    names = re.findall(r"^def (\w+)\((?:[^()]|\([^()]*\))*\) -> Any: \.\.\.$", "".join(map(generate.stub, generate.AREAS)), re.MULTILINE)
    assert {*names} == {"maximum", "mean", "median", "minimum", "standard_deviation", "sum", "sum_labels", "variance"}


PROGRAM = '''
import numpy as np
import numpy.typing as npt
import horus_image as hi
from horus_image import exposure, filters, measure, morphology, ndimage, segmentation
from horus_image.typing import ArrayLike, Border

image = hi.asarray(np.zeros((8, 8), np.float32))
array = np.zeros((8, 8))


class Tensor:
    def __dlpack__(self, *, stream: int | None = None) -> object: ...


def smooth(picture: ArrayLike, mode: Border = "mirror") -> hi.Image:
    return ndimage.gaussian_filter(hi.asarray(picture), (1.0, "2um"), mode=mode)


def double(picture: hi.Image) -> hi.Image:
    return 2 * picture


def renamed(name: str) -> str:
    return name + "f"


reveal_type(ndimage.gaussian_filter(image, 2.0))  # Image
reveal_type(ndimage.gaussian_filter(input=image, sigma=[1, 2]))  # Image
reveal_type(ndimage.gaussian_filter(array, np.float32(2)))  # ndarray
reveal_type(ndimage.median_filter([[1, 2], [3, 4]], size=np.int64(3)))  # ndarray
reveal_type(ndimage.median_filter(array, 3, output=array))  # ndarray
reveal_type(ndimage.gaussian_filter(Tensor(), 2.0))  # Image | Any
reveal_type(ndimage.grey_erosion(image, 3))  # Image
reveal_type(ndimage.binary_opening(image > 1))  # Image
reveal_type(ndimage.zoom(image, 2, order=1, mode="nearest"))  # Image
reveal_type(ndimage.map_coordinates(image, [image, image]))  # Image
reveal_type(ndimage.label(image))  # tuple[Image, int]
reveal_type(ndimage.label(array))  # tuple[ndarray, int]
reveal_type(ndimage.label(array, output=array))  # tuple[Image | Any, int] | Any
reveal_type(ndimage.label(array, output=np.int16))  # tuple[ndarray, int]
reveal_type(ndimage.distance_transform_edt(image))  # Image
reveal_type(ndimage.mean(array, array, index=[1, 2]))  # ndarray
reveal_type(filters.sobel(image))  # Image
reveal_type(filters.frangi(array, sigmas=range(1, 3)))  # ndarray
reveal_type(filters.gaussian(array, 1.0, out=array))  # ndarray
reveal_type(filters.threshold_otsu(image))  # float
reveal_type(exposure.equalize_hist(image))  # Image
reveal_type(segmentation.watershed(image, array))  # Image
reveal_type(segmentation.relabel_sequential(array)[0])  # ndarray
reveal_type(morphology.remove_small_objects(image > 1))  # Image
reveal_type(measure.label(image > 1))  # Image
reveal_type(measure.label(array, return_num=True))  # tuple[Image | Any, int] | Any
reveal_type(image + 1)  # Image
reveal_type(2.5 * image)  # Image
reveal_type(image[1:, ..., ::-1])  # Image
reveal_type(hi.where(image > image.max() / 2, 1.0, image))  # Image
reveal_type(image.mean())  # float
reveal_type(image.tiles(2, 2).mean())  # Image
reveal_type(image.paste(array, 0, 0))  # Image
reveal_type(hi.get_all(image, image))  # tuple[ndarray, ...]
reveal_type(image.mean(axis=0))  # Image
reveal_type(image.max(axis=(0, 1), keepdims=True))  # Image
reveal_type(image.sum(keepdims=True))  # Image
reveal_type(hi.series([array], double))  # Iterator[ndarray]
reveal_type(hi.series(["a.tif"], double, save=renamed))  # Iterator[str]

ndimage.gaussian_filter(image, 2.0, mode="mirrored")  # error: Literal
ndimage.gaussian_filter(image, object())  # error: call-overload
image.gaussian(2.0)  # error: attr-defined
image[1.5]  # error: index
'''


def test_a_checker_infers_images_and_arrays(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    out, err, _ = mypy.api.run(["--strict", "--python-version", "3.10", "--cache-dir", str(tmp_path / "cache"), str(path)])
    assert not err
    said: dict[int, list[str]] = {}
    for line in out.splitlines():
        found = re.match(r"[^:]*program\.py:(\d+): (error|note): (.*)", line)
        if found:
            said.setdefault(int(found[1]), []).append(f"{found[2]}: {found[3]}")
    for number, line in enumerate(PROGRAM.splitlines(), 1):
        told, (_, _, want) = said.pop(number, []), line.partition("  # ")
        if want.startswith("error: "):
            assert any(text.startswith("error: ") for text in told) and want.removeprefix("error: ") in " ".join(told), (line, told)
        elif want:
            (text,) = told
            # Without modules, and without what arrays hold.
            kind = re.sub(r"ndarray\[(tuple\[.*?\], dtype\[.*?\]|Any, Any)\]", "ndarray", re.sub(r"\w+\.", "", text.replace("builtins.", "")))
            assert kind == f'note: Revealed type is "{want}"', line
        else:
            assert not told, (line, told)
    assert not said, out
