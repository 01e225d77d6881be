"""Arrays in and out without copies: who keeps what, for how long, and what DLPack says of it."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import subprocess
import sys
import textwrap
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import horus_image as hi
from horus_image import _horus, ndimage

TYPES = [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.float32, np.float64, np.bool_]


def ramp(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape)) % 97).reshape(shape).astype(dtype)


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


def large(dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return ramp((300, 400), dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(7,), (5, 6), (3, 4, 5)])
def test_arrays_are_read_where_they_lie(shape: tuple[int, ...], dtype: Any) -> None:
    array = ramp(shape, dtype)
    before = sys.getrefcount(array)
    image = hi.asarray(array, copy=False)
    assert sys.getrefcount(array) == before + 1
    np.testing.assert_array_equal(image, array)
    assert address(np.from_dlpack(image)) == address(array)
    np.testing.assert_array_equal(image.astype(np.float64) * 2, array.astype(np.float64) * 2)
    gone = weakref.ref(array)
    del array
    gc.collect()
    assert gone() is not None, "the image keeps it"
    del image
    gc.collect()
    assert gone() is None


def test_what_cannot_be_read_where_it_lies_is_an_error() -> None:
    array = ramp((6, 8))
    odd = np.zeros(6 * 8 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(6, 8)
    for wrong in (array[:, ::2], array.T, array.astype(">f4"), odd):
        with pytest.raises(ValueError, match="where it lies"):
            hi.asarray(wrong, copy=False)
        np.testing.assert_array_equal(hi.asarray(wrong), wrong)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 7])
def test_pixels_of_several_channels_are_read_where_they_lie(channels: int) -> None:
    for dtype in (np.uint8, np.uint16, np.float64, np.bool_):
        array = (np.arange(40 * 50 * channels) % 5).reshape(40, 50, channels).astype(dtype)
        for copy in (True, False):
            image = hi.asarray(array, channels=True, copy=copy)
            np.testing.assert_array_equal(image, array)
            np.testing.assert_array_equal(image.channel(channels - 1), array[..., -1])
            np.testing.assert_array_equal(image[::-1], array[::-1])
            for part in (np.s_[10:20, 30:40], np.s_[3:4, 7:8], np.s_[5:, :4]):
                np.testing.assert_array_equal(hi.asarray(array, channels=True, copy=copy)[part], array[part])
                if dtype is not np.bool_:
                    np.testing.assert_array_equal(image[part] * 2, array[part] * dtype(2))
        strided = np.ascontiguousarray(array[::-1, ::2])
        np.testing.assert_array_equal(hi.asarray(array[::-1, ::2], channels=True), strided)


def test_read_only_arrays_and_parts_of_arrays_are_read() -> None:
    array = ramp((9, 8))
    array.flags.writeable = False
    np.testing.assert_array_equal(ndimage.maximum_filter(array, 3), ndimage.maximum_filter(array.copy(), 3))
    np.testing.assert_array_equal(hi.asarray(array[2:5], copy=False), array[2:5])
    np.testing.assert_array_equal(ndimage.gaussian_filter(array[::2, ::-1], 1.0), ndimage.gaussian_filter(array[::2, ::-1].copy(), 1.0))


def test_truth_values_are_0_and_1_whatever_bytes_they_are() -> None:
    array = np.arange(6, dtype=np.uint8).view(np.bool_)
    for copy in (True, False):
        assert float(hi.asarray(array, copy=copy).sum()) == 5.0
    assert hi.asarray(array.reshape(2, 3)[:, ::2]).sum() == 3.0
    assert ndimage.binary_erosion(array).dtype == np.bool_


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_functions_neither_keep_nor_change_their_arrays(dtype: Any) -> None:
    array = large(dtype)
    kept, before = array.copy(), sys.getrefcount(array)
    for function in (lambda a: ndimage.gaussian_filter(a, 2.0), lambda a: ndimage.gaussian_filter(a, 0.0), lambda a: ndimage.minimum_filter(a, 3)):
        result = function(array)
        assert sys.getrefcount(array) == before
        assert not np.shares_memory(result, array) and result.flags.owndata is False and result.flags.writeable
        expected = result.copy()
        result[:] = 77
        np.testing.assert_array_equal(array, kept)
        np.testing.assert_array_equal(function(array), expected)


def test_results_keep_their_memory_and_give_it_back() -> None:
    with hi.session(device="cpu") as session:
        array = large()
        result = ndimage.gaussian_filter(array, 1.0)
        current = session.memory().host.current
        assert current >= result.nbytes
        view, expected = result[10:20], result[10:20].copy()
        del result
        ndimage.gaussian_filter(array * 2, 1.0)
        np.testing.assert_array_equal(view, expected)
        del view
        gc.collect()
        assert session.memory().host.current < current
        assert session.memory().host.peak >= current
        session.trim()
        assert session.memory().host.kept == 0


def test_results_do_not_count_against_the_memory_of_a_session() -> None:
    with hi.session(device="cpu", memory="2M"):
        results = [ndimage.gaussian_filter(large(), 1.0) for _ in range(12)]
    assert sum(result.nbytes for result in results) > 5 << 20


def test_the_channels_of_a_pixel_are_shared_beside_each_other() -> None:
    array = ramp((4, 5, 3), np.uint8)
    image = hi.asarray(array, channels=True)
    shared = np.from_dlpack(image)
    assert shared.strides == (15, 3, 1)
    np.testing.assert_array_equal(shared, array)


@pytest.mark.parametrize("dtype", TYPES)
def test_dlpack_shares_what_must_not_be_written(dtype: Any) -> None:
    image = hi.asarray(ramp((5, 6), dtype))
    assert image.__dlpack_device__() == (1, 0)
    shared = np.from_dlpack(image)
    np.testing.assert_array_equal(shared, image)
    assert shared.dtype == dtype and not shared.flags.writeable
    assert address(np.from_dlpack(image)) == address(shared)
    copied = np.asarray(_horus.Tensor(image.__dlpack__(max_version=(1, 0), copy=True)))
    assert copied.flags.writeable and address(copied) != address(shared)
    copied[:] = 1
    np.testing.assert_array_equal(shared, image)
    left = weakref.ref(image)
    expected = shared.copy()
    del image
    gc.collect()
    assert left() is None
    np.testing.assert_array_equal(shared, expected)


def name(capsule: object) -> bytes:
    ctypes.pythonapi.PyCapsule_GetName.restype = ctypes.c_char_p
    ctypes.pythonapi.PyCapsule_GetName.argtypes = [ctypes.py_object]
    found = ctypes.pythonapi.PyCapsule_GetName(capsule)
    assert isinstance(found, bytes)
    return found


def test_capsules_are_consumed_once_or_deleted() -> None:
    image = hi.asarray(ramp((50, 60)))
    with hi.session(device="cpu") as session:
        image = hi.asarray(ramp((50, 60))) * 2
        used = session.memory().host.current
        for version, called in (((1, 0), b"dltensor_versioned"), (None, b"dltensor"), ((0, 8), b"dltensor")):
            capsule = image.__dlpack__(max_version=version)
            assert name(capsule) == called
            tensor = _horus.Tensor(capsule)
            assert name(capsule) == b"used_" + called
            with pytest.raises(ValueError, match="another library has taken it"):
                _horus.Tensor(capsule)
            del capsule
            assert (tensor.shape, tensor.strides, tensor.kind, tensor.device) == ([50, 60], [60, 1], "f4", (1, 0))
            np.testing.assert_array_equal(np.asarray(tensor), image)
            del tensor
            unused = image.__dlpack__(max_version=version)
            del unused
        del image
        gc.collect()
        assert session.memory().host.current <= used


def test_of_threads_that_take_a_capsule_over_one_comes_first() -> None:
    count, taken = 4, []
    for _ in range(50):
        capsule, start = np.ones((3, 4), np.float32).__dlpack__(), threading.Barrier(count)
        found: list[Any] = []

        def take(capsule: Any = capsule, start: threading.Barrier = start, found: list[Any] = found) -> None:
            start.wait()
            with contextlib.suppress(ValueError):
                found.append(_horus.Tensor(capsule))

        threads = [threading.Thread(target=take) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        taken.append(len(found))
    assert taken == [1] * 50


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"dl_device": (2, 0)}, "cannot be copied"),
        ({"copy": False}, "DLPack 1.0"),
        ({"stream": 1, "max_version": (1, 0)}, "no streams"),
    ],
)
def test_what_dlpack_cannot_have_is_an_error(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(BufferError, match=told):
        hi.asarray([[1.0]]).__dlpack__(**arguments)
    with pytest.raises(AttributeError, match="not on a GPU"):
        hi.asarray([[1.0]]).__cuda_array_interface__
    with pytest.raises(ValueError, match="no tensor"):
        _horus.Tensor(capsule())


OTHER = b"of another kind"


def capsule() -> object:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    made: object = new(1, OTHER, None)
    return made


class Speaks:
    """An array of another library, which speaks DLPack as libraries did before version 1.0, or as they do now."""

    def __init__(self, array: np.ndarray[Any, Any], newest: bool) -> None:
        self.array, self.newest, self.asked = array, newest, 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **arguments: Any) -> Any:
        self.asked += 1
        if "max_version" in arguments and not self.newest:
            raise TypeError("unexpected keyword")
        return hi.asarray(self.array).__dlpack__(**arguments)


@pytest.mark.parametrize("newest", [True, False])
def test_arrays_of_other_libraries_are_taken(newest: bool) -> None:
    array = ramp((6, 7))
    other = Speaks(array, newest)
    np.testing.assert_array_equal(hi.asarray(other), array)
    np.testing.assert_array_equal(ndimage.gaussian_filter(other, 1.0), ndimage.gaussian_filter(array, 1.0))
    np.testing.assert_array_equal(hi.asarray(array) + other, array * 2)
    assert other.asked >= 3
    left = weakref.ref(other)
    del other
    gc.collect()
    assert left() is None


class Elsewhere:
    def __dlpack_device__(self) -> tuple[int, int]:
        return (10, 0)

    def __dlpack__(self, **arguments: Any) -> Any:
        raise AssertionError("is not asked")


class OnGpu:
    __cuda_array_interface__ = {"shape": (2, 2), "typestr": "<f4", "data": (4096, False), "version": 3}


def test_arrays_on_devices_that_a_session_has_not_are_refused() -> None:
    with pytest.raises(ValueError, match="kind 10"):
        hi.asarray(Elsewhere())
    with hi.session(device="cpu"):
        with pytest.raises(ValueError, match="on a GPU, and the session computes on CPU"):
            hi.asarray(OnGpu())
        with pytest.raises(ValueError, match="on a GPU, and the session computes on CPU"):
            ndimage.gaussian_filter(OnGpu(), 1.0)
        with pytest.raises(ValueError, match="on a GPU, and the session computes on CPU"):
            ndimage.label(OnGpu())
        with pytest.raises(ValueError, match="on a GPU, and the session computes on CPU"):
            ndimage.sum_labels(np.ones((2, 2)), OnGpu(), [1])


def test_the_interpreter_ends_with_arrays_and_images_alive() -> None:
    program = """
        import numpy as np
        import horus_image as hi
        from horus_image import ndimage
        array = np.ones((300, 400), np.float32)
        image = hi.asarray(array, copy=False) * 2
        result, shared = ndimage.gaussian_filter(array, 1.0), np.from_dlpack(image)
        capsule = image.__dlpack__()
        image.start()
        print(result.shape, shared.shape)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "(300, 400) (300, 400)", "")


def test_a_result_may_go_where_an_argument_is() -> None:
    image = np.random.default_rng(3).random((200, 300)).astype(np.float32)
    for call in (
        lambda array, output: ndimage.minimum_filter(array, 1, output=output),  # a copy, where it lies
        lambda array, output: ndimage.gaussian_filter(array, 2.0, output=output),
        lambda array, output: ndimage.gaussian_filter(array[::-1], 2.0, output=output),
        lambda array, output: ndimage.binary_dilation(image > 0.99, mask=array > 0.5, output=output),
    ):
        expected, array = call(image.copy(), None), image.copy()
        np.testing.assert_array_equal(call(array, array), expected)
    mask = image > 0.5
    expected = ndimage.binary_dilation(image > 0.9, mask=mask, iterations=3)
    np.testing.assert_array_equal(ndimage.binary_dilation(image > 0.9, mask=mask, iterations=3, output=mask), expected)
