"""Programs on the arrays of Dask: one overlap for a whole chain of operations, as deep as the program reads.

Needs Dask (``pip install 'horus-image[dask]'``), and is loaded when it is asked for: ``hi.dask.map_overlap``.
"""

from __future__ import annotations

import bisect
import math
import multiprocessing
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise, product
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

try:
    import dask
    import dask.array as da
    from dask.array.core import PerformanceWarning, normalize_chunks
    from dask.base import tokenize
    from dask.highlevelgraph import HighLevelGraph
    from dask.system import CPU_COUNT
except ImportError as error:
    raise ImportError("horus_image.dask needs Dask: pip install 'horus-image[dask]'") from error

from . import _horus
from ._dtype import ready
from ._image import Array, Image, made, native
from ._session import Session, chosen_threads, current

__all__ = ["map_overlap"]

_T = TypeVar("_T")

_NAME: Final = "the array of map_overlap"
"""The array in messages of its readers."""

_AGAIN: Final = 4
"""Pixels that chunks read in all, as a multiple of those that there are, above which the caller is warned."""

_Window = tuple[slice, slice]
"""Rows and columns."""


def map_overlap(
    program: Callable[..., Image],
    *arrays: Any,
    chunks: Any = None,
    volume: bool = False,
    channels: bool = False,
    **kwargs: Any,
) -> Any:
    """Apply a program of images to arrays of Dask, chunk by chunk, with the bytes of the whole.

    The program is recorded once, on images of the full size, and what a chunk of the result reads follows from the record: filters read
    their reach, geometry its footprint; coordinates are those of the whole, and border modes apply at its borders. A task gathers just
    those pixels from the chunks around, however thin these are, and computes the whole chain for its chunk, fused. The result has the
    bytes of the program on the whole array, whatever the chunks.

    Tasks compute on their share of the cores: ``HORUS_THREADS`` or else ``OMP_NUM_THREADS`` threads, or else the cores of the process
    divided by the threads of Dask.

    Parameters
    ----------
    program : callable
        Takes an `Image` for each array and returns one. It is called here, and again by each task, perhaps in other processes. It may
        not look at values: ``image.max()`` of a chunk is not that of the whole.
    *arrays : dask.array.Array or array_like
        The last two axes are rows and columns. Axes before these hold other pictures; arrays that have any have the same.
    chunks : optional
        Chunks of the rows and columns of the result, in any form that Dask takes; by default those of the first array.
    volume : bool, optional
        The last three axes are levels, rows and columns. Levels are not divided into chunks.
    channels : bool, optional
        The last three axes are rows, columns and channels. Channels are not divided into chunks.
    **kwargs
        Passed to the program.

    Returns
    -------
    dask.array.Array

    Raises
    ------
    ValueError
        If the program looks at values; for axes or chunks that do not fit.
    TypeError
        For types that images do not have, and if the program does not return an image.

    Warns
    -----
    dask.array.PerformanceWarning
        If chunks read several times the pixels that there are, as for labels or for a halo much larger than a chunk.

    Examples
    --------
    >>> import dask.array as da
    >>> import horus_image as hi
    >>> from horus_image import ndimage
    >>> def details(image, sigma):
    ...     smooth = ndimage.gaussian_filter(image, sigma)
    ...     return ndimage.grey_closing(smooth, 5) - smooth
    >>> array = da.random.default_rng(1).random((500, 700), chunks=256)
    >>> found = hi.dask.map_overlap(details, array, sigma=2.0)
    >>> found.shape, found.chunksize
    ((500, 700), (256, 256))
    >>> bool((found.compute() == details(hi.asarray(array.compute()), 2.0).compute()).all())
    True
    """
    if not arrays:
        raise TypeError("map_overlap: no array is given")
    if volume and channels:
        raise ValueError("map_overlap: an array is a volume or has channels, not both")
    axes = _Axes(volume, channels)
    inputs = _inputs(arrays, axes)
    pictures = next((array.chunks[: -axes.count] for array in inputs if array.ndim > axes.count), ())
    kinds = tuple(_Kind(axes, array.shape[-axes.count :], array.dtype) for array in inputs)
    recorded = _Program(program, kwargs, kinds)
    with current() as session:
        result, sources = recorded.on(session, [() for _ in kinds])
        found = _Axes(result._ndim == 3, result._channels)
        grid = _grid(result, found, inputs[0].chunks[axes.rows - axes.count :][:2], kinds[0], chunks)
        windows = list(product(_ranges(grid[0]), _ranges(grid[1])))
        reads = [result[found.at(*window, slice(None))]._core.reads(sources) for window in windows]
    _warn_of_much(kinds, reads)

    token = tokenize(program, kwargs, inputs, grid, volume, channels)
    name, cuts = f"{getattr(program, '__name__', 'program')}-{token}", f"overlap-{token}"
    graph: dict[Any, Any] = {}
    places = product(range(len(grid[0])), range(len(grid[1])))
    for place, window, needed in zip(places, windows, reads, strict=True):
        parts = [_parts(array, axes, region) for array, region in zip(inputs, needed, strict=True)]
        corners = tuple(tuple(part.corner for part in of) for of in parts)
        for loop in product(*(range(len(sizes)) for sizes in pictures)):
            keys = []
            for i, (array, of) in enumerate(zip(inputs, parts, strict=True)):
                at = loop if array.ndim > axes.count else ()
                for part in of:
                    key = (array.name, *at, *axes.at(*part.block, 0))
                    if part.cut is not None:
                        piece = (cuts, i, *at, *part.block, *part.corner, *part.extent)
                        graph[piece] = (_cut, key, (..., *axes.at(*part.cut, slice(None))))
                        key = piece
                    keys.append(key)
            extents = tuple(sizes[i] for sizes, i in zip(pictures, loop, strict=True))
            graph[name, *loop, *found.at(*place, 0)] = (_Chunk(recorded, found, window, corners, extents), *keys)
    layers = HighLevelGraph.from_collections(name, graph, dependencies=inputs)
    other = () if found.count == 2 else (result.shape[0 if found.volume else 2],)
    ends = (*pictures, *found.at(*grid, other))
    return da.Array(layers, name, ends, meta=np.empty((0,) * len(ends), result.dtype))


