"""Functions of arrays whose programs are kept: a call like an earlier one runs its program on other pixels.

Checking arguments, recording and planning take longer than an image of 64x64 pixels. What a function records depends on the type and the
shape of its array and on its other arguments, so the program of the second of two calls that are alike in these is kept in the session,
and runs for the next, by the mechanism of `horus_image.jit`.
"""

from __future__ import annotations

import functools
import inspect
import math
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from . import _horus
from ._dtype import CODES
from ._foreign import DeviceArray, adapted, image_core, is_foreign, layout_of, read, session_of
from ._image import Array, Image, asarray, made
from ._session import Session, current
from ._tolerance import tolerance

_Function = TypeVar("_Function", bound=Callable[..., Any])

_MOST: Final = 256
"""Programs, and calls made once, that a session keeps; the oldest goes first."""

_MOST_BYTES: Final = 1 << 16
"""Bytes of an array of weights, or of another argument, that distinguishes calls."""

_DATA: Final = {"input", "output", "mask", "labels", "index", "coordinates"}
"""Parameters whose arrays are pixels."""


class OnGpu:
    """A program whose results stay on a GPU, ready to run on other arrays."""

    __slots__ = ("_axes", "_program", "_session")

    def __init__(self, session: Session, program: _horus.ImageProgram, results: Sequence[Image]) -> None:
        self._session = session
        self._program = program
        self._axes = [(image._ndim, image._channels) for image in results]

    @classmethod
    def of(cls, session: Session, recording: _horus.Recording, results: Sequence[Image]) -> OnGpu | None:
        """The program of recorded results, which it evaluates; nothing if it cannot run again."""
        cores, layouts = [image._core for image in results], list(map(layout_of, results))
        program = _horus.ImageProgram.of(session._core, recording, cores, layouts)
        return None if program is None else cls(session, program, results)

    def run(self, arrays: Sequence[Array | DeviceArray]) -> list[Image] | None:
        """The results, evaluated; nothing if the program should be recorded again."""
        session = self._session
        inputs: Sequence[Any] = arrays
        for array in arrays:
            if type(array) is not DeviceArray:
                inputs = [array if type(array) is DeviceArray else entered(array, session, copy=False) for array in arrays]
                break
        found = self._program.run(inputs)
        if found is None:
            return None
        images = []
        for (core, memory), (ndim, channels) in zip(found, self._axes):  # noqa: B905
            image = made(core, session, ndim, channels, True)
            image._lent = memory
            images.append(image)
        return images


def entered(array: Array | DeviceArray, session: Session, copy: bool) -> _horus.Image:
    """The pixels of an array as programs read them: those of a mask on a GPU are bytes. They are copied, or read where they are if possible."""
    if isinstance(array, DeviceArray):
        return image_core(array, session, False, copy)
    return asarray(array, session=session, copy=copy or not _in_place(array))._core


