"""Programs on the arrays of Dask: one overlap for a whole chain of operations, as deep as the program reads. Statistics of zones.

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
from dataclasses import dataclass, replace
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
from ._foreign import is_on_gpu, on_host
from ._image import Array, Image, made, native
from ._ranks import ALONE
from ._session import Session, chosen_threads, current, recording_parts
from ._zonal import BAND, STATISTICS, Zones, checked, entered, measured, table

__all__ = ["map_overlap", "zonal_statistics"]

_T = TypeVar("_T")

_NAME: Final = "the array of map_overlap"
"""The array in messages of its readers."""

_AGAIN: Final = 4
"""Pixels that chunks read in all, as a multiple of those that there are, above which the caller is warned."""

_BAND: Final = 1 << 20
"""Bytes of a band, at least: the rows of a chunk that a task computes at a time. What is between its kernels stays in caches."""
_DEEPER: Final = 4
"""A band has at least so many times the rows that it reads beyond its own, which are computed again for the next one."""

_Window = tuple[slice, slice]
"""Rows and columns."""
_Region = Sequence[int]
"""First row, first column, rows and columns."""


def map_overlap(
    program: Callable[..., Image],
    *arrays: Any,
    chunks: Any = None,
    volume: bool = False,
    channels: bool = False,
    **kwargs: Any,
) -> da.Array:
    """Apply a program of images to arrays of Dask, chunk by chunk, with the bytes of the whole.

    The program is recorded once, on images of the full size, and what a chunk of the result reads follows from the record: filters read
    their reach, geometry its footprint; coordinates are those of the whole, and border modes apply at its borders. A task gathers just
    those pixels from the chunks around, however thin these are, and computes the whole chain for its chunk, fused. The result has the
    bytes of the program on the whole array, whatever the chunks.

    Tasks compute on their share of the cores: ``HORUS_THREADS`` or else ``OMP_NUM_THREADS`` threads, or else the cores of the process
    divided by the threads of Dask, as ``dask.config`` has them (``num_workers``).

    Parameters
    ----------
    program : callable
        Takes an `Image` for each array and returns one. It is called here, and again by each task, perhaps in other processes. It may
        not look at values: ``image.max()`` of a chunk is not that of the whole.
    *arrays : dask.array.Array, array_like or store
        The last two axes are rows and columns. Axes before these hold other pictures; arrays that have any have the same. Of a store - of
        Zarr or HDF5, or anything else with a shape, a type and slices - each task reads what it needs by itself: nothing is kept for, or
        sent to, the neighbours of a chunk, as it is of an array of Dask. It reads the rows of a few chunks of the store at a time.
        Chunks of CuPy are computed on their GPU, and make a result of such chunks: pixels pass through the host's memory.
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
    pictures = next((given.array.chunks[: -axes.count] for given in inputs if given.array.ndim > axes.count), ())
    kinds = tuple(_Kind(axes, given.array.shape[-axes.count :], given.array.dtype) for given in inputs)
    recorded = _Program(program, kwargs, kinds)
    with current() as session:
        result, sources = recorded.on(session, [() for _ in kinds])
        found = _Axes(result._ndim == 3, result._channels)
        grid = _grid(result, found, inputs[0].sizes(), kinds[0], chunks)
        windows = list(product(_ranges(grid[0]), _ranges(grid[1])))
        reads = [result[found.at(*window, slice(None))]._core.reads(sources) for window in windows]
    _warn_of_much(kinds, reads)

    on_gpu = next((given.array._meta for given in inputs if is_on_gpu(given.array._meta)), None)
    token = tokenize(program, kwargs, [given.array for given in inputs], grid, volume, channels)
    name = f"{getattr(program, '__name__', 'program')}-{token}"
    graph: dict[Any, Any] = {}
    places = product(range(len(grid[0])), range(len(grid[1])))
    for place, window, regions in zip(places, windows, reads, strict=True):
        for loop in product(*(range(len(sizes)) for sizes in pictures)):
            needed = enumerate(zip(inputs, regions, strict=True))
            parts = [given.parts(region, loop, f"overlap-{i}-{token}", graph) for i, (given, region) in needed]
            corners = tuple(tuple(corner for corner, _ in of) for of in parts)
            extents = tuple(sizes[i] for sizes, i in zip(pictures, loop, strict=True))
            task = _Chunk(recorded, found, window, _band(result, found, window, kinds, regions), corners, extents)
            key = name, *loop, *found.at(*place, 0)
            graph[key] = (task, *(part for of in parts for _, part in of))
    read = [given.array for given in inputs if given.store is None]
    layers = HighLevelGraph.from_collections(name, graph, dependencies=read)
    other = () if found.count == 2 else (result.shape[0 if found.volume else 2],)
    ends = (*pictures, *found.at(*grid, other))
    meta: Any = np.empty((0,) * len(ends), result.dtype)
    return da.Array(layers, name, ends, meta=meta if on_gpu is None else np.asarray(meta, like=on_gpu))


