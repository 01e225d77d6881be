"""Sessions: on which device images are computed."""

from __future__ import annotations

import atexit
import contextvars
import logging
import os
import sys
import threading
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _horus, _nvrtc, _ranks

if TYPE_CHECKING:
    from ._image import Image
    from .typing import ArrayLike


_logger = logging.getLogger("horus_image")


_of_parts: contextvars.ContextVar[bool] = contextvars.ContextVar("horus_image_of_parts", default=False)


def of_parts() -> bool:
    """Returns true while a program is recorded on images of which there are only parts: no value of theirs can be read."""
    return _of_parts.get()


@contextmanager
def recording_parts() -> Iterator[None]:
    """Programs recorded inside are of images of which there are only parts."""
    token = _of_parts.set(True)
    try:
        yield
    finally:
        _of_parts.reset(token)


def _log(level: int, text: str) -> None:
    _logger.log(level, "%s", text)


class MemoryInUse(NamedTuple):
    """Bytes of one kind of memory."""

    current: int
    """Bytes of images now; memory handed over to arrays does not count."""
    peak: int
    """The most that they took at a time."""
    kept: int
    """Bytes kept for later images, on the host."""


class MemoryUse(NamedTuple):
    """Memory use of a session: of the host, and of each GPU."""

    host: MemoryInUse
    devices: list[MemoryInUse]


class Session:
    """A device and the images computed on it. Use it in a ``with`` statement: images made inside belong to it.

    Parameters
    ----------
    device : str, optional
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, several devices such as ``"cuda:all"`` and ``"cuda:0+cpu"``, or ``"auto"``: the GPU or the
        CPU, whichever is predicted to finish the first evaluation sooner. The default is the value of ``HORUS_DEVICE``, else ``"auto"``.
    threads : int, optional
        Threads of the CPU; by default ``HORUS_THREADS``, else ``OMP_NUM_THREADS``, which Dask, joblib and schedulers of clusters set, else
        one per core that the process may use.
    memory : int or str, optional
        Bytes that images may take, or a number with K, M or G: on the host and, from the first session that says so on, on each GPU.
    explain : bool, optional
        Keep the text of each plan, for `explain`, and the time of each step, for `report`.
    comm : mpi4py.MPI.Intracomm, optional
        The ranks that compute together; by default all that ``mpirun`` or ``srun`` started, if there are several and mpi4py is
        installed. Every rank opens the session, gives the same arrays and reads the same results. ``MPI.COMM_SELF`` computes alone.

    Examples
    --------
    >>> import horus_image as hi
    >>> with hi.session(device="cpu", threads=2) as session:
    ...     image = hi.asarray([[1.0, 2.0], [3.0, 4.0]])
    ...     (image * 2).compute().tolist()
    [[2.0, 4.0], [6.0, 8.0]]
    """

    __slots__ = ("_core", "_explains", "_gpu", "_programs", "_tokens")

    def __init__(
        self,
        device: str | None = None,
        *,
        threads: int | None = None,
        memory: int | str | None = None,
        explain: bool = False,
        comm: _ranks.Communicator | None = None,
    ) -> None:
        _nvrtc.announce()
        threads = chosen_threads() if threads is None else threads
        _horus.log_to(_log, _logger.getEffectiveLevel())
        size = None if memory is None else _bytes(memory)
        if size is not None and isinstance(device, str) and device.startswith("cuda"):
            os.environ["HORUS_GPU_MEMORY"] = str(size)
        ranks = _ranks.joined(_ranks.found() if comm is None else comm)
        self._core = _horus.Session(device, threads, size, explain, ranks)
        self._gpu: int | None = None
        self._explains = explain
        self._programs: dict[Hashable, Any] = {}
        self._tokens: list[contextvars.Token[Session | None]] = []

    def __enter__(self) -> Session:
        self._tokens.append(_current.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._tokens.pop())

    @property
    def device(self) -> str:
        """The device, as Horus names it; it may not be chosen before the first evaluation."""
        return self._core.device()

    @property
    def rank(self) -> int:
        """The number of this rank, from 0 on: 0 without other ranks. Print, and write files of your own, on one of them."""
        return self._core.ranks()[0]

    @property
    def ranks(self) -> int:
        """The number of ranks that compute together."""
        return self._core.ranks()[1]

    def asarray(self, array: ArrayLike, *, channels: bool = False, copy: bool = True) -> Image:
        """An image of this session; see `horus_image.asarray`."""
        from ._image import asarray

        return asarray(array, channels=channels, session=self, copy=copy)

    def open(
        self, path: str | os.PathLike[str], *, page: int | None = None, volume: bool = False, size: int = 0
    ) -> Image:
        """A picture as an image of this session; see `horus_image.open`."""
        from ._files import open as opened

        return opened(path, page=page, volume=volume, size=size, session=self)

    def evaluate(self) -> None:
        """Compute every image that the program still holds."""
        self._core.evaluate()

    def start(self) -> None:
        """Start to compute every image that the program still holds, and return; reading one waits."""
        self._core.start()

    def memory(self) -> MemoryUse:
        """Bytes that images take of the host's memory, and of each GPU's.

        Examples
        --------
        >>> import horus_image as hi
        >>> with hi.session(device="cpu") as session:
        ...     image = hi.asarray([[1.0, 2.0]]) * 2
        ...     _ = image.compute()
        ...     use = session.memory().host
        ...     use.peak >= use.current > 0
        True
        """
        host, *devices = (MemoryInUse(*used) for used in self._core.memory())
        return MemoryUse(host, devices)

    def trim(self) -> None:
        """Return memory kept for later images to the system. Images stay."""
        self._core.trim()

    def explain(self) -> str:
        """The plans made since the last call: steps, why each is there, and how long it is predicted to take.

        Raises
        ------
        ValueError
            If the session was opened without ``explain=True``.
        """
        if not self._explains:
            raise ValueError("the session keeps no plans; open it with session(explain=True)")
        return "\n".join(self._core.plans())

    def drawing(self) -> str:
        """The programs of the first 64 plans, each beside the launches and transfers that it became, as SVG. Empty before the first plan.

        Raises
        ------
        ValueError
            If the session was opened without ``explain=True``.

        Examples
        --------
        >>> import horus_image as hi
        >>> from horus_image import ndimage
        >>> with hi.session(device="cpu", explain=True) as session:
        ...     smooth = ndimage.gaussian_filter(hi.asarray([[1.0, 2.0]]), 1.0)
        ...     _ = (smooth * 2).compute()
        ...     drawing = session.drawing()
        >>> drawing.startswith("<svg") and "As computed" in drawing
        True
        """
        if not self._explains:
            raise ValueError("the session keeps no plans; open it with session(explain=True)")
        return self._core.drawing()

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        images: Mapping[str, ArrayLike] | None = None,
        beside: str | os.PathLike[str] | None = None,
    ) -> None:
        """Write a page of HTML, which needs no other file: the first 64 programs and what they became, a timeline of the longest steps so
        far, predicted and measured, memory over time, and what was moved, and why. Steps have the names and lines of the functions that
        the program called.

        Parameters
        ----------
        path : path_like
            The file to write.
        images : mapping of str to array_like, optional
            Images to show in the page, by name. They are evaluated after the page was made, which does not tell of that.
        beside : path_like, optional
            The page of another run, which is shown on the left side, below a table of the times and memory of both.

        Raises
        ------
        ValueError
            If the session was opened without ``explain=True``, or `beside` is no such page.

        Examples
        --------
        >>> import os, tempfile
        >>> import horus_image as hi
        >>> with hi.session(device="cpu", explain=True) as session:
        ...     doubled = (hi.asarray([[1.0, 2.0]]) * 2).compute()
        ...     session.report(os.path.join(tempfile.mkdtemp(), "run.html"))
        """
        if not self._explains:
            raise ValueError("the session keeps no plans; open it with session(explain=True)")
        from ._image import asarray
        from ._show import thumbnail

        title = " ".join(sys.argv).strip() or "Horus"
        page = self._core.report(title)
        pictures = [(name, thumbnail(asarray(image, session=self))) for name, image in (images or {}).items()]
        if self.rank == 0:
            earlier = None if beside is None else Path(beside).read_text(encoding="utf-8")
            page = self._core.complete_report(page, pictures, earlier)
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)

    def __repr__(self) -> str:
        return f"<horus_image.Session on {self.device}>"


