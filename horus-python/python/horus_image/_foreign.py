"""Arrays of other libraries, by DLPack and CUDA's array interface, in place."""

from __future__ import annotations

import functools
import sys
from typing import Any, Final

import numpy as np

from . import _horus
from ._ranks import ALONE
from ._session import Session, inside

CPU: Final = 1
GPU: Final = (2, 13)
HOST: Final = (1, 3)
VERSION: Final = (1, 1)
"""The version of DLPack that is spoken here."""

DEFAULT_STREAM: Final = 1
"""CUDA's default stream, which blocking streams wait for, and which waits for them."""

_ORDERED_BY_DEFAULT: Final = (None, 0, DEFAULT_STREAM, 2)
"""Streams of consumers that are ordered by the default stream."""

_UNORDERED: Final = -1
"""A consumer's word that it needs no order; it cannot wait for streams of Horus, and gets pixels that are complete."""

_sessions: dict[int, Session] = {}


DeviceArray = _horus.DeviceArray
"""An array in the memory of a GPU: what it is, and the object that keeps it."""


def is_foreign(kind: type) -> bool:
    """Returns true for arrays of other libraries, which may be on a GPU."""
    return kind is not np.ndarray and (hasattr(kind, "__dlpack__") or hasattr(kind, "__cuda_array_interface__"))


def read(array: Any) -> np.ndarray[Any, Any] | DeviceArray:
    """A NumPy array, or an array on a GPU, from any object; host memory is shared if the object allows it."""
    if isinstance(array, np.ndarray):
        return np.asarray(array)
    if isinstance(array, DeviceArray):
        return array
    kind = type(array)
    if hasattr(kind, "__dlpack_device__") and hasattr(kind, "__dlpack__"):
        where, gpu = array.__dlpack_device__()
        if where in GPU:
            return DeviceArray.of(array, _stream_of(kind, int(gpu)))
        if where in HOST:
            tensor = _tensor(array)
            if tensor.kind is None:
                raise TypeError(f"images have no pixels of the type of this {kind.__name__}")
            return np.asarray(tensor)
        raise ValueError(f"the array is on a device of kind {int(where)} of DLPack; images are made of arrays of the host and of NVIDIA GPUs")
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        return _of_interface(array, interface)
    return np.asarray(array)


def _tensor(array: Any) -> _horus.Tensor:
    """The contents of the object's capsule, in memory of the host."""
    try:
        capsule = array.__dlpack__(max_version=VERSION)
    except TypeError:
        # Of before version 1.0 of the protocol.
        capsule = array.__dlpack__()
    return _horus.Tensor(capsule)


@functools.cache
def _library_of(kind: type) -> str | None:
    """The library of arrays of a type, among those whose current streams are known."""
    names = (base.__module__.partition(".")[0] for base in kind.__mro__)
    return next((name for name in names if name in ("torch", "cupy")), None)


def _stream_of(kind: type, gpu: int) -> int:
    """The stream in which an array's library works now on the array's GPU: where it wrote the array, and may write it next."""
    name = _library_of(kind)
    library: Any = sys.modules.get(name or "")
    if library is None:
        return DEFAULT_STREAM
    cuda = library.cuda
    stream = cuda.current_stream(gpu).cuda_stream if name == "torch" else cuda.get_current_stream(gpu).ptr
    return int(stream) or DEFAULT_STREAM


def _of_interface(array: Any, interface: dict[str, Any]) -> DeviceArray:
    if not isinstance(interface, dict) or not {"typestr", "shape", "data"} <= interface.keys():
        raise ValueError("__cuda_array_interface__ describes no array: it has a type, a shape and data")
    if interface.get("mask") is not None:
        raise ValueError("images are not made of masked arrays")
    dtype = np.dtype(interface["typestr"])
    shape = tuple(map(int, interface["shape"]))
    strides = interface.get("strides")
    if strides is None:
        steps, step = [], dtype.itemsize
        for extent in reversed(shape):
            steps.append(step)
            step *= extent
        strides = tuple(reversed(steps))
    stream = interface.get("stream")
    if stream == 0:
        raise ValueError("__cuda_array_interface__ has a stream of 0, which the protocol forbids")
    if not dtype.isnative:
        raise TypeError(f"images have no pixels of type {dtype} on a GPU")
    address = int(interface["data"][0])
    return DeviceArray(array, address, dtype, shape, tuple(map(int, strides)), None, None if stream is None else int(stream))


