"""Functions whose programs are recorded once and run on other arrays."""

from __future__ import annotations

import dataclasses
import functools
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Generic, NamedTuple, ParamSpec, cast

import numpy as np

from . import _horus
from ._dtype import CODES
from ._foreign import DeviceArray, is_foreign, layout_of, read, session_of
from ._image import Array, Image, made
from ._kept import OnGpu, entered
from ._session import Session, current
from ._tolerance import tolerance

_P = ParamSpec("_P")

_KEPT: Final = 32
"""Programs that a function keeps; the one used least recently goes first."""


class _Known(NamedTuple):
    """A program that was recorded, and how its results are handed back."""

    session: _horus.Session
    """Of the core: Python's session may refer to this function, and a cycle would keep it alive."""
    program: _horus.Program | OnGpu | None
    """None of a function that looks at values, and is called each time."""
    single: bool
    sequence: type

    def ran(self, arrays: Sequence[Array | DeviceArray]) -> Any:
        """The function's return value for these arrays; nothing if it must be recorded, again or each time."""
        if type(self.program) is OnGpu:
            images = self.program.run(arrays)
            return None if images is None else self.handed(images)
        if self.program is None:
            return None
        ready = [np.ascontiguousarray(array) for array in arrays]
        memories = self.program.run([array.view(np.uint8) if array.dtype == np.bool_ else array for array in ready])
        return None if memories is None else self.handed([np.asarray(memory) for memory in memories])

    def handed(self, results: Sequence[Any]) -> Any:
        """The function's return value for these results."""
        return results[0] if self.single else self.sequence(results)


class _Call(NamedTuple):
    """A call of a function that may have been recorded."""

    session: Session
    key: Hashable
    given: list[Any]
    """All arguments, arrays as the function's images are made of them."""
    positional: int
    names: list[str]
    on_gpu: bool
    """An array is on a GPU; results stay there, too."""


class Jitted(Generic[_P]):
    """A function of arrays whose program is recorded once; see `jit`."""

    def __init__(self, function: Callable[_P, Any]) -> None:
        self._function = function
        self._known: OrderedDict[Hashable, _Known] = OrderedDict()
        self._lock = threading.Lock()
        functools.update_wrapper(self, function)

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> Any:
        """Run the program on these arrays."""
        given: list[Any] = [*args, *kwargs.values()]
        arrays: list[Array | DeviceArray] = []
        kinds: list[Hashable] = [len(args), tuple(kwargs)]
        on_gpu: DeviceArray | None = None
        for at, value in enumerate(given):
            kind = type(value)
            if kind is not DeviceArray and kind is not np.ndarray:
                if isinstance(value, Image):
                    return self._function(*args, **kwargs)  # an image records more
                if not is_foreign(kind):
                    kinds.append(_key(value))
                    continue
                value = read(value)
                kind = type(value)
            if kind is DeviceArray and on_gpu is None:
                on_gpu = value
            if not value.ndim:
                kinds.append(_key(value))
                continue
            code = CODES.get(value.dtype)
            if code is None:
                value = _native(value)
                code = CODES[value.dtype]
            given[at] = value
            kinds.append((kind, value.shape, code))
            arrays.append(value)
        if not arrays:
            raise TypeError(f"{self._function.__name__}: no argument is an array")
        session = current() if on_gpu is None else session_of(on_gpu, None)
        if on_gpu is not None:
            for array in arrays:
                if type(array) is DeviceArray and array.gpu != on_gpu.gpu:
                    session_of(array, session)  # all are on one GPU
        key = (id(session), tolerance(), *kinds)
        try:
            with self._lock:
                known = self._known.get(key)
                if known is not None:
                    self._known.move_to_end(key)
        except TypeError:
            raise TypeError(f"{self._function.__name__}: arguments other than arrays must have a hash") from None
        if known is not None and known.session is not session._core:
            known = None
        handed = None if known is None else known.ran(arrays)
        if handed is not None:
            return handed
        call = _Call(session, key, given, len(args), list(kwargs), on_gpu is not None)
        return self._recorded(call, looks=known is not None and known.program is None)

    def _recorded(self, call: _Call, looks: bool) -> Any:
        """Records the function on images of the arrays, evaluates it, and keeps its program, unless it looks at values."""
        session, given = call.session, list(call.given)
        places = [at for at, value in enumerate(given) if _is_array(value)]
        # A result that stays on a GPU may be one of these images, and must not change with its array. Those of a program are others.
        cores = [entered(given[at], session, copy=call.on_gpu) for at in places]
        recording = _horus.Recording(session._core, [] if looks else cores)
        for at, core in zip(places, cores if looks else recording.images(), strict=True):
            masked = given[at].dtype.kind == "b" and core.dtype != "bool"
            given[at] = made(_horus.convert(core, "bool") if masked else core, session, given[at].ndim)
        keywords = dict(zip(call.names, given[call.positional :], strict=True))
        results = self._function(*given[: call.positional], **keywords)
        single = isinstance(results, Image)
        several = tuple(results) if isinstance(results, (tuple, list)) else (results,)
        if not several or not all(isinstance(result, Image) for result in several):
            raise TypeError(f"{self._function.__name__} must return an image, or a tuple of images")
        looks = looks or recording.looked_into()
        program: _horus.Program | OnGpu | None = None
        handed: list[Any]
        if call.on_gpu:
            program = OnGpu.of(session, recording, several)
            for image in several:
                image._on_gpu()  # the arrays may change when this returns
            handed = list(several)
        else:
            cores, layouts = [image._core for image in several], list(map(layout_of, several))
            program, memories = _horus.Program.of(session._core, recording, cores, layouts, False)
            handed = [np.asarray(memory) for memory in memories]
        known = _Known(session._core, program, single, list if isinstance(results, list) else tuple)
        if program is not None or looks:
            with self._lock:
                self._known[call.key] = known
                if len(self._known) > _KEPT:
                    self._known.popitem(last=False)
        return known.handed(handed)

    def __reduce__(self) -> str | tuple[type[Jitted[_P]], tuple[Callable[_P, Any]]]:
        """The function is pickled, by its name if it has one that others can import; programs belong to this process."""
        name, module = self._function.__qualname__, sys.modules.get(self._function.__module__)
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self and self._function.__module__ != "__main__" else (type(self), (self._function,))

    def clear(self) -> None:
        """Forget all programs."""
        with self._lock:
            self._known.clear()


