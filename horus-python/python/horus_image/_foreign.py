"""Arrays of other libraries, by DLPack and CUDA's array interface, in place."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from . import _horus
from ._dtype import is_native
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
                if not hasattr(kind, "__array__"):
                    raise TypeError(f"images have no pixels of the type of this {kind.__name__}; use astype, or what its library has instead")
                return np.asarray(array)  # of float16
            return np.asarray(tensor)
        raise ValueError(f"the array is on a device of kind {int(where)} of DLPack; images are made of arrays of the host and of NVIDIA GPUs")
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        return _of_interface(array, interface)
    return np.asarray(_on_host(array) if isinstance(array, (list, tuple)) else array)


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
    found = _gpu_of(session)
    if found is None:
        raise ValueError(f"the array is on a GPU, and the session computes on {session.device}; copy the array to the host")
    if array.gpu is not None and array.gpu != found:
        raise ValueError(f"the array is on GPU {array.gpu}, and the session computes on GPU {found}; copy the array to that GPU, or to the host")
    return session


def _gpu_of(session: Session) -> int | None:
    """The GPU that a session computes on."""
    if session._gpu is None:
        session._gpu = session._core.gpu()
    return session._gpu


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
    session_of(array, session)  # it may be on another GPU
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


Layout = tuple[list[int], list[int]]
"""Extents and strides, in numbers, of memory."""


def layout_of(image: Any) -> Layout:
    """How an image's pixels lie in memory."""
    *extents, channels = image._core.shape
    shape = extents[3 - image._ndim :]
    if image._channels:
        shape.append(channels)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
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
    gpu = image._core.gpu()
    core, layout = image._core, layout_of(image)
    here = (CPU, 0) if gpu is None else (GPU[0], gpu)
    wanted = here if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
    if wanted not in (here, (CPU, 0)):
        raise BufferError(f"the image is on device {here} of DLPack; it cannot be copied to {wanted}")
    if wanted != here and copy is False:
        raise BufferError("the image is on a GPU; it cannot be had on the host without a copy")
    if wanted[0] == CPU:
        if stream is not None and gpu is None:
            raise BufferError(f"memory of the host has no streams; stream is {stream!r}")
        memory = core.memory(*layout)
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
        return core.on_gpu(*layout, True, ordered).capsule(versioned)
    return (image._on_gpu() if by_default else core.on_gpu(*layout, False, ordered)).capsule(versioned)


