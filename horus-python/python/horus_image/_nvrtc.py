"""Finds the run-time compiler of CUDA where `pip install horus-image[cuda]` puts it."""

from __future__ import annotations

import importlib.util
import os
import pathlib


def announce() -> None:
    """Tells Horus where the compiler is, unless the user has said so. Nothing is loaded: Horus does that when a GPU needs a kernel."""
    if os.environ.get("HORUS_NVRTC"):
        return
    folder = find()
    if folder is not None:
        os.environ["HORUS_NVRTC"] = str(folder)


def find() -> pathlib.Path | None:
    """The folder of the newest `libnvrtc.so` of the packages `nvidia-cuda-nvrtc` and `nvidia-cuda-nvrtc-cu12`, if one is installed."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    found = [
        (int(version), library.parent)
        for place in places
        for library in pathlib.Path(place).glob("*/lib/libnvrtc.so.*")
        if (version := library.name.rpartition(".")[2]).isdigit()
    ]
    return max(found)[1] if found else None
