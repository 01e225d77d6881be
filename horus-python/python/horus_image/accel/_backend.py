"""The backend of those that dispatch calls: scikit-image (0.26 and newer) and libraries that use spatch.

scikit-image asks the entry points ``skimage_backends`` and ``skimage_backend_infos`` for functions by names such as ``skimage.filters:frangi``, of
those that it dispatches; ``SKIMAGE_NO_DISPATCHING=1`` stops that. spatch reads ``spatch.toml``, which names attributes of this module.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any

from .._public import Function, Row
from ._calls import ROWS, Served

_ROWS = {f"{row.library}:{row.name}": row for row in ROWS if row.module.startswith("skimage.")}
_BY_ATTRIBUTE = {row.public.replace(".", "_"): row for row in ROWS}


@functools.cache
def _served(row: Row) -> Served:
    """The function of the table, whose original is the one beneath what dispatches it or has replaced it."""
    return Served(row, inspect.unwrap(getattr(importlib.import_module(row.module), row.name)))


def __getattr__(name: str) -> Served:
    """The functions by names such as ``skimage_filters_frangi``."""
    if name not in _BY_ATTRIBUTE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _served(_BY_ATTRIBUTE[name])


def can_has(name: str, *args: Any, **kwargs: Any) -> bool:
    """Returns true if a call is served."""
    return name in _ROWS and _served(_ROWS[name]).should_run(None, *args, **kwargs)


def get_implementation(name: str) -> Function:
    """The function that serves calls, and makes those that Horus refuses after all by the original."""
    return _served(_ROWS[name])


def information() -> Any:
    """The functions that there are."""
    backends: Any = importlib.import_module("skimage.util._backends")
    return backends.BackendInformation(list(_ROWS))