class Taking:
    """A call whose program is taken while it is made: its array enters once, as what programs are recorded on, and its result leaves once."""

    __slots__ = ("array", "program", "recording", "refused", "result", "session")

    def __init__(self, session: Session, array: Array | DeviceArray) -> None:
        self.session = session
        self.array = array
        self.recording: _horus.Recording | None = None
        self.program: _horus.Program | OnGpu | None = None
        self.result: Array | Image | None = None
        self.refused = False

    def entered(self, core: _horus.Image, session: Session, array: Any) -> _horus.Image:
        """The image that stands for the one of the array."""
        if self.refused or self.recording is not None or session is not self.session or array is not self.array:
            self.refused = True
            return core
        self.recording = _horus.Recording(session._core, [core])
        return self.recording.images()[0]

    def left(self, core: _horus.Image, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array | None:
        """The array of a result, whose program is kept."""
        if self.refused or self.recording is None or self.result is not None or CODES.get(dtype) != core.dtype:
            self.refused = True
            return None
        layout = list(shape), [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        on_gpu = isinstance(self.array, DeviceArray)
        self.program, memories = _horus.Program.of(self.session._core, self.recording, [core], [layout], on_gpu)
        result = self.result = np.asarray(memories[0])
        return result

    def stayed(self, image: Image) -> None:
        """A result on a GPU, whose program is kept."""
        if self.refused or self.recording is None or self.result is not None:
            self.refused = True
            return
        self.result = image
        self.program = OnGpu.of(self.session, self.recording, [image])


class _Threads(threading.local):
    taking: Taking | None = None


_threads = _Threads()


def taking() -> Taking | None:
    """What is taken by this thread now."""
    return _threads.taking


def refuse() -> None:
    """Keeps no program of this call, which does more than to compute."""
    if _threads.taking is not None:
        _threads.taking.refused = True


def kept(function: _Function) -> _Function:
    """The function, whose programs are kept."""
    names = list(inspect.signature(function).parameters)
    others = names[1:]

    @functools.wraps(function)
    def called(input: Any, *args: Any, **kwargs: Any) -> Any:
        key = None
        kind = type(input)
        if kind is not np.ndarray and kind is not DeviceArray and kind is not Image and is_foreign(kind):
            input = read(input)
            kind = type(input)
        if kind is np.ndarray or kind is DeviceArray:
            code = CODES.get(input.dtype)
            if code is not None:
                key = _key(others, args, kwargs)
        if key is None:
            of_others = adapted(called, names, (input, *args), kwargs)
            return function(input, *args, **kwargs) if of_others is None else of_others[0]
        session = current() if kind is np.ndarray else session_of(input, None)
        key = function, kind, code, input.shape, tolerance(), key
        known = session._programs.get(key, _UNKNOWN)
        if type(known) is _horus.Program:
            found = known.run_one(input) if kind is np.ndarray else known.run_on_gpu(input)
            if found is not None:
                return found
        elif type(known) is OnGpu:
            images = known.run([input])
            if images is not None:
                return images[0]
        elif known is _ONCE and input.ndim and _in_place(input):
            return _taken(session, key, function, input, args, kwargs)
        elif known is _UNKNOWN:
            _keep(session, key, _ONCE)
        return function(input, *args, **kwargs)

    return called  # type: ignore[return-value]


def _in_place(array: Array | DeviceArray) -> bool:
    """Returns true if the pixels can be read where they are."""
    if isinstance(array, DeviceArray):
        return array.contiguous
    return array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative


_UNKNOWN: Final = None
_ONCE: Final = True
_NEVER: Final = False


def _keep(session: Session, key: Hashable, known: Any) -> None:
    programs = session._programs
    with _lock:
        while len(programs) >= _MOST:
            del programs[next(iter(programs))]
        programs[key] = known


_lock = threading.Lock()


def of_session(session: Session, key: Hashable, make: Callable[[], Any]) -> Any:
    """The value that a session keeps under a key, beside its programs; made if there is none."""
    known = session._programs.get(key)
    if known is None:
        known = make()
        _keep(session, key, known)
    return known


def _taken(
    session: Session, key: Hashable, function: Callable[..., Any], input: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The result of a call, whose program is kept if that is all there is to it."""
    before, _threads.taking = _threads.taking, Taking(session, input)
    try:
        took = _threads.taking
        result = function(input, *args, **kwargs)
    finally:
        _threads.taking = before
    whole = not took.refused and took.program is not None and result is took.result
    _keep(session, key, took.program if whole and took.program is not None else _NEVER)
    return result


def _key(names: list[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Hashable:
    """What distinguishes calls by their arguments, or none."""
    parts: list[Any] = []
    if len(args) > len(names):
        return None
    for name, value in zip(names, args):  # noqa: B905
        part = _part(value)
        if part is None or (name in _DATA and type(value) is np.ndarray):
            return None
        parts.append(part)
    for name, value in kwargs.items():
        part = _part(value)
        if part is None or (name in _DATA and type(value) is np.ndarray):
            return None
        parts.append(name)
        parts.append(part)
    return tuple(parts)


def _part(value: Any) -> Hashable:
    """The part of a key for a value: distinguishes 0.0 from -0.0, and 1 from 1.0 and true."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]
    if kind is int or kind is bool or value is None:
        return kind, value
    if kind is float:
        return kind, value if value and value == value else value.hex()  # zeros are two, and no NaN is another
    if kind is tuple:
        parts = tuple(map(_part, value))
        return None if None in parts else parts
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject and value.nbytes <= _MOST_BYTES:
        return kind, value.dtype.str, value.shape, value.tobytes()
    if kind is type or isinstance(value, np.dtype):
        return kind, value
    return None
