"""Programs on arrays of Dask: any chunks give the bytes of the whole."""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
import scipy.ndimage
import xarray
import zarr
from dask.array import PerformanceWarning

import horus_image as hi
from horus_image import filters, ndimage
from horus_image.dask import map_overlap

Array = np.ndarray[Any, Any]
Program = Callable[..., hi.Image]

# Small arrays have large halos.
pytestmark = pytest.mark.filterwarnings("ignore:map_overlap:dask.array.PerformanceWarning")

MODES = ["reflect", "mirror", "nearest", "wrap", "constant"]


def picture(shape: tuple[int, ...], dtype: Any = np.float32) -> Array:
    numbers = np.random.default_rng(3).random(shape) * 250
    return numbers > 100 if dtype == np.bool_ else numbers.astype(dtype)


def whole(program: Program, *arrays: Array, channels: bool = False, **kwargs: Any) -> Array:
    return program(*(hi.asarray(array, channels=channels) for array in arrays), **kwargs).compute()


def check(program: Program, array: Array, by: Any, chunks: Any = None, volume: bool = False, **kwargs: Any) -> da.Array:
    """The result for an array in chunks of this size, after a comparison with the whole."""
    with dask.config.set(scheduler="threads", num_workers=2):
        result = map_overlap(program, da.from_array(array, chunks=by), chunks=chunks, volume=volume, **kwargs)
        found = result.compute()
    expected = whole(program, array, **kwargs)
    assert result.dtype == found.dtype == expected.dtype
    assert result.shape == found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()
    assert isinstance(result, da.Array)
    return result


def five(image: hi.Image, mode: str = "reflect") -> hi.Image:
    """Five filters, whose halos add up."""
    smooth = ndimage.gaussian_filter(image, 1.5, mode=mode)
    closed = ndimage.grey_closing(smooth, (3, 5), mode=mode)
    lines = closed - ndimage.median_filter(smooth, 3, mode=mode)
    return ndimage.sobel(lines, 0, mode=mode) + ndimage.uniform_filter(lines, 4, mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("chunks", [(37, 41), (16, 83), (101, 30)])
def test_a_chain_has_the_bytes_of_the_whole(mode: str, chunks: tuple[int, int]) -> None:
    check(five, picture((101, 83)), chunks, mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_chain_is_scipys(mode: str) -> None:
    array = picture((61, 83), np.float64)

    def theirs(module: Any, image: Any) -> Any:
        smooth = module.gaussian_filter(image, 1.5, mode=mode)
        return module.maximum_filter(module.laplace(smooth, mode=mode), 3, mode=mode)

    found = map_overlap(lambda image: theirs(ndimage, image), da.from_array(array, chunks=40)).compute()
    np.testing.assert_allclose(found, theirs(scipy.ndimage, array), rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64, np.bool_, ">u2"])
def test_types(dtype: Any) -> None:
    array = picture((50, 61), dtype)
    program: Program = ndimage.binary_opening if dtype == np.bool_ else five
    found = map_overlap(program, da.from_array(array, chunks=(20, 25))).compute()
    native = array.astype(array.dtype.newbyteorder("="))
    assert found.tobytes() == whole(program, native).tobytes()


def test_chunks_thinner_than_the_halo() -> None:
    array = picture((40, 33))
    check(lambda image: ndimage.gaussian_filter(image, 3.0), array, (1, 33))
    check(lambda image: ndimage.gaussian_filter(image, 3.0), array, ((3, 1, 30, 6), (2, 31)))
    check(five, array, (5, 2))
    check(five, array, ((20, 0, 20), (33, 0)))


def turned(image: hi.Image) -> hi.Image:
    return ndimage.rotate(image, 25, reshape=False, order=1)


def coordinates(image: hi.Image) -> hi.Image:
    """Depends on where a pixel lies."""
    return ndimage.shift(ndimage.zoom(image, 1.5, order=1), (3.5, -20.25), order=1) + image.resize((150, 90)) * 0.5


@pytest.mark.parametrize("program", [turned, lambda image: image[::-1, ::-1], coordinates])
def test_positions_are_those_of_the_whole(program: Program) -> None:
    check(program, picture((100, 60)), (32, 28))


def test_images_that_somebody_holds_are_not_computed() -> None:
    # As Dask's profiler does, which keeps the frames of functions alive.
    held = []

    def holding(image: hi.Image) -> hi.Image:
        held.append((image, ndimage.gaussian_filter(image, 1.0), image * 2))
        return ndimage.median_filter(held[-1][1], 3) + held[-1][2]

    check(holding, picture((60, 60)), 30)


def test_results_of_other_extents() -> None:
    array = picture((90, 120))
    half = check(lambda image: ndimage.zoom(image, 0.5, order=1), array, (40, 50))
    assert half.chunksize == (40, 50)
    parts = check(lambda image: image[10:, :100], array, (40, 50), chunks=(33, -1))
    assert parts.chunks == ((33, 33, 14), (100,))


def test_programs_that_read_everything_are_right_and_are_warned_of() -> None:
    array = picture((40, 50), np.bool_)

    def largest(image: hi.Image) -> hi.Image:
        return ndimage.binary_propagation(image[::2, ::2], mask=image[1::2, 1::2])

    check(largest, array, (10, 12))
    with pytest.warns(PerformanceWarning, match=r"read \d+ times the pixels"):
        map_overlap(lambda image: ndimage.gaussian_filter(image, 9.0), da.from_array(picture((40, 50)), chunks=8))


def test_labels_are_those_of_the_whole() -> None:
    mask = picture((40, 50)) > 140
    array = da.from_array(mask, chunks=(17, 23))
    labels, count = scipy.ndimage.label(mask)
    with pytest.warns(PerformanceWarning, match=r"read \d+ times the pixels"):
        found = map_overlap(lambda image: ndimage.label(image)[0], array)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found.compute(), labels)

    def shares(image: hi.Image) -> hi.Image:
        marked, number = ndimage.label(image, output=np.float64)
        return marked / number

    np.testing.assert_array_equal(map_overlap(shares, array).compute(), labels / count)
    with pytest.raises(ValueError, match="looks at values"):
        map_overlap(lambda image: image * float(ndimage.label(image)[1]), array)