def session(
    device: str | None = None,
    *,
    threads: int | None = None,
    memory: int | str | None = None,
    explain: bool = False,
    comm: _ranks.Communicator | None = None,
) -> Session:
    """Open a session; see `Session`."""
    return Session(device, threads=threads, memory=memory, explain=explain, comm=comm)


_current: contextvars.ContextVar[Session | None] = contextvars.ContextVar("horus_image_session", default=None)
_default: Session | None = None
_lock = threading.Lock()


def inside() -> Session | None:
    """The session of the ``with`` statement that this is called in, if it is in one."""
    return _current.get()


def current() -> Session:
    """The session of the ``with`` statement that this is called in, else one that is opened at first use."""
    inside = _current.get()
    if inside is not None:
        return inside
    global _default
    if _default is None:
        with _lock:
            if _default is None:
                _default = Session(comm=_ranks.ALONE)
    return _default


def _forget() -> None:
    """A child process has none of the threads of its parent's session."""
    global _default, _lock
    _default = None
    _lock = threading.Lock()
    _current.set(None)
    _horus.forget_calls()
    from ._foreign import forget

    forget()


atexit.register(_horus.end_calls)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def chosen_threads() -> int | None:
    """The number of threads that the environment names; none if Horus chooses it."""
    if "HORUS_THREADS" in os.environ:
        return None  # read, and checked, with all settings
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) else None


def _bytes(memory: int | str) -> int:
    """A number of bytes, or one with K, M or G."""
    if isinstance(memory, str):
        factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(memory[-1:].upper(), 0)
        text = memory[:-1] if factor else memory
        if not text.isdecimal():
            raise ValueError(f"memory is {memory!r}; expected bytes, or a number with K, M or G")
        return int(text) * (factor or 1)
    if memory <= 0:
        raise ValueError(f"memory is {memory}; it must be positive")
    return memory