class _Axes(NamedTuple):
    """The last axes of an array that are one image."""

    volume: bool
    channels: bool

    @property
    def count(self) -> int:
        return 2 + (self.volume or self.channels)

    @property
    def rows(self) -> int:
        """The axis of rows among these."""
        return int(self.volume)

    def at(self, row: _T, column: _T, other: _T) -> tuple[_T, ...]:
        """What belongs to rows, to columns, and to levels or channels, in the order of the axes."""
        if self.volume:
            return other, row, column
        return (row, column, other) if self.channels else (row, column)


class _Kind(NamedTuple):
    """Axes, extents and type of the pictures of an array."""

    axes: _Axes
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def image(self, session: Session, blocks: Sequence[tuple[int, int, Array]]) -> tuple[Image, _horus.Image]:
        """An image of a whole picture of which these blocks are here, and what reads them."""
        code = native(self.dtype)
        rows, columns = self.shape[self.axes.rows :][:2]
        levels = self.shape[0] if self.axes.volume else 1
        channels = self.shape[2] if self.axes.channels else 1
        planes = [(top, left, self._planes(block)) for top, left, block in blocks]
        stored = "u8" if code == "bool" else code
        source = _horus.Image.of_parts(session._core, _NAME, stored, (levels, rows, columns, channels), planes)
        core = _horus.convert(source, "bool") if code == "bool" else source
        return made(core, session, 3 if self.axes.volume else 2, self.axes.channels), source

    def _planes(self, block: Array) -> Array:
        if self.axes.channels:
            block = np.moveaxis(block, -1, 0)
        elif not self.axes.volume:
            block = block[np.newaxis]
        return np.ascontiguousarray(ready(block))


