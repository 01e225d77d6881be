"""`horus_image.accel` and OpenCV: what is served is OpenCV's own result, to the byte of integers, and everything else is OpenCV's."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
import pytest

from horus_image import accel
from horus_image.accel import _calls, _opencv, _profile

CASES: Final = int(os.environ.get("HORUS_CASES", "12"))
ROWS: Final = [row for row in _calls.ROWS if row.library == "cv2"]
ORIGINALS: Final = {row.name: getattr(cv2, row.name) for row in ROWS}
BORDERS: Final = [cv2.BORDER_CONSTANT, cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT, cv2.BORDER_REFLECT_101, cv2.BORDER_REFLECT | cv2.BORDER_ISOLATED]
Rng = np.random.Generator


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    """Installed, for pictures of all sizes, with no counts yet."""
    accel.install(smallest=0)
    _profile.clear()
    yield
    accel.uninstall()


def served(name: str) -> int:
    counts = _profile._functions.get(f"cv2.{name}")
    return 0 if counts is None else counts.served


# Random calls.


def picture(rng: Rng, types: str, channels: bool = True) -> Any:
    """Noise, or few values; of odd extents, also of one row or column; in C order, or a view that is not."""
    kind = rng.choice(list(types))
    rows, columns = rng.choice([1, 2, 3, 17, 40, 61]), rng.choice([1, 2, 5, 16, 33, 83])
    shape = (rows, columns, rng.choice([3, 4])) if channels and rng.random() < 0.4 else (rows, columns)
    span = {"B": (0, 256), "H": (0, 65536), "h": (-32768, 32768), "f": (-3, 300), "d": (-3, 300)}[kind]
    span = (span[0], span[0] + 3) if rng.random() < 0.2 else span
    wide = (rows + 5, 2 * columns + 3, *shape[2:])
    whole = rng.random(wide) * (span[1] - span[0]) + span[0] if kind in "fd" else rng.integers(*span, wide)
    whole = np.asarray(whole).astype(kind)
    view = [whole[:rows, :columns], whole[2 : rows + 2, : 2 * columns : 2], whole[2 : rows + 2, 3 : columns + 3], whole[rows - 1 :: -1, :columns]]
    found = view[int(rng.integers(4))]
    return np.ascontiguousarray(found) if rng.random() < 0.5 else found


def odd(rng: Rng, most: int) -> int:
    return int(rng.integers(0, most // 2 + 1)) * 2 + 1


def anchored(rng: Rng, width: int, height: int) -> dict[str, Any]:
    if rng.random() < 0.5:
        return {}
    return {"anchor": (int(rng.integers(-1, width)), int(rng.integers(-1, height)))}


def border(rng: Rng) -> int:
    return int(rng.choice(BORDERS))


def depth(rng: Rng, a: Any) -> int:
    """A type of results that OpenCV has for these pixels."""
    some = {"B": [-1, cv2.CV_16S, cv2.CV_32F, cv2.CV_64F], "H": [-1, cv2.CV_32F, cv2.CV_64F], "h": [-1, cv2.CV_32F, cv2.CV_64F], "f": [-1, cv2.CV_32F]}
    return int(rng.choice(some.get(a.dtype.char, [-1])))


def means(rng: Rng) -> dict[str, Any]:
    width, height = (int(n) for n in rng.integers(1, 16, 2))
    if rng.random() < 0.2:
        width, height = odd(rng, 40), odd(rng, 40)
    # OpenCV reduces kernels of isolated rows and columns but not their anchors, and reads other memory.
    return {"ksize": (width, height), "borderType": border(rng) & ~cv2.BORDER_ISOLATED, **anchored(rng, width, height)}


def element(rng: Rng) -> dict[str, Any]:
    width, height = (int(n) for n in rng.integers(1, 8, 2))
    kernel = (rng.random((height, width)) < rng.choice([0.5, 1.0])).astype(np.uint8)
    kernel[rng.integers(height), rng.integers(width)] = 1
    found = {"kernel": kernel, "iterations": int(rng.integers(1, 4)), **anchored(rng, width, height)}
    return found if rng.random() < 0.5 else {**found, "borderType": border(rng)}


def whole_taps(rng: Rng, shape: Any) -> Any:
    return rng.integers(-4, 5, shape).astype(rng.choice(["f4", "f8"]))


def gaussian(rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    size = (odd(rng, 31), odd(rng, 31)) if rng.random() < 0.8 else (0, 0)
    sigma = float(rng.choice([0, 0.4, 1.1, 3.0])) if size[0] else float(rng.choice([0.7, 1.5]))
    return [picture(rng, "BHfd"), size, sigma], {"sigmaY": float(rng.choice([0, 2.5])), "borderType": border(rng)}


def filtered(rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    a, (width, height) = picture(rng, "BHhfd"), (int(n) for n in rng.integers(1, 7, 2))
    kernel = whole_taps(rng, (height, width))
    kernel[0, 0] = 1
    if rng.random() < 0.4:
        kernel = np.abs(kernel) / np.float32(rng.choice([8, 25, 9, 256, np.abs(kernel).sum()]))
    delta = float(rng.choice([0, 0, 7, -20]))
    return [a, depth(rng, a), kernel], {"delta": delta, "borderType": border(rng), **anchored(rng, width, height)}


def separable(rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    a, (width, height) = picture(rng, "Bhfd"), (int(n) for n in rng.integers(1, 6, 2))
    return [a, depth(rng, a), whole_taps(rng, width), whole_taps(rng, (height, 1)).astype("f4")], {"borderType": border(rng), **anchored(rng, width, height)}


def derivative(rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    a, (dx, dy) = picture(rng, "BHhfd"), [(1, 0), (0, 1), (1, 1), (2, 0), (0, 2)][int(rng.integers(5))]
    scale = {"scale": float(rng.choice([2, 0.25])), "delta": float(rng.choice([3, 0.5]))} if rng.random() < 0.3 else {}
    return [a, depth(rng, a), dx, dy], {"ksize": int(rng.choice([1, 3, 5, 7])), "borderType": border(rng), **scale}


def scharr(rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    a, along = picture(rng, "BHhfd"), bool(rng.integers(2))
    return [a, depth(rng, a), int(along), int(not along)], {"borderType": border(rng)}


def laplacian(rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    a = picture(rng, "BHhfd")
    return [a, depth(rng, a)], {"ksize": odd(rng, 7), "borderType": border(rng), "delta": float(rng.choice([0, 4]))}


def median(rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    return ([picture(rng, "BHhf"), int(rng.choice([3, 5]))] if rng.random() < 0.6 else [picture(rng, "B"), 2 + odd(rng, 20)]), {}


def thresholded(rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    kind = int(rng.integers(5))
    if rng.random() < 0.4:
        return [picture(rng, "B", False), 0, 255, kind | int(rng.choice([cv2.THRESH_OTSU, cv2.THRESH_TRIANGLE]))], {}
    return [picture(rng, "BHhfd"), float(rng.choice([0, 3.7, 100, 254.5])), float(rng.choice([1, 255, 70.5])), kind], {}


def adaptive(rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    kind, size, less = int(rng.integers(2)), 2 + odd(rng, 60), float(rng.choice([0, 2, -3, 2.5]))
    return [picture(rng, "B", False), float(rng.choice([255, 1])), cv2.ADAPTIVE_THRESH_MEAN_C, kind, size, less], {}


def counted(rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    a = picture(rng, "B")
    bins, span = [(256, [0, 256]), (10, [3, 200]), (7, [0.0, 255.0])][int(rng.integers(3))]
    return [[a], [int(rng.integers(a.shape[2] if a.ndim > 2 else 1))], None, [bins], span], {}


def looked_up(rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    return [picture(rng, "B"), (rng.random(256) * 255).astype(rng.choice(["u1", "u2", "i2", "f4", "f8"]))], {}


def grey(rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    a = picture(rng, "Bf", False)
    code = [cv2.COLOR_BGR2GRAY, cv2.COLOR_RGB2GRAY, cv2.COLOR_BGRA2GRAY, cv2.COLOR_RGBA2GRAY][int(rng.integers(4))]
    return [np.stack([a, a[::-1], a[:, ::-1], a][: 3 if code < 8 else 4], axis=-1), code], {}


def resized(rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    rows, columns = (int(n) for n in rng.integers(1, 6, 2))
    a = picture(rng, "Bf")
    a = np.tile(a, (rows, columns) + (1,) * (a.ndim - 2))
    size = a.shape[1] // columns, a.shape[0] // rows
    method = int(rng.choice([cv2.INTER_NEAREST, cv2.INTER_AREA]))
    if rows == columns == 2 and rng.random() < 0.5:
        method = cv2.INTER_LINEAR
    return [a, size], {"interpolation": method}


def distances(rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    kind, size = [(cv2.DIST_L2, cv2.DIST_MASK_PRECISE), (cv2.DIST_L1, 3), (cv2.DIST_C, 3)][int(rng.integers(3))]
    mask = (picture(rng, "B", False) > 3).astype(np.uint8)
    mask[-1, 0] = 0  # of a picture without zeros, two calls of OpenCV differ
    return [mask, kind, size], {}


def components(rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    return [(picture(rng, "B", False) > rng.integers(256)).astype(np.uint8)], {"connectivity": 4}


CALLS: Final[dict[str, Callable[[Rng], tuple[list[Any], dict[str, Any]]]]] = {
    "GaussianBlur": gaussian,
    "blur": lambda rng: ([picture(rng, "Bfd")], means(rng)),
    "boxFilter": lambda rng: ([picture(rng, "Bfd"), -1], {**means(rng), "normalize": bool(rng.integers(2))}),
    "filter2D": filtered,
    "sepFilter2D": separable,
    "Sobel": derivative,
    "Scharr": scharr,
    "Laplacian": laplacian,
    "medianBlur": median,
    "erode": lambda rng: ([picture(rng, "BHhfd")], element(rng)),
    "dilate": lambda rng: ([picture(rng, "BHhfd")], element(rng)),
    "morphologyEx": lambda rng: ([picture(rng, "BHhfd"), int(rng.integers(7))], element(rng)),
    "threshold": thresholded,
    "adaptiveThreshold": adaptive,
    "equalizeHist": lambda rng: ([picture(rng, "B", False)], {}),
    "calcHist": counted,
    "LUT": looked_up,
    "cvtColor": grey,
    "pyrDown": lambda rng: ([picture(rng, "BHhfd")], {"borderType": int(rng.choice(BORDERS[2:4]))}),
    "resize": resized,
    "distanceTransform": distances,
    "connectedComponents": components,
}


def outcome(function: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return error


def test_every_function_has_calls() -> None:
    assert set(CALLS) == {row.name for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_served_is_opencv_s_own_result(row: Any) -> None:
    differences, count, calls = [], 0, 4 * CASES
    for number in range(calls):
        rng = np.random.default_rng([number, *row.name.encode()])
        args, kwargs = CALLS[row.name](rng)
        _profile.clear()
        found = outcome(getattr(cv2, row.name), *args, **kwargs)
        expected = outcome(ORIGINALS[row.name], *args, **kwargs)
        if isinstance(expected, Exception):
            assert type(found) is type(expected) and str(found) == str(expected) and not served(row.name)
            continue
        count += served(row.name)
        first = args[0][0] if isinstance(args[0], list) else args[0]
        bounds = row.accel.bounds if served(row.name) else (0.0, 0.0)
        difference = _calls.differs(found, expected, first, bounds)
        if difference is not None:
            options = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in kwargs.items()}
            differences.append(f"{number}: {first.dtype} {first.shape} {args[1:]} {options}: {difference}")
    assert not differences, "\n".join(differences)
    assert count >= calls / 3, f"{count} of {calls} calls were served: {_profile.table()}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_parameters_are_opencv_s(row: Any) -> None:
    told = re.match(r"\w+\((.*?)\) ->", ORIGINALS[row.name].__doc__)
    assert told is not None
    assert list(inspect.signature(row.function).parameters) == re.findall(r"\w+", told[1])
    needed = re.findall(r"\w+", told[1].partition("[")[0])
    assert [one.name for one in inspect.signature(row.function).parameters.values() if one.default is one.empty] == needed


def test_all_colours_have_opencv_s_grey() -> None:
    blue, green, red = np.meshgrid(*[np.arange(256, dtype=np.uint8)] * 3, indexing="ij")
    colours = np.stack([blue, green, red], axis=-1).reshape(4096, 4096, 3)
    np.testing.assert_array_equal(cv2.cvtColor(colours, cv2.COLOR_BGR2GRAY), ORIGINALS["cvtColor"](colours, cv2.COLOR_BGR2GRAY))
    assert served("cvtColor")


# Results into arrays.


def test_a_result_is_written_into_dst() -> None:
    image = picture(np.random.default_rng(1), "B", False)
    dst = np.zeros_like(image, order="C")
    assert cv2.blur(image, (3, 3), dst) is dst and served("blur") == 1
    np.testing.assert_array_equal(dst, ORIGINALS["blur"](image, (3, 3)))
    limit, found = cv2.threshold(image, 100.7, 200.4, cv2.THRESH_BINARY, dst=dst)
    assert found is dst and limit == 100.0 and type(limit) is float and served("threshold") == 1


@pytest.mark.parametrize("how", ["in place", "another shape", "another type", "a view", "read only"])
def test_other_arrays_for_a_result_are_opencv_s(how: str) -> None:
    image = np.random.default_rng(2).integers(0, 256, (40, 50), dtype=np.uint8)

    def made() -> tuple[Any, Any]:
        given = image.copy()
        dst = {"in place": given, "another shape": np.zeros((3, 4), np.uint8), "another type": np.zeros((40, 50), np.float32)}.get(how)
        if dst is None:
            dst = np.zeros((40, 100), np.uint8)[:, ::2] if how == "a view" else np.zeros((40, 50), np.uint8)
            dst.flags.writeable = how != "read only"
        return given, dst

    (a, into), (b, other) = made(), made()
    found, expected = outcome(cv2.medianBlur, a, 3, into), outcome(ORIGINALS["medianBlur"], b, 3, other)
    assert not served("medianBlur") and type(found) is type(expected)
    if isinstance(expected, Exception):
        assert str(found) == str(expected)
    else:
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(into, other)


def test_results_share_no_memory_with_their_pictures() -> None:
    image = np.random.default_rng(3).integers(0, 256, (300, 400), dtype=np.uint8)
    one = np.ones((1, 1), np.uint8)
    for _ in range(3):
        found = cv2.erode(image, one)
        before = image.copy()
        image += 1
        np.testing.assert_array_equal(found, before)
        found[:] = 7
    assert served("erode") == 3


# Calls that fall through.

GREY: Final = np.random.default_rng(4).integers(0, 256, (40, 50), dtype=np.uint8)
FALLING: Final[dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]]] = {
    "no picture": ("blur", (None, (3, 3)), {}),
    "a list": ("blur", ([[1.0, 2.0]], (3, 3)), {}),
    "no arguments": ("blur", (), {}),
    "too few arguments": ("blur", (GREY,), {}),
    "an unknown argument": ("blur", (GREY, (3, 3)), {"sigma": 3}),
    "an even kernel": ("GaussianBlur", (GREY, (4, 4), 1), {}),
    "an even window": ("medianBlur", (GREY, 4), {}),
    "a float for a whole number": ("medianBlur", (GREY, 3.0), {}),
    "a text": ("medianBlur", (GREY, "3"), {}),
    "an anchor outside": ("erode", (GREY, np.ones((3, 3), np.uint8)), {"anchor": (5, 5)}),
    "an unknown border": ("blur", (GREY, (3, 3)), {"borderType": 77}),
    "a border that wraps": ("blur", (GREY, (3, 3)), {"borderType": cv2.BORDER_WRAP}),
    "a constant": ("erode", (GREY, np.ones((3, 3), np.uint8)), {"borderType": cv2.BORDER_CONSTANT, "borderValue": 9}),
    "an empty kernel": ("filter2D", (GREY, -1, np.zeros((0, 0))), {}),
    "a kernel of floats": ("erode", (GREY, np.ones((3, 3))), {}),
    "fractions": ("Sobel", (GREY, -1, 1, 0), {"scale": 0.3}),
    "two channels for grey": ("cvtColor", (np.dstack([GREY, GREY]), cv2.COLOR_BGR2GRAY), {}),
    "colours for a histogram": ("equalizeHist", (np.dstack([GREY] * 3),), {}),
    "one channel": ("blur", (GREY[..., None], (3, 3)), {}),
    "integers of 32 bits": ("blur", (GREY.astype(np.int32), (3, 3)), {}),
    "truth values": ("medianBlur", (GREY > 9, 3), {}),
    "pixels that are not finite": ("blur", (np.full((9, 9), np.nan, np.float32), (3, 3)), {}),
    "eight neighbours": ("connectedComponents", (GREY // 128,), {}),
    "a trial": ("threshold", (GREY, 9, 255, cv2.THRESH_DRYRUN), {}),
    "another block": ("adaptiveThreshold", (GREY, 255, 0, 0, 4, 2), {}),
    "no background": ("distanceTransform", (np.ones((5, 5), np.uint8), cv2.DIST_L2, 0), {}),
    "an approximated distance": ("distanceTransform", (GREY // 128, cv2.DIST_L2, 5), {}),
    "an unknown conversion": ("cvtColor", (np.dstack([GREY] * 3), 9999), {}),
    "several pictures": ("calcHist", ([GREY, GREY], [0, 1], None, [8, 8], [0, 256, 0, 256]), {}),
    "a mask": ("calcHist", ([GREY], [0], GREY // 128, [8], [0, 256]), {}),
    "no channel": ("calcHist", ([GREY], [3], None, [8], [0, 256]), {}),
    "a short table": ("LUT", (GREY, np.zeros(9, np.uint8)), {}),
    "another size": ("resize", (GREY, (31, 17)), {}),
    "no size": ("resize", (GREY, (0, 0)), {}),
    "one factor": ("resize", (GREY, None), {"fx": 0.5}),
    "factors beside those of the size": ("resize", (GREY, None), {"fx": 0.5001, "fy": 0.5}),
    "factors of another mean": ("resize", (GREY, None), {"fx": 0.5001, "fy": 0.5, "interpolation": cv2.INTER_AREA}),
    "factors of other places": ("resize", (GREY, (0, 0)), {"fx": 0.5, "fy": 0.4999, "interpolation": cv2.INTER_NEAREST}),
    "an array as a list of rows": ("calcHist", (GREY, [0], None, [8], [0, 256]), {}),
    "no truth value": ("boxFilter", (GREY, -1, (3, 3)), {"normalize": "x"}),
    "nothing for a truth value": ("boxFilter", (GREY, -1, (3, 3)), {"normalize": None}),
    "no iterations": ("erode", (GREY, None), {"iterations": -1}),
    "an isolated border": ("pyrDown", (GREY,), {"borderType": cv2.BORDER_REFLECT | cv2.BORDER_ISOLATED}),
    "two channels in a large window": ("medianBlur", (np.dstack([GREY, GREY]), 7), {}),
    "a list of taps": ("filter2D", (GREY, -1, [[1.0, 2.0]]), {}),
    "lists of taps": ("sepFilter2D", (GREY, -1, [1.0, 2.0], [1.0]), {}),
    "a list as a table": ("LUT", (GREY, list(range(256))), {}),
    "a table of other channels": ("LUT", (GREY, np.zeros((64, 1, 4), np.uint8)), {}),
    "no derivative": ("Sobel", (GREY, cv2.CV_16S, 0, 0), {}),
    "a negative derivative": ("Sobel", (GREY, cv2.CV_16S, -1, 0), {}),
    "an even derivative": ("Sobel", (GREY, cv2.CV_16S, 1, 0), {"ksize": 4}),
    "a derivative of a higher order": ("Scharr", (GREY, cv2.CV_16S, 1, 1), {}),
    "an empty Laplacian": ("Laplacian", (GREY, cv2.CV_16S), {"ksize": 0}),
    "a large Laplacian": ("Laplacian", (GREY, cv2.CV_16S), {"ksize": 33}),
}


@pytest.mark.parametrize("what", FALLING)
def test_a_call_that_is_not_served_is_opencv_s(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, args, kwargs = FALLING[what]
    found, expected = (outcome(function, *args, **kwargs) for function in (getattr(cv2, name), ORIGINALS[name]))
    assert not served(name) and type(found) is type(expected)
    if isinstance(expected, Exception):
        assert str(found) == str(expected) and found.__context__ is None
    else:
        np.testing.assert_equal(found, expected)
    assert "horus_image" not in capsys.readouterr().err


LINE: Final = np.ones(3, np.float32)
FILTERS: Final[dict[str, tuple[Any, ...]]] = {
    "Sobel": (1, 0),
    "Scharr": (1, 0),
    "sepFilter2D": (LINE, LINE),
    "filter2D": (np.ones((3, 3), np.float32),),
    "Laplacian": (),
    "boxFilter": ((3, 3),),
}


@pytest.mark.parametrize("name", FILTERS)
def test_every_type_of_result_is_opencv_s_or_refused_alike(name: str) -> None:
    options: list[dict[str, Any]] = [{}]
    if name == "Laplacian":
        options += [{"ksize": 3}, {"ksize": 5}]
    elif name == "boxFilter":
        options += [{"normalize": False}]
    for dtype in "BHhfd":
        image = GREY.astype(dtype)
        for ddepth in range(-1, 7):
            for more in options:
                found, expected = (outcome(f, image, ddepth, *FILTERS[name], **more) for f in (getattr(cv2, name), ORIGINALS[name]))
                what = f"{dtype} into {ddepth}, {more}"
                assert type(found) is type(expected), what
                if isinstance(expected, Exception):
                    assert str(found) == str(expected), what
                else:
                    assert found.dtype == expected.dtype, what
                    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-3, err_msg=what)
    assert served(name) >= 5


@pytest.mark.parametrize("size", [None, (0, 0)])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_halves_of_all_channels_are_opencv_s(size: Any, channels: int) -> None:
    rng = np.random.default_rng(6)
    image = rng.integers(0, 256, (40, 50, channels), dtype=np.uint8)[..., slice(None) if channels > 1 else 0]
    for method in (cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_AREA):
        given = {"fx": 0.5, "fy": 0.5, "interpolation": method}
        np.testing.assert_array_equal(cv2.resize(image, size, **given), ORIGINALS["resize"](image, size, **given))
    assert served("resize") == 3


@pytest.mark.parametrize("anchor", [(0, 0), (2, 1), (-1, 2), (3, 3)])
@pytest.mark.parametrize("name", ["erode", "dilate", "morphologyEx"])
def test_the_anchor_of_no_kernel_is_opencv_s(name: str, anchor: tuple[int, int]) -> None:
    args = (GREY, cv2.MORPH_OPEN, None) if name == "morphologyEx" else (GREY, None)
    found, expected = (outcome(function, *args, anchor=anchor) for function in (getattr(cv2, name), ORIGINALS[name]))
    assert type(found) is type(expected) and served(name) == (anchor != (3, 3))
    if isinstance(expected, Exception):
        assert str(found) == str(expected)
    else:
        np.testing.assert_array_equal(found, expected)


def test_taps_that_are_refused_once_are_refused_at_once() -> None:
    kernel = np.ones((7, 7)) / 49
    _opencv._unit.cache_clear()
    for _ in range(3):
        cv2.filter2D(GREY.astype(np.uint16), -1, kernel)
    assert not served("filter2D")
    found = _opencv._unit.cache_info()
    assert (found.misses, found.hits) == (1, 2)


def test_nothing_is_computed_for_another_dst(monkeypatch: pytest.MonkeyPatch) -> None:
    def computed(*_: Any) -> None:
        raise AssertionError("computed")

    monkeypatch.setattr(_opencv._horus.Program, "of", computed)
    monkeypatch.setattr(_opencv, "label", computed)
    monkeypatch.setattr(_opencv, "_counts", computed)
    wrong = np.zeros((3, 4), np.uint8)
    for found, name in (
        (cv2.medianBlur(GREY, 3, wrong), "medianBlur"),
        (cv2.equalizeHist(GREY, wrong), "equalizeHist"),
        (cv2.threshold(GREY, 0, 255, cv2.THRESH_OTSU, wrong), "threshold"),
        (cv2.connectedComponents(GREY, wrong, 4), "connectedComponents"),
    ):
        assert found is not None and not served(name)
        (reason,) = _profile._functions[f"cv2.{name}"].reasons
        assert reason == "NotImplementedError: an array for the result of another type or shape"


def test_medians_are_served_on_a_cpu_where_they_are_faster() -> None:
    accel.install()
    for rows, ksize, expected in ((1000, 5, 0), (130, 7, 1), (120, 7, 0), (200, 51, 0), (210, 51, 1), (400, 77, 0)):
        _profile.clear()
        cv2.medianBlur(np.zeros((rows, rows), np.uint8), ksize)
        assert served("medianBlur") == expected, (rows, ksize)


def test_only_large_pictures_are_served_on_a_cpu() -> None:
    accel.install()
    large = np.random.default_rng(5).integers(0, 256, (1200, 1800), dtype=np.uint8)
    kernel = np.ones((3, 3), np.uint8)
    for picture, expected in ((large[:600], 0), (large, 1)):
        _profile.clear()
        cv2.erode(picture, kernel)
        assert served("erode") == expected
        cv2.threshold(picture, 9, 255, 0)
        assert not served("threshold")
    assert list(_profile._functions["cv2.threshold"].reasons) == ["a call that is faster by OpenCV on a CPU"]


def test_arguments_of_what_a_cpu_never_computes_are_not_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    accel.install()

    def examined(*_: Any) -> None:
        raise AssertionError("examined")

    monkeypatch.setattr(_calls.Served, "bound", examined)
    for name in ("blur", "boxFilter", "threshold", "adaptiveThreshold", "equalizeHist", "calcHist", "LUT", "cvtColor", "pyrDown", "resize"):
        args, kwargs = CALLS[name](np.random.default_rng(0))
        getattr(cv2, name)(*args, **kwargs)
        assert list(_profile._functions[f"cv2.{name}"].reasons) == ["a call that is faster by OpenCV on a CPU"]


def test_other_versions_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cv2, "__version__", "4.13.0")
    cv2.medianBlur(GREY, 5)
    assert list(_profile._functions["cv2.medianBlur"].reasons) == ["NotImplementedError: OpenCV 4.13.0"]


# Installation.


def test_names_taken_before_are_exchanged_and_come_back() -> None:
    accel.uninstall()
    module = types.ModuleType("taken")
    module.smooth = original = cv2.GaussianBlur  # type: ignore[attr-defined]
    sys.modules["taken"] = module
    try:
        accel.install()
        assert module.smooth is cv2.GaussianBlur is not original
        assert cv2.GaussianBlur.__doc__ == original.__doc__ and cv2.GaussianBlur.__name__ == "GaussianBlur"
        accel.uninstall()
        assert module.smooth is cv2.GaussianBlur is original
    finally:
        del sys.modules["taken"]


def test_verification_returns_opencv_s_and_tells_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    accel.install(smallest=0, verify=True)
    dst = np.zeros_like(GREY)
    assert cv2.blur(GREY, (3, 3), dst=dst) is dst and _profile.mismatches() == 0 and served("blur") == 1
    replaced: Any = cv2.blur
    monkeypatch.setattr(replaced.__horus__, "horus", lambda image, **_: image)
    np.testing.assert_array_equal(cv2.blur(GREY, (3, 3)), ORIGINALS["blur"](GREY, (3, 3)))
    assert _profile.mismatches() == 1


SCRIPT: Final = """
import cv2 as cv
import numpy as np
from cv2 import morphologyEx

