"""Programs that `test_ranks.py` runs under mpirun: `ranks.py JOB [FOLDER]`."""

from __future__ import annotations

import os
import pathlib
import signal
import sys

import numpy as np
from mpi4py import MPI

import horus_image as hi
from horus_image import filters, ndimage

world = MPI.COMM_WORLD
photo = (np.random.default_rng(1).random((150, 130)) * 255).astype(np.uint8)


def results(folder: pathlib.Path) -> dict[str, np.ndarray]:
    """Arrays that a program computes and reads back from its files."""
    name = folder / "photo.npy"
    image = hi.open(name)
    smooth = ndimage.gaussian_filter(image.astype("float32"), 2.0)
    edges = ndimage.sobel(smooth)
    found = {
        "chain": (np.hypot(edges, smooth) / 3 + image).compute(),
        "turned": ndimage.rotate(smooth, 30.0, reshape=False, order=1).compute(),
        "median": ndimage.median_filter(image, 5).compute(),
        "of an array": ndimage.grey_closing(photo, 9),
        "numbers": np.array([smooth.mean(), smooth.var(), float(image.max()), smooth.sum()]),
        "labels": np.asarray(ndimage.label(smooth > 128)[0]),
        "lines": filters.convrot(image.luminance(), theta_step=60.0, sigma_u=[3.0], sigma_v=[1.0]).compute(),
        "regions": hi.asarray(photo)[3:-5, ::2].compute(),
    }
    with hi.within(1e-4):
        found["within"] = ndimage.correlate(smooth, np.outer(np.hanning(31), np.hanning(31))).compute()
    twice = hi.jit(lambda x: ndimage.uniform_filter(x, 5) * 2.0)
    for k in range(3):
        found[f"jit {k}"] = np.asarray(twice(photo + np.uint8(k)))
        found[f"kept {k}"] = ndimage.uniform_filter(photo + np.uint8(k), 7)
    loop = hi.iterate(lambda u: ndimage.uniform_filter(u, 3), photo.astype(np.float32), 500, below=1e-1)
    found["loop"] = np.append(np.asarray(loop.state).ravel(), loop.steps)
    smooth.start()
    found["beside"] = (smooth + 1).compute()
    for result, file in [(image, "same.png"), (edges, "edges.npy"), (smooth / 255, "smooth.tif")]:
        result.save(folder / file)
        found[file] = np.asarray(hi.open(folder / file))
    hi.save(folder / "smooth.zarr", smooth)
    found["store"] = np.asarray(hi.open(folder / "smooth.zarr"))
    names = list(hi.series([name, name], lambda i: i * 2, save=lambda _: str(folder / "twice.npy")))
    found["series"] = np.asarray(hi.open(names[1]))
    return found


def same(folder: pathlib.Path) -> None:
    with hi.session(device="cpu", threads=1) as session:
        assert (session.rank, session.ranks) == (world.Get_rank(), world.Get_size())
        together = results(folder)
    own = folder / f"own{world.Get_rank()}"
    own.mkdir()
    np.save(own / "photo.npy", photo)
    alone = results(own)  # outside of a session of ranks
    assert together.keys() == alone.keys()
    for name, array in alone.items():
        other = together[name]
        assert (array.dtype, array.shape) == (other.dtype, other.shape), name
        assert array.tobytes() == other.tobytes(), name


def some(folder: pathlib.Path) -> None:
    """Two groups of ranks compute different programs, and an error that all catch is no end."""
    group = world.Split(world.Get_rank() % 2)
    with hi.session(device="cpu", threads=1, comm=group) as session:
        assert session.ranks == group.Get_size()
        for k in range(1 + world.Get_rank() % 2):
            assert (ndimage.uniform_filter(photo, 3 + k) >= 0).all()
        try:
            hi.open(folder / "missing.png")
        except OSError as error:
            assert "missing.png" in str(error)
        else:
            raise AssertionError("it was opened")
    world.Barrier()


def one_raises(folder: pathlib.Path) -> None:
    with hi.session(device="cpu", threads=1):
        ndimage.gaussian_filter(photo, 1.0)
        if world.Get_rank() == 1:
            raise KeyError("of rank 1")
        ndimage.gaussian_filter(photo, 2.0)


def all_raise(folder: pathlib.Path) -> None:
    with hi.session(device="cpu", threads=1):
        hi.open(folder / "missing.png")


def other_arrays(folder: pathlib.Path) -> None:
    with hi.session(device="cpu", threads=1):
        ndimage.gaussian_filter(photo + np.uint8(world.Get_rank() == 2), 1.0)


def one_ends(folder: pathlib.Path) -> None:
    with hi.session(device="cpu", threads=1):
        if world.Get_rank() == 2:
            sys.exit(0)
        ndimage.gaussian_filter(photo, 1.0)


def one_is_stopped(folder: pathlib.Path) -> None:
    with hi.session(device="cpu", threads=1):
        if world.Get_rank() == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        ndimage.gaussian_filter(photo, 1.0)


if __name__ == "__main__":
    globals()[sys.argv[1]](pathlib.Path(sys.argv[2]))