def on_host(value: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """The numbers of an array of any library, of a sequence of these, or of what NumPy makes an array of: those on a GPU are copied."""
    return np.asarray(_on_host(value), dtype)


def _on_host(value: Any) -> Any:
    kind = type(value)
    if kind is np.ndarray:
        return value
    if isinstance(value, (list, tuple)) and any(is_other(one) for one in value):
        return [_on_host(one) for one in value]
    if isinstance(value, DeviceArray):
        # A part of an array has none of its library's.
        part = value.shape != tuple(getattr(value.keeper, "shape", ()))
        return _of_gpu(value) if part else _on_host(value.keeper)
    if not is_other(value):
        return value.compute() if hasattr(value, "_core") else value
    if not is_on_gpu(value):
        return read(value)
    for name in ("get", "cpu", "copy_to_host"):
        # CuPy's, PyTorch's and Numba's copies on the host.
        copy = getattr(value, name, None)
        if callable(copy):
            return _on_host(copy())
    return np.asarray(value) if hasattr(kind, "__array__") else _of_gpu(read(value))


def _of_gpu(array: Any) -> np.ndarray[Any, Any]:
    """The pixels of an array on a GPU, by Horus."""
    found: np.ndarray[Any, Any] = image_core(array, session_of(array, None), False, False).to_array(list(array.shape))
    return found


def is_other(value: Any) -> bool:
    """Returns true for an array of another library, which may be on a GPU."""
    kind = type(value)
    return is_foreign(kind) and kind is not DeviceArray and not isinstance(value, (np.ndarray, np.generic)) and not hasattr(kind, "_core")


def plain(value: Any) -> Any:
    """A number, or a few, of an array of another library as NumPy's; all else as it is."""
    if is_other(value):
        return on_host(value)[()]
    if isinstance(value, (list, tuple)) and any(is_other(one) for one in value):
        return type(value)([plain(one) for one in value])
    return value


def is_on_gpu(array: Any) -> bool:
    """Returns true for an array of another library that is not in memory of the host."""
    if hasattr(type(array), "__dlpack_device__"):
        return array.__dlpack_device__()[0] not in HOST
    return hasattr(array, "__cuda_array_interface__")


def read_beside(array: Any, session: Session) -> np.ndarray[Any, Any] | DeviceArray:
    """An array for a computation in a session: on its GPU as it is, of another GPU an error, and else on the host."""
    on_gpu = isinstance(array, DeviceArray) or (is_other(array) and is_on_gpu(array))
    return on_host(array) if on_gpu and (_gpu_of(session) is None or not is_native(dtype_of(array))) else read(array)


def dtype_of(array: Any) -> np.dtype[Any]:
    """The type of an array of any library, in NumPy's words."""
    told: Any = array
    if not isinstance(array, (np.ndarray, DeviceArray)):
        interface = getattr(array, "__cuda_array_interface__", None)
        if interface is not None:
            told = np.dtype(interface["typestr"])
        else:
            told = array if is_on_gpu(array) else read(array)
    dtype: np.dtype[Any] = told if isinstance(told, np.dtype) else np.dtype(told.dtype)
    return dtype


def is_writable(output: Any) -> bool:
    """Returns true for arrays, of NumPy and of other libraries, that results are written into."""
    return isinstance(output, np.ndarray) or is_other(output)


def write_into(output: Any, result: Any, casting: Any = "same_kind") -> Any:
    """Stores the pixels of an image, or of an array, in an array of any library, and returns that."""
    if isinstance(output, np.ndarray):
        np.copyto(output, on_host(result), casting=casting)
        return output
    if not is_on_gpu(output):
        np.copyto(in_place(output), on_host(result), casting=casting)
        return output
    dtype = dtype_of(output)
    if not np.can_cast(result.dtype, dtype, casting):
        raise TypeError(f"output: pixels of {result.dtype} are not stored in an array of {dtype}")
    kind: Any = type(output)
    library: Any = sys.modules.get(_library_of(kind) or "")
    if library is not None and not isinstance(result, np.ndarray) and result._core.gpu() is not None:
        output[...] = library.from_dlpack(result)
        return output
    pixels = on_host(result)
    if library is not None:
        output[...] = library.asarray(np.ascontiguousarray(pixels, dtype))
    elif hasattr(output, "set"):
        output.set(np.ascontiguousarray(pixels, dtype))
    else:
        output[...] = pixels
    return output


def in_place(output: Any) -> np.ndarray[Any, Any]:
    """The memory of another library's array on the host, to be written to."""
    memory = read(output)
    writable = isinstance(memory, np.ndarray) and memory.flags.writeable
    if writable and hasattr(type(output), "__array__"):
        # Arrays that may not change tell NumPy so.
        told = np.asarray(output)
        writable = told.flags.writeable and np.may_share_memory(told, memory)
    if not writable:
        raise TypeError(f"output: arrays of {type(output).__name__} are not written to; leave the argument out, and take the result")
    return memory  # type: ignore[return-value]


_PIXELS: Final = {
    *("input", "image", "ar", "mask", "labels", "label_image", "label_img", "label_field", "intensity_image", "coordinates", "markers", "seed"),
    *("reference", "low", "high", "zones", "im1", "im2", "image0", "image1", "image_true", "image_test"),
    *("rgb", "rgba", "hsv", "xyz", "lab", "luv", "lch", "hed", "stains", "rgbcie", "yuv", "yiq", "ypbpr", "ycbcr", "ydbdr"),
}
"""Parameters whose arrays are as large as images, and may stay where they are."""

_WRITTEN: Final = {"output", "out", "distances", "indices"}
"""Parameters whose arrays take results."""

_SIMPLE: Final = frozenset({int, float, bool, str, type(None), np.ndarray})
"""Types of arguments that are of no other library."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def of_any_library(function: _Function) -> _Function:
    """The function, whose arguments may be arrays of any library, on the host or on a GPU; see `adapted`."""
    names = list(inspect.signature(function).parameters)
    pixels = [name in _PIXELS for name in names]

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if _are_simple(pixels, args, kwargs):
            return function(*args, **kwargs)
        found = adapted(function, names, args, kwargs)
        return function(*args, **kwargs) if found is None else found[0]

    return called  # type: ignore[return-value]


def _are_simple(pixels: Sequence[bool], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Returns true if no argument but those of pixels may be of another library, by its type alone."""
    for is_pixels, value in zip(pixels, args):  # noqa: B905
        if not is_pixels and type(value) not in _SIMPLE:
            return False
    for name, value in kwargs.items():
        if name not in _PIXELS and type(value) not in _SIMPLE:
            return False
    return True


def adapted(function: Callable[..., Any], names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
    """The result of a call with arrays of other libraries among its arguments: small ones are copied to the host, and those that take results
    are written to. None if there are no such arguments."""
    written: list[tuple[Any, Any]] = []

    def instead(name: str, value: Any) -> Any:
        if name not in _WRITTEN or not is_other(value):
            return value if name in _PIXELS else plain(value)
        memory = _memory_for(value, args[0] if args else kwargs.get(names[0]), name)
        written.append((value, memory))
        return memory

    positional = [instead(name, value) for name, value in zip(names, args)] + list(args[len(names) :])  # noqa: B905
    keywords = {name: instead(name, value) for name, value in kwargs.items()}
    if all(map(operator.is_, [*positional, *keywords.values()], [*args, *kwargs.values()])):
        return None
    result = function(*positional, **keywords)
    for output, memory in written:
        if isinstance(memory, np.dtype):
            # The result of an array on a GPU, and of labels their number.
            image, result = result if isinstance(result, tuple) else (result, output)
            if tuple(image.shape) != tuple(output.shape):
                raise RuntimeError("output shape not correct")
            write_into(output, image, "unsafe")
            continue
        if is_on_gpu(output):
            write_into(output, memory, "unsafe")
        result = output if result is memory else result
    return (result,)


def _memory_for(output: Any, input: Any, name: str) -> Any:
    """What takes results for an array of another library: its memory on the host, or memory like it; a type if the result stays on a GPU."""
    if not is_on_gpu(output):
        return in_place(output)
    if name == "output" and (isinstance(input, DeviceArray) or (is_other(input) and is_on_gpu(input))):
        return dtype_of(output)
    return np.empty(tuple(output.shape), dtype_of(output))
