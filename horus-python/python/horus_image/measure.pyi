"""Made of the sources by tests/generate.py."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from ._peaks import peak_local_max as peak_local_max
from ._regions import regionprops_table as regionprops_table

__all__ = [
    "peak_local_max", "regionprops_table"
]
