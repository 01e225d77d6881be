"""Errors raise fitting exceptions, and none ends the interpreter."""

from __future__ import annotations

import gc
import inspect
import logging
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import tifffile

import horus_image as hi
from horus_image import filters, ndimage


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: hi.asarray(np.zeros((2, 2), complex)), TypeError, "complex"),
        (lambda: hi.asarray(np.array([object()])), TypeError, "object"),
        (lambda: hi.asarray(np.array(["a"])), TypeError, "type"),
        (lambda: hi.asarray(np.zeros((2, 2), np.int64)), TypeError, "int64"),
        (lambda: hi.asarray(np.zeros((0, 2))), ValueError, "no pixels"),
        (lambda: hi.asarray(np.zeros((1, 1, 1, 1))), ValueError, r"4 axes, of shape \(1, 1, 1, 1\).*levels, rows and columns.*array\[0\]"),
        (lambda: ndimage.laplace(np.zeros((1, 2, 3, 4))), NotImplementedError, r"laplace: an array of 4 axes.*rows, columns and channels"),
        (lambda: hi.asarray(np.zeros((2, 2), np.int64)), TypeError, "int64.*astype"),
        (lambda: hi.asarray(np.zeros((2, 2), np.uint64)), TypeError, "uint64.*astype"),
        (lambda: hi.asarray(np.zeros((2, 2), np.longdouble)), TypeError, "astype"),
        (lambda: hi.asarray([[1.0]]).astype(np.float16), TypeError, r"float16; compute\(\)\.astype"),
        (lambda: hi.asarray([[1.0]]).astype(np.int64), TypeError, r"int64; compute\(\)\.astype"),
        (lambda: hi.asarray(np.zeros((2, 2), np.float16), copy=False), TypeError, "float16.*astype"),
        (lambda: hi.asarray([[1.0]]) + hi.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])[:, :2][:3] + np.zeros((2, 5)), ValueError, "differ in size"),
        (lambda: bool(hi.asarray([1.0, 2.0])), ValueError, "ambiguous"),
        (lambda: hash(hi.asarray([1.0])), TypeError, "no hash"),
        (lambda: hi.session(device="abacus"), ValueError, "abacus"),
        (lambda: hi.session(memory="much"), ValueError, "much"),
        (lambda: hi.Image(), TypeError, "asarray"),
        (lambda: ndimage.gaussian_filter(np.eye(3), -1.0), ValueError, "sigma"),
        (lambda: ndimage.gaussian_filter(np.eye(3), np.nan), ValueError, "sigma"),
        (lambda: ndimage.gaussian_filter(np.eye(3), 1.0, order=-1), ValueError, "order"),
        (lambda: ndimage.gaussian_filter(np.eye(3), 1.0, mode="beyond"), RuntimeError, "boundary mode"),
        (lambda: ndimage.gaussian_filter(np.eye(3), [1.0, 2.0, 3.0]), RuntimeError, "sequence"),
        (lambda: ndimage.median_filter(np.eye(3, dtype=complex), 3), TypeError, "Complex"),
        (lambda: ndimage.gaussian_filter(np.full((2, 2), 2**60), 1.0), ValueError, "2\\^53"),
        (lambda: ndimage.gaussian_filter(np.eye(3, dtype=np.longdouble), 1.0), TypeError, "astype"),
        (lambda: ndimage.correlate1d(np.eye(3), []), RuntimeError, "no filter weights"),
        (lambda: ndimage.correlate1d(np.eye(3), [1, 2], axis=2), np.exceptions.AxisError, "axis 2"),
        (lambda: ndimage.correlate(np.eye(3), [1, 2]), RuntimeError, "weights.ndim"),
        (lambda: ndimage.median_filter(np.eye(3)), RuntimeError, "size"),
        (lambda: ndimage.minimum_filter(np.eye(3), footprint=np.zeros((3, 3))), ValueError, "All-zero"),
        (lambda: ndimage.rank_filter(np.eye(3), 9, size=3), RuntimeError, "rank"),
        (lambda: ndimage.sobel(np.eye(3), output=np.zeros((2, 2))), RuntimeError, "shape"),
        (lambda: ndimage.sobel(hi.asarray(np.eye(3)), output=np.zeros((3, 3))), TypeError, "lazy"),
        (lambda: ndimage.shift(np.eye(3), 1e12, order=0), ValueError, "shift"),
        (lambda: ndimage.gaussian_filter(np.eye(3), 1e9), ValueError, "limit is 32768"),
        (lambda: ndimage.gaussian_filter(np.eye(3), 1.0, order=10**6), ValueError, "derivative"),
        (lambda: ndimage.minimum_filter(np.ones((2, 2, 2)), 2**40), ValueError, "limit is 32768"),
        (lambda: ndimage.median_filter(np.eye(3), 2**31), ValueError, "footprint"),
        (lambda: ndimage.generate_binary_structure(40, 1), ValueError, "40 axes"),
        (lambda: ndimage.zoom(np.eye(3), 2.0**28), ValueError, "too large"),
        (lambda: ndimage.binary_propagation([0, 0, 1, 0, 0], structure=[1, 0, 1]), ValueError, "back and forth"),
        (lambda: ndimage.affine_transform(np.eye(3), [1.0, 1.0], output_shape=(2, 2, 2)), RuntimeError, "rank"),
        (lambda: ndimage.grey_erosion(np.eye(3), footprint=np.ones((2, 2)), structure=np.ones((3, 3))), RuntimeError, "same shape"),
        (lambda: filters.convuv(np.eye(3), 1e-9), ValueError, "theta_step"),
        (lambda: filters.threshold_li(np.eye(3), tolerance=-1.0), ValueError, "tolerance"),
        (lambda: filters.threshold_otsu(hist=np.zeros(3)), ValueError, "hist"),
        (lambda: filters.threshold_otsu(np.eye(3), 2**28), ValueError, "bins"),
        (lambda: filters.unsharp_mask(np.ones((3, 3, 3)), channel_axis=3), np.exceptions.AxisError, "axis 3"),
        (lambda: filters.frangi(np.eye(3), beta=0), ValueError, "beta"),
        (lambda: hi.where(np.ones(1), hi.asarray([1.0]), 2.0), TypeError, "mask"),  # type: ignore[arg-type]
    ],
)
def test_errors(call: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told) as raised:
        call()
    assert "::" not in str(raised.value), "an item of Rust"


