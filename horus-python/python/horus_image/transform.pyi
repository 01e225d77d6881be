"""Made of the sources by tests/generate.py."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from ._hough import hough_line as hough_line

__all__ = [
    "hough_line"
]