@dataclass(frozen=True)
class _Program:
    """What is computed of pictures of these kinds."""

    function: Callable[..., Image]
    kwargs: dict[str, Any]
    kinds: tuple[_Kind, ...]

    def on(self, session: Session, blocks: Sequence[Sequence[tuple[int, int, Array]]]) -> tuple[Image, list[_horus.Image]]:
        """The result, recorded, and the sources of its pixels, which live as long as it is read."""
        images, sources = zip(*(kind.image(session, of) for kind, of in zip(self.kinds, blocks, strict=True)), strict=True)
        try:
            result = self.function(*images, **self.kwargs)
        except OSError as error:
            if _NAME not in str(error):
                raise
            raise ValueError(
                "map_overlap: the program looks at values, which a part of an array does not have; "
                "compute them before, and pass them to the program"
            ) from error
        if not isinstance(result, Image):
            raise TypeError(f"map_overlap: the program returned {type(result).__name__}, not an image")
        if result._ndim < 2:
            raise ValueError("map_overlap: the program returned an image of one axis; rows and columns are needed")
        return result, list(sources)


@dataclass(frozen=True)
class _Chunk:
    """A task: computes a chunk of the result from blocks of the arrays."""

    program: _Program
    axes: _Axes
    window: _Window
    corners: tuple[tuple[tuple[int, int], ...], ...]
    """First row and column of the blocks of each array."""
    pictures: tuple[int, ...]
    """Extents of the axes before those of pictures."""

    def __call__(self, *blocks: Array) -> Array:
        found = [self._computed(at, blocks) for at in np.ndindex(self.pictures)]
        if not self.pictures:
            return found[0]
        return np.stack(found).reshape(self.pictures + found[0].shape)

    def _computed(self, at: tuple[int, ...], blocks: Sequence[Array]) -> Array:
        every = iter(blocks)
        given = [
            [(top, left, _picture(next(every), at, kind.axes.count)) for top, left in corners]
            for corners, kind in zip(self.corners, self.program.kinds, strict=True)
        ]
        with _session():
            # Only the chunk may be held when it is computed: the program would also compute what else is.
            result, sources = self.program.on(current(), given)
            result = result[self.axes.at(*self.window, slice(None))]
            pixels = result.compute()
            del sources
        return pixels


def _picture(block: Array, at: tuple[int, ...], count: int) -> Array:
    block = np.asarray(block)
    return block[at] if block.ndim > count else block


def _cut(block: Array, key: tuple[Any, ...]) -> Array:
    """A copy of a part, which does not keep its block alive."""
    return block[key].copy()


class _Part(NamedTuple):
    """A part of a block of an array."""

    block: tuple[int, int]
    corner: tuple[int, int]
    extent: tuple[int, int]
    cut: _Window | None
    """Where it lies in the block, unless it is all of it."""


def _parts(array: Any, axes: _Axes, region: Sequence[int] | None) -> list[_Part]:
    """The parts of an array's blocks that make up a region: first row and column, rows and columns."""
    if region is None:
        return []
    top, left, rows, columns = region
    first = array.ndim - axes.count + axes.rows
    along = [_overlaps(array.chunks[first], top, top + rows), _overlaps(array.chunks[first + 1], left, left + columns)]
    parts = []
    for (i, y, row, whole), (j, x, column, wide) in product(*along):
        extent = row.stop - row.start, column.stop - column.start
        parts.append(_Part((i, j), (y, x), extent, None if whole and wide else (row, column)))
    return parts


