#!/usr/bin/env python3
"""A day in minutes: memory of processes that compute small pictures for as long as a camera of one frame a second takes for 24 hours.

    python benches/hours.py [--frames 86400] [--threads 8] [--horus target/release/horus] [PROGRAM...]

- `jit`: each of 8 threads calls a function of `hi.jit` and one of `ndimage` 86,400 times, with other pixels each time; every 20th call has a
  size and an argument that were not there before, so that programs are recorded and dropped
- `series`: `hi.series` over as many frames, read from files and written to others
- `arrays`: `hi.series` over arrays, whose results are arrays; every 1000th frame raises
- `command`: the program `horus` over a folder of as many pictures

Prints resident memory after each tenth. It may grow by 4 MiB from the third tenth to the last, of which each is the median of what was
sampled, or the exit status is 1. Needs Linux and the wheel; `command` is left out without --horus.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import horus_image as hi
from horus_image import ndimage

MOST = 4.0
"""MiB by which memory may grow."""
PARTS = 10


def resident(pid: int | str = "self") -> float:
    """MiB of a process's memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def watch(work: Callable[[], object], done: Callable[[], float], pid: int | str = "self") -> tuple[float, list[float]]:
    """Seconds of some work, of which `done` tells how much there is, from 0 to 1, and the memory in each part of it."""
    samples: list[list[float]] = [[] for _ in range(PARTS)]
    over = threading.Event()

    def sample() -> None:
        while not over.wait(0.05):
            samples[min(int(done() * PARTS), PARTS - 1)].append(resident(pid))

    sampler = threading.Thread(target=sample)
    sampler.start()
    start = time.monotonic()
    try:
        work()
    finally:
        seconds = time.monotonic() - start
        over.set()
        sampler.join()
    return seconds, [statistics.median(part) if part else float("nan") for part in samples]


def jit(frames: int, threads: int, folder: Path) -> tuple[float, list[float]]:
    def smooth(image: hi.Image, sigma: float) -> hi.Image:
        return ndimage.gaussian_filter(image, sigma) + image * 0.5

    kept = hi.jit(smooth)
    counts = [0] * threads
    failures: list[BaseException] = []

    def calls(me: int) -> None:
        rng = np.random.default_rng(me)
        usual = [rng.random((16 + 4 * k, 48 - 4 * k), np.float32) for k in range(4)]
        try:
            for n in range(frames):
                if n % 20:
                    array, sigma = usual[n % 4], 1.0
                else:
                    array = rng.random(tuple(rng.integers(8, 64, 2)), np.float32)
                    sigma = float(rng.uniform(0.5, 3.0))
                array[n % 8, me % 8] = n
                result = kept(array, sigma)
                maximum = ndimage.maximum_filter(array, 3)
                if result.shape != array.shape or maximum[n % 8, me % 8] < n:
                    raise AssertionError(f"call {n} of thread {me}")
                counts[me] = n + 1
        except BaseException as error:
            failures.append(error)

    def work() -> None:
        workers = [threading.Thread(target=calls, args=(me,)) for me in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if failures:
            raise failures[0]

    return watch(work, lambda: sum(counts) / (frames * threads))


def series(frames: int, threads: int, folder: Path) -> tuple[float, list[float]]:
    names = [str(folder / f"{k}.png") for k in range(16)]
    for k, name in enumerate(names):
        hi.save(name, np.random.default_rng(k).integers(0, 255, (60, 80), np.uint8))
    outputs = [str(folder / f"out{k}.npy") for k in range(16)]
    count = 0

    def work() -> None:
        nonlocal count
        given = (names[n % 16] for n in range(frames))
        position = iter(range(frames))
        for _ in hi.series(given, lambda image: ndimage.median_filter(image, 3), save=lambda _: outputs[next(position) % 16]):
            count += 1
        assert count == frames

    return watch(work, lambda: count / frames)


def arrays(frames: int, threads: int, folder: Path) -> tuple[float, list[float]]:
    count = 0

    def work() -> None:
        nonlocal count
        rng = np.random.default_rng(0)
        frame = rng.random((60, 80), np.float32)
        while count < frames:
            first, some = count, min(1000, frames - count)

            def function(image: hi.Image, last: int = first + some - 1) -> tuple[hi.Image, float]:
                if count == last:
                    raise KeyError("the last of a thousand")
                smooth = ndimage.gaussian_filter(image, 2.0)
                return smooth, float(smooth.mean())

            try:
                for _ in hi.series((frame + np.float32(first + k) for k in range(some)), function):
                    count += 1
            except KeyError:
                count += 1

    return watch(work, lambda: count / frames)


def command(horus: Path, frames: int, folder: Path) -> tuple[float, list[float]]:
    given, taken = folder / "in", folder / "out"
    given.mkdir()
    taken.mkdir()
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 255, (60, 80), np.uint8)
    for n in range(frames):
        (given / f"{n:06}.pgm").write_bytes(b"P5\n80 60\n255\n" + np.roll(pixels, n).tobytes())
    process = subprocess.Popen([str(horus), str(given), "--out-dir", str(taken), "--quiet", "median", "3", "gauss", "2"])
    last = 0

    def done() -> float:
        nonlocal last
        # Results come in order, or nearly.
        while last < frames and (taken / f"{last:06}.png").exists():
            last += 1
        return last / frames

    told = watch(process.wait, done, process.pid)
    assert process.returncode == 0 and len(os.listdir(taken)) == frames
    return told


def main() -> int:
    programs = {"jit": jit, "series": series, "arrays": arrays}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--frames", type=int, default=86400)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--horus", type=Path)
    options = parser.parse_args()
    chosen = options.programs or [*programs, *(["command"] if options.horus else [])]
    if len(chosen) > 1:
        # Each in its own process, as what one leaves is there for the next.
        words = [sys.executable, *sys.argv[: 1 + len(sys.argv[1:]) - len(options.programs)]]
        print("| program | s |", " | ".join(f"{k + 1}/{PARTS}" for k in range(PARTS)), "| grows by |", flush=True)
        print("| --- | --- |", " --- |" * (PARTS + 1), flush=True)
        return max([subprocess.run([*words, name], check=False).returncode for name in chosen])
    [name] = chosen
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        if name == "command":
            seconds, parts = command(options.horus, options.frames, folder)
        else:
            seconds, parts = programs[name](options.frames, options.threads, folder)
    grows = parts[-1] - parts[2]
    cells = " | ".join(f"{part:.1f}" for part in parts)
    print(f"| {name} | {seconds:.0f} | {cells} | {grows:+.1f} MiB |", flush=True)
    return 0 if grows <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