def _key(value: Any) -> Hashable:
    """The cache key of an argument: distinguishes 0.0 from -0.0 and 1 from 1.0, and identifies all NaNs."""
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        return type(value), value.dtype.str, value.tobytes()
    if isinstance(value, float):
        return type(value), value.hex()
    if isinstance(value, complex):
        return type(value), value.real.hex(), value.imag.hex()
    if isinstance(value, tuple):
        return (type(value), *map(_key, value))
    if isinstance(value, frozenset):
        return type(value), frozenset(map(_key, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [_key(getattr(value, field.name)) for field in dataclasses.fields(value) if field.compare]
        return (type(value), cast(Hashable, value), *parts)
    return type(value), value


def _native(array: Array | DeviceArray) -> Array:
    """The array in this machine's byte order, of a type that images have."""
    if isinstance(array, np.ndarray) and array.dtype.newbyteorder("=") in CODES:
        return array.astype(array.dtype.newbyteorder("="))
    raise TypeError(f"images have no pixels of type {array.dtype}; convert the array")


def _is_array(value: Any) -> bool:
    return isinstance(value, (np.ndarray, DeviceArray)) and value.ndim > 0


def jit(function: Callable[_P, Any]) -> Jitted[_P]:
    """Record what a function does with arrays once, and run that on other arrays of the same shapes and types.

    The function gets an `Image` for each array of NumPy (or of another library), and everything else as it is; it returns an image, or a
    tuple of images, which its caller gets as arrays. If one of the arrays is on a GPU, its caller gets images, computed and there: other
    libraries take them as they are (``cupy.from_dlpack(image)``). The function is called again for other shapes, types, sessions, or
    values of other arguments, which must have a hash. Everything that it does beside recording it does then alone: it must depend on
    nothing but its arguments. A function that looks at values (``float(image.max())``) is called each time. Given an image, it is simply
    called.

    Parameters
    ----------
    function : callable
        Of arrays.

    Returns
    -------
    callable
        With a method ``clear``, which forgets what was recorded.

    Examples
    --------
    >>> import numpy as np
    >>> import horus_image as hi
    >>> from horus_image import ndimage
    >>> @hi.jit
    ... def edges(image, sigma):
    ...     print("recorded")
    ...     return ndimage.gaussian_filter(image, sigma) > 0.1
    >>> for i in range(3):
    ...     mask = edges(np.full((4, 4), i, np.float32), sigma=1.0)
    recorded
    >>> bool(mask.all())
    True
    """
    return Jitted(function)
