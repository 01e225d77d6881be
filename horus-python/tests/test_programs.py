"""Programs that run many times, logs, and memory."""

from __future__ import annotations

import dataclasses
import logging
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import horus_image as hi
from horus_image import ndimage


def frames(count: int, dtype: Any = np.float32) -> list[np.ndarray[Any, Any]]:
    return [(np.random.default_rng(i).random((40, 50)) * 200).astype(dtype) for i in range(count)]


def test_a_program_is_recorded_once_for_each_kind() -> None:
    calls = []

    @hi.jit
    def edges(image: hi.Image, other: hi.Image, sigma: float = 1.0) -> tuple[hi.Image, hi.Image]:
        calls.append(image.shape)
        smooth = ndimage.gaussian_filter(image, sigma)
        return smooth - other, smooth > other

    assert edges.__name__ == "edges"
    for dtype in (np.float32, np.float64):
        for a, b in zip(frames(4, dtype), frames(5, dtype)[1:], strict=True):
            difference, mask = edges(a, b)
            smooth = ndimage.gaussian_filter(a, 1.0)
            np.testing.assert_array_equal(difference, smooth - b)
            np.testing.assert_array_equal(mask, smooth > b)
            difference[:] = 3
    assert len(calls) == 2
    edges(*frames(2), 2.0)
    edges(*frames(2), sigma=2.0)
    edges(frames(1)[0][:, ::2], frames(1)[0][:, ::2])
    edges(frames(1)[0][:, ::2], frames(1)[0][:, 1::2])
    assert len(calls) == 5
    edges.clear()
    edges(*frames(2))
    assert len(calls) == 6


def test_results_of_programs_outlive_later_runs() -> None:
    double = hi.jit(lambda image: image * 2)
    results = [double(frame) for frame in frames(5)]
    for frame, result in zip(frames(5), results, strict=True):
        np.testing.assert_array_equal(result, frame * 2)


def test_programs_of_masks_channels_and_images() -> None:
    @hi.jit
    def clean(mask: hi.Image) -> hi.Image:
        return ndimage.binary_opening(mask)

    for frame in frames(3):
        np.testing.assert_array_equal(clean(frame > 100), ndimage.binary_opening(frame > 100))
    odd = np.full((40, 50), 7, np.uint8).view(np.bool_)
    assert clean(odd).any()
    lazy = clean(hi.asarray(frames(1)[0] > 100))
    assert isinstance(lazy, hi.Image)
    np.testing.assert_array_equal(lazy, ndimage.binary_opening(frames(1)[0] > 100))


def test_a_function_that_looks_is_called_each_time() -> None:
    calls = []

    @hi.jit
    def scaled(image: hi.Image) -> hi.Image:
        calls.append(1)
        return image / float(image.max())

    for frame in frames(3):
        np.testing.assert_allclose(scaled(frame), frame / frame.max(), rtol=1e-6)
    assert len(calls) == 3


def test_arguments_that_are_equal_but_not_the_same_have_programs_of_their_own() -> None:
    calls: list[object] = []

    @hi.jit
    def signed(image: hi.Image, number: Any) -> hi.Image:
        calls.append(number)
        first = number[0] if isinstance(number, tuple) else number
        return image + float(np.copysign(2.0, float(np.real(first))))

    frame = np.ones((4, 5), np.float32)
    numbers = [0.0, -0.0, np.float32(-0.0), np.float64(0.0), np.array(0.0), np.array(-0.0), np.array(-0.0, np.float32), 0j, complex(-0.0, 0.0)]
    numbers += [(0.0,), (-0.0,), (0,), 1, 1.0, True, float("nan"), -float("nan")]
    for _ in range(2):
        for number in numbers:
            first = number[0] if isinstance(number, tuple) else number
            expected = frame + np.float32(np.copysign(2.0, float(np.real(first))))
            if first == first:
                np.testing.assert_array_equal(signed(frame, number), expected, err_msg=repr(number))
            else:
                signed(frame, number)
    assert len(calls) == len(numbers) - 1  # a NaN is a NaN
    with pytest.raises(TypeError, match="no argument is an array"):
        signed(np.array(1.0), 2.0)