def test_pictures_one_by_one() -> None:
    array = picture((2, 3, 40, 50), np.uint8)
    for chunks in [(1, 1, 20, 25), (2, 2, 40, 17), (2, 3, 13, 50)]:
        result = map_overlap(five, da.from_array(array, chunks=chunks))
        assert result.numblocks[:2] == da.from_array(array, chunks=chunks).numblocks[:2]
        expected = np.array([[whole(five, one) for one in several] for several in array])
        assert result.compute(scheduler="threads").tobytes() == expected.tobytes()


def test_volumes_and_channels() -> None:
    array = picture((7, 40, 50))
    check(lambda image: ndimage.gaussian_filter(image, 1.0), array, (3, 20, 25), volume=True)
    colours = picture((40, 50, 3), np.uint8)
    lazy = da.from_array(colours, chunks=(15, 50, 1))
    grey = map_overlap(lambda image: ndimage.median_filter(image.luminance(), 3), lazy, channels=True)
    assert grey.compute().tobytes() == whole(lambda i: ndimage.median_filter(i.luminance(), 3), colours, channels=True).tobytes()
    lighter = map_overlap(lambda image: image + 100, lazy, channels=True)
    assert lighter.chunks == ((15, 15, 10), (50,), (3,))
    np.testing.assert_array_equal(lighter, np.minimum(colours.astype(int) + 100, 255))


def test_several_arrays() -> None:
    frames, dark = picture((3, 40, 50)), picture((40, 50))[::-1]

    def corrected(frame: hi.Image, dark: hi.Image, gain: float) -> hi.Image:
        return ndimage.gaussian_filter(frame - dark, 1.0) * gain

    result = map_overlap(corrected, da.from_array(frames, chunks=(2, 20, 20)), dark, gain=2.0)
    expected = np.array([whole(corrected, frame, np.ascontiguousarray(dark), gain=2.0) for frame in frames])
    assert result.compute().tobytes() == expected.tobytes()
    with pytest.raises(ValueError, match=r"arrays hold \(3,\) and \(2,\) pictures"):
        map_overlap(corrected, da.from_array(frames), da.from_array(frames[:2]), gain=2.0)


