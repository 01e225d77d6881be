"""Arrays between Horus and CuPy, PyTorch and JAX on a GPU: run by hand on a host that has one, `python gpu_arrays.py`.

Libraries that are not installed are left out. Prints a line for each check and a short table last; ends with the number of failures.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
import time
import traceback
import weakref
from collections.abc import Callable
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np

import horus_image as hi
from horus_image import ndimage

TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64", "bool"]
Outcome = tuple[str, str, str]


def ramp(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape)) % 97).reshape(shape).astype(dtype)


class CuPy:
    """CuPy, as used here."""

    name = "CuPy"

    def __init__(self) -> None:
        self.cp = importlib.import_module("cupy")

    def make(self, array: np.ndarray[Any, Any]) -> Any:
        return self.cp.asarray(array)

    def host(self, array: Any) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = self.cp.asnumpy(array)
        return found

    def of(self, image: hi.Image) -> Any:
        return self.cp.from_dlpack(image)

    def wait(self) -> None:
        self.cp.cuda.Device().synchronize()

    def stream(self) -> Any:
        return self.cp.cuda.Stream(non_blocking=True)

    def slow(self, value: float) -> Any:
        """An array that the GPU is long busy with."""
        big = self.cp.zeros((4096, 4096), self.cp.float32)
        for _ in range(60):
            big = self.cp.sin(big) + 1e-9
        return big * 0 + value


class Torch:
    """PyTorch, as used here."""

    name = "PyTorch"

    def __init__(self) -> None:
        self.torch = importlib.import_module("torch")
        assert self.torch.cuda.is_available()

    def make(self, array: np.ndarray[Any, Any]) -> Any:
        return self.torch.from_numpy(array.copy()).cuda()

    def host(self, array: Any) -> np.ndarray[Any, Any]:
        found: np.ndarray[Any, Any] = array.cpu().numpy()
        return found

    def of(self, image: hi.Image) -> Any:
        return self.torch.from_dlpack(image)

    def wait(self) -> None:
        self.torch.cuda.synchronize()

    def stream(self) -> Any:
        return self.torch.cuda.stream(self.torch.cuda.Stream())

    def slow(self, value: float) -> Any:
        big = self.torch.zeros((4096, 4096), device="cuda")
        for _ in range(60):
            big = self.torch.sin(big) + 1e-9
        return big * 0 + value


class Jax:
    """JAX, as used here."""

    name = "JAX"

    def __init__(self) -> None:
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        assert self.jax.devices()[0].platform in ("gpu", "cuda")

    def make(self, array: np.ndarray[Any, Any]) -> Any:
        return self.jax.device_put(array)

    def host(self, array: Any) -> np.ndarray[Any, Any]:
        return np.asarray(array)

    def of(self, image: hi.Image) -> Any:
        return self.jax.dlpack.from_dlpack(image)

    def wait(self) -> None:
        self.jax.block_until_ready(self.jax.numpy.zeros(1) + 1)

    def slow(self, value: float) -> Any:
        big = self.jax.numpy.zeros((4096, 4096), "float32")
        for _ in range(60):
            big = self.jax.numpy.sin(big) + 1e-9
        return big * 0 + value


def comes_back(library: Any) -> None:
    for dtype in TYPES:
        for shape in ((7,), (5, 6), (3, 4, 5)):
            array = ramp(shape, dtype)
            for copy in (True, False):
                image = hi.asarray(library.make(array), copy=copy)
                assert image.dtype == array.dtype and image.__dlpack_device__()[0] == 2
                np.testing.assert_array_equal(image.compute(), array)
                np.testing.assert_array_equal(library.host(library.of(image)), array)


def computes_the_bits_of_the_host(library: Any) -> None:
    array = np.random.default_rng(1).random((301, 402)).astype(np.float32)
    found = ndimage.gaussian_filter(library.make(array), 2.0)
    assert isinstance(found, hi.Image) and found.__dlpack_device__()[0] == 2
    np.testing.assert_array_equal(library.host(library.of(found)), ndimage.gaussian_filter(array, 2.0))
    np.testing.assert_array_equal(library.host(library.of(found * 2 - library.make(array))), found.compute() * 2 - array)
    bright = (array > 0.6).astype(np.uint8)
    (labels, count), (wanted, most) = ndimage.label(library.make(bright)), ndimage.label(bright)
    assert isinstance(labels, hi.Image) and labels.__dlpack_device__()[0] == 2 and count == most
    np.testing.assert_array_equal(labels.compute(), wanted)
    assert ndimage.find_objects(labels) == ndimage.find_objects(library.make(wanted)) == ndimage.find_objects(wanted)
    at = (np.indices(array.shape) * 0.9 + 3.3).astype(np.float32)
    sampled = ndimage.map_coordinates(library.make(array), library.make(at), order=1)
    np.testing.assert_array_equal(library.host(library.of(sampled)), ndimage.map_coordinates(array, at, order=1))
    index = np.arange(1, count + 1)
    means = ndimage.mean(library.make(array), library.make(wanted), index)
    np.testing.assert_array_equal(means, ndimage.mean(array, wanted, index))


def other_arguments_are_anywhere(library: Any) -> None:
    """Weights, masks, labels, positions and outputs are on the GPU or on the host, whatever the image is."""
    array, weights = np.random.default_rng(4).random((40, 50)).astype(np.float32), np.array([[0, 1, 0], [1, 2, 1], [0, 1, 0]], np.float32)
    mask, labels = (array > 0.3).astype(np.uint8), (array * 5).astype(np.int64)
    at = np.indices(array.shape) * 0.9
    calls: list[Callable[[Any, Any], Any]] = [
        lambda a, f: ndimage.correlate(a, f(weights)),
        lambda a, f: ndimage.median_filter(a, footprint=f(weights)),
        lambda a, f: ndimage.affine_transform(a, f(np.diag([0.5, 0.7])), f(np.array([1.0, 2.0])), order=1),
        lambda a, f: ndimage.binary_dilation(a > 0.8 if isinstance(a, np.ndarray) else hi.asarray(a) > 0.8, f(weights), mask=f(mask)),
        lambda a, f: ndimage.mean(a, f(labels), f(np.array([1, 3]))),
        lambda a, f: ndimage.map_coordinates(a, f(at), order=1),
        lambda a, f: hi.asarray(a) * f(array) + f(np.array(1, np.float32)),
    ]
    for k, call in enumerate(calls):
        wanted = np.asarray(call(array, np.asarray))
        for given, made in ((library.make(array), library.make), (library.make(array), np.asarray), (array, library.make)):
            found = call(given, made)
            np.testing.assert_array_equal(found.compute() if isinstance(found, hi.Image) else found, wanted, err_msg=str(k))
    if library.name == "JAX":
        return
    for given in (array, library.make(array)):
        for dtype in ("float32", "float64", "uint8"):
            output = library.make(np.zeros(array.shape, dtype))
            assert ndimage.gaussian_filter(given, 1.0, output=output) is output
            np.testing.assert_array_equal(library.host(output), ndimage.gaussian_filter(array, 1.0, output=dtype))


def repeats_kept_programs(library: Any) -> None:
    """The second of two alike calls keeps its program, which runs for later ones."""
    draw = np.random.default_rng(2)
    functions: list[Callable[[Any], Any]] = [
        lambda a: ndimage.gaussian_filter(a, 1.5),
        lambda a: ndimage.sobel(a, 0),
        lambda a: ndimage.median_filter(a, 3),
        lambda a: ndimage.grey_erosion(a, footprint=np.eye(3)),
        lambda a: ndimage.zoom(a, 1.5, order=1),
        lambda a: ndimage.rotate(a, 0, order=1),
        lambda a: ndimage.shift(a, [0] * a.ndim, order=0),
    ]
    for shape in ((40,), (33, 52), (4, 9, 11)):
        for dtype in TYPES:
            for at, function in enumerate(functions):
                if dtype == "bool" and at in (0, 1) or len(shape) != 2 and at in (3, 5):
                    continue
                for _ in range(5):
                    array = (draw.random(shape) * 2).astype(dtype)
                    given = library.make(array)
                    found = function(given)
                    assert isinstance(found, hi.Image) and found.shape == function(array).shape
                    taken = library.host(library.of(found))
                    np.testing.assert_array_equal(taken, function(array), err_msg=f"{shape} {dtype} {at}")
                    np.testing.assert_array_equal(found.compute(), taken)


def arrays_begin_anywhere(library: Any) -> None:
    """Kernels read vectors of 16 bytes; parts of an array begin where they begin."""
    for dtype in TYPES:
        array = ramp((5, 64 * 48), dtype)
        given = library.make(array)
        for at in (1, 2, 3, 4):
            part = array[at, at:][: 40 * 64].reshape(40, 64)
            there = given[at, at:][: 40 * 64].reshape(40, 64)
            if dtype != "bool":
                np.testing.assert_array_equal((hi.asarray(there, copy=False) + 1).compute(), (hi.asarray(part) + 1).compute())
            np.testing.assert_array_equal(ndimage.maximum_filter(there, 3).compute(), ndimage.maximum_filter(part, 3))


def waits_for_the_producer(library: Any) -> None:
    for i in range(10):
        image = hi.asarray(library.slow(i)) + 1
        assert (float(image.min()), float(image.max())) == (i + 1, i + 1)
        found = ndimage.maximum_filter(library.slow(i), 3)
        assert (float(found.min()), float(found.max())) == (i, i)


def is_complete_when_handed_out(library: Any) -> None:
    image = hi.asarray(library.make(np.ones((2048, 2048), np.float32)))
    for i in range(10):
        work = image * i
        for _ in range(10):
            work = ndimage.uniform_filter(work, 5)
        np.testing.assert_allclose(library.host(library.of(work)), i, rtol=1e-5)


def inputs_may_change_at_once(library: Any) -> None:
    """A function returns before the GPU is done; what its stream does next comes after it."""
    if library.name == "JAX":
        return  # its arrays do not change
    array = np.random.default_rng(3).random((2048, 2048)).astype(np.float32)

    def smooth(given: Any) -> Any:
        for _ in range(6):
            given = ndimage.gaussian_filter(given, 4.0)
        return given

    wanted = smooth(array)
    for program in (smooth, hi.jit(smooth)):
        for stream in (contextlib.nullcontext, library.stream, library.stream):
            for _ in range(3):
                with stream():
                    given = library.make(array)
                    found = program(given)
                    given[:] = 0
                    taken = library.of(found)
                    host = library.host(taken)
                np.testing.assert_array_equal(host, wanted)
                del given, found, taken


def keeps_copies_apart(library: Any) -> None:
    if library.name == "JAX":
        return  # its arrays do not change
    given = library.make(ramp((50, 60)))
    image = hi.asarray(given)
    given[:] = 5
    library.wait()
    np.testing.assert_array_equal(image.compute(), ramp((50, 60)))
    in_place = hi.asarray(given, copy=False) * 2
    np.testing.assert_array_equal(in_place.compute(), np.full((50, 60), 10.0))


def gives_memory_back(library: Any) -> None:
    given = library.make(ramp((500, 600)))
    told = weakref.ref(given) if library.name != "JAX" else None
    image = hi.asarray(given, copy=False)
    result = image * 2
    shared = library.of(result)
    expected = library.host(shared).copy()
    del given, image, result
    gc.collect()
    session = hi.asarray(library.make(ramp((2, 2)))).session
    session.evaluate()
    gc.collect()
    if told is not None:
        assert told() is None, "the producer's array is let go of"
    for i in range(20):
        assert (hi.asarray(library.make(ramp((500, 600)))) * i).max() == 96 * i
    np.testing.assert_array_equal(library.host(shared), expected)
    used = session.memory().devices[0].current
    del shared
    gc.collect()
    assert session.memory().devices[0].current <= used


def memory_does_not_grow(library: Any) -> None:
    given = library.make(ramp((1000, 1000)))
    session = hi.asarray(given).session
    used = []
    for _ in range(30):
        library.host(library.of(ndimage.gaussian_filter(given, 1.0)))
        gc.collect()
        used.append(session.memory().devices[0].current)
    assert used[-1] <= used[5], used


def programs_are_replayed(library: Any) -> None:
    calls = 0

    @hi.jit
    def edges(a: hi.Image, b: hi.Image, sigma: float) -> tuple[hi.Image, hi.Image]:
        nonlocal calls
        calls += 1
        return ndimage.gaussian_filter(a, sigma) - b, np.maximum(a, b)

    draw = np.random.default_rng(2)
    given = [draw.random((301, 402), dtype=np.float32) for _ in range(6)]
    kept = []
    for i in range(5):
        found = edges(library.make(given[i]), library.make(given[i + 1]), sigma=2.0)
        assert all(image.__dlpack_device__()[0] == 2 for image in found)
        kept.append([library.of(image) for image in found])
        edges(library.slow(i), library.make(ramp((4096, 4096))), sigma=1.0)
    assert calls == 2, calls
    for i, found in enumerate(kept):
        np.testing.assert_array_equal(library.host(found[0]), ndimage.gaussian_filter(given[i], 2.0) - given[i + 1])
        np.testing.assert_array_equal(library.host(found[1]), np.maximum(given[i], given[i + 1]))
    # Beside an array of the host, and what changes as soon as the call is over.
    for i in range(4):
        there = library.make(given[i])
        smooth, _ = edges(there, given[i + 1], 3.0)
        np.testing.assert_array_equal(smooth.compute(), ndimage.gaussian_filter(given[i], 3.0) - given[i + 1])
    assert calls == 3, calls
    # A result that is an array given is a copy of it.
    if library.name != "JAX":
        there = library.make(given[0])
        same, twice = hi.jit(lambda a: (a, a * 2))(there)
        there[:] = 0
        library.wait()
        np.testing.assert_array_equal(same.compute(), given[0])
        np.testing.assert_array_equal(twice.compute(), given[0] * 2)


def speaks_cudas_array_interface(library: Any) -> None:
    image = hi.asarray(library.make(ramp((20, 30)))) * 2
    interface = image.__cuda_array_interface__
    assert interface["version"] == 3 and interface["shape"] == (20, 30) and interface["typestr"] == "<f4"
    assert image.__cuda_array_interface__["data"] == interface["data"], "the same memory each time"

    class Only:
        def __init__(self, array: Any) -> None:
            self.array = array
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    np.testing.assert_array_equal(hi.asarray(Only(library.make(ramp((20, 30))))).compute(), ramp((20, 30)))
    np.testing.assert_array_equal(hi.asarray(Only(image)).compute(), ramp((20, 30)) * 2)
    if library.name == "CuPy":
        np.testing.assert_array_equal(library.host(library.cp.asarray(image)), ramp((20, 30)) * 2)
        with library.cp.cuda.Stream(non_blocking=True):
            for i in range(5):
                busy = library.slow(i)
                assert float(hi.asarray(Only(busy)).max()) == i


def channels_lie_beside_each_other(library: Any) -> None:
    array = ramp((40, 50, 3), "uint8")
    image = hi.asarray(library.make(array), channels=True)
    np.testing.assert_array_equal(image.compute(), array)
    np.testing.assert_array_equal(library.host(library.of(image)), array)
    np.testing.assert_array_equal(ndimage.median_filter(image, 3).compute(), ndimage.median_filter(hi.asarray(array, channels=True), 3).compute())


def errors_are_clear(library: Any) -> None:
    def refused(told: str, call: Callable[[], Any], kind: type[Exception] = ValueError) -> None:
        try:
            call()
        except kind as error:
            assert told in str(error), error
        else:
            raise AssertionError(f"no error of {told}")

    if library.name != "JAX":
        refused("contiguous", lambda: hi.asarray(library.make(ramp((6, 8)))[:, ::2]))
    with hi.session(device="cpu"):
        refused("computes on CPU", lambda: hi.asarray(library.make(ramp((6, 8)))))
    refused("int64", lambda: hi.asarray(library.make(ramp((6, 8), "int64"))), TypeError)
    refused("cannot be copied", lambda: hi.asarray(library.make(ramp((6, 8)))).__dlpack__(dl_device=(2, 77)), BufferError)


def hands_out_host_memory(library: Any) -> None:
    image = hi.asarray(library.make(ramp((6, 8)))) * 2
    host = np.from_dlpack(_OnHost(image))
    np.testing.assert_array_equal(host, ramp((6, 8)) * 2)


class _OnHost:
    def __init__(self, image: hi.Image) -> None:
        self.image = image

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **asked: Any) -> object:
        return self.image.__dlpack__(max_version=asked.get("max_version"), dl_device=(1, 0), copy=True)


def is_in_chunks_of_dask(library: Any) -> None:
    """Chunks of CuPy make chunks of CuPy, with the bits of the whole."""
    da = importlib.import_module("dask.array")
    array = ramp((300, 400))
    chunks = da.from_array(library.make(array), chunks=(90, 150), asarray=False)
    result = hi.dask.map_overlap(lambda image: ndimage.gaussian_filter(image, 2.0), chunks)
    found = result.compute()
    assert isinstance(result._meta, library.cp.ndarray)
    assert isinstance(found, library.cp.ndarray)
    assert library.host(found).tobytes() == ndimage.gaussian_filter(array, 2.0).tobytes()


def the_current_gpu_stays(library: Any) -> None:
    """Other libraries allocate on the GPU that was current before: on a host with two."""
    runtime = library.cp.cuda.runtime
    for gpu in range(runtime.getDeviceCount()):
        for other in range(runtime.getDeviceCount()):
            with library.cp.cuda.Device(gpu):
                with hi.session(device=f"cuda:{other}"):
                    image = hi.asarray(ramp((300, 400))) * 2
                    image.max()
                del image
                assert runtime.getDevice() == gpu
                assert library.cp.zeros(3).device.id == gpu


CHECKS: list[Callable[[Any], None]] = [
    comes_back,
    computes_the_bits_of_the_host,
    other_arguments_are_anywhere,
    repeats_kept_programs,
    arrays_begin_anywhere,
    waits_for_the_producer,
    is_complete_when_handed_out,
    inputs_may_change_at_once,
    keeps_copies_apart,
    gives_memory_back,
    memory_does_not_grow,
    programs_are_replayed,
    speaks_cudas_array_interface,
    channels_lie_beside_each_other,
    errors_are_clear,
    hands_out_host_memory,
]


def checks_of(library: Any) -> list[Callable[[Any], None]]:
    """All checks that can fail with a library here."""
    if not isinstance(library, CuPy):
        return CHECKS
    several = library.cp.cuda.runtime.getDeviceCount() > 1
    return [*CHECKS, is_in_chunks_of_dask, *([the_current_gpu_stays] if several else [])]


def seconds(call: Callable[[], Any]) -> float:
    call()
    times = []
    for _ in range(10):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> int:
    rows: list[Outcome] = []
    libraries: list[Any] = []
    for kind in (CuPy, Torch, Jax):
        try:
            libraries.append(kind())
        except Exception as error:
            print(f"{kind.name}: left out ({error})")
    for library in libraries:
        for check in checks_of(library):
            try:
                check(library)
                rows.append((library.name, check.__name__, "passed"))
            except Exception:
                traceback.print_exc()
                rows.append((library.name, check.__name__, "FAILED"))
            print(*rows[-1], flush=True)
    photo = np.random.default_rng(1).random((4096, 4096)).astype(np.float32)
    times = []
    for library in libraries:
        there = library.make(photo)

        def call(there: Any = there) -> None:
            ndimage.gaussian_filter(there, 3.0)

        times.append((f"{library.name}, stays on the GPU", seconds(call)))
    with hi.session(device="cuda"):
        times.append(("NumPy, to the GPU and back", seconds(lambda: ndimage.gaussian_filter(photo, 3.0))))
    with hi.session(device="cpu"):
        times.append(("NumPy, on the CPU", seconds(lambda: ndimage.gaussian_filter(photo, 3.0))))
    failed = [row for row in rows if row[2] == "FAILED"]
    print("\n| library | passed | of |\n| --- | --- | --- |")
    for library in libraries:
        of = [row for row in rows if row[0] == library.name]
        print(f"| {library.name} | {sum(row[2] == 'passed' for row in of)} | {len(of)} |")
    print("\n| gaussian_filter of 4096x4096 float32, sigma 3 | ms |\n| --- | --- |")
    for name, time_ in times:
        print(f"| {name} | {time_ * 1e3:.2f} |")
    for row in failed:
        print("failed:", *row)
    return len(failed) if libraries else 1


if __name__ == "__main__":
    sys.exit(main())