def test_messages_about_files_name_arguments_of_python(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    volume, large = np.zeros((3, 4, 5), np.uint8), np.array([[0, 70000]], np.int32)
    tifffile.imwrite(tmp_path / "pages.tif", volume, photometric="minisblack", metadata=None)
    hi.save(tmp_path / "store.zarr", volume)
    np.save(tmp_path / "volume.npy", volume)
    tifffile.imwrite(tmp_path / "times.tif", np.zeros((2, 3, 4, 5), np.uint16), imagej=True, metadata={"axes": "TZYX"})
    calls: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: hi.open(tmp_path / "pages.tif", page=7), OSError, "page 7 requested"),
        (lambda: hi.open(tmp_path / "pages.tif", page=0, max_pixels=10), OSError, "limit of 10 .*max_pixels="),
        (lambda: hi.open(tmp_path / "store.zarr", max_pixels=10), OSError, "limit of 10 .*max_pixels="),
        (lambda: hi.open(tmp_path / "store.zarr", page=7), OSError, "time 7 requested"),
        (lambda: hi.open(tmp_path / "times.tif", volume=True), OSError, "page=N"),
        (lambda: hi.save(tmp_path / "a.jpg", large), OSError, 'depth=8 with scaling="unit"'),
        (lambda: hi.save(tmp_path / "a.png", large, depth=16, clipping="refuse"), OSError, 'scaling="range".*clipping="allow"'),
        (lambda: hi.save(tmp_path / "a.png", large, depth=9), ValueError, "depth"),
        (lambda: hi.asarray(np.zeros((2, 2, 5)), channels=True).luminance().compute(), ValueError, r"channel\(0\)"),
    ]
    for call, error, told in calls:
        with pytest.raises(error, match=told) as raised:
            call()
        assert "::" not in str(raised.value), raised.value
    with caplog.at_level(logging.WARNING, logger="horus_image"):
        hi.open(tmp_path / "pages.tif").compute()
        hi.open(tmp_path / "volume.npy").compute()
        hi.save(tmp_path / "a.png", large, depth=16)
    for told in ("page=N", "volume=True reads 3 levels", 'scaling="range"'):
        assert told in caplog.text
    assert not [record for record in caplog.records if "::" in record.getMessage() or "horus_" in record.getMessage()]