rng = np.random.default_rng(0)
colours = cv.resize(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8), (320, 240), interpolation=cv.INTER_CUBIC)
grey = cv.cvtColor(colours, cv.COLOR_BGR2GRAY)
results = [grey]

# Smoothing
results.append(cv.filter2D(colours, -1, np.ones((5, 5), np.float32) / 25))
results.append(cv.blur(colours, (5, 5)))
results.append(cv.GaussianBlur(colours, (5, 5), 0))
results.append(cv.medianBlur(colours, 5))

# Thresholds
results.append(cv.threshold(grey, 127, 255, cv.THRESH_BINARY)[1])
results.append(cv.adaptiveThreshold(grey, 255, cv.ADAPTIVE_THRESH_MEAN_C, cv.THRESH_BINARY, 11, 2))
limit, mask = cv.threshold(cv.GaussianBlur(grey, (5, 5), 0), 0, 255, cv.THRESH_BINARY + cv.THRESH_OTSU)
results.append(mask)

# Morphology
kernel = cv.getStructuringElement(cv.MORPH_ELLIPSE, (5, 5))
results.append(cv.erode(mask, kernel, iterations=1))
results.append(cv.dilate(mask, kernel, iterations=2))
for operation in (cv.MORPH_OPEN, cv.MORPH_CLOSE, cv.MORPH_GRADIENT, cv.MORPH_TOPHAT, cv.MORPH_BLACKHAT):
    results.append(morphologyEx(grey, operation, kernel))

