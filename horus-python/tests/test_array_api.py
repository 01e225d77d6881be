"""The array API on images, against NumPy, which follows the same standard; `scripts/array_api.sh` runs the standard's own suite."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import dask.array
import numpy as np
import pytest
from horus_image import array_api as xp

import horus_image as hi

Array = np.ndarray[Any, Any]

TYPES: Final = [np.dtype(code) for code in ("?", "u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8")]
NUMBERS: Final = [dtype for dtype in TYPES if dtype.kind != "b"]
SHAPES: Final = [(), (1,), (7,), (1, 5), (4, 6), (2, 3, 4), (3, 1, 2)]


def pixels(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    """Small numbers, some equal, and of floats some that are not whole."""
    found = np.random.default_rng(seed).integers(0, 9, shape)
    return np.asarray(found / 4 if np.dtype(dtype).kind == "f" else found).astype(dtype)


def same(found: Any, wanted: Any, what: str = "", rtol: float = 0.0) -> None:
    """Images, in sequences too, of NumPy's shapes, types and numbers; integers of 64 bits are of 32."""
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted), what
        for one, other in zip(found, wanted, strict=True):
            same(one, other, what, rtol)
        return
    wanted = np.asarray(wanted)
    narrow = {np.dtype("i8"): np.dtype("i4"), np.dtype("u8"): np.dtype("u4")}
    assert isinstance(found, hi.Image), what
    assert (found.shape, found.dtype) == (wanted.shape, narrow.get(wanted.dtype, wanted.dtype)), what
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=0, err_msg=what)


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Reading an image is an error until the function is called."""

    def fail(*_: Any) -> None:
        raise AssertionError("an image is read")

    patch = pytest.MonkeyPatch()
    patch.setattr(hi.Image, "compute", fail)
    patch.setattr(hi._numpy, "get_all", fail)  # type: ignore[attr-defined]
    monkeypatch.callattr = patch  # type: ignore[attr-defined]
    return patch.undo


Call = Callable[[Any, Any], Any]
"""A function of a namespace and an image or array of it."""

MOVED: Final[dict[str, Call]] = {
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (*(2,) * (3 - x.ndim), *(4 if n == 1 else n for n in x.shape))),
    "broadcast_arrays": lambda xp, x: list(xp.broadcast_arrays(x, xp.ones((1, 1), dtype=xp.int8))),
    "concat": lambda xp, x: [xp.concat([x, x[::-1], x], axis=k) for k in range(x.ndim)],
    "concat of all": lambda xp, x: xp.concat([x, xp.ones((3,), dtype=xp.uint8)], axis=None),
    "diff": lambda xp, x: [xp.diff(xp.sort(xp.concat([x, x], axis=k), axis=k), axis=k) for k in range(x.ndim)],
    "expand_dims": lambda xp, x: [xp.expand_dims(x, axis=k) for k in range(-1, x.ndim + 1)] if x.ndim < 3 else [],
    "flip": lambda xp, x: [xp.flip(x), *(xp.flip(x, axis=k) for k in range(-x.ndim, x.ndim))],
    "index": lambda xp, x: [x[...], x[None] if x.ndim < 3 else x, x[..., None] if x.ndim < 3 else x, x[(0,) * x.ndim]],
    "matrix_transpose": lambda xp, x: [xp.matrix_transpose(x), x.mT] if x.ndim > 1 else [],
    "moveaxis": lambda xp, x: [xp.moveaxis(x, k, -1) for k in range(x.ndim)],
    "permute_dims": lambda xp, x: xp.permute_dims(x, tuple(range(x.ndim))[::-1]),
    "repeat": lambda xp, x: [xp.repeat(x, 3), *(xp.repeat(x, 2, axis=k) for k in range(x.ndim))],
    "repeat by number": lambda xp, x: xp.repeat(x, xp.arange(x.size) % 3 + 1),
    "reshape": lambda xp, x: [xp.reshape(x, s) for s in ((-1,), (1, -1), (x.size, 1, 1), *((x.size // k, k) for k in (2, 3) if x.size % k == 0))],
    "roll": lambda xp, x: [xp.roll(x, 2), *(xp.roll(x, (-1, 5), axis=(k, -1)) for k in range(x.ndim))],
    "squeeze": lambda xp, x: xp.squeeze(x, axis=tuple(k for k, n in enumerate(x.shape) if n == 1)),
    "stack": lambda xp, x: [xp.stack([x, x], axis=k) for k in range(-1, x.ndim + 1)] if x.ndim < 3 else [],
    "take": lambda xp, x: [xp.take(x, xp.asarray([0, -1, x.shape[k] - 1, 0]), axis=k) for k in range(x.ndim)],
    "take_along_axis": lambda xp, x: [xp.take_along_axis(x, xp.argsort(x, axis=k, stable=True), axis=k) for k in range(x.ndim)],
    "tile": lambda xp, x: [xp.tile(x, (2,)), xp.tile(x, (2, 1, 3))],
    "tril": lambda xp, x: [xp.tril(x, k=k) for k in (-1, 0, 2)] if x.ndim > 1 else [],
    "triu": lambda xp, x: [xp.triu(x, k=k) for k in (-1, 0, 2)] if x.ndim > 1 else [],
    "unstack": lambda xp, x: [xp.unstack(x, axis=k) for k in range(x.ndim)],
    "where": lambda xp, x: [xp.where(x > 1, x, xp.zeros_like(x)), xp.where(x > 1, xp.asarray([True]), False), xp.where(x > 1, 2.0, 3)],
    "zeros_like": lambda xp, x: [xp.zeros_like(x), xp.ones_like(x, dtype=xp.float32), xp.full_like(x, 1)],
}


@pytest.mark.parametrize("name", MOVED)
def test_moved_pixels_are_numpys(name: str) -> None:
    for shape in SHAPES:
        for dtype in TYPES if shape == (4, 6) else TYPES[::4]:
            array = pixels(shape, dtype)
            same(MOVED[name](xp, xp.asarray(array)), MOVED[name](np, array), f"{shape} {dtype}")


CHANNELS: Final = [name for name in MOVED if name not in ("expand_dims", "stack", "index")]


@pytest.mark.parametrize("name", CHANNELS)
def test_channels_are_the_last_axis(name: str) -> None:
    array = pixels((3, 4, 2), np.float32)
    image = hi.asarray(array, channels=True)
    same(MOVED[name](xp, image), MOVED[name](np, array), name)
    assert xp.flip(image, axis=0).channels and xp.roll(image, 1, axis=2).channels and not xp.reshape(image, (6, 4)).channels
    same(MOVED[name](xp, image[0]), MOVED[name](np, array[0]), f"{name} of a row")


REDUCED: Final[dict[str, Call]] = {
    "all": lambda xp, x: xp.all(x, axis=0),
    "any": lambda xp, x: xp.any(x, axis=-1, keepdims=True),
    "argmax": lambda xp, x: [xp.argmax(x), xp.argmax(x, axis=0, keepdims=True)],
    "argmin": lambda xp, x: [xp.argmin(x), xp.argmin(x, axis=-1)],
    "count_nonzero": lambda xp, x: [xp.count_nonzero(x, axis=0), xp.count_nonzero(x, axis=-1, keepdims=True)],
    "max": lambda xp, x: [xp.max(x), xp.max(x, axis=-1)],
    "min": lambda xp, x: [xp.min(x, axis=0), xp.min(x, axis=tuple(range(x.ndim)), keepdims=True)],
    "mean": lambda xp, x: [xp.mean(x), xp.mean(x, axis=-1)],
    "std": lambda xp, x: [xp.std(x, axis=0, correction=0.5), xp.std(x)],
    "var": lambda xp, x: [xp.var(x, axis=-1), xp.var(x, axis=0, correction=0.5, keepdims=True)],
}
SUMS: Final[dict[str, Call]] = {
    "cumulative_sum": lambda xp, x: [xp.cumulative_sum(x, axis=k, include_initial=k == 0, dtype=xp.float64) for k in range(x.ndim)],
    "cumulative_prod": lambda xp, x: [xp.cumulative_prod(x, axis=k, include_initial=k == 0, dtype=xp.float64) for k in range(x.ndim)],
    "prod": lambda xp, x: [xp.prod(x, dtype=xp.float64), xp.prod(x, axis=-1, dtype=xp.float64)],
    "sum": lambda xp, x: [xp.sum(x, dtype=xp.float64), xp.sum(x, axis=0, keepdims=True, dtype=xp.float64)],
}


@pytest.mark.parametrize("name", [*REDUCED, *SUMS])
def test_reductions_are_numpys(name: str) -> None:
    call = (REDUCED | SUMS)[name]
    for shape in ((7,), (4, 6), (2, 3, 4)):
        for dtype in TYPES if name not in ("argmax", "argmin") else NUMBERS:
            if dtype.kind == "b" and name in ("mean", "std", "var"):
                continue
            array = pixels(shape, dtype)
            # Means and deviations are computed in `float64`; NumPy's of `float32` are not.
            wide = array.astype("f8") if dtype == "f4" and name in ("mean", "std", "var") else array
            wanted = [np.asarray(one).astype("f4") for one in call(np, wide)] if wide is not array else call(np, array)
            same(call(xp, xp.asarray(array)), wanted, f"{shape} {dtype}", rtol=2e-15 if name in ("mean", "std", "var") else 0)


def test_sums_have_types_of_32_bits_and_saturate() -> None:
    for code, wanted in (("?", "i4"), ("i1", "i4"), ("i4", "i4"), ("u1", "u4"), ("u4", "u4"), ("f4", "f4"), ("f8", "f8")):
        image = xp.ones((2, 3), dtype=code)
        for found in (xp.sum(image), xp.prod(image), xp.cumulative_sum(image, axis=0), xp.cumulative_prod(image, axis=0)):
            assert found.dtype == wanted, code
    assert int(xp.sum(xp.full((3,), 2**31 - 1))) == 2**31 - 1
    assert int(xp.matmul(xp.full((2,), 2**30), xp.full((2,), 3))) == 2**31 - 1


def test_differences_repeat_and_join_what_is_before_and_after() -> None:
    array = pixels((4, 6), np.int32)
    image = xp.asarray(array)
    same(xp.diff(image, n=3), np.diff(array, n=3))
    same(xp.diff(image, axis=0, prepend=image[:1], append=xp.zeros((2, 6), dtype=xp.int8)), np.diff(array, axis=0, prepend=array[:1], append=np.zeros((2, 6), int)))
    same(np.diff(xp.asarray([3, 1], dtype=xp.uint8)), np.array([0], np.uint8))  # saturated


def test_extremes_keep_nan_and_positions_are_of_the_first() -> None:
    array = np.array([[1.0, np.nan, 3.0, np.nan], [5.0, 2.0, 5.0, 2.0]])
    image = xp.asarray(array)
    for call in (REDUCED["max"], REDUCED["min"], REDUCED["argmax"], REDUCED["argmin"]):
        same(call(xp, image), call(np, array))
    for function in (np.max, np.min, np.amax, np.amin):
        same(function(image, axis=1), function(array, axis=1))
        same(function(image, keepdims=True), function(array, keepdims=True))
        for pixels in (array, array[1], array[1].astype(np.uint8), array[1] > 2):
            found, wanted = function(hi.asarray(pixels)), function(pixels)
            assert type(found) is type(wanted)
            np.testing.assert_array_equal(found, wanted)
    # Methods ignore NaN.
    assert image.max() == 5.0 and image.min() == 1.0


def test_limits_of_integers_are_whole_numbers() -> None:
    array = np.arange(6, dtype=np.uint8)
    image = xp.asarray(array)
    for low, high in ((-5, 3.7), (0.5, None), (None, np.float32(2.5)), (np.full(6, 0.5), 4), (np.nan, 3)):
        found, wanted = np.clip(image, low, high), np.clip(array, low, high)
        assert type(found) is np.ndarray and found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
        limits = [xp.asarray(limit) if isinstance(limit, np.ndarray) else limit for limit in (low, high)]
        with pytest.raises(NotImplementedError, match="clip: limits of integers are whole numbers"):
            xp.clip(image, *limits)
    for limits in ((-5, 3.0), (1, np.inf), (xp.ones((6,), dtype=xp.int8), 4)):
        same(xp.clip(image, *limits), np.clip(array, *map(np.asarray, limits)).astype(np.uint8))


ELEMENTWISE: Final = [
    name for name in xp.__all__ if isinstance(getattr(np, name, None), np.ufunc) and name not in ("nextafter", "vecdot", "matmul")
]


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_elementwise_functions_are_numpys_of_their_name(name: str) -> None:
    record, ufunc = getattr(xp, name), getattr(np, name)
    for dtype in (np.dtype("?"), np.dtype("i4"), np.dtype("f8")):
        arrays = [pixels((3, 5), dtype, seed) for seed in range(ufunc.nin)]
        try:
            wanted = ufunc(*arrays)
        except TypeError:
            continue
        if wanted.dtype == np.float16 or (dtype.kind == "b" and wanted.dtype.kind != "b"):
            continue  # which images do not have; of masks there are no numbers
        if dtype.kind == "b" and name in ("add", "multiply", "floor", "ceil", "trunc"):
            continue
        images = list(map(xp.asarray, arrays))
        whole = wanted.dtype.kind != "f" or name in ("add", "subtract", "multiply", "divide", "sqrt", "copysign", "maximum", "minimum")
        if name == "divide" or (dtype.kind == "i" and name in ("floor_divide", "remainder", "reciprocal", "pow")):
            arrays[-1] = arrays[-1] + 1
            images[-1] = images[-1] + 1
            wanted = ufunc(*arrays)
        same(record(*images), wanted, f"{name} {dtype}", rtol=0 if whole else 1e-15)
        with pytest.raises(TypeError, match=f"{name}: expected a horus_image.Image, not ndarray"):
            record(*arrays)


PAGE: Final = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")

COMPUTED: Final[dict[str, Call]] = {
    "argsort": lambda xp, x: [xp.argsort(x, axis=k, stable=True) for k in range(x.ndim)],
    "nextafter": lambda xp, x: xp.nextafter(xp.astype(x, xp.float32), xp.asarray(1, dtype=xp.float32)),
    "nonzero": lambda xp, x: xp.nonzero(x),
    "searchsorted": lambda xp, x: xp.searchsorted(xp.arange(9), xp.astype(xp.reshape(x, (-1,)), xp.int32), side="right"),
    "sort": lambda xp, x: xp.sort(x),
    "tensordot": lambda xp, x: xp.tensordot(xp.astype(x, xp.float64), xp.astype(x, xp.float64), axes=x.ndim),
    "unique_all": lambda xp, x: tuple(xp.unique_all(x)),
    "unique_counts": lambda xp, x: tuple(xp.unique_counts(x)),
    "unique_inverse": lambda xp, x: tuple(xp.unique_inverse(x)),
    "unique_values": lambda xp, x: xp.sort(xp.unique_values(x)),
    "matmul of stacks": lambda xp, x: xp.matmul(xp.ones((2, 3, x.shape[0]), dtype=x.dtype), xp.reshape(x, (x.shape[0], -1))),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_what_numpy_computes_is_an_image_again(name: str) -> None:
    for dtype in (np.dtype("u1"), np.dtype("f4")):
        array = pixels((4, 6), dtype)
        same(COMPUTED[name](xp, xp.asarray(array)), COMPUTED[name](np, array), str(dtype))


def test_the_page_lists_what_numpy_computes() -> None:
    told = next(line for line in PAGE.split("- **") if line.startswith("Computed by NumPy"))
    wanted = {name for name in xp.__all__ if re.search("computed by numpy", getattr(xp, name).__doc__ or "", re.IGNORECASE)}
    assert set(re.findall("`(\\w+)`", told.partition("`repeat`")[0])) == wanted


def test_descending_orders_keep_equal_pixels_in_order() -> None:
    array = pixels((4, 30), np.uint8)
    found = xp.argsort(xp.asarray(array), axis=1, descending=True).compute()
    np.testing.assert_array_equal(np.take_along_axis(array, found, 1), -np.sort(-array.astype(int), axis=1))
    same(xp.sort(xp.asarray(array), axis=1, descending=True), np.take_along_axis(array, found, 1))
    assert all(row.tolist() == sorted(range(30), key=lambda k: -int(line[k])) for row, line in zip(found, array, strict=True))


def test_products_of_matrices_and_vectors() -> None:
    for dtype in (np.int32, np.float64):
        a, b, v = pixels((3, 4), dtype), pixels((4, 5), dtype), pixels((4,), dtype)
        images = [xp.asarray(x) for x in (a, b, v)]
        for left, right in ((0, 1), (0, 2), (2, 1), (2, 2)):
            arrays = [(a, b, v)[k] for k in (left, right)]
            same(xp.matmul(images[left], images[right]), np.matmul(*arrays), f"{left} {right}", rtol=1e-15)
        same(xp.vecdot(images[0], images[2]), np.vecdot(a, v), rtol=1e-15)
    with pytest.raises(ValueError, match=r"matmul: shapes \(3, 4\) and \(3, 4\) do not match"):
        xp.matmul(images[0], images[0])


def test_new_images_are_numpys() -> None:
    for call in (
        lambda xp: xp.arange(2, 9, 3, dtype=xp.int16),
        lambda xp: xp.arange(0.5, 3.0, 0.5),
        lambda xp: xp.linspace(0, 1, 7, endpoint=False),
        lambda xp: [xp.eye(3, 4, k=k, dtype=xp.uint8) for k in (-1, 0, 1)],
        lambda xp: xp.eye(3),
        lambda xp: [xp.full((2, 3), 7), xp.full(4, 1.5), xp.full((), True), xp.zeros((2, 3, 4), dtype=xp.bool), xp.ones(3)],
        lambda xp: [xp.asarray(5), xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 2.5]), xp.asarray(True), xp.asarray(3, dtype=xp.float32)],
        lambda xp: list(xp.meshgrid(xp.arange(3), xp.arange(4))),
        lambda xp: list(xp.meshgrid(xp.arange(3), xp.arange(4), xp.arange(2), indexing="ij")),
        lambda xp: [xp.full((1,), 3.7, dtype=xp.uint8), xp.full((2,), -3.7, dtype=xp.int16), xp.full((2,), 0.3, dtype=xp.bool)],
        lambda xp: xp.astype(xp.asarray([1.75, -1.75, 0.25]), xp.int8),
        lambda xp: xp.astype(xp.asarray([1.75, -1.75, 0.25, 0.0]), xp.bool),
        lambda xp: [xp.asarray(2.0), xp.asarray([3.0])],
    ):
        same(call(xp), call(np))
    same(xp.asarray(np.array([-1, 300]), dtype=xp.uint8), np.array([255, 44], np.uint8))
    assert xp.asarray(np.float32(3)).dtype == xp.float32
    assert xp.from_dlpack(np.arange(3.0)).shape == (3,)


def test_shapes_and_types_that_images_do_not_have_are_errors() -> None:
    image = xp.ones((2, 3))
    for kind, match, call in (
        (ValueError, r"zeros: shape \(0, 3\) requested; images have at least one pixel", lambda: xp.zeros((0, 3))),
        (ValueError, "arange: the result has shape .* at least one pixel", lambda: xp.arange(0)),
        (ValueError, "nonzero: the result has shape .* at least one pixel", lambda: xp.nonzero(xp.zeros((3,)))),
        (NotImplementedError, "ones: 4 axes requested; images have up to 3", lambda: xp.ones((1, 1, 1, 1))),
        (NotImplementedError, "expand_dims: 4 axes requested", lambda: xp.expand_dims(xp.ones((1, 1, 1)), axis=0)),
        (ValueError, r"reshape: an image of shape \(2, 3\) has no shape \(4, 2\)", lambda: xp.reshape(image, (4, 2))),
        (ValueError, "broadcast_to: .* does not broadcast|not be broadcast", lambda: xp.broadcast_to(image, (2, 4))),
        (ValueError, "concat: images of shapes .* not joined along axis 0", lambda: xp.concat([image, xp.ones((2, 4))])),
        (TypeError, "images have no complex pixels", lambda: xp.asarray(1j)),
        (TypeError, "asarray: images have no pixels of type int64", lambda: xp.asarray([1], dtype=np.int64)),
        (TypeError, "images have no pixels of type int64", lambda: xp.asarray(np.arange(3))),
        (OverflowError, "asarray: numbers from .* out of the range of int32", lambda: xp.asarray(2**31)),
        (TypeError, "result_type: images have no pixels of type int64", lambda: xp.result_type(xp.int32, xp.uint32)),
        (TypeError, "zeros: devices are sessions, not str", lambda: xp.zeros(3, device="cpu")),  # type: ignore[arg-type]
        (ValueError, "isdtype: 'whole' is no kind", lambda: xp.isdtype(xp.int8, "whole")),
        (ValueError, "cumulative_sum: the image has 2 axes; name one", lambda: xp.cumulative_sum(image)),
        (TypeError, "images are not written to", lambda: image.__setitem__(0, 1.0)),
        (IndexError, "a mask selects", lambda: image[image > 0]),  # type: ignore[index]
        (TypeError, "an image without axes has no length", lambda: len(xp.sum(image))),
        (TypeError, "only an image of one integer", lambda: range(9)[xp.sum(image)]),  # type: ignore[call-overload]
        (ValueError, "versions", lambda: image.__array_namespace__(api_version="2020.12")),
    ):
        with pytest.raises(kind, match=match):
            call()


def test_images_without_axes_are_numbers_and_indices() -> None:
    total = xp.sum(xp.asarray([1, 2]))
    assert (int(total), float(total), complex(total), [10, 20, 30, 40][total], bool(total)) == (3, 3.0, 3 + 0j, 40, True)  # type: ignore[call-overload]
    assert repr(total) == "<horus_image.Image number int32>" and total.compute().shape == ()
    assert [int(one) for one in xp.arange(3)] == [0, 1, 2]
    assert (total + np.ones((2, 2))).shape == (2, 2)
    assert [array.shape for array in hi.get_all(total, xp.ones((2, 2)))] == [(), (2, 2)]
    with pytest.raises(TypeError, match="an image without axes has no length"):
        iter(total)


def test_pixels_are_picked_by_positions() -> None:
    array = pixels((3, 4, 5), np.int32)
    image = xp.asarray(array)
    rows, columns = np.array([[0], [-1]]), np.array([1, 3, -2])
    same(image[rows, columns, 2], array[rows, columns, 2])
    same(image[xp.asarray(rows, dtype=xp.int32), xp.asarray(columns, dtype=xp.int16), 2], array[rows, columns, 2])
    same(hi.asarray(array, channels=True)[rows, 0, columns], array[rows, 0, columns])
    with pytest.raises(IndexError, match="an index is out of bounds for an axis of 3 pixels"):
        image[np.array([3]), 0, 0]
    with pytest.raises(IndexError, match="arrays of positions index pixels along each of the 3 axes"):
        image[rows]
    for no in (np.array([True, False]), np.array([0.7, 1.2]), xp.asarray([0.7, 1.2]), xp.asarray([True, False]), True, np.True_, np.float64(1), 1.0):
        with pytest.raises(IndexError, match="arrays of positions .* with whole numbers for the others"):
            image[no, np.array([0, 1]), 0]
    for one in (1, np.uint8(1), np.array(1), xp.asarray(1)):
        same(image[one, columns, 2], array[1, columns, 2])
    with pytest.raises(IndexError, match="a mask selects"):
        image[True, 0]


def test_positions_may_be_of_narrow_types() -> None:
    array = np.arange(300.0)
    for places in (np.array([5, -5], np.int8), np.array([5, 250], np.uint8), np.array([-300, 299], np.int16)):
        same(hi.asarray(array)[places], array[places])


def test_arrays_are_sequences_of_whole_numbers() -> None:
    array = pixels((2, 3), np.float64)
    image = xp.asarray(array)
    same(xp.reshape(image, np.array([1, 6])), array.reshape(1, 6))
    same(np.roll(image, np.array([1, 2]), axis=(0, 1)), np.roll(array, (1, 2), axis=(0, 1)))
    same(np.tile(image, np.array([2, 1])), np.tile(array, (2, 1)))
    same(image.transpose(np.array([1, 0])), array.T)


def test_many_tiles_are_recorded_as_a_few_are() -> None:
    image = xp.ones((3, 4))

    def calls(times: int) -> int:
        names: list[str] = []
        sys.setprofile(lambda frame, event, arg: names.append(event))
        try:
            xp.tile(image, (times, times))
        finally:
            sys.setprofile(None)
        return names.count("c_call")

    assert calls(50) < 2 * calls(2)


def test_the_namespace_tells_what_images_have() -> None:
    info = xp.__array_namespace_info__()
    assert set(info.dtypes().values()) == set(TYPES) and info.dtypes(kind="complex floating") == {}
    assert set(info.dtypes(kind=("bool", "signed integer"))) == {"bool", "int8", "int16", "int32"}
    assert info.default_dtypes() == {"real floating": xp.float64, "integral": xp.int32, "indexing": xp.int32}
    assert xp.finfo(xp.float32).eps == float(np.finfo("f4").eps) and xp.iinfo(xp.ones(1, dtype=xp.uint8)).max == 255
    assert xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.float64, xp.float32)
    assert xp.isdtype(xp.uint8, ("bool", "integral")) and not xp.isdtype(np.dtype("i8"), "integral")
    image = xp.ones((2, 2))
    assert image.__array_namespace__(api_version="2024.12") is xp
    assert info.default_device() in info.devices() == [image.device]
    with hi.session(device="cpu") as session:
        moved = image.to_device(session)
        assert moved.device is session is info.default_device() and xp.zeros(3).device is session
        same(moved + xp.ones(2), np.full((2, 2), 2.0))
        assert xp.asarray(image, device=session).device is session and xp.asarray(image).device is image.device
    assert xp.ones_like(moved).device is session


LAZY: Final[dict[str, Callable[[Any], Any]]] = {
    "argmax": lambda x: np.argmax(x, axis=0),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "concatenate": lambda x: np.concatenate([x, np.ones((1, 6), np.float32)], axis=0),
    "count_nonzero": lambda x: np.count_nonzero(x, axis=0),
    "cumsum": lambda x: np.cumsum(x.astype(np.float64), axis=1),
    "diff": lambda x: np.diff(x, axis=0),
    "expand_dims": lambda x: np.expand_dims(x, 0),
    "flip": lambda x: [np.flip(x, 0), np.fliplr(x), np.flipud(x)],
    "max": lambda x: [np.max(x, axis=0), np.amin(x, axis=1, keepdims=True), np.all(x, axis=0)],
    "moveaxis": lambda x: [np.moveaxis(x, 0, 1), np.swapaxes(x, 0, 1), np.transpose(x), np.transpose(x, (1, 0))],
    "ravel": lambda x: [np.ravel(x), np.reshape(x, (6, 4)), np.reshape(x, -1)],
    "repeat": lambda x: [np.repeat(x, 2, axis=0), np.tile(x, 2), np.roll(x, 3), np.roll(x, 1, axis=0)],
    "round": lambda x: [np.round(x), np.clip(x, 1, 2), np.clip(x, a_min=None, a_max=1), np.clip(x, x[:1], None)],
    "squeeze": lambda x: np.squeeze(x[:1]),
    "stack": lambda x: [np.stack([x, x]), np.stack([x, x], axis=-1)],
    "tril": lambda x: [np.tril(x), np.triu(x, 1)],
    "where": lambda x: [np.where(x > 1, x, 0), np.where(x, x, np.float32(2))],
}


@pytest.mark.parametrize("name", LAZY)
def test_functions_of_numpy_are_recorded(name: str, unread: Callable[[], None]) -> None:
    array = pixels((4, 6), np.float32)
    image = hi.asarray(array)
    try:
        found = LAZY[name](image)
    finally:
        unread()
    same(found, LAZY[name](array), name)


def test_shapes_and_types_are_told_without_reading(unread: Callable[[], None]) -> None:
    image = hi.asarray(np.ones((2, 3), np.uint8))
    try:
        # Arrays, to be written to.
        for made in (np.zeros_like(image), np.ones_like(image), np.empty_like(image), np.full_like(image, 3)):
            assert type(made) is np.ndarray and (made.shape, made.dtype) == ((2, 3), np.uint8)
        assert (np.full_like(image, 3, dtype="f4") == np.full((2, 3), 3, "f4")).all() and (np.zeros_like(image) == 0).all()
        told = (np.shape(image), np.ndim(image), np.size(image), np.size(image, 1), np.result_type(image, np.float32), np.iscomplexobj(image))
        assert told == ((2, 3), 2, 6, 3, np.float32, False)
        for name in ("reshape", "roll", "take", "where", "tile", "concat", "stack", "tril"):
            MOVED[name](xp, image)
        for name in REDUCED:
            REDUCED[name](xp, image)
    finally:
        unread()


def test_other_functions_of_numpy_compute_arrays() -> None:
    array = pixels((4, 6), np.float64)
    image = hi.asarray(array)
    out = np.empty(6)
    for call in (
        lambda x: np.median(x, axis=0),
        lambda x: np.percentile(x, [10, 90]),
        lambda x: np.argmax(x),
        lambda x: np.linalg.norm(x),
        lambda x: np.einsum("ij->j", x),
        lambda x: np.sum(x, axis=0, out=out),
        lambda x: np.max(x, initial=100.0),
        lambda x: np.round(x, 1),
        lambda x: np.vstack([x, x]),
        lambda x: np.stack([np.stack([x, x])] * 2),  # of four axes
        lambda x: np.where(x > 1)[0],
        lambda x: np.concatenate([x, np.ones((1, 6), np.int64) << 40]),  # of a type that images do not have, beside one
        lambda x: np.block([[x, x]]),
        lambda x: np.clip(x, 1, 2, out=np.empty((4, 6))),
    ):
        found, wanted = call(image), call(array)
        assert not isinstance(found, hi.Image) and type(found) is type(wanted)
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(out, array.sum(0))
    with pytest.raises(ValueError, match="all the input array dimensions"):
        np.concatenate([image, np.ones((1, 5))])


WRITING: Final[dict[str, Callable[[Any], Any]]] = {
    "concatenate": lambda x: np.concatenate([np.ones((1, 3)), np.ones((2, 3))], out=x),
    "copyto": lambda x: np.copyto(x, 1),
    "cumprod": lambda x: np.cumprod(np.ones((3, 3)), axis=0, out=x),
    "fill_diagonal": lambda x: np.fill_diagonal(x, 1),
    "place": lambda x: np.place(x, np.ones((3, 3), bool), [1]),
    "put": lambda x: np.put(x, [0], [1]),
    "put_along_axis": lambda x: np.put_along_axis(x, np.zeros((3, 1), int), 1, 1),
    "putmask": lambda x: np.putmask(x, np.ones((3, 3), bool), 1),
    "sum": lambda x: np.sum(np.ones((2, 3, 3)), axis=0, out=x),
}


@pytest.mark.parametrize("name", WRITING)
def test_functions_of_numpy_do_not_write_to_images(name: str) -> None:
    array = np.zeros((3, 3))
    WRITING[name](array)
    assert array.any()
    with pytest.raises(ValueError, match=r"read-only|not writeable"):
        WRITING[name](hi.asarray(np.zeros((3, 3))))


def test_arrays_of_other_libraries_take_arrays() -> None:
    array = pixels((4, 6), np.float64)
    others = dask.array.from_array(np.ones((4, 6)))
    for found in (np.concatenate([others, hi.asarray(array)]), np.concatenate([hi.asarray(array), others])):
        assert isinstance(found, dask.array.Array) and found.sum().compute() == array.sum() + 24


PROGRAM: Final = """
import numpy as np, scipy.integrate, scipy.ndimage, scipy.special, scipy.stats
from scipy._lib.array_api_compat import array_namespace, device, size
import horus_image as hi

array = np.random.default_rng(0).random((12, 9))
image = hi.asarray(array)
assert array_namespace(image) is hi.array_api and device(image) is image.session and size(image) == 108
for function in (
    scipy.special.erf,
    lambda x: scipy.special.softmax(x, axis=0),
    lambda x: scipy.stats.skew(x, axis=0),
    lambda x: scipy.stats.gmean(x, axis=1),
    lambda x: scipy.integrate.trapezoid(x, axis=0),
    lambda x: scipy.ndimage.gaussian_filter(x, 1.0),
):
    found = function(image)
    assert isinstance(found, hi.Image), function
    np.testing.assert_allclose(found, function(array), rtol=1e-12)
"""


def test_scipy_takes_images_as_arrays_of_a_namespace() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], check=True, env={**os.environ, "SCIPY_ARRAY_API": "1"})
