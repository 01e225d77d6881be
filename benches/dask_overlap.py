#!/usr/bin/env python3
"""Five filters of a large array with Dask: `horus_image.dask.map_overlap` beside dask-image.

    python benches/dask_overlap.py --size 20000 --folder /tmp/large --repeat 3
    python benches/dask_overlap.py --size 30000 --folder /tmp/large --by cluster worker

A Gaussian, a maximum and a minimum, a mean and a Sobel filter of `float32`. Rows name the library, the chunks, where the array
comes from and goes to - arrays of NumPy, or Zarr stores without compression -, and who computes: threads of Dask, the
processes of a `LocalCluster` of one thread each (`cluster`), or one process with all threads (`worker`). Each run has a process of its own. CPU seconds are those of this process and its
children. Its memory is their peak above that before the run, for each thread; arrays of NumPy are there before. The row `region` has the store itself given to
`map_overlap`, of which each task reads its region, instead of an array of Dask.

All results of `horus_image` must have equal bytes, and those of dask-image be close to them.

Needs `pip install horus_image-*.whl 'dask[array]' distributed zarr dask-image psutil`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
import zarr

CHUNKS = {"1024": (1024, 1024), "2048": (2048, 2048), "512x8192": (512, 8192)}
ROWS = [
    ("horus", "1024", "numpy", "threads"),
    ("horus", "2048", "numpy", "threads"),
    ("horus", "512x8192", "numpy", "threads"),
    ("dask-image", "2048", "numpy", "threads"),
    ("horus", "2048", "zarr", "threads"),
    ("region", "2048", "zarr", "threads"),
    ("dask-image", "2048", "zarr", "threads"),
    *((library, chunks, "zarr", "cluster") for library in ("horus", "region") for chunks in CHUNKS),
    ("dask-image", "2048", "zarr", "cluster"),
    ("horus", "2048", "zarr", "worker"),
    ("region", "2048", "zarr", "worker"),
    ("dask-image", "2048", "zarr", "worker"),
]


def program(image: Any) -> Any:
    from horus_image import ndimage

    smooth = ndimage.gaussian_filter(image, 2.0)
    closed = ndimage.minimum_filter(ndimage.maximum_filter(smooth, 5), 5)
    return ndimage.sobel(ndimage.uniform_filter(closed, 7), 0)


def of_horus(source: Any, chunks: tuple[int, int]) -> da.Array:
    import horus_image as hi

    return hi.dask.map_overlap(program, da.from_array(source, chunks=chunks, name=False))


def of_region(source: Any, chunks: tuple[int, int]) -> da.Array:
    import horus_image as hi

    return hi.dask.map_overlap(program, source, chunks=chunks)


def of_dask_image(source: Any, chunks: tuple[int, int]) -> da.Array:
    from dask_image import ndfilters

    smooth = ndfilters.gaussian_filter(da.from_array(source, chunks=chunks, name=False), 2.0, mode="reflect")
    closed = ndfilters.minimum_filter(ndfilters.maximum_filter(smooth, 5, mode="reflect"), 5, mode="reflect")
    return ndfilters.sobel(ndfilters.uniform_filter(closed, 7, mode="reflect"), 0, mode="reflect")


LIBRARIES = {"horus": of_horus, "region": of_region, "dask-image": of_dask_image}


class Use(threading.Thread):
    """The largest resident memory of this process and its children, and their CPU time, from here on."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
        self.before = self.peak = self.resident()
        self.start_seconds, self.start_cpu = time.perf_counter(), self.cpu()

    def each(self, number: Callable[[psutil.Process], float]) -> float:
        total = 0.0
        for process in self.processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                total += number(process)
        return total

    def resident(self) -> float:
        return self.each(lambda process: process.memory_info().rss)

    def cpu(self) -> float:
        """Seconds, with those of children that have ended."""
        return self.each(lambda process: sum(process.cpu_times()[:4]))

    def run(self) -> None:
        while True:
            self.peak = max(self.peak, self.resident())
            time.sleep(0.02)

    def so_far(self, threads: int) -> dict[str, float]:
        seconds, cpu = time.perf_counter() - self.start_seconds, self.cpu() - self.start_cpu
        return {"seconds": seconds, "cpu": cpu, "megabytes": (self.peak - self.before) / threads / 1e6}