def test_of_very_many_iterations_those_that_change_nothing_are_left_out() -> None:
    mask = np.zeros((5, 70), bool)
    mask[2, 3:-3] = True
    element = [[1, 0, 1]]
    for many, few in ((10**15, 100), (10**15 + 1, 101)):
        np.testing.assert_array_equal(ndimage.binary_erosion(mask, iterations=many), np.zeros_like(mask))
        within = np.ones((1, 9), bool)
        seed = within & (np.arange(9) == 4)
        found = [ndimage.binary_dilation(seed, element, iterations=n, mask=within) for n in (many, few)]
        np.testing.assert_array_equal(*found)
    assert (found[0] != ndimage.binary_dilation(seed, element, iterations=few + 1, mask=within)).any(), "it goes back and forth"


def test_no_memory_is_an_error_and_the_session_goes_on() -> None:
    with hi.session(device="cpu", memory=1 << 20):
        with pytest.raises(MemoryError, match="out of memory"):
            ndimage.gaussian_filter(np.zeros((2000, 2000), np.float32), 1.0)
        assert ndimage.gaussian_filter(np.ones((8, 8), np.float32), 1.0).shape == (8, 8)


def test_an_array_may_change_or_go() -> None:
    array = np.ones((64, 64), np.float32)
    gone = weakref.ref(array)
    before = sys.getrefcount(array)
    image = hi.asarray(array) * 2
    assert sys.getrefcount(array) == before
    array[:] = 5
    del array
    gc.collect()
    assert gone() is None
    assert image.compute().max() == 2.0


def test_results_outlive_images_and_sessions() -> None:
    session = hi.session(device="cpu")
    image = session.asarray(np.arange(12.0).reshape(3, 4))
    result = image.compute()
    view = result[1:]
    left = weakref.ref(image)
    del image, session, result
    gc.collect()
    assert left() is None
    np.testing.assert_array_equal(view, np.arange(4.0, 12.0).reshape(2, 4))


def test_memory_of_many_calls_is_given_back() -> None:
    import resource

    array = np.ones((512, 512), np.float32)

    def used() -> int:
        for _ in range(20):
            ndimage.gaussian_filter(array, 1.0)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = used()
    for _ in range(5):
        after = used()
    assert after - before < 16 << 10, "KiB"


def test_threads_share_a_session() -> None:
    array = np.random.default_rng(1).random((100, 120)).astype(np.float32)
    expected, found = ndimage.gaussian_filter(array, 2.0), []

    def work() -> None:
        for _ in range(20):
            found.append(np.array_equal(ndimage.gaussian_filter(array, 2.0), expected))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 80


def test_threads_do_different_things_with_the_same_images() -> None:
    array = np.random.default_rng(1).random((60, 70)).astype(np.float32)
    expected = ndimage.gaussian_filter(array, 2.0)
    shared = hi.asarray(array)
    smooth = ndimage.gaussian_filter(shared, 2.0)
    program = hi.jit(lambda image: ndimage.gaussian_filter(image, 2.0))

    def opened() -> Any:
        with hi.session(device="cpu", threads=1):
            return ndimage.gaussian_filter(array, 2.0)

    def started() -> Any:
        image = ndimage.gaussian_filter(shared, 2.0)
        image.start()
        return np.asarray(image)

    def refused() -> Any:
        with pytest.raises(ValueError, match="sigma"):
            ndimage.gaussian_filter(shared, -1.0)
        return expected

    ways = [opened, started, refused, smooth.compute, lambda: program(array), lambda: np.from_dlpack(smooth), lambda: np.asarray(shared * 1.0)]
    wrong: list[Any] = []

    def work(first: int) -> None:
        for i in range(6 * len(ways)):
            way = ways[(first + i) % len(ways)]
            try:
                if not np.array_equal(way(), expected if way is not ways[-1] else array):
                    wrong.append(way)
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_threads_run_while_horus_computes() -> None:
    array = np.random.default_rng(1).random((600, 600))
    with hi.session(device="cpu", threads=1):
        image = hi.asarray(array)
        for _ in range(40):
            image = ndimage.gaussian_filter(image, 8.0)
        ticks, done = 0, threading.Event()

        def compute() -> None:
            image.compute()
            done.set()

        thread = threading.Thread(target=compute)
        thread.start()
        while not done.wait(0.001):
            ticks += 1
        thread.join()
    assert ticks > 1


