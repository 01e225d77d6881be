"""Ranks: the processes that ``mpirun`` or ``srun`` started, found by mpi4py."""

from __future__ import annotations

import atexit
import math
import multiprocessing
import os
import sys
import time
import warnings
from types import TracebackType
from typing import Any, Final, Protocol

from . import _horus

_LAUNCHED: Final = ("OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_SIZE")
"""Variables of launchers: Open MPI and PRRTE, PMI-1 and PMI-2 (MPICH, Slurm), Intel MPI, MVAPICH."""

_SIZES: Final = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
"""Those that name the number of ranks."""

_HEAD_START: Final = 0.3
"""Seconds for which other ranks wait for rank 0 to print an exception that all raise."""

_LONG: Final = 10.0
"""Seconds after which it is said that other ranks do not come."""

_BRIEF: Final = 1e-4
"""Seconds between two looks."""

_process = os.getpid()
_joined: Any = None
_place = 0, 1
_previous = sys.excepthook
_warned = False


class Communicator(Protocol):
    """The part of ``mpi4py.MPI.Intracomm`` that a session needs by itself."""

    def Get_size(self) -> int:
        """The number of ranks."""
        ...


class _Alone:
    def Get_size(self) -> int:
        return 1


ALONE: Final[Communicator] = _Alone()
"""No other ranks, whoever started this process."""


def found() -> Communicator:
    """All ranks, if a launcher started this process as one of several, else this process alone."""
    child = os.getpid() != _process or multiprocessing.parent_process() is not None
    if child or not any(name in os.environ for name in _LAUNCHED):
        return ALONE
    size = next((os.environ[name] for name in _SIZES if name in os.environ), "")
    if size == "1":
        return ALONE
    try:
        from mpi4py import MPI
    except ImportError as error:
        global _warned
        if not _warned:
            _warned = True
            each = "each process runs the whole program by itself (pip install 'horus-image[mpi]' to share the work)"
            warnings.warn(f"started on {size or 'several'} ranks without mpi4py ({error}): {each}", RuntimeWarning, stacklevel=4)
        return ALONE
    world: Communicator = MPI.COMM_WORLD
    return world


def joined(comm: Communicator) -> Any:
    """The communicator, whose ranks end together from now on; none if it has one rank."""
    if not callable(getattr(comm, "Get_size", None)):
        raise TypeError(f"comm is {comm!r}; it must be a communicator of mpi4py")
    if comm.Get_size() == 1:
        return None
    global _joined, _place, _previous
    if _joined is None:
        _previous, sys.excepthook = sys.excepthook, _ended
        atexit.register(_leave)
    _joined = comm
    _place = _joined.Get_rank(), _joined.Get_size()
    _meet(comm)
    return comm


def _meet(comm: Any) -> None:
    """Wait until all ranks open the session, and say so if that takes long: some may never do."""
    met, until = comm.Ibarrier(), time.monotonic() + _LONG
    while not met.Test():
        time.sleep(_BRIEF)
        if time.monotonic() > until:
            until = math.inf
            alone = "every rank opens a session, or each computes alone with comm=MPI.COMM_SELF"
            warnings.warn(f"rank {comm.Get_rank()} waits for other ranks to open a session: {alone}", RuntimeWarning, stacklevel=4)


def _leave() -> None:
    if os.getpid() == _process:
        _horus.leave_ranks()


def _ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the exception that ends this rank, and end all others, which would wait for it."""
    if os.getpid() != _process:
        _previous(kind, error, trace)
        return
    rank, size = _place
    if rank > 0:
        time.sleep(_HEAD_START)
    print(f"rank {rank} of {size}:", file=sys.stderr)
    _previous(kind, error, trace)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    try:
        _joined.Abort(1)
    except Exception:
        # The program has freed it.
        sys.modules["mpi4py.MPI"].COMM_WORLD.Abort(1)
