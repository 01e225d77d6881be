"""Programs that run many times: on their own results, and on many files."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar, overload

from . import _horus
from ._files import open as opened
from ._image import Image, asarray, made
from ._session import Session, current
from .typing import Array, ArrayLike

_R = TypeVar("_R")
_Input = TypeVar("_Input", bound=str | os.PathLike[str] | ArrayLike)
_Path = TypeVar("_Path", bound=str | os.PathLike[str])


class Iterated(NamedTuple):
    """The outcome of a loop; see `iterate`."""

    state: Image | Any
    """The state after the last step: an image, or a tuple of images, as it was given."""
    steps: int
    """Number of steps made."""
    change: float | None
    """The change of the state in the last step that was measured."""
    ending: str
    """``"steps"`` if all were made, ``"converged"``, ``"diverged"`` (a change that is not finite), or ``"stopped"`` by `watch`."""


def iterate(
    step: Callable[..., Any],
    state: ArrayLike | Sequence[ArrayLike],
    steps: int,
    *,
    below: float | None = None,
    norm: str = "max",
    every: int = 10,
    watch: Callable[..., Any] | None = None,
    watch_every: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 1000,
    resume: bool = False,
) -> Iterated:
    """Repeat a step on its own result: ``state = step(state)``.

    The step is recorded once and run as often as needed, several steps planned together. One that looks at values is called each time.

    Parameters
    ----------
    step : callable
        Takes the images of the state, and returns as many, of the same shapes and types.
    state : Image, array_like or sequence of these
        The initial state.
    steps : int
        Maximum number of steps.
    below : float, optional
        End when a step changes the state by less than this.
    norm : {"max", "rms", "l2"}, optional
        The measure of change: the largest difference of a pixel, the root of the mean of squares, or of their sum.
    every : int, optional
        The change is measured after so many steps.
    watch : callable, optional
        Called with the number of steps and the images of the state after every `watch_every` steps; ends the loop by returning true.
    watch_every : int, optional
        See `watch`.
    checkpoint : path, optional
        A Zarr store to which the state is written after every `checkpoint_every` steps, while the loop continues. It must not contain a
        checkpoint, unless the loop resumes.
    checkpoint_every : int, optional
        See `checkpoint`.
    resume : bool, optional
        Continue from the last checkpoint, if there is one. Given the same `step`, initial `state` and `steps`, the result has the same bits
        as without an interruption. `steps` counts all steps, also those before. `watch` is also called for the state from which the loop
        continues, if it is due.

    Returns
    -------
    Iterated

    Examples
    --------
    Heat in a plate whose edges are kept at 0:

    >>> import numpy as np
    >>> import horus_image as hi
    >>> from horus_image import ndimage
    >>> cross = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]) / 4
    >>> hot = np.zeros((16, 16))
    >>> hot[8, 8] = 100
    >>> done = hi.iterate(lambda u: ndimage.correlate(u, cross, mode="constant"), hot, 10_000, below=1e-3)
    >>> done.ending, done.steps < 1000
    ('converged', True)
    >>> bool(done.state.max() < 0.1)
    True
    """
    several = isinstance(state, (tuple, list))
    parts: Sequence[ArrayLike] = state if isinstance(state, (tuple, list)) else (state,)
    first = [asarray(part) for part in parts]
    if not first:
        raise ValueError("iterate: the state has no image")
    session = first[0]._session

    def images(cores: Sequence[_horus.Image]) -> list[Image]:
        return [made(core, session, part._ndim, part._channels) for core, part in zip(cores, first, strict=True)]

    def called(cores: Sequence[_horus.Image]) -> list[_horus.Image]:
        found = step(*images(cores))
        parts = found if isinstance(found, (tuple, list)) else (found,)
        if not all(isinstance(part, Image) for part in parts):
            raise TypeError("iterate: a step must return images")
        return [part._core for part in parts]

    def looked(number: int, cores: Sequence[_horus.Image]) -> bool:
        assert watch is not None
        return bool(watch(number, *images(cores)))

    cores, made_steps, change, ending = _horus.iterate(
        session._core,
        [part._core for part in first],
        called,
        (steps, below, norm, every),
        None if watch is None else (looked, watch_every),
        None if checkpoint is None else (os.fspath(checkpoint), checkpoint_every, resume),
    )
    last = images(cores)
    kind = list if isinstance(state, list) else tuple
    return Iterated(kind(last) if several else last[0], made_steps, change, ending)


@overload
def series(
    inputs: Iterable[str | os.PathLike[str] | ArrayLike],
    function: Callable[[Image], Image],
    *,
    save: None = None,
    ahead: int = 3,
    threads: int = 2,
    session: Session | None = None,
) -> Iterator[Array]: ...


@overload
def series(
    inputs: Iterable[_Input],
    function: Callable[[Image], Image],
    *,
    save: Callable[[_Input], _Path],
    ahead: int = 3,
    threads: int = 2,
    session: Session | None = None,
) -> Iterator[_Path]: ...


@overload
def series(
    inputs: Iterable[_Input],
    function: Callable[[Image], Any],
    *,
    save: Callable[[_Input], str | os.PathLike[str]] | None = None,
    ahead: int = 3,
    threads: int = 2,
    session: Session | None = None,
) -> Iterator[Any]: ...


def series(
    inputs: Iterable[Any],
    function: Callable[[Image], Any],
    *,
    save: Callable[[Any], str | os.PathLike[str]] | None = None,
    ahead: int = 3,
    threads: int = 2,
    session: Session | None = None,
) -> Iterator[Any]:
    """Apply a function to many files or arrays, one after the other, reading ahead and writing behind.

    Parameters
    ----------
    inputs : iterable
        Names of files, which are read by other threads, or arrays. Taken as they are needed.
    function : callable
        Of an image, called in the order of the inputs.
    save : callable, optional
        The name of the file for the result of an input, written by another thread. Without it results are arrays.
    ahead : int, optional
        Number of inputs that are taken before they are computed, and of files that are being written. The default suits files. Of a camera,
        a result would come as many frames late: with 1, each is yielded before the next input is taken, as it is on several ranks.
    threads : int, optional
        Threads that read and write.
    session : Session, optional
        As in `asarray`.

    Yields
    ------
    ndarray or str
        For each input, in order: what the function returns, with images evaluated into arrays; with `save`, the name of its file, once
        that is written.

    Raises
    ------
    OSError
        If a file cannot be read or written. Results before it have been yielded.

    Examples
    --------
    >>> import numpy as np
    >>> import horus_image as hi
    >>> from horus_image import ndimage
    >>> frames = (np.full((8, 8), i, np.float32) for i in range(3))
    >>> [float(smooth[0, 0]) for smooth in hi.series(frames, lambda frame: ndimage.gaussian_filter(frame, 1.0) + 1)]
    [1.0, 2.0, 3.0]
    """
    if ahead < 1 or threads < 1:
        raise ValueError(f"ahead is {ahead} and threads {threads}; both must be positive")
    session = session or current()
    if session.ranks > 1:
        return _in_step(iter(inputs), function, save, session)
    return _series(iter(inputs), function, save, ahead, threads, session)


def _in_step(
    inputs: Iterator[Any],
    function: Callable[[Image], Any],
    save: Callable[[Any], str | os.PathLike[str]] | None,
    session: Session,
) -> Iterator[Any]:
    """`series` on several ranks, which read and write files together, in one order."""
    for given in inputs:
        with session:
            image = opened(given) if isinstance(given, (str, os.PathLike)) else asarray(given)
            result = function(image)
        if save is None:
            yield _evaluated(result)
            continue
        name = _named(result, given, save)
        result.save(name)
        yield name


def _named(result: Any, given: Any, save: Callable[[Any], str | os.PathLike[str]]) -> str | os.PathLike[str]:
    """The file of a result that is saved."""
    if not isinstance(result, Image):
        raise TypeError("series: a function whose results are saved must return an image")
    return save(given)


def _series(
    inputs: Iterator[Any],
    function: Callable[[Image], Any],
    save: Callable[[Any], str | os.PathLike[str]] | None,
    ahead: int,
    threads: int,
    session: Session,
) -> Iterator[Any]:
    def load(given: Any) -> Image:
        if isinstance(given, (str, os.PathLike)):
            return opened(given, session=session)
        return asarray(given, session=session)

    with ThreadPoolExecutor(threads, thread_name_prefix="horus-series") as pool:
        reading: deque[tuple[Any, Future[Image]]] = deque()
        writing: deque[tuple[Any, Future[None]]] = deque()
        try:
            more = True
            while more or reading:
                while more and len(reading) < ahead:
                    try:
                        given = next(inputs)
                    except StopIteration:
                        more = False
                        break
                    reading.append((given, pool.submit(load, given)))
                if not reading:
                    break
                given, read_ahead = reading.popleft()
                with session:
                    result = function(read_ahead.result())
                if save is None:
                    yield _evaluated(result)
                    continue
                name = _named(result, given, save)
                result.start()
                writing.append((name, pool.submit(result.save, name)))
                while len(writing) >= ahead:
                    yield _written(writing.popleft())
            while writing:
                yield _written(writing.popleft())
        finally:
            for _, unread in reading:
                unread.cancel()
            for _, unwritten in writing:
                unwritten.cancel()


def _written(done: tuple[Any, Future[None]]) -> Any:
    name, future = done
    future.result()
    return name


def _evaluated(result: Any) -> Any:
    if isinstance(result, Image):
        return result.compute()
    if isinstance(result, (tuple, list)):
        return type(result)(_evaluated(part) for part in result)
    return result