def stored(path: Path, shape: tuple[int, ...]) -> Any:
    """A store whose chunks are written as they are; else Zarr compares each with an empty one."""
    how = {"write_empty_chunks": True}
    return zarr.create_array(path, shape=shape, chunks=(512, 512), dtype="f4", compressors=None, overwrite=True, config=how)


def one(row: tuple[str, str, str, str], threads: int, folder: Path) -> dict[str, Any]:
    library, chunks, kind, scheduler = row
    make, size = LIBRARIES[library], CHUNKS[chunks]
    source: Any = zarr.open_array(folder / "source.zarr", mode="r")
    result: Any = stored(folder / "result.zarr", source.shape)
    store = result
    if kind == "numpy":
        source, store = source[:], np.zeros(source.shape, np.float32)
        store += 1  # all pages are there
    client = None
    if scheduler != "threads":
        from distributed import Client, LocalCluster

        workers, each = (threads, 1) if scheduler == "cluster" else (1, threads)
        client = Client(LocalCluster(n_workers=workers, threads_per_worker=each, dashboard_address=None))
    with dask.config.set(num_workers=threads, **({} if client else {"scheduler": "threads"})):
        small = stored(folder / "small.zarr", (4 * 512, 4 * 512))
        da.store(make(small, (512, 512)), stored(folder / "small_result.zarr", small.shape), lock=False)  # loads what is loaded once
        use = Use()
        use.start()
        da.store(make(source, size), store, lock=False)
        used = use.so_far(threads)
    if client:
        client.close()
    if kind == "numpy":
        result[:] = store
    digest = hashlib.sha256()
    for top in range(0, source.shape[0], 512):
        digest.update(np.ascontiguousarray(result[top : top + 512]))
    return {**used, "sha256": digest.hexdigest()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--by", nargs="+", choices=["threads", "cluster", "worker"], default=["threads", "cluster", "worker"])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--one", nargs=4, metavar=("LIBRARY", "CHUNKS", "KIND", "SCHEDULER"))
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(tuple(args.one), args.threads, args.folder)))
        return
    args.folder.mkdir(parents=True, exist_ok=True)
    shape = (args.size, args.size)
    numbers = da.random.default_rng(1).random(shape, chunks=2048, dtype="f4")
    da.store(numbers, stored(args.folder / "source.zarr", shape), lock=False)
    rows = [row for row in ROWS if row[3] in args.by]
    runs: dict[tuple[str, ...], list[dict[str, Any]]] = {row: [] for row in rows}
    difference = 0.0
    for _ in range(args.repeat):
        for row in rows:
            command = [sys.executable, __file__, "--folder", str(args.folder), "--threads", str(args.threads), "--one", *row]
            found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            runs[row].append(json.loads(found.splitlines()[-1]))
            band = zarr.open_array(args.folder / "result.zarr", mode="r")[:512]
            if row[0] == "dask-image":
                difference = max(difference, float(np.abs(band - ours).max()))
            else:
                ours = band
    shutil.rmtree(args.folder)
    print("| | chunks | from, to | by | seconds | CPU seconds | MB a thread | of dask-image | of its CPU |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    least = {row: [min(run[of] for run in every) for of in ("seconds", "cpu", "megabytes")] for row, every in runs.items()}
    for row, (seconds, cpu, memory) in least.items():
        library, chunks, kind, scheduler = row
        wall, work, _ = least["dask-image", "2048", kind, scheduler]
        found = f"{seconds:.1f} | {cpu:.1f} | {memory:.0f} | {wall / seconds:.1f} | {work / cpu:.1f}"
        print(f"| {library} | {chunks} | {kind} | {scheduler} | {found} |")
    print(f"\nlargest difference of the first rows from dask-image: {difference:.1e}")
    if len({run["sha256"] for row, of in runs.items() for run in of if row[0] != "dask-image"}) != 1:
        sys.exit("the results of horus_image differ")
    print("the results of horus_image have equal bytes")


if __name__ == "__main__":
    main()