@dataclasses.dataclass(frozen=True)
class _Settings:
    offset: float
    name: str = "offset"


def test_parts_of_arguments_that_are_equal_but_not_the_same_have_programs_of_their_own() -> None:
    calls: list[object] = []

    @hi.jit
    def signed(image: hi.Image, settings: Any) -> hi.Image:
        calls.append(settings)
        (number,) = settings if isinstance(settings, frozenset) else [settings.offset]
        return image + float(np.copysign(2.0, number))

    frame = np.ones((4, 5), np.float32)
    for _ in range(2):
        for number in (0.0, -0.0):
            expected = frame + np.float32(np.copysign(2.0, number))
            np.testing.assert_array_equal(signed(frame, _Settings(number)), expected)
            np.testing.assert_array_equal(signed(frame, frozenset([number])), expected)
    assert len(calls) == 4


def test_what_is_evaluated_while_a_function_is_recorded_leaves_it_alone() -> None:
    session = hi.asarray(frames(1)[0]).session
    calls: list[int] = []

    def elsewhere(work: Callable[[], object]) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    whiles: list[tuple[Callable[[hi.Image], None], int]] = [
        (lambda image: elsewhere(session.evaluate), 1),
        (lambda image: session.start(), 1),
        (lambda image: image.start(), 1),
        (lambda image: elsewhere(image.compute), 4),
    ]
    for meanwhile, most in whiles:

        @hi.jit
        def sharp(image: hi.Image) -> hi.Image:
            calls.append(1)
            smooth = ndimage.gaussian_filter(image, 1.5)
            meanwhile(smooth)  # noqa: B023
            return image - smooth

        for frame in frames(4):
            np.testing.assert_array_equal(sharp(frame), frame - ndimage.gaussian_filter(frame, 1.5))
        assert len(calls) == most
        calls.clear()


def test_what_a_program_cannot_be_is_an_error() -> None:
    first = frames(1)[0]
    for function, arguments, told in (
        (lambda image: 3, (first,), "must return an image"),
        (lambda image: image, (1.0,), "no argument is an array"),
        (lambda image, more: image, (first, [1]), "must have a hash"),
        (lambda image: image, (first.astype(np.int64),), "int64"),
    ):
        with pytest.raises(TypeError, match=told):
            hi.jit(function)(*arguments)

    def fails(image: hi.Image) -> hi.Image:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        hi.jit(fails)(first)


