"""OME-Zarr pyramids of 30 planes by Horus and by ngff-zarr with dask-image's filters and with ITK-WASM.

    python benches/pyramids.py SIDE FOLDER [METHOD...]

Needs horus-image, ngff-zarr, dask-image and scipy. Each method runs in a process of its own and writes five sizes of a store of `uint8`; printed are the
median, the fastest and the slowest of REPEATS runs (3), with imports, and the largest resident memory.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

SOURCE = "source.zarr"
RESULT = "pyramid.zarr"
SMALLER = 4


def source(side: int) -> None:
    """Blobs and grain."""
    import numpy as np
    import zarr
    from scipy.ndimage import gaussian_filter

    if os.path.exists(SOURCE) and zarr.open(SOURCE, mode="r").shape == (30, side, side):
        return
    shutil.rmtree(SOURCE, ignore_errors=True)
    axes = {"shape": (30, side, side), "chunks": (1, 1024, 1024), "dimension_names": ("z", "y", "x")}
    array = zarr.create_array(SOURCE, dtype="u1", **axes)
    rng = np.random.default_rng(0)
    for z in range(30):
        blobs = gaussian_filter(rng.random((side // 8, side // 8)), 4)
        blobs = np.kron((blobs - blobs.min()) / np.ptp(blobs) * 200, np.ones((8, 8)))
        array[z] = (blobs + rng.random((side, side)) * 20).astype("u1")


def horus(memory: str) -> None:
    import horus_image as hi

    with hi.session(device="cpu", threads=2, memory=memory):
        hi.open(SOURCE, volume=True).save(RESULT, sizes=SMALLER + 1, tile=(1024, 1024))


def ngff(method: str) -> None:
    import dask
    import dask.array as da
    import ngff_zarr

    dask.config.set(scheduler="threads", num_workers=2)
    image = ngff_zarr.to_ngff_image(da.from_zarr(SOURCE), dims=("z", "y", "x"))
    factors = [{"z": 1, "y": 2**k, "x": 2**k} for k in range(1, SMALLER + 1)]
    chunks = {"z": 1, "y": 1024, "x": 1024}
    methods = ngff_zarr.Methods
    sizes = ngff_zarr.to_multiscales(image, scale_factors=factors, method=getattr(methods, method), chunks=chunks)
    ngff_zarr.to_ngff_zarr(RESULT, sizes, version="0.5")


METHODS: dict[str, Callable[[], None]] = {
    "horus": lambda: horus("16G"),
    "horus in 1 GiB": lambda: horus("1G"),
    "dask-image": lambda: ngff("DASK_IMAGE_GAUSSIAN"),
    "itkwasm gaussian": lambda: ngff("ITKWASM_GAUSSIAN"),
    "itkwasm bin shrink": lambda: ngff("ITKWASM_BIN_SHRINK"),
}


def run(method: str) -> None:
    shutil.rmtree(RESULT, ignore_errors=True)
    start = time.perf_counter()
    METHODS[method]()
    seconds = time.perf_counter() - start
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def main() -> None:
    if sys.argv[1] == "--run":
        run(sys.argv[2])
        return
    script = os.path.abspath(__file__)
    os.makedirs(sys.argv[2], exist_ok=True)
    os.chdir(sys.argv[2])
    source(int(sys.argv[1]))
    for method in sys.argv[3:] or METHODS:
        command = [sys.executable, script, "--run", method]
        runs = []
        for _ in range(int(os.environ.get("REPEATS", "3"))):
            told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            runs.append(json.loads(told.splitlines()[-1]))
        times = sorted(seconds for seconds, _ in runs)
        memory = max(memory for _, memory in runs)
        print(f"{method}: {times[len(times) // 2]:.1f} s ({times[0]:.1f} to {times[-1]:.1f}), {memory:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