def test_ctrl_c_ends_an_evaluation_and_the_session_goes_on() -> None:
    program = """
        import os, signal, threading, time
        signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
        import numpy as np
        import horus_image as hi
        from horus_image import ndimage
        hi.session(device="cpu")
        image = hi.asarray(np.random.default_rng(1).random((700, 700)))
        small = image * 2
        for _ in range(400):
            image = ndimage.median_filter(ndimage.gaussian_filter(image, 6.0), 5)
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        start = time.time()
        try:
            image.compute()
        except KeyboardInterrupt:
            print("interrupted", time.time() - start < 20, small.compute().shape)
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.stdout.strip() == "interrupted True (700, 700)", ran.stderr


def ran(program: str) -> str:
    """The output of a program that exits normally."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_child_process_has_a_session_of_its_own_and_tells_what_it_has_not() -> None:
    # The parent has threads, an evaluation that was started, and sessions that the child lets go of at its end.
    program = """
        import os, sys
        import numpy as np
        import horus_image as hi
        from horus_image import ndimage
        array = np.ones((300, 300))
        ndimage.gaussian_filter(array, 1.0)
        session = hi.session(device="cpu", threads=2)
        image = session.asarray(array) + 1
        early = hi.asarray(array) * 3
        image.start()
        child = os.fork()
        if child == 0:
            for what in (image.compute, early.sum, (early * 2).compute, session.evaluate, lambda: session.asarray(array).max()):
                try:
                    what()
                    print("no error")
                except RuntimeError as error:
                    if "fork" not in str(error) or "spawn" not in str(error):
                        print(error)
            image.start()
            del image, early
            with hi.session(device="cpu") as own:
                print((hi.asarray(array) * 2).sum(), ndimage.gaussian_filter(array, 1.0).shape, flush=True)
            sys.exit(0)
        print(os.waitpid(child, 0)[1], image.sum(), early.sum())
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.splitlines() == ["180000.0 (300, 300)", "0 180000.0 270000.0"], done.stdout + done.stderr
    assert not done.stderr


@pytest.mark.parametrize("call", ["ndimage.gaussian_filter(array, 2.0)", "(image * 2).compute()", "program(array)", "hi.iterate(step, image, 9).state.sum()"])
def test_a_program_ends_while_threads_are_in_calls(call: str) -> None:
    # Exit handlers registered before the package was imported run after its own; by then no thread may be in a call, or begin one.
    program = f"""
        import atexit, threading, time
        done, found = [0] * 4, []

        def at_the_end():
            before = list(done)
            time.sleep(0.1)
            found.append(ndimage.gaussian_filter(array, 2.0).shape)  # who ends the program may still call
            print(before == done, found)

        atexit.register(at_the_end)
        import numpy as np
        import horus_image as hi
        from horus_image import ndimage
        array = np.ones((300, 300), np.float32)
        image = hi.asarray(array)
        program = hi.jit(lambda a: a + 1)
        step = lambda a: ndimage.uniform_filter(a, 3)

        def endless(at):
            while True:
                {call}
                done[at] += 1

        class Slow:
            def __del__(self, sleep=time.sleep):
                sleep(0.1)

        slow = Slow()
        for at in range(4):
            threading.Thread(target=endless, args=(at,), daemon=True).start()
        while sum(done) < 8:
            time.sleep(0.01)
    """
    assert ran(program) == "True [(300, 300)]"


def test_images_are_let_go_of_while_what_was_started_runs() -> None:
    program = """
        import numpy as np
        import horus_image as hi
        from horus_image import ndimage
        session = hi.session(device="cpu", threads=1)
        image = session.asarray(np.ones((600, 600)))
        for _ in range(20):
            image = ndimage.gaussian_filter(image, 8.0)
        image.start()
        del image, session
        print("gone")
    """
    assert ran(program) == "gone"


def test_a_program_that_records_far_ahead_of_a_computation_waits_for_it() -> None:
    program = """
        import threading
        import numpy as np
        import horus_image as hi
        from horus_image import _horus, ndimage
        with hi.session(device="cpu", threads=1):
            image = hi.asarray(np.ones((600, 600)))
            for _ in range(60):
                image = ndimage.gaussian_filter(image, 12.0)
            started = threading.Event()
            thread = threading.Thread(target=lambda: (started.set(), image.compute()))
            thread.start()
            started.wait()
            small, line = hi.asarray(np.ones((2, 2)))._core, _horus.SourceLine("somewhere", 1, "add")
            while thread.is_alive():
                small.recorded_at(line)
            thread.join()
        print("computed")
    """
    assert ran(program) == "computed"


def here() -> str:
    """The line of the caller, as messages tell it."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return f"{__file__}:{frame.f_back.f_lineno}"