def test_threads_share_a_program() -> None:
    smooth = hi.jit(lambda image: ndimage.gaussian_filter(image, 2.0))
    given = frames(4)
    expected = [ndimage.gaussian_filter(frame, 2.0) for frame in given]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(10):
            if not np.array_equal(smooth(given[number]), expected[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_step_is_repeated() -> None:
    start = frames(1)[0]
    calls = []

    def step(u: hi.Image) -> hi.Image:
        calls.append(1)
        return ndimage.uniform_filter(u, 3)

    done = hi.iterate(step, start, 20)
    expected: Any = hi.asarray(start)
    for _ in range(20):
        expected = ndimage.uniform_filter(expected, 3)
    np.testing.assert_array_equal(done.state, expected)
    assert (done.steps, done.change, done.ending, len(calls)) == (20, None, "steps", 1)


def test_loops_end_when_they_converge_or_somebody_wants_it() -> None:
    u, v = frames(2)
    done = hi.iterate(lambda a, b: ((a + b) / 2, b), (u, v), 1000, below=1e-3, norm="rms", every=5)
    assert done.ending == "converged" and done.steps < 1000 and done.change is not None and done.change < 1e-3
    assert isinstance(done.state, tuple)
    np.testing.assert_allclose(done.state[0], v, atol=0.02)
    seen = []

    def watch(step: int, image: hi.Image) -> bool:
        seen.append((step, float(image.max())))
        return step >= 6

    stopped = hi.iterate(lambda a: a * 0.5, [u], 100, watch=watch, watch_every=3)
    assert stopped.ending == "stopped" and [step for step, _ in seen] == [3, 6] and isinstance(stopped.state, list)
    np.testing.assert_allclose(stopped.state[0], u / 64, rtol=1e-6)


def test_errors_in_loops_are_the_callers() -> None:
    first = frames(1)[0]

    def fails(u: hi.Image) -> hi.Image:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        hi.iterate(fails, first, 10)
    with pytest.raises(KeyError, match="mine"):
        hi.iterate(lambda u: u * 2, first, 10, watch=lambda step, u: fails(u))
    with pytest.raises(TypeError, match="must return images"):
        hi.iterate(lambda u: 3, first, 10)
    with pytest.raises(ValueError, match="number, shapes and types must stay the same"):
        hi.iterate(lambda u: u[1:], first, 10)
    with pytest.raises(ValueError, match="norm"):
        hi.iterate(lambda u: u, first, 10, norm="most")
    with pytest.raises(ValueError, match="bound"):
        hi.iterate(lambda u: u, first, 10, below=-1.0)
    assert hi.iterate(lambda u: u * 2, first, 1).steps == 1


def test_series_of_arrays_and_files(tmp_path: Path) -> None:
    given = frames(6, np.uint8)
    paths = [tmp_path / f"{i}.png" for i in range(6)]
    for path, frame in zip(paths, given, strict=True):
        hi.save(path, frame)

    def smooth(image: hi.Image) -> Any:
        return ndimage.median_filter(image, 3)

    expected = [ndimage.median_filter(frame, 3) for frame in given]
    for inputs in (iter(given), paths):
        for found, wanted in zip(hi.series(inputs, smooth, ahead=2), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
    written = list(hi.series(paths, smooth, save=lambda path: tmp_path / ("small-" + path.name)))
    assert [path.name for path in written] == [f"small-{i}.png" for i in range(6)]
    np.testing.assert_array_equal(hi.open(written[4]), expected[4])
    assert list(hi.series([], smooth)) == []
    found = hi.series([paths[0], tmp_path / "none.png"], lambda image: (image, 3))
    assert next(found)[1] == 3
    with pytest.raises(OSError, match=r"none\.png"):
        next(found)
    with pytest.raises(ValueError, match="positive"):
        hi.series(paths, smooth, ahead=0)


def test_with_one_ahead_a_result_comes_before_the_next_frame_is_taken(tmp_path: Path) -> None:
    taken = 0

    def camera() -> Any:
        nonlocal taken
        for frame in frames(5, np.uint8):
            taken += 1
            yield frame

    for save in (None, lambda frame: tmp_path / "frame.png"):
        taken = 0
        for number, _ in enumerate(hi.series(camera(), lambda frame: frame, save=save, ahead=1)):
            assert taken == number + 1
        assert taken == 5


def test_what_is_logged_goes_to_logging(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="horus_image"):
        with hi.session(device="cpu"):
            hi.asarray([[1.0, 2.0]]).compute()
    assert any(record.name == "horus_image" and "CPU" in record.message for record in caplog.records)
    caplog.clear()
    with hi.session(device="cpu"):
        hi.asarray([[1.0, 2.0]]).compute()
    assert not caplog.records


def test_a_session_reports_in_one_page(tmp_path: Path) -> None:
    with hi.session(device="cpu", explain=True) as session:
        image = hi.asarray(frames(1)[0])
        (ndimage.gaussian_filter(image, 2.0) * 2).compute()
        first = session.explain()
        assert "image 3 of a plan" in first
        (ndimage.median_filter(image, 3) + 1).compute()
        second = session.explain()
        assert "plan:" in second and "image 3 of a plan" not in second and session.explain() == ""
        session.report(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text()
    # Plans that were told are there, too; tags end; nothing is loaded.
    assert page.count("<summary>Plan ") == first.count("plan:\n") + second.count("plan:\n") == 2
    for part in ("rank 0, predicted: compute", "host memory", "<h2>Memory", "<h2>Transfers", " median "):
        assert part in page, part
    # A timeline and two programs.
    assert page.count("<svg") == page.count("</svg>") == 3 and "<script" not in page and "src=" not in page
    for drawing in re.findall("<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(drawing)
    # Steps are named by the functions of the program, with their lines.
    [line] = {int(line) for line in re.findall(r"gaussian_filter, test_programs.py:(\d+)", page)}
    assert f"mul, test_programs.py:{line}<" in page and f"median_filter, test_programs.py:{line + 3}<" in page
    with hi.session(device="cpu", explain=True) as session:
        edges = ndimage.sobel(hi.asarray(frames(1)[0]))
        assert session.drawing() == ""
        edges.compute()
        assert len(ElementTree.fromstring(session.drawing())) > 2
        session.report(tmp_path / "both.html", images={"edges & more": edges}, beside=tmp_path / "run.html")
        with pytest.raises(ValueError, match="no page about a run"):
            session.report(tmp_path / "none.html", beside=__file__)
    both = (tmp_path / "both.html").read_text()
    assert both.count("<iframe ") == 2 and "<td>kernels, measured, ms<td class=n>" in both
    assert "edges &amp;amp; more" in both
    with pytest.raises(ValueError, match="explain=True"):
        hi.session(device="cpu").report(tmp_path / "none.html")
    with pytest.raises(OSError), hi.session(device="cpu", explain=True) as session:
        session.report(tmp_path / "no" / "run.html")


LOOP = """
import sys
import numpy as np
import horus_image as hi
from horus_image import ndimage

u = np.random.default_rng(5).random((300, 200))
v = (u * 100).astype(np.uint16)
done = hi.iterate(lambda u, v: (ndimage.gaussian_filter(u, 1.0) + u * 1e-3, ndimage.maximum_filter(v, 3) // np.uint16(2) + v // np.uint16(3)), (u, v), 400,
                  checkpoint=sys.argv[1], checkpoint_every=20, resume=True)
np.savez(sys.argv[2], u=done.state[0].compute(), v=done.state[1].compute(), steps=done.steps)
"""


def test_a_killed_loop_continues_to_the_same_bits(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)

    def run(store: str, seconds: float | None) -> bool:
        try:
            subprocess.run([sys.executable, "-c", LOOP, tmp_path / store, tmp_path / f"{store}.npz"], timeout=seconds, check=True)
        except subprocess.TimeoutExpired:
            return False
        return True

    begun = time.monotonic()
    assert run("whole", None)
    whole = time.monotonic() - begun
    kills = sum(not run("killed", rng.uniform(0.3, 1.0) * whole) for _ in range(5))
    assert run("killed", None)
    want, got = np.load(tmp_path / "whole.npz"), np.load(tmp_path / "killed.npz")
    for name in ("u", "v", "steps"):
        assert want[name].tobytes() == got[name].tobytes(), (name, kills)


def test_checkpoints_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    store, u = tmp_path / "loop.zarr", np.ones((5, 6))

    def run(state: Any, **more: Any) -> hi.Iterated:
        return hi.iterate(lambda *all: [u * 0.5 for u in all], state, 9, checkpoint=store, checkpoint_every=4, **more)

    assert run([u]).steps == 9
    seen: list[int] = []
    assert float(run([u], resume=True, watch=lambda step, u: seen.append(step)).state[0].max()) == 0.5**9
    assert seen == [8, 9]
    with pytest.raises(OSError, match=r"loop.zarr.*after 8 steps: resume"):
        run([u])
    with pytest.raises(OSError, match="has 1 images, the loop 2"):
        run([u, u], resume=True)
    with pytest.raises(OSError, match="image 0 of its checkpoint is 5x6 float64, that of the loop 5x6 float32"):
        run([u.astype(np.float32)], resume=True)
    (store / "after-8" / "0" / "c" / "0" / "0").write_bytes(bytes(5 * 6 * 8))
    with pytest.raises(OSError, match="damaged"):
        run([u], resume=True)
    (tmp_path / "other.zarr").mkdir()
    (tmp_path / "other.zarr" / "notes").write_text("mine")
    with pytest.raises(OSError, match="no checkpoints of a loop, and is not changed"):
        hi.iterate(lambda u: u, u, 9, checkpoint=tmp_path / "other.zarr")
    assert (tmp_path / "other.zarr" / "notes").read_text() == "mine"
