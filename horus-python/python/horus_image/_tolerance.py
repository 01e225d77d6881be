"""The tolerance of linear filters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_TOLERANCE: Final[ContextVar[float | None]] = ContextVar("horus_image.within", default=None)


def tolerance() -> float | None:
    """The tolerance of linear filters recorded here, if there is one."""
    return _TOLERANCE.get()


@contextmanager
def within(t: float) -> Iterator[None]:
    """Let linear filters in two and three dimensions be inexact within a tolerance, to be faster.

    No pixel of a result differs from the exact sum by more than ``t * max|pixel| * sum|weights|``, a worst case over all images, in which
    `cval` counts as a pixel; the result then gets its type as without a tolerance. Where nothing faster is within `t`, filters are
    computed as without a tolerance, with the rounding that they always have. The algorithm follows from weights, type, size and `t`, so that results have the
    same bits on all devices. It holds for `ndimage.correlate` and `ndimage.convolve`, and for the oriented Gaussians of
    `filters.conv2d`; filters along one axis and other functions ignore it.

    Parameters
    ----------
    t : float
        The tolerance. Smaller ones than half the distance from 1 to the next number of a filter's type are refused when it is recorded.

    Examples
    --------
    >>> import numpy as np
    >>> import horus_image as hi
    >>> from horus_image import ndimage
    >>> image = np.random.default_rng(1).random((200, 200), np.float32)
    >>> weights = np.random.default_rng(2).random((31, 31))
    >>> with hi.within(1e-5):
    ...     near = ndimage.correlate(image, weights)
    >>> bool(abs(near - ndimage.correlate(image, weights)).max() <= 2e-5 * weights.sum())
    True
    """
    t = float(t)
    if not (t > 0.0 and math.isfinite(t)):
        raise ValueError(f"within: the tolerance is {t}; it must be positive and finite")
    token = _TOLERANCE.set(t)
    try:
        yield
    finally:
        _TOLERANCE.reset(token)