def zonal_statistics(
    image: Any,
    zones: Any,
    statistics: str | Iterable[str] = STATISTICS,
    *,
    zone_ids: Any = None,
    nodata: float | None = None,
) -> dict[str, Array]:
    """Statistics of the cells of each zone of a raster in arrays of Dask.

    Arguments and result are those of `horus_image.raster.zonal_statistics`, and so are the bits of the result. The arrays are computed at the
    call, in bands of all columns, of which a worker has one at a time.

    Examples
    --------
    >>> import dask.array as da
    >>> import horus_image as hi
    >>> image = da.arange(600.0, chunks=70).reshape(20, 30)
    >>> zones = da.from_array([[1, 2, 3]]).repeat(20, axis=0).repeat(10, axis=1)
    >>> hi.dask.zonal_statistics(image, zones, "mean")
    {'zone': array([1, 2, 3]), 'mean': array([289.5, 299.5, 309.5])}
    """
    names = checked(statistics)
    arrays = [da.asarray(array) for array in (image, zones)]
    if any(math.isnan(extent) for array in arrays for extent in array.shape):
        raise ValueError("zonal_statistics: the sizes of the chunks are unknown; call compute_chunk_sizes() before")
    if any(array.ndim != 2 for array in arrays) or arrays[0].shape != arrays[1].shape or not arrays[0].size:
        raise ValueError(f"zonal_statistics: arrays of shapes {arrays[0].shape} and {arrays[1].shape}; both have the same rows and columns")
    bands = [array.rechunk({0: BAND, 1: -1}).to_delayed()[:, 0] for array in arrays]
    measure, join = dask.delayed(_zones, pure=True), dask.delayed(Zones.joined, pure=True)
    parts = [measure(*band, names, nodata) for band in zip(*bands, strict=True)]
    # Joined one after the other, as the bands of an array are.
    whole = parts[0]
    for part in parts[1:]:
        whole = join(whole, part)
    return table([whole.compute()], names, zone_ids)


def _zones(image: Any, zones: Any, names: Sequence[str], nodata: float | None) -> Zones:
    """A task: measures a band."""
    with _session():
        return measured(*entered(on_host(image), on_host(zones)), names, nodata)


@dataclass(frozen=True)
class _Axes:
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
        """The parts for rows, for columns, and for levels or channels, in the order of the axes."""
        if self.volume:
            return other, row, column
        return (row, column, other) if self.channels else (row, column)


class _Kind(NamedTuple):
    """Axes, extents and type of the pictures of an array."""

    axes: _Axes
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def row(self, columns: int) -> int:
        """Bytes of a row of so many columns, of all levels or channels."""
        other = self.shape[0 if self.axes.volume else 2] if self.axes.count == 3 else 1
        return columns * other * self.dtype.itemsize

    def image(self, session: Session, blocks: Sequence[tuple[int, int, Array]]) -> tuple[Image, _horus.Image]:
        """An image of a whole picture of which these blocks are here, and what reads them."""
        code = native(self.dtype)
        rows, columns = self.shape[self.axes.rows :][:2]
        levels = self.shape[0] if self.axes.volume else 1
        channels = self.shape[2] if self.axes.channels else 1
        parts = [(top, left, self._part(block)) for top, left, block in blocks]
        stored = "u8" if code == "bool" else code
        source = _horus.Image.of_parts(session._core, _NAME, stored, (levels, rows, columns, channels), parts)
        core = _horus.convert(source, "bool") if code == "bool" else source
        return made(core, session, 3 if self.axes.volume else 2, self.axes.channels), source

    def _part(self, block: Array) -> Array:
        """A block with axes of levels, rows, columns and channels."""
        block = block if self.axes.volume else block[np.newaxis]
        return np.ascontiguousarray(ready(block if self.axes.channels else block[..., np.newaxis]))