def test_a_task_takes_no_more_than_it_reads() -> None:
    array = da.from_array(picture((600, 600)), chunks=200)
    result = map_overlap(lambda image: ndimage.uniform_filter(image, 5), array)
    (optimized,) = dask.optimize(result)
    graph = dict(optimized.__dask_graph__())
    pieces = dask.get(graph, [key for key in graph if key[0].startswith("overlap")])
    # Of nine chunks, 12 pairs have a common side and 8 a corner; each of a pair reads two rows or columns of the other.
    assert sum(piece.size for piece in pieces) == 24 * 2 * 200 + 16 * 2 * 2
    assert all(piece.base is None for piece in pieces)


def test_arguments_that_do_not_fit() -> None:
    array = da.from_array(picture((40, 50)), chunks=20)
    with pytest.raises(TypeError, match="no array is given"):
        map_overlap(five)
    with pytest.raises(ValueError, match=r"shape \(40,\) has too few axes; 2 are needed"):
        map_overlap(five, array[:, 0])
    with pytest.raises(ValueError, match="a volume or has channels, not both"):
        map_overlap(five, array, volume=True, channels=True)
    with pytest.raises(ValueError, match="sizes of the chunks are unknown"):
        map_overlap(five, array[array[:, 0] > 100])
    with pytest.raises(ValueError, match="has no pixels"):
        map_overlap(five, array[:0])
    with pytest.raises(TypeError, match="no pixels of type int64"):
        map_overlap(five, array.astype(np.int64))
    with pytest.raises(TypeError, match="returned ndarray, not an image"):
        map_overlap(lambda image: np.zeros((2, 2)), array)
    with pytest.raises(ValueError, match="an image of one axis"):
        map_overlap(lambda image: image[0], array)
    for looks in (lambda image: image / image.max(), lambda image: image > filters.threshold_otsu(image), lambda image: image + image.compute()):
        with pytest.raises(ValueError, match="the program looks at values"):
            map_overlap(looks, array)
    with pytest.raises(OSError, match="other"):
        map_overlap(lambda image: (_ for _ in ()).throw(OSError("other")), array)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hi.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_a_chunk_that_fails_fails_the_result_and_no_other() -> None:
    def broken(block: Array, block_info: Any = None) -> Array:
        if block_info and block_info[0]["chunk-location"] == (1, 1):
            raise RuntimeError("the disk is gone")
        return block

    array = da.from_array(picture((60, 60)), chunks=20).map_blocks(broken, dtype=np.float32)
    result = map_overlap(five, array)
    with pytest.raises(RuntimeError, match="the disk is gone"):
        result.compute()
    assert map_overlap(five, da.from_array(picture((60, 60)), chunks=20)).sum().compute() != 0


@hi.jit
def jitted(image: hi.Image) -> hi.Image:
    return ndimage.gaussian_filter(image, 1.0) * 2


def test_programs_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(jitted)) is jitted
    local = hi.jit(lambda image: image + 1)
    np.testing.assert_array_equal(cloudpickle.loads(cloudpickle.dumps(local))(np.zeros((2, 2))), np.ones((2, 2)))
    array = picture((40, 50))
    result = map_overlap(jitted, da.from_array(array, chunks=20))
    again = pickle.loads(cloudpickle.dumps(result))
    assert again.compute().tobytes() == whole(jitted, array).tobytes()


PROCESSES = """
import os
import dask, dask.array as da, numpy as np
import horus_image as hi
from horus_image import ndimage

def program(image):
    return ndimage.gaussian_filter(image, 2.0)

if __name__ == "__main__":
    array = np.random.default_rng(1).random((90, 80))
    expected = program(hi.asarray(array)).compute()
    lazy = hi.dask.map_overlap(program, da.from_array(array, chunks=50))
    for how in ({"scheduler": "processes", "num_workers": 2}, {"scheduler": "synchronous"}):
        assert lazy.compute(**how).tobytes() == expected.tobytes(), how
"""


def test_other_processes_compute_the_same(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROCESSES)
    subprocess.run([sys.executable, str(script)], check=True, timeout=120)


