"""A plugin of pytest that runs a library's own tests with `horus_image.accel` installed, for images of all sizes, and counts what Horus served.

    python -m pytest -p accel_suite --pyargs scipy.ndimage

With ``HORUS_ACCEL_SMALLEST=4096`` images that small are left to the original, as for users.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest

from horus_image import accel


def pytest_configure() -> None:
    accel.install(smallest=int(os.environ.get("HORUS_ACCEL_SMALLEST", "0")))
    import scipy.ndimage

    # Newer SciPy has a table, for its tests, of the arrays that functions take, by the functions themselves.
    kinds = importlib.import_module("scipy._lib._array_api")
    table: dict[Any, Any] = getattr(kinds, "xp_capabilities_table", {})
    for name in dir(scipy.ndimage):
        function = getattr(scipy.ndimage, name)
        original = getattr(function, "__wrapped__", None)
        if hasattr(function, "__horus__") and original in table:
            table[function] = table[original]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(accel.report())