@dataclass(frozen=True)
class _Program:
    """The program of pictures of these kinds."""

    function: Callable[..., Image]
    kwargs: dict[str, Any]
    kinds: tuple[_Kind, ...]

    def on(
        self, session: Session, blocks: Sequence[Sequence[tuple[int, int, Array]]]
    ) -> tuple[Image, list[_horus.Image]]:
        """The result, recorded, and the sources of its pixels: a source that nobody holds counts as memory, with its full size."""
        made = [kind.image(session, of) for kind, of in zip(self.kinds, blocks, strict=True)]
        images, sources = zip(*made, strict=True)
        try:
            with recording_parts():
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
    band: int
    """Rows that are computed at a time."""
    corners: tuple[tuple[tuple[int, int], ...], ...]
    """First row and column of the blocks of each array."""
    pictures: tuple[int, ...]
    """Extents of the axes before those of pictures."""

    def __call__(self, *blocks: Any) -> Any:
        on_gpu = next((block for block in blocks if is_on_gpu(block)), None)
        device = None if on_gpu is None else f"cuda:{on_gpu.device.id}"
        given = [block if isinstance(block, _Stored) else on_host(block) for block in blocks]
        found = [self._computed(at, given, device) for at in np.ndindex(self.pictures)]
        every = np.stack(found).reshape(self.pictures + found[0].shape) if self.pictures else found[0]
        if on_gpu is None:
            return every
        with on_gpu.device:
            return np.asarray(every, like=on_gpu)

    def _computed(self, at: tuple[int, ...], blocks: Sequence[Any], device: str | None) -> Array:
        every = iter(blocks)
        given = [
            [(*corner, _picture(next(every), at, kind.axes.count)) for corner in corners]
            for corners, kind in zip(self.corners, self.program.kinds, strict=True)
        ]
        first, last = self.window[0].start, self.window[0].stop
        pixels: Array | None = None
        with _session(device) as session:
            for start, part in self._bands(session, given):
                shape = list(part.shape)
                height, shape[self.axes.rows] = shape[self.axes.rows], last - first
                if height == last - first:
                    pixels = part
                    continue
                if pixels is None:
                    pixels = np.empty(shape, part.dtype)
                pixels[self.axes.at(slice(start - first, start - first + height), slice(None), slice(None))] = part
        assert pixels is not None
        return pixels

    def _bands(self, session: Session, given: Sequence[list[tuple[int, int, Any]]]) -> Iterator[tuple[int, Array]]:
        """First row and pixels of each band."""
        stored = {i: _Rows(block) for i, of in enumerate(given) for _, _, block in of if isinstance(block, _Stored)}
        reader = self.program.on(session, [() for _ in given]) if stored else None
        program = None
        rows, columns = self.window
        for start in range(rows.start, rows.stop, self.band):
            part = self.axes.at(slice(start, min(start + self.band, rows.stop)), columns, slice(None))
            if reader is not None:
                regions = reader[0][part]._core.reads(reader[1])
                if not all(of.has(regions[i]) for i, of in stored.items()):
                    program = None  # which keeps what is dropped now
                    for i, of in stored.items():
                        of.read(regions[i])
            if program is None:
                program = self.program.on(session, [stored[i].blocks if i in stored else of for i, of in enumerate(given)])
            yield start, program[0][part].compute()


def _picture(block: Any, at: tuple[int, ...], count: int) -> Any:
    if isinstance(block, _Stored):
        return block.picture(at)
    return block[at] if block.ndim > count else block


def _cut(block: Array, key: tuple[Any, ...]) -> Array:
    """A copy of a part, which does not keep its block alive."""
    part: Array = block[key].copy()
    return part


