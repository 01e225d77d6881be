"""The backend of scikit-image's dispatching (0.26 and newer): the entry points ``skimage_backends`` and ``skimage_backend_infos``.

scikit-image asks for functions by names such as ``skimage.filters:frangi``, of those that it dispatches; ``SKIMAGE_NO_DISPATCHING=1`` stops that.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any

from .._public import Function
from ._calls import ROWS, Served, original_only

_ROWS = {f"{row.library}:{row.name}": row for row in ROWS if row.module.startswith("skimage.")}


@functools.cache
def _served(name: str) -> Served:
    """The function of the table, whose original is the one beneath what dispatches it or has replaced it."""
    row = _ROWS[name]
    return Served(row, inspect.unwrap(getattr(importlib.import_module(row.module), row.name)))


def can_has(name: str, *args: Any, **kwargs: Any) -> bool:
    """Returns true if a call is served."""
    return name in _ROWS and not original_only() and not isinstance(_served(name).bound(args, kwargs), str)


def get_implementation(name: str) -> Function:
    """The function that serves calls, and makes those that Horus refuses after all by the original."""
    return _served(name)


def information() -> Any:
    """The functions that there are."""
    backends: Any = importlib.import_module("skimage.util._backends")
    return backends.BackendInformation(list(_ROWS))
