"""SciPy's, scikit-image's and OpenCV's functions served by Horus where the result is their own; no line of a program changes.

``python -m horus_image.accel script.py``, ``%load_ext horus_image.accel`` in IPython, or `install` before the libraries are used. A call that
Horus does not serve, or refuses, goes to the original function with the arguments as they are. With ``HORUS_ACCEL=verify`` both compute, the
original's result is returned, and differences are reported at exit.

>>> from horus_image import accel
>>> accel.install()
>>> import scipy.ndimage
>>> scipy.ndimage.gaussian_filter.__module__
'scipy.ndimage'
>>> accel.uninstall()
"""

from __future__ import annotations

import atexit
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .._public import Function, Row
from . import _others, _profile
from ._calls import ROWS, Settings, replacement, tell, verifying

__all__ = ["install", "report", "uninstall"]

_BY_MODULE: dict[str, list[Row]] = {}
for _row in ROWS:
    _BY_MODULE.setdefault(_row.module, []).append(_row)

_OWN = ("scipy.ndimage._", "horus_image")
"""Modules that keep what they have: the originals call each other there."""


class _Loader(importlib.abc.Loader):
    """Loads a module as its own loader does, then replaces functions in it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        made: types.ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: types.ModuleType) -> None:
        # The module has its own loader, for whoever asks it for sources and files.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _replace(module)
        if Settings.profile and _others.is_public(module.__name__):
            _others.note(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of the table where they are found without it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _BY_MODULE and not (Settings.profile and _others.is_public(fullname)):
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: importlib.machinery.ModuleSpec | None = None if find is None else find(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


_finder = _Finder()


def _replace(module: types.ModuleType) -> dict[int, tuple[Function, Function]]:
    """Replaces the functions of a module that are in the table; returns each original and what is in its place, by the original's identity."""
    replaced = {}
    for row in _BY_MODULE.get(module.__name__, ()):
        original = vars(module).get(row.name)
        if original is None or hasattr(original, "__horus__"):
            continue
        try:
            function = replacement(row, original)
        except Exception as error:
            tell(f"{row.public} is not served: {type(error).__name__}: {error}")
            continue
        setattr(module, row.name, function)
        replaced[id(original)] = original, function
    return replaced


def _exchange(pairs: dict[int, tuple[Function, Function]]) -> None:
    """Puts functions in the place of others in all modules that have taken those by name."""
    for module in list(sys.modules.values()):
        if not isinstance(module, types.ModuleType) or str(getattr(module, "__name__", "")).startswith(_OWN):
            continue
        for name, value in list(vars(module).items()):
            pair = pairs.get(id(value))
            if pair is not None and pair[0] is value:
                setattr(module, name, pair[1])


def _exchange_in(replace: Callable[[types.ModuleType], dict[int, tuple[Function, Function]]], names: Iterable[str]) -> None:
    """Replaces functions of the modules that are loaded, everywhere."""
    pairs: dict[int, tuple[Function, Function]] = {}
    for name in names:
        if name in sys.modules:
            pairs.update(replace(sys.modules[name]))
    if pairs:
        _exchange(pairs)


def install(*, profile: bool = False, verify: bool | None = None, smallest: int | None = None) -> None:
    """Replace the functions, in modules that are loaded and in those that will be.

    Parameters
    ----------
    profile : bool, optional
        Print `report` to standard error at exit, also of functions that are not replaced.
    verify : bool, optional
        Compute by both, compare, and return the original's results; differences are printed at exit. By default if ``HORUS_ACCEL`` is ``verify``.
    smallest : int, optional
        Pixels of the smallest image that Horus computes, by any function and on any device; by default 4096, and of OpenCV's functions on a
        CPU so many that Horus is faster.
    """
    Settings.verify = verifying() if verify is None else verify
    Settings.smallest = smallest
    noting = profile and not Settings.profile
    if profile:
        Settings.profile = True
        atexit.unregister(_print_report)
        atexit.register(_print_report)
    if Settings.verify:
        atexit.unregister(_print_differences)
        atexit.register(_print_differences)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
        _exchange_in(_replace, _BY_MODULE)
    if noting:
        _exchange_in(_others.note_loaded, list(filter(_others.is_public, sys.modules)))


def uninstall() -> None:
    """Put the originals back, wherever a module has taken one of ours by name."""
    atexit.unregister(_print_report)
    atexit.unregister(_print_differences)
    if _finder not in sys.meta_path:
        return
    Settings.profile = False
    pairs = _others.forget()
    for name, rows in _BY_MODULE.items():
        for row in rows:
            function: Any = vars(sys.modules[name]).get(row.name) if name in sys.modules else None
            if hasattr(function, "__horus__"):
                pairs[id(function)] = function, function.__horus__.original
    _exchange(pairs)
    sys.meta_path.remove(_finder)


def report() -> str:
    """A table of the calls so far: of each function how many Horus served and how many the original did, their time, and the reasons.

    Functions that are not replaced are in it after `install` with `profile`.
    """
    return _profile.table()


def _print_report() -> None:
    print(report(), file=sys.stderr)


def _print_differences() -> None:
    print(_profile.differences(), file=sys.stderr)


def load_ipython_extension(_shell: Any) -> None:
    """``%load_ext horus_image.accel``."""
    install()


def unload_ipython_extension(_shell: Any) -> None:
    """``%unload_ext horus_image.accel``."""
    uninstall()