# Gradients
results.append(cv.Laplacian(grey, cv.CV_64F))
results.append(cv.Sobel(grey, cv.CV_64F, 1, 0, ksize=5))
results.append(cv.Scharr(grey, cv.CV_16S, 0, 1))
results.append(cv.convertScaleAbs(results[-1]))

# Pyramids
level = grey
for _ in range(3):
    level = cv.pyrDown(level)
    results.append(level)

# Histograms
results.append(cv.calcHist([grey], [0], None, [256], [0, 256]))
results.append(cv.equalizeHist(grey))
results.append(cv.LUT(grey, (255 * (np.arange(256) / 255) ** 0.5).astype(np.uint8)))

# Components
count, labels = cv.connectedComponents(mask, connectivity=4)
results.append(labels)
results.append(cv.distanceTransform(mask, cv.DIST_L1, 3))
np.savez(OUT, *results, count=count, limit=limit)
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HORUS_ACCEL": "", "HORUS_DEVICE": "cpu"}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)


def test_a_tutorial_runs_with_a_profile(tmp_path: Path) -> None:
    outputs = []
    for name, way in (("plain", []), ("served", ["-m", "horus_image.accel", "--profile", "--smallest", "0"])):
        script = tmp_path / f"{name}.py"
        script.write_text(SCRIPT.replace("OUT", repr(str(tmp_path / name))))
        ran = run(*way, str(script))
        assert ran.returncode == 0, ran.stderr
        outputs.append(np.load(tmp_path / f"{name}.npz"))
    plain, found = outputs
    assert plain.files == found.files and len(plain.files) > 25
    for name in plain.files:
        np.testing.assert_array_equal(found[name], plain[name])
    totals = re.findall(r"^cv2\.\w+ +(\d+) +(\d+)", ran.stderr, re.MULTILINE)
    calls, by_horus = (sum(int(pair[k]) for pair in totals) for k in (0, 1))
    assert calls > 25 and by_horus >= 0.95 * calls, ran.stderr


def test_the_native_module_is_loaded_with_functions_replaced() -> None:
    program = """
import sys
from horus_image import accel
accel.install()
assert "cv2" not in sys.modules
import cv2
assert hasattr(cv2.GaussianBlur, "__horus__") and not hasattr(cv2.GaussianBlur.__wrapped__, "__horus__")
accel.uninstall()
assert not hasattr(cv2.GaussianBlur, "__horus__")
"""
    ran = run("-c", program)
    assert ran.returncode == 0, ran.stderr
