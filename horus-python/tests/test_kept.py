"""Programs that functions of arrays keep: the same results as those of calls that keep nothing, whatever was called before."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import horus_image as hi
from horus_image import _horus, ndimage

Call = Callable[[Any], Any]
CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
KERNEL = np.array([[1, 2, 0], [-1, 3, 1], [0, 1, -2]], np.float64)

CALLS: dict[str, Call] = {
    "erosion": lambda a: ndimage.grey_erosion(a, 3),
    "footprint": lambda a: ndimage.grey_erosion(a, footprint=CROSS, mode="constant", cval=3),
    "gradient": lambda a: ndimage.morphological_gradient(a, 3),
    "sobel": lambda a: ndimage.sobel(a, axis=0, mode="wrap"),
    "uniform": lambda a: ndimage.uniform_filter(a, (3, 5)),
    "gaussian": lambda a: ndimage.gaussian_filter(a, 1.5, output=np.float64),
    "magnitude": lambda a: ndimage.gaussian_gradient_magnitude(a, 1.0),
    "laplace": lambda a: ndimage.laplace(a, output="float32"),
    "correlate": lambda a: ndimage.correlate(a, KERNEL),
    "median": lambda a: ndimage.median_filter(a, 3),
    "maximum": lambda a: ndimage.maximum_filter1d(a, 5),
    "zoom": lambda a: ndimage.zoom(a, (2, 0.5), order=1),
    "rotate": lambda a: ndimage.rotate(a, 30, order=1, reshape=False),
    "shift": lambda a: ndimage.shift(a, (1.5, -2), order=3),
    "spline": lambda a: ndimage.spline_filter(a),
}
MASKS: dict[str, Call] = {
    "erosion": lambda a: ndimage.binary_erosion(a, border_value=1),
    "dilation": lambda a: ndimage.binary_dilation(a, CROSS, iterations=2),
    "opening": lambda a: ndimage.binary_opening(a, np.ones((3, 3))),
    "until nothing changes": lambda a: ndimage.binary_dilation(a, iterations=-1, mask=np.ones((9, 11), bool)),
    "fill holes": lambda a: ndimage.binary_fill_holes(a),
}


def pictures(dtype: Any, count: int = 5) -> list[Any]:
    rng = np.random.default_rng(3)
    return [(rng.random((9, 11)) * 200 > 90 if dtype == bool else rng.random((9, 11)) * 200).astype(dtype) for _ in range(count)]


def programs(session: hi.Session) -> list[Any]:
    return [known for known in session._programs.values() if isinstance(known, _horus.Program)]


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "i8", "bool"])
def test_a_call_that_was_made_before_has_the_result_of_one_that_was_not(dtype: str) -> None:
    calls = MASKS if dtype == "bool" else CALLS
    for name, call in calls.items():
        expected = []
        for picture in pictures(dtype):
            with hi.session(device="cpu"):
                expected.append(call(picture))
        with hi.session(device="cpu") as session:
            for picture, one in zip(pictures(dtype), expected, strict=True):
                found = call(picture)
                assert found.dtype == one.dtype and found.flags.writeable, name
                np.testing.assert_array_equal(found.view("u1"), one.view("u1"), err_msg=name)
                found[:] = 0  # is the caller's
            if dtype != "i8" and name not in ("until nothing changes",):
                assert programs(session), f"{name} keeps no program"
            else:
                assert not programs(session), f"{name} keeps a program"


def test_large_results_and_other_layouts() -> None:
    rng = np.random.default_rng(4)
    large = [rng.random((300, 400), np.float32) for _ in range(4)]
    for picture in large:
        expected = ndimage.sobel(hi.asarray(picture)).compute()
        np.testing.assert_array_equal(ndimage.sobel(picture), expected)
        np.testing.assert_array_equal(ndimage.sobel(picture[:, ::2]), ndimage.sobel(np.ascontiguousarray(picture[:, ::2])))
        np.testing.assert_array_equal(ndimage.sobel(picture.T), ndimage.sobel(np.ascontiguousarray(picture.T)))
        picture.flags.writeable = False
        np.testing.assert_array_equal(ndimage.sobel(picture), expected)
        swapped = picture.astype(">f4")
        np.testing.assert_array_equal(ndimage.sobel(swapped), expected)
        into = np.empty_like(expected)
        assert ndimage.sobel(picture, output=into) is into
        np.testing.assert_array_equal(into, expected)
        truths = np.full(picture.shape, 3, np.uint8).view(bool)
        assert ndimage.binary_erosion(truths, border_value=1).view(np.uint8).max() == 1


def test_arguments_that_are_equal_and_not_the_same_have_programs_of_their_own() -> None:
    zero = np.full((4, 4), -0.0)
    for _ in range(4):
        for weight in (0.0, -0.0):
            structure = np.full((3, 3), weight)
            found = ndimage.grey_erosion(zero, structure=structure)
            assert np.signbit(found).all() == np.signbit(zero[0, 0] - weight), weight
        # A constant beyond the edges.
        for constant in (0.0, -0.0):
            beyond = ndimage.shift(np.ones((3, 3)), (0, 3), order=0, mode="grid-constant", cval=constant)
            assert np.signbit(beyond).all() == np.signbit(constant)
        picture = pictures("f4")[0]
        assert ndimage.gaussian_filter(picture, 1).tolist() == ndimage.gaussian_filter(picture, 1.0).tolist()
        assert ndimage.sobel(picture, 1).tolist() != ndimage.sobel(picture, 0).tolist()
        with pytest.raises(RuntimeError, match="boundary mode"):
            ndimage.sobel(picture, mode="none")


def test_a_call_that_warns_does_so_each_time() -> None:
    picture = pictures("u1")[0]
    for _ in range(4):
        with pytest.warns(UserWarning, match="ignoring size"):
            ndimage.minimum_filter(picture, size=3, footprint=CROSS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ndimage.minimum_filter(picture, footprint=CROSS)


def test_a_bounded_number_is_kept() -> None:
    picture = pictures("f4")[0]
    with hi.session(device="cpu") as session:
        for width in range(300):
            for _ in range(2):
                ndimage.correlate1d(picture, np.arange(1.0, 4.0) + width)
        assert 0 < len(programs(session)) <= len(session._programs) <= 256


def test_threads_share_programs() -> None:
    given = pictures("f4", 8)
    expected = [ndimage.gaussian_filter(hi.asarray(picture), 2.0).compute() for picture in given]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(20):
            if not np.array_equal(ndimage.gaussian_filter(given[number], 2.0), expected[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