@dataclass(frozen=True)
class _Stored:
    """A region of the pictures of a store."""

    store: Any
    axes: _Axes
    before: tuple[Any, ...]
    """Ranges, or else places, of the axes before those of pictures."""
    region: _Region

    def picture(self, at: tuple[int, ...]) -> _Stored:
        """The region of one picture, given its place in these ranges."""
        before = tuple(part.start + i for part, i in zip(self.before, at, strict=False))
        return replace(self, before=before)


class _Rows:
    """The rows of a region of a store that a task has read and still needs."""

    def __init__(self, of: _Stored) -> None:
        self.of = of
        self.blocks: list[tuple[int, int, Array]] = []
        """First row, first column and pixels, one below the other."""
        sizes = getattr(of.store, "chunks", None)
        size = sizes[of.axes.rows - of.axes.count] if isinstance(sizes, tuple) else None
        self.chunk = size if isinstance(size, int) else of.region[2]
        """Rows of the chunks of the store, so that none is read twice."""

    def _range(self) -> tuple[int, int]:
        if not self.blocks:
            return 0, 0
        top, _, last = self.blocks[-1]
        return self.blocks[0][0], top + last.shape[self.of.axes.rows]

    def has(self, region: _Region | None) -> bool:
        """True if nothing of this region must be read."""
        first, last = self._range()
        return region is None or first <= region[0] and region[0] + region[2] <= last

    def read(self, region: _Region | None) -> None:
        """Read what of this region is not there, and drop what it does not need."""
        if region is None:
            return
        start, stop, axis = region[0], region[0] + region[2], self.of.axes.rows
        self.blocks = [block for block in self.blocks if block[0] < stop and block[0] + block[2].shape[axis] > start]
        top, end = self.of.region[0], self.of.region[0] + self.of.region[2]
        low = max(start // self.chunk * self.chunk, min(start, top))
        high = min(-(-stop // self.chunk) * self.chunk, max(stop, end))
        first, last = self._range()
        if not self.blocks:
            self.blocks = [self._block(low, high)]
        else:
            if start < first:
                self.blocks.insert(0, self._block(low, first))
            if last < stop:
                self.blocks.append(self._block(last, high))

    def _block(self, start: int, stop: int) -> tuple[int, int, Array]:
        _, left, _, columns = self.of.region
        key = *self.of.before, *self.of.axes.at(slice(start, stop), slice(left, left + columns), slice(None))
        return start, left, on_host(self.of.store[key])


_Corner = tuple[int, int]
"""A first row and a first column."""


@dataclass(frozen=True)
class _Input:
    """An array of pictures."""

    axes: _Axes
    array: Any
    """As an array of Dask."""
    store: Any
    """The store that tasks read by themselves, instead of the chunks of the array; or none."""

    def sizes(self) -> Any:
        """Chunks of rows and of columns."""
        return self.array.chunks[self.axes.rows - self.axes.count :][:2]

    def parts(self, region: _Region | None, loop: tuple[int, ...], name: str, graph: dict[Any, Any]) -> list[tuple[_Corner, Any]]:
        """The parts of a region - first row and column, rows and columns - of the pictures of a chunk: corners, and keys or tasks of Dask,
        in a graph that gets what is cut out of chunks."""
        if region is None:
            return []
        top, left, rows, columns = region
        loop = loop if self.array.ndim > self.axes.count else ()
        if self.store is not None:
            before = tuple(_ranges(sizes)[i] for sizes, i in zip(self.array.chunks, loop, strict=False))
            return [((top, left), _Stored(self.store, self.axes, before, tuple(region)))]
        found = []
        along = self.sizes()
        overlaps = _overlaps(along[0], top, top + rows), _overlaps(along[1], left, left + columns)
        for (i, y, row, whole), (j, x, column, wide) in product(*overlaps):
            key = (self.array.name, *loop, *self.axes.at(i, j, 0))
            if not (whole and wide):
                piece = (name, *loop, i, j, row.start, row.stop, column.start, column.stop)
                graph[piece] = (_cut, key, (..., *self.axes.at(row, column, slice(None))))
                key = piece
            found.append(((y, x), key))
        return found


def _overlaps(sizes: Sequence[int], start: int, stop: int) -> Iterator[tuple[int, int, slice, bool]]:
    """The chunks of an axis that overlap a range: number, first index of the overlap, its place in the chunk, and true for all of it."""
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


def _inputs(arrays: Sequence[Any], axes: _Axes) -> list[_Input]:
    """The arrays, with one chunk of levels or channels, and the same chunks of pictures."""
    inputs = []
    pictures: tuple[tuple[int, ...], ...] | None = None
    for given in arrays:
        here = isinstance(given, np.ndarray) or hasattr(given, "__dask_graph__") or not hasattr(given, "dtype") or is_on_gpu(given)
        array = da.asarray(given)
        if array.ndim < axes.count:
            raise ValueError(f"map_overlap: an array of shape {array.shape} has too few axes; {axes.count} are needed")
        if any(math.isnan(extent) for extent in array.shape):
            raise ValueError("map_overlap: the sizes of the chunks are unknown; call compute_chunk_sizes() before")
        if not all(array.shape):
            raise ValueError(f"map_overlap: an array of shape {array.shape} has no pixels")
        if any(0 in sizes for sizes in array.chunks):
            array = array.rechunk(tuple(tuple(filter(None, sizes)) for sizes in array.chunks))
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
        inputs.append(_Input(axes, array, None if here else given))
    return inputs


def _grid(result: Image, found: _Axes, sizes: Any, first: _Kind, chunks: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Chunks of the rows and columns of a result."""
    extents = result.shape[found.rows :][:2]
    if chunks is None and extents == first.shape[first.axes.rows :][:2]:
        return sizes[0], sizes[1]
    if chunks is None:
        chunks = tuple(map(max, sizes))
    rows, columns = normalize_chunks(chunks, shape=extents, dtype=result.dtype)
    return tuple(filter(None, rows)), tuple(filter(None, columns))


def _band(result: Image, axes: _Axes, window: _Window, kinds: Sequence[_Kind], regions: Sequence[_Region | None]) -> int:
    """Rows of this chunk that a task computes at a time."""
    rows, columns = (part.stop - part.start for part in window)
    other = result.shape[0 if axes.volume else 2] if axes.count == 3 else 1
    widths, beyond = [columns * other * result.dtype.itemsize], 0
    for kind, region in zip(kinds, regions, strict=True):
        if region is not None:
            widths.append(kind.row(region[3]))
            beyond = max(beyond, region[2] - rows)
    least = max(-(-_BAND // max(widths)), _DEEPER * beyond)
    return int(-(-rows // max(1, rows // least)))


def _warn_of_much(kinds: Sequence[_Kind], reads: Sequence[Sequence[_Region | None]]) -> None:
    for kind, regions in zip(kinds, zip(*reads, strict=True), strict=True):
        read = sum(region[2] * region[3] for region in regions if region is not None)
        rows, columns = kind.shape[kind.axes.rows :][:2]
        if read > _AGAIN * rows * columns:
            times = round(read / (rows * columns))
            message = f"map_overlap: chunks read {times} times the pixels of an array; larger chunks read fewer"
            warnings.warn(message, PerformanceWarning, stacklevel=3)


_idle: dict[tuple[str | None, int | None], list[Session]] = {}
"""Sessions that no task uses, by their device and their number of threads."""
_lock = threading.Lock()


@contextmanager
def _session(device: str | None = None) -> Iterator[Session]:
    """A session of a task's own: evaluations of one session take turns."""
    kind = device, _share()
    with _lock:
        kept = _idle.setdefault(kind, [])
        session = kept.pop() if kept else None
    session = session or Session(device, threads=kind[1], comm=ALONE)
    try:
        with session:
            yield session
    finally:
        session.trim()  # else each worker keeps the memory of the largest bands while it reads and writes
        with _lock:
            _idle.setdefault(kind, []).append(session)


def _share() -> int | None:
    """The threads of a task; none where the environment names them."""
    if "HORUS_THREADS" in os.environ or chosen_threads() is not None:
        return None
    main = threading.current_thread() is threading.main_thread()
    if main and multiprocessing.parent_process() is None:
        return int(CPU_COUNT)  # Dask computes one task after the other
    return max(1, int(CPU_COUNT) // int(dask.config.get("num_workers", None) or CPU_COUNT))


def _forget() -> None:
    """A child process has none of the threads of its parent's sessions."""
    global _idle, _lock
    _idle, _lock = {}, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
