"""The stubs of modules whose functions return an image of an image and an array of an array: a signature for each.

They are made of the signatures of the installed package: after a change of one, ``python horus-python/tests/stubs.py`` writes them beside the
sources. `test_types.py` compares.
"""

from __future__ import annotations

import importlib
import inspect
import pathlib
import re
import textwrap
from typing import Any

PACKAGE = pathlib.Path(__file__).parents[1] / "python" / "horus_image"
MODULES = ("exposure", "filters", "ndimage", "segmentation")

FIRST = "the first parameter"
TYPE = "type | str | np.dtype[Any] | None"
"""Types that are no arrays, as those of `DTypeLike` may be."""
WIDTH, SPACE = 140, "\N{NO-BREAK SPACE}"
SIGNATURES: dict[str, list[tuple[dict[str, str], str]]] = {
    # `Any`: an array of another library is on the host or on a GPU, and checkers do not ask.
    "Pixels": [
        ({FIRST: "Image", "output": TYPE, "out": "None"}, "Image"),
        ({FIRST: "HostArray"}, "Array"),
        ({}, "Image | Any"),
    ],
    "Labelled": [
        ({FIRST: "Image", "output": TYPE}, "tuple[Image, int]"),
        ({FIRST: "HostArray", "output": TYPE}, "tuple[Array, int]"),
        ({}, "tuple[Image | Any, int] | Any"),
    ],
    "Distances": [
        ({FIRST: "Image", "return_distances": "Literal[True]", "return_indices": "Literal[False]", "distances": "None"}, "Image"),
        ({FIRST: "HostArray", "return_distances": "Literal[True]", "return_indices": "Literal[False]", "distances": "None"}, "Array"),
        ({}, "Image | Any"),
    ],
    # A number has the type of the pixels, as of NumPy's reductions.
    "Measured": [({"index": "SupportsIndex | None"}, "Any"), ({"labels": "ArrayLike", "index": "HostArray"}, "Array"), ({}, "Array | Any")],
    "Centres": [({"index": "SupportsIndex | None"}, "tuple[np.float64, ...]"), ({}, "list[tuple[np.float64, ...]]")],
}
"""By the name of the result: parameters of other types than in the source, and the result; the last for all arguments."""

HEAD = '''"""Made of the sources by tests/stubs.py."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
'''


def written(default: Any) -> str:
    return f"np.{default.__name__}" if isinstance(default, type) else repr(default)


def signatures(name: str, function: Any) -> list[str]:
    """The signatures of a function, of which there is one for each kind of result."""
    given = inspect.signature(function)
    made = []
    for others, result in SIGNATURES[given.return_annotation]:
        parameters = list(given.parameters.values())
        texts: list[str] = []
        # A parameter that must be given has no default, and those before it neither.
        must = [i for i, one in enumerate(parameters) if one.default is None and "None" not in others.get(one.name, "None")]
        needed = max(must, default=-1)
        for i, one in enumerate(parameters):
            kind = others.get(FIRST, one.annotation) if i == 0 else others.get(one.name, one.annotation)
            star = "**" if one.kind is one.VAR_KEYWORD else ""
            if one.kind is one.KEYWORD_ONLY and "*" not in texts:
                texts.append("*")
            default = "" if one.default is one.empty or i <= needed else f" = {written(one.default)}"
            texts.append(f"{star}{one.name}: {kind}{default}")
        line = f"def {name}({', '.join(texts)}) -> {result}: ..."
        if len(line) > WIDTH:
            inner = textwrap.fill(", ".join(text.replace(" ", SPACE) for text in texts), WIDTH, initial_indent="    ", subsequent_indent="    ")
            line = f"def {name}(\n{inner.replace(SPACE, ' ')}\n) -> {result}: ..."
        made.append(f"@overload\n{line}\n")
    return made


def stub(module: str) -> str:
    """The stub of a module."""
    found = importlib.import_module(f"horus_image.{module}")
    plain: dict[str, list[str]] = {}
    bodies = []
    for name in found.__all__:
        function = getattr(found, name)
        if inspect.signature(function).return_annotation in SIGNATURES:
            bodies += signatures(name, function)
        else:
            plain.setdefault(inspect.unwrap(function).__globals__["__name__"].rpartition(".")[2], []).append(name)
    text = "".join(bodies)
    names = importlib.import_module("horus_image.typing").__all__
    used = [name for name in names if re.search(rf"(?<![.\w]){name}\b", text)]
    imports = [f"from .{source} import {', '.join(f'{name} as {name}' for name in those)}" for source, those in sorted(plain.items())]
    imports.append(f"from .typing import {', '.join(used)}")
    listed = "\n".join(f'    "{name}",' for name in found.__all__)
    return f"{HEAD}{chr(10).join(imports)}\n\n__all__ = [\n{listed}\n]\n\n{text}"


if __name__ == "__main__":
    for module in MODULES:
        (PACKAGE / f"{module}.pyi").write_text(stub(module))