def session_of(array: DeviceArray, session: Session | None) -> Session:
    """The session for an array on a GPU: the one that is given or around, else one that is opened on that GPU."""
    session = session or inside()
    if session is None:
        gpu = _ordinal(array)
        session = _sessions.get(gpu)
        if session is None:
            session = _sessions.setdefault(gpu, Session(f"cuda:{gpu}", comm=ALONE))
    found = session._gpu
    if found is None:
        found = session._gpu = session._core.gpu()
    if found is None:
        raise ValueError(f"the array is on a GPU, and the session computes on {session.device}; copy the array to the host")
    if array.gpu is not None and array.gpu != found:
        raise ValueError(f"the array is on GPU {array.gpu}, and the session computes on GPU {found}")
    return session


def _ordinal(array: DeviceArray) -> int:
    if array.gpu is not None:
        return array.gpu
    device = getattr(array.keeper, "device", None)
    for name in ("id", "index"):
        found = getattr(device, name, None)
        if isinstance(found, int):
            return found
    return 0


def forget() -> None:
    """A child process has none of its parent's sessions."""
    _sessions.clear()


def image_core(array: DeviceArray, session: Session, channels: bool, copy: bool) -> _horus.Image:
    """The image of an array on a GPU, whose axes are those of an image; of a mask, its bytes."""
    extents = array.shape
    if not 1 <= len(extents) <= 3 or not array.size:
        raise ValueError(f"an array of shape {extents} on a GPU is no image")
    if not array.contiguous:
        raise ValueError("an array on a GPU must be contiguous, in C order, to become an image; make a contiguous copy")
    if channels:
        height, width, count = extents
        return _horus.Image.of_device(session._core, array, (1, height, width, count), copy)
    depth, height, width = (1,) * (3 - len(extents)) + extents
    return _horus.Image.of_device(session._core, array, (depth, height, width, 1), copy)


def layout(image: Any) -> tuple[list[int], list[int]]:
    """Extents and strides, in pixels, of an image's memory: planes of channels, one after the other."""
    depth, height, width, channels = image._core.shape
    shape = [depth, height, width][3 - image._ndim :]
    strides = [channels * height * width, width, 1][3 - image._ndim :]
    if image._channels:
        shape.append(channels)
        strides.append(height * width)
    return shape, strides


def export(
    image: Any, stream: Any, max_version: tuple[int, int] | None, dl_device: tuple[int, int] | None, copy: bool | None
) -> object:
    """A capsule of DLPack of an image's pixels."""
    versioned = max_version is not None and max_version[0] >= 1
    by_default = stream in _ORDERED_BY_DEFAULT
    lent: _horus.DeviceMemory | None = getattr(image, "_lent", None)
    if lent is not None and versioned and by_default and not copy and dl_device is None:
        return lent.capsule(True)
    core = image._core
    gpu = core.gpu()
    shape, strides = layout(image)
    here = (CPU, 0) if gpu is None else (GPU[0], gpu)
    wanted = here if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
    if wanted not in (here, (CPU, 0)):
        raise BufferError(f"the image is on device {here} of DLPack, and is not brought to {wanted}")
    if wanted != here and copy is False:
        raise BufferError("the image is on a GPU; it cannot be had on the host without a copy")
    if wanted[0] == CPU:
        if stream is not None and gpu is None:
            raise BufferError(f"memory of the host has no streams; stream is {stream!r}")
        memory = core.memory(shape, strides)
        if wanted != here:
            return memory.own().capsule(versioned, True)
        # Only newer consumers are told that they must not write.
        if copy is True or not versioned:
            if copy is False:
                raise BufferError("pixels that must not be written are shared from DLPack 1.0 on (max_version); let them be copied")
            return memory.copied().capsule(versioned, True)
        return memory.capsule(True, False)
    if copy is False and not versioned:
        raise BufferError("pixels that must not be written are shared from DLPack 1.0 on (max_version); let them be copied")
    ordered = DEFAULT_STREAM if by_default else None if stream == _UNORDERED else int(stream)
    if copy is True or not versioned:
        return core.on_gpu(shape, strides, True, ordered).capsule(versioned)
    return (image._on_gpu() if by_default else core.on_gpu(shape, strides, False, ordered)).capsule(versioned)