def test_threads_of_a_session_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from horus_image._session import chosen_threads
    from horus_image.dask import _share

    monkeypatch.delenv("HORUS_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert chosen_threads() is None
    for text, threads in {"3": 3, "2,1": 2, "0": None, "many": None, "": None}.items():
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert chosen_threads() == threads
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert _share() is None
    monkeypatch.delenv("OMP_NUM_THREADS")
    shares = da.from_array(np.zeros(1), chunks=1).map_blocks(lambda _: np.array([_share()]), meta=np.zeros(0))
    from dask.system import CPU_COUNT

    with dask.config.set(num_workers=1):
        assert shares.compute(scheduler="threads")[0] == CPU_COUNT
    assert shares.compute(scheduler="synchronous")[0] == CPU_COUNT
    assert shares.compute(scheduler="threads")[0] == 1
    monkeypatch.setenv("HORUS_THREADS", "2")
    assert _share() is None


def test_results_stream_to_a_store(tmp_path: Path) -> None:
    array = picture((120, 150), np.uint16)
    result = map_overlap(lambda image: ndimage.median_filter(image, 5), da.from_array(array, chunks=(50, 50)))
    store = zarr.create_array(tmp_path / "found.zarr", shape=result.shape, chunks=(50, 50), dtype=result.dtype)
    da.store(result, store, lock=False)
    np.testing.assert_array_equal(hi.open(tmp_path / "found.zarr").compute(), scipy.ndimage.median_filter(array, 5))


def test_xarray() -> None:
    array = picture((3, 40, 50))
    data = xarray.DataArray(da.from_array(array, chunks=(1, 20, 25)), dims=("time", "y", "x"))
    lazily = xarray.apply_ufunc(
        lambda block: map_overlap(five, block), data, input_core_dims=[["y", "x"]], output_core_dims=[["y", "x"]], dask="allowed"
    )
    expected = np.array([whole(five, one) for one in array])
    assert lazily.dims == ("time", "y", "x")
    assert lazily.values.tobytes() == expected.tobytes()
    blocks = xarray.apply_ufunc(
        hi.jit(five),
        data.chunk(y=-1, x=-1),
        input_core_dims=[["y", "x"]],
        output_core_dims=[["y", "x"]],
        vectorize=True,
        dask="parallelized",
        output_dtypes=[np.float32],
    )
    assert blocks.values.tobytes() == expected.tobytes()


def test_tasks_read_stores_by_themselves(tmp_path: Path) -> None:
    array = picture((2, 60, 70))
    store = zarr.create_array(tmp_path / "in.zarr", shape=array.shape, chunks=(1, 16, 16), dtype=array.dtype)
    store[:] = array
    dark = zarr.create_array(tmp_path / "dark.zarr", shape=(60, 70), chunks=(20, 20), dtype=array.dtype)
    dark[:] = array[0] / 2
    result = map_overlap(lambda image, dark: five(image - dark), store, dark, chunks=(25, 30))
    assert len(result.__dask_graph__()) == result.npartitions
    expected = np.array([whole(lambda i, d: five(i - d), one, array[0] / 2) for one in array])
    assert pickle.loads(cloudpickle.dumps(result)).compute(scheduler="threads").tobytes() == expected.tobytes()
    colours = zarr.create_array(tmp_path / "rgb.zarr", shape=(60, 70, 3), chunks=(16, 16, 1), dtype="u1")
    colours[:] = picture((60, 70, 3), np.uint8)
    grey = map_overlap(lambda image: image.luminance(), colours, channels=True)
    np.testing.assert_array_equal(grey, hi.asarray(colours[:], channels=True).luminance())


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bands of a few rows, however many others they read."""
    monkeypatch.setattr("horus_image.dask._BAND", 900)
    monkeypatch.setattr("horus_image.dask._DEEPER", 0)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("program", [five, turned, lambda image: image[::-1, ::-1], coordinates, lambda image: image[3:]])
def test_bands_of_a_chunk_have_the_bytes_of_the_whole(program: Program) -> None:
    array = picture((100, 60))
    check(program, array, (64, 28))
    stored = map_overlap(program, zarr.array(array, chunks=(16, 16)), chunks=(64, 28))
    assert stored.compute(scheduler="threads").tobytes() == whole(program, array).tobytes()


@pytest.mark.usefixtures("narrow")
def test_bands_of_volumes_and_channels() -> None:
    check(lambda image: ndimage.gaussian_filter(image, 1.0), picture((7, 40, 50)), (3, 20, 25), volume=True)
    colours = picture((40, 50, 3), np.uint8)
    blurred = map_overlap(lambda image: ndimage.gaussian_filter(image.luminance(), 1.0), colours, channels=True)
    assert blurred.compute().tobytes() == whole(lambda i: ndimage.gaussian_filter(i.luminance(), 1.0), colours, channels=True).tobytes()


class Reads:
    """A store that notes which rows are read, and how many parts are in memory at most."""

    def __init__(self, array: Array, rows: int) -> None:
        self.array, self.shape, self.dtype, self.ndim = array, array.shape, array.dtype, array.ndim
        self.chunks = (rows, array.shape[1])
        self.rows: list[tuple[int, int]] = []
        self.parts: weakref.WeakValueDictionary[int, Array] = weakref.WeakValueDictionary()
        self.most = 0

    def __getitem__(self, key: tuple[slice, slice]) -> Array:
        self.rows.append((key[0].start, key[0].stop))
        part = self.parts[len(self.rows)] = self.array[key].copy()
        self.most = max(self.most, len(self.parts))
        return part


@pytest.mark.usefixtures("narrow")
def test_each_chunk_of_a_store_is_read_once_and_dropped() -> None:
    array = picture((100, 60))
    store = Reads(array, 16)
    result = map_overlap(lambda image: ndimage.uniform_filter(image, 9), store, chunks=(50, 60))
    store.rows.clear()  # Dask has looked at a part without rows
    found = result.compute(scheduler="synchronous")
    assert found.tobytes() == whole(lambda image: ndimage.uniform_filter(image, 9), array).tobytes()
    first = [(0, 16), (16, 32), (32, 48), (48, 54)]
    second = [(46, 64), (64, 80), (80, 96), (96, 100)]
    assert sorted(store.rows) == sorted(first + second)
    assert store.most == 2


class OnGpu:
    """What of an array of CuPy is used, with its pixels on the host."""

    def __init__(self, pixels: Array) -> None:
        self.pixels = pixels
        self.shape, self.dtype, self.ndim, self.nbytes = pixels.shape, pixels.dtype, pixels.ndim, pixels.nbytes
        self.device = Device()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self) -> object:
        raise BufferError("pixels on a GPU")

    def __array__(self, *_: Any) -> Array:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_function__(self, function: Any, _types: Any, args: Any, kwargs: Any) -> OnGpu:
        return OnGpu(function(*(one.pixels if isinstance(one, OnGpu) else one for one in args), **kwargs))

    def __getitem__(self, key: Any) -> OnGpu:
        return OnGpu(self.pixels[key])

    def copy(self) -> OnGpu:
        return OnGpu(self.pixels.copy())

    def get(self) -> Array:
        return self.pixels


class Device(contextlib.nullcontext[None]):
    """The GPU of such an array."""

    id = 0


@pytest.mark.parametrize("before", [(), (2,)])
def test_chunks_of_a_gpu_make_such_chunks(monkeypatch: pytest.MonkeyPatch, before: tuple[int, ...]) -> None:
    opened = []

    def session(device: str | None, **kwargs: Any) -> hi.Session:
        opened.append(device)
        return hi.Session("cpu", **kwargs)

    monkeypatch.setattr(hi.dask, "Session", session)
    monkeypatch.setattr(hi.dask, "_idle", {})
    array = picture((*before, 50, 70))
    chunks = da.from_array(array, chunks=(1, 20, 30)[-array.ndim :]).map_blocks(OnGpu, meta=OnGpu(array[..., :0, :0]))
    result = map_overlap(five, chunks)
    assert isinstance(result._meta, OnGpu)
    key = (result.name, *(0 for _ in before), 1, 2)
    found = dask.get(dict(result.dask), [key])[0]
    assert isinstance(found, OnGpu)
    expected = whole(five, array[0] if before else array)[20:40, 60:70]
    assert found.pixels.reshape(expected.shape).tobytes() == expected.tobytes()
    assert set(opened) == {"cuda:0"}