def _overlaps(sizes: Sequence[int], start: int, stop: int) -> Iterator[tuple[int, int, slice, bool]]:
    """The chunks of an axis that overlap a range: number, first index of what overlaps, where that is in the chunk, and whether it is all."""
    ends = list(accumulate(sizes))
    for i in range(bisect.bisect_right(ends, start), len(sizes)):
        begin = ends[i] - sizes[i]
        if begin >= stop:
            break
        low, high = max(start, begin), min(stop, ends[i])
        if low < high:
            yield i, low, slice(low - begin, high - begin), high - low == sizes[i]


def _ranges(sizes: Iterable[int]) -> list[slice]:
    return [slice(start, stop) for start, stop in pairwise(accumulate(sizes, initial=0))]


def _inputs(arrays: Sequence[Any], axes: _Axes) -> list[Any]:
    """The arrays, with one chunk of levels or channels, and the same chunks of pictures."""
    inputs = []
    pictures: tuple[tuple[int, ...], ...] | None = None
    for given in arrays:
        array = da.asarray(given)
        if array.ndim < axes.count:
            raise ValueError(f"map_overlap: an array of shape {array.shape} has too few axes; {axes.count} are needed")
        if any(math.isnan(extent) for extent in array.shape):
            raise ValueError("map_overlap: the sizes of the chunks are unknown; call compute_chunk_sizes() before")
        if not all(array.shape):
            raise ValueError(f"map_overlap: an array of shape {array.shape} has no pixels")
        if axes.count == 3:
            array = array.rechunk({array.ndim - 3 if axes.volume else array.ndim - 1: -1})
        before = array.ndim - axes.count
        if before and pictures is None:
            pictures = array.chunks[:before]
        elif before and pictures is not None:
            extents = tuple(map(sum, pictures))
            if array.shape[:before] != extents:
                raise ValueError(f"map_overlap: arrays hold {extents} and {array.shape[:before]} pictures")
            array = array.rechunk(dict(enumerate(pictures)))
        inputs.append(array)
    return inputs


def _grid(result: Image, found: _Axes, sizes: Any, first: _Kind, chunks: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Chunks of the rows and columns of a result."""
    extents = result.shape[found.rows :][:2]
    if chunks is None and extents == first.shape[first.axes.rows :][:2]:
        return sizes[0], sizes[1]
    if chunks is None:
        chunks = tuple(map(max, sizes))
    rows, columns = normalize_chunks(chunks, shape=extents, dtype=result.dtype)
    return rows, columns


def _warn_of_much(kinds: Sequence[_Kind], reads: Sequence[Sequence[Sequence[int] | None]]) -> None:
    for kind, regions in zip(kinds, zip(*reads, strict=True), strict=True):
        read = sum(region[2] * region[3] for region in regions if region is not None)
        rows, columns = kind.shape[kind.axes.rows :][:2]
        if read > _AGAIN * rows * columns:
            times = round(read / (rows * columns))
            message = f"map_overlap: chunks read {times} times the pixels of an array; larger chunks read fewer"
            warnings.warn(message, PerformanceWarning, stacklevel=3)


_idle: dict[int | None, list[Session]] = {}
"""Sessions that no task uses, by their number of threads."""
_lock = threading.Lock()


@contextmanager
def _session() -> Iterator[Session]:
    """A session of a task's own: evaluations of one session take turns."""
    threads = _share()
    with _lock:
        kept = _idle.setdefault(threads, [])
        session = kept.pop() if kept else None
    session = session or Session(threads=threads)
    try:
        with session:
            yield session
    finally:
        with _lock:
            _idle.setdefault(threads, []).append(session)


def _share() -> int | None:
    """The threads of a task; none where the environment names them."""
    if "HORUS_THREADS" in os.environ or chosen_threads() is not None:
        return None
    main = threading.current_thread() is threading.main_thread()
    if main and multiprocessing.parent_process() is None:
        return CPU_COUNT  # Dask computes one task after the other
    return max(1, CPU_COUNT // (dask.config.get("num_workers", None) or CPU_COUNT))


def _forget() -> None:
    """A child process has none of the threads of its parent's sessions."""
    global _idle, _lock
    _idle, _lock = {}, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
