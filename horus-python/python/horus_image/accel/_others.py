"""Functions of the libraries that are not in the table: where a profile is wanted, their calls are counted, too."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import time
import types
from typing import Any, Final

from .._public import Function
from . import _profile

_PUBLIC: Final = re.compile(r"scipy\.ndimage|skimage\.filters\.rank|skimage\.[a-z]\w*")

_noted: dict[int, tuple[Function, Function]] = {}
"""Each function that counts the calls of another, and that, by the identity of the first."""

_lazy: dict[int, tuple[types.ModuleType, Function]] = {}
"""Modules that load their functions when they are used, and what finds these, by the identity of the module."""


def is_public(module: str) -> bool:
    """Returns true for the modules whose functions users call."""
    return _PUBLIC.fullmatch(module) is not None


def note(module: types.ModuleType) -> None:
    """Counts the calls of a public module's functions that are not served, now and when they are loaded."""
    for name in list(vars(module)):
        _counted(module, name, vars(module)[name])
    find = vars(module).get("__getattr__")
    if find is None or id(module) in _lazy:
        return
    _lazy[id(module)] = module, find
    module.__getattr__ = lambda name: _counted(module, name, find(name))  # type: ignore[method-assign]


def note_loaded(module: types.ModuleType) -> dict[int, tuple[Function, Function]]:
    """Counts those of a module whose functions others may have taken by name; returns these with what counts them, by identity."""
    note(module)
    # What a module would load at first use is left unloaded.
    loaded: dict[str, Any] = {}
    for name, other in list(sys.modules.items()):
        if name.startswith(f"{module.__name__}.") and isinstance(other, types.ModuleType):
            loaded.update((own, value) for own, value in vars(other).items() if getattr(value, "__module__", None) == name)
    for name in getattr(module, "__all__", ()):
        if name not in vars(module) and name in loaded:
            _counted(module, name, loaded[name])
    return {id(original): (original, function) for function, original in _noted.values()}


def forget() -> dict[int, tuple[Function, Function]]:
    """Finds functions as before; returns what counts the calls of others, and those, by identity."""
    for module, find in _lazy.values():
        module.__getattr__ = find  # type: ignore[method-assign]
    found = dict(_noted)
    _lazy.clear()
    _noted.clear()
    return found


def _counted(module: types.ModuleType, name: str, value: Any) -> Any:
    """What counts the calls of a function, in its place; anything else as it is."""
    if name.startswith("_") or not inspect.isroutine(value) or hasattr(value, "__horus__") or id(value) in _noted:
        return value
    library, public = module.__name__.partition(".")[0], f"{module.__name__}.{name}"
    if (getattr(value, "__module__", None) or "").partition(".")[0] != library:
        return value  # another library's, which a module only uses

    @functools.wraps(value)
    def function(*args: Any, **kwargs: Any) -> Any:
        # A library's calls of its own functions are part of the call that the program made.
        if sys._getframe(1).f_globals.get("__name__", "").partition(".")[0] == library:
            return value(*args, **kwargs)
        began = time.perf_counter()
        try:
            return value(*args, **kwargs)
        finally:
            _profile.count(public, "not served", time.perf_counter() - began)

    function.__module__, function.__qualname__ = module.__name__, name
    _noted[id(function)] = function, value
    setattr(module, name, function)
    return function
