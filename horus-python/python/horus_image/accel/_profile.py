"""Counts of calls, and differences found."""

from __future__ import annotations

import collections
import threading
from typing import Final

_REASONS: Final = 3
"""Reasons listed for each function, the most frequent."""


class _Counts:
    def __init__(self) -> None:
        self.served = 0
        self.seconds = 0.0
        self.reasons: collections.Counter[str] = collections.Counter()


_lock = threading.Lock()
_functions: dict[str, _Counts] = {}
_mismatches: collections.Counter[tuple[str, str]] = collections.Counter()


def count(name: str, reason: str | None, seconds: float) -> None:
    """Counts a call, served unless there is a reason."""
    with _lock:
        counts = _functions.setdefault(name, _Counts())
        counts.seconds += seconds
        if reason is None:
            counts.served += 1
        else:
            counts.reasons[reason] += 1


def mismatch(name: str, difference: str) -> None:
    """Counts a result that differs from the original's."""
    with _lock:
        _mismatches[name, difference] += 1


def mismatches() -> int:
    """Results that differed."""
    return sum(_mismatches.values())


def clear() -> None:
    """Forgets all counts."""
    with _lock:
        _functions.clear()
        _mismatches.clear()


def table() -> str:
    """Calls of each function, those that took longest first; the time of an original includes the calls that it makes."""
    lines = [f"{'function':40} {'calls':>7} {'Horus':>7} {'original':>8} {'seconds':>9}"]
    for name, counts in sorted(_functions.items(), key=lambda item: -item[1].seconds):
        fell = counts.reasons.total()
        lines.append(f"{name:40} {counts.served + fell:7} {counts.served:7} {fell:8} {counts.seconds:9.3f}")
        lines.extend(f"{times:>10} x {reason}" for reason, times in counts.reasons.most_common(_REASONS))
    return "\n".join(lines)


def differences() -> str:
    """Results that differed, and how many did."""
    lines = [f"horus_image.accel: {mismatches()} results differ from the original's"]
    lines.extend(f"{times:>10} x {name}: {difference}" for (name, difference), times in _mismatches.most_common())
    return "\n".join(lines)
