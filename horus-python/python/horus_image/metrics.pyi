"""Made of the sources by tests/generate.py."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
from ._comparison import mean_squared_error as mean_squared_error, normalized_root_mse as normalized_root_mse, peak_signal_noise_ratio as peak_signal_noise_ratio, structural_similarity as structural_similarity

__all__ = [
    "mean_squared_error", "normalized_root_mse", "peak_signal_noise_ratio", "structural_similarity"
]
