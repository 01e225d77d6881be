"""The table of public functions: a row for each, written beside it by `public`.

Modules take their functions from it, `horus_image.accel` what it replaces, and ``tests/generate.py`` makes stubs and pages of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

Function = Callable[..., Any]
_Function = TypeVar("_Function", bound=Function)


class Terms(NamedTuple):
    """The terms on which `horus_image.accel` serves the calls of a function."""

    unless: str | None = None
    """Names of conditions in `accel/_conditions.py`: a call for which one gives a reason is the library's. Of None every call is."""
    bounds: tuple[float, float] = (0.0, 0.0)
    """How far results may differ from the original's, of ``float32`` and of ``float64``: shares of the largest number of image and result."""
    scalar: type[np.generic] | None = None
    """The type of a number of NumPy that the result is, where Horus returns one of Python."""
    times: int = 1
    """The smallest image that is served has so many times the pixels of others, of a function that the original computes faster."""
    on_cpu: bool = True
    """Whether calls are served where the device is a CPU, if no smallest image is set."""


SUMS: Final = (1e-5, 1e-12)
POSITIONS: Final = (1e-5, 1e-6)
"""Positions in the plane are held to 2^-21 of a pixel."""

LINEAR: Final = Terms("summed several_axes finite", SUMS)
ORDERS: Final = "same_type one_window several_axes held_constant finite"
PIXELS: Final = "numbers finite"


class Row(NamedTuple):
    """A public function."""

    area: str
    """The module of `horus_image` that has it."""
    name: str
    function: Function
    module: str
    """The module that defines the original, or a public one that has it; nothing if no library has it."""
    rust: str
    """The closest function in Rust, as code or as Markdown."""
    opencv: str
    differs: str
    """From the original, in Markdown."""
    accel: Terms

    @property
    def library(self) -> str:
        """The public module of the original."""
        return ".".join(self.module.split(".")[:2])

    @property
    def public(self) -> str:
        """The name that users know the original by."""
        return f"{self.library}.{self.name}"


FUNCTIONS: Final[list[Row]] = []


def public(
    area: str, *, module: str | None = None, rust: str = "-", opencv: str = "-", differs: str = "", accel: Terms = Terms()
) -> Callable[[_Function], _Function]:
    """A function of a public module; the fields of its row. By default the original is in the module of the same name."""
    if module is None:
        module = "scipy.ndimage" if area == "ndimage" else f"skimage.{area}"

    def listed(function: _Function) -> _Function:
        FUNCTIONS.append(Row(area, function.__name__, function, module, rust, opencv, differs, accel))
        return function

    return listed


def export(module: dict[str, Any]) -> list[str]:
    """Puts the functions of a public module into its namespace; returns their names."""
    area = module["__name__"].rpartition(".")[2]
    found = {row.name: row.function for row in FUNCTIONS if row.area == area}
    module.update(found)
    return sorted(found)
