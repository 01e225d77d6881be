#!/usr/bin/env python3
"""A Gaussian of sigma 3 (19 taps) over a picture larger than memory: libvips and dask-image, as whole processes.

    python benches/large_peers.py vips|vips-integer|dask IN OUT [--threads N]

IN is a TIFF file for libvips, an npy file (read through a memory map) for dask-image; OUT is written as 512x512 tiles
without compression, or as npy. Prints seconds and the largest resident memory. Horus beside it:

    horus IN OUT --tile 512 gauss 3 --threads N

libvips: `convsep` repeats edges, and rounds in between with `vips-integer`; dask-image: scipy's `gaussian_filter` in f32 on
chunks of 4096x4096 with the rows and columns around them, mode `reflect`.
"""

import argparse
import os
import resource
import time


def taps():
    import numpy as np

    k = np.exp(-0.5 * (np.arange(-9, 10) / 3.0) ** 2)
    return k / k.sum()


def vips(source, target, threads, integer):
    os.environ["VIPS_CONCURRENCY"] = str(threads)
    import pyvips

    image = pyvips.Image.new_from_file(source, access="sequential")
    if integer:
        k = (taps() * 4096).round()
        mask = pyvips.Image.new_from_array([k.tolist()], scale=float(k.sum()))
        image = image.convsep(mask, precision="integer")
    else:
        mask = pyvips.Image.new_from_array([taps().tolist()])
        image = image.convsep(mask, precision="float").rint().cast("uchar")
    image.tiffsave(target, tile=True, tile_width=512, tile_height=512, bigtiff=True)


def dask(source, target, threads):
    import dask
    import dask.array as da
    import numpy as np
    from dask_image.ndfilters import gaussian_filter

    dask.config.set(scheduler="threads", num_workers=threads)
    whole = np.load(source, mmap_mode="r")
    image = da.from_array(whole, chunks=4096).astype(np.float32)
    smooth = da.rint(gaussian_filter(image, 3, truncate=3.0)).astype(np.uint8)
    out = np.lib.format.open_memmap(target, mode="w+", dtype=np.uint8, shape=whole.shape)
    da.store(smooth, out, lock=False)
    out.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["vips", "vips-integer", "dask"])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    o = parser.parse_args()
    start = time.perf_counter()
    if o.peer == "dask":
        dask(o.source, o.target, o.threads)
    else:
        vips(o.source, o.target, o.threads, o.peer == "vips-integer")
    took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{o.peer}, {o.threads} threads: {took:.2f} s, at most {peak:.0f} MiB resident")


if __name__ == "__main__":
    main()