def test_what_fails_when_it_is_computed_names_the_line_that_recorded_it() -> None:
    with hi.session(device="cpu", memory=1 << 20):
        image = hi.asarray(np.ones((100, 100), np.float32))
        small = image + 1.0
        large, recorded = ndimage.zoom(small, 30.0, order=1), here()
        after = ndimage.gaussian_filter(large, 1.0) * 2.0
        assert after.mean() == pytest.approx(4.0), "region by region"
        for look in (large.compute, lambda: np.asarray(after)):
            with pytest.raises(MemoryError) as raised:
                look()
            told = str(raised.value)
            assert __file__ in told and ".rs:" not in told, told
            if look == large.compute:
                assert f"recorded at {recorded}" in told, told
        assert small.compute()[0, 0] == 2.0


def test_a_line_is_that_of_the_program_however_deep_it_calls() -> None:
    with hi.session(device="cpu", explain=True) as session:
        image: Any = hi.asarray([[1.0, 2.0]])
        for record in (lambda: (image * 2, here()), lambda: (np.hypot(image, 3), here()), lambda: (ndimage.sobel(image), here())):
            found, line = record()
            found.compute()
            assert f"[asked for at {line}]" in session.explain()


def test_signals_are_left_alone() -> None:
    program = """
        import signal
        before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGSEGV)]
        import numpy as np
        import horus_image as hi
        from horus_image import ndimage
        with hi.session(device="cpu"):
            ndimage.gaussian_filter(np.ones((9, 9)), 1.0)
        print(before == [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGSEGV)])
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.stdout.strip() == "True", ran.stderr


def test_arrays_are_used_at_the_end_of_the_interpreter() -> None:
    # The first call of all, when modules are gone: a result, or an exception that is no panic.
    program = """
        import builtins
        import numpy as np
        import horus_image as hi
        from horus_image import ndimage

        class Late:
            def __init__(self, use):
                self.use, self.array = use, np.ones((50, 60), np.float32)
            def __del__(self):
                try:
                    self.use(self.array)
                    print("done", flush=True)
                except Exception as error:
                    print("done" if isinstance(error, ImportError) else repr(error), flush=True)

        builtins.late = [
            Late(hi.asarray),
            Late(lambda array, f=ndimage.gaussian_filter: f(array, 2.0)),
            Late(lambda array, f=ndimage.histogram: f(array, 0, 2, 3)),
            Late(lambda array, f=ndimage.sum_labels: f(array, array.astype(np.uint8), [0, 1])),
        ]
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["done"] * 4, "")


@pytest.mark.parametrize("number", ["3", 3.5, 2.0])
def test_numbers_that_are_not_whole_are_refused_where_scipy_refuses_them(number: Any) -> None:
    image = np.random.default_rng(0).random((9, 8))
    calls: list[Callable[[Any], Any]] = [
        lambda m: m.median_filter(image, number),
        lambda m: m.median_filter(image, (3, number)),
        lambda m: m.percentile_filter(image, 50, number),
        lambda m: m.rank_filter(image, 0, number),
        lambda m: m.uniform_filter1d(image, number),
        lambda m: m.minimum_filter1d(image, number),
        lambda m: m.maximum_filter1d(image, number),
        lambda m: m.zoom(image, 2, order=number),
        lambda m: m.shift(image, 0.5, order=number),
        lambda m: m.rotate(image, 30, order=number),
        lambda m: m.affine_transform(image, np.eye(2) * 0.9, order=number),
        lambda m: m.map_coordinates(image, np.ones((2, 3)), order=number),
        lambda m: m.spline_filter(image, order=number),
        lambda m: m.gaussian_filter(image, 1, order=number),
        lambda m: m.gaussian_filter1d(image, 1, order=number),
    ]
    for call in calls:
        for module in (scipy.ndimage, ndimage):
            with pytest.raises((TypeError, RuntimeError)):
                call(module)
