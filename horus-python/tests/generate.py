"""What is made of the table of public functions: stubs, which have a signature for each kind of result, the imports of modules, and tables of
the documentation.

After a change of a function or its row, ``python horus-python/tests/generate.py`` writes them, of the sources beside it and the compiled module of
the installed package. `test_types.py` compares.
"""

from __future__ import annotations

import importlib
import inspect
import pathlib
import re
import sys
import textwrap
from collections.abc import Iterable
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = ROOT / "horus-python" / "python" / "horus_image"
AREAS = (
    *("ndimage", "color", "exposure", "feature", "filters", "measure", "metrics", "morphology", "restoration", "segmentation", "transform"),
    *("util", "raster"),
)

if __name__ == "__main__":
    # The sources have no compiled module beside them: they take the installed one.
    compiled = importlib.import_module("horus_image._horus")
    for name in [name for name in sys.modules if name.startswith("horus_image")]:
        del sys.modules[name]
    sys.modules[compiled.__name__] = compiled
    sys.path.insert(0, str(PACKAGE.parent))

from horus_image._public import FUNCTIONS, Row  # noqa: E402
from horus_image.accel._conditions import WORDS  # noqa: E402

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
    "Components": [
        ({FIRST: "Image", "return_num": "Literal[False]"}, "Image"),
        ({FIRST: "HostArray", "return_num": "Literal[False]"}, "Array"),
        ({"return_num": "Literal[False]"}, "Image | Any"),
        ({}, "tuple[Image | Any, int] | Any"),
    ],
    "Distances": [
        ({FIRST: "Image", "return_distances": "Literal[True]", "return_indices": "Literal[False]", "distances": "None"}, "Image"),
        ({FIRST: "HostArray", "return_distances": "Literal[True]", "return_indices": "Literal[False]", "distances": "None"}, "Array"),
        ({}, "Image | Any"),
    ],
    "Maxima": [
        ({FIRST: "Image", "indices": "Literal[False]"}, "Image"),
        ({FIRST: "HostArray", "indices": "Literal[False]"}, "Array"),
        ({}, "Image | Any"),
    ],
    # A number has the type of the pixels, as of NumPy's reductions.
    "Measured": [({"index": "SupportsIndex | None"}, "Any"), ({"labels": "ArrayLike", "index": "HostArray"}, "Array"), ({}, "Array | Any")],
    "Positions": [({"index": "SupportsIndex | None"}, "tuple[np.int64, ...]"), ({}, "list[tuple[np.int64, ...]]")],
    "Extrema": [
        ({"index": "SupportsIndex | None"}, "tuple[Any, Any, tuple[np.int64, ...], tuple[np.int64, ...]]"),
        ({}, "tuple[Array, Array, list[tuple[np.int64, ...]], list[tuple[np.int64, ...]]]"),
    ],
    "Centres": [({"index": "SupportsIndex | None"}, "tuple[np.float64, ...]"), ({}, "list[tuple[np.float64, ...]]")],
}
"""By the name of the result: parameters of other types than in the source, and the result; the last for all arguments."""

HEAD = '''"""Made of the sources by tests/generate.py."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from ._image import Image
'''


SPATCH = """\
# Made of the table of public functions by tests/generate.py.
name = "horus"
primary_types = ["numpy:ndarray"]
secondary_types = []
# Floats may differ by roundings.
requires_opt_in = true

[functions.defaults]
additional_docs = "On all cores or on a GPU, within bounds of the library's result; calls that Horus does not serve are the library's."
"""


def written(default: Any) -> str:
    return f"np.{default.__name__}" if callable(default) else repr(default)


def filled(texts: Iterable[str]) -> str:
    """Lines of texts, none of which is broken."""
    joined = ", ".join(text.replace(" ", SPACE) for text in texts)
    return textwrap.fill(joined, WIDTH, initial_indent="    ", subsequent_indent="    ").replace(SPACE, " ")


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
            line = f"def {name}(\n{filled(texts)}\n) -> {result}: ..."
        made.append(f"@overload\n{line}\n")
    return made


def home(row: Row) -> str:
    """The module of a function's source."""
    name: str = inspect.unwrap(row.function).__globals__["__name__"]
    return name.rpartition(".")[2]


def rows(area: str) -> list[Row]:
    """The functions of a public module, by name. Modules that it does not import yet have some, too."""
    for path in PACKAGE.glob("_*.py"):
        if re.search(r"^from \._public import", path.read_text(), re.MULTILINE):
            importlib.import_module(f"horus_image.{path.stem}")
    return sorted((row for row in FUNCTIONS if row.area == area), key=lambda row: row.name)


def module(area: str) -> str:
    """The source of a public module, which imports those of its functions."""
    names = ", ".join(sorted({"_public", *map(home, rows(area))}))
    return re.sub(r"^from \. import .*$", f"from . import {names}", (PACKAGE / f"{area}.py").read_text(), count=1, flags=re.MULTILINE)


def stub(area: str) -> str:
    """The stub of a public module."""
    plain: dict[str, list[str]] = {}
    bodies = []
    for row in rows(area):
        if inspect.signature(row.function).return_annotation in SIGNATURES:
            bodies += signatures(row.name, row.function)
        else:
            plain.setdefault(home(row), []).append(row.name)
    text = "".join(bodies)
    names = importlib.import_module("horus_image.typing").__all__
    used = [name for name in names if re.search(rf"(?<![.\w]){name}\b", text)]
    imports = [f"from .{source} import {', '.join(f'{name} as {name}' for name in those)}" for source, those in sorted(plain.items())]
    imports += [f"from .typing import {', '.join(used)}"] if used else []
    listed = filled(f'"{row.name}"' for row in rows(area))
    return f"{HEAD}{chr(10).join(imports)}\n\n__all__ = [\n{listed}\n]\n{text and chr(10) + text}"


def code(text: str) -> str:
    return text if text == "-" or "`" in text or " " in text else f"`{text}`"


def table(head: str, cells: Iterable[tuple[str, ...]]) -> str:
    """A table of functions, of which one line has those that agree in all but the first cell, their name."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, *rest in cells:
        alike.setdefault(tuple(rest), []).append(f"`{name}`")
    columns = head.split("|")
    lines = [[" ".join(names), *rest][: len(columns)] for rest, names in alike.items()]
    text = "".join(f"| {' | '.join(line)} |\n" for line in [columns, ["---"] * len(columns), *lines])
    return re.sub(r"\|  (?=\|)", "| ", text)


def names(area: str) -> str:
    """The section of docs/names.md about a public module: what its docstring begins with, and a table."""
    about = (importlib.import_module(f"horus_image.{area}").__doc__ or "").partition("\n")[0].replace("``", "`")
    there = [row for row in rows(area) if row.library not in ("", "scipy.ndimage", f"skimage.{area}")]
    about += "".join(f" `{row.name}` is in `{row.library}` there." for row in there)
    differs = "|differs" if any(row.differs for row in rows(area)) else ""
    cells = ((row.name, code(row.rust), code(row.opencv), row.differs) for row in rows(area))
    return f"## In Python: horus_image.{area}\n\n{about}\n\n" + table(f"Python|Rust|OpenCV{differs}", cells)


def served() -> str:
    """The tables of the book about what `horus_image.accel` serves."""
    tables = []
    for areas in (AREAS, ("cv2",)):
        cells = []
        for row in (row for area in areas for row in rows(area)):
            conditions = row.accel.unless
            if conditions is not None and conditions != "never":
                shares = [f"{share:g}".replace("e-0", "e-") for share in dict.fromkeys(row.accel.bounds) if share]
                unless = row.differs if row.area == "cv2" else "; ".join(WORDS[name] for name in conditions.split() if name in WORDS)
                cells.append((row.name, ", ".join(shares), unless))
        tables.append(table("|bounds|unless", cells))
    return "\nOf `cv2`, whose functions take `uint8`, `uint16`, `int16`, `float32` and `float64`:\n\n".join(tables)


def spatch() -> str:
    """What spatch reads of the table: the functions that its libraries may call."""
    text = SPATCH
    for row in (row for area in AREAS for row in rows(area)):
        if row.accel.unless not in (None, "never"):
            name = f"horus_image.accel._backend:{row.public.replace('.', '_')}"
            text += f'\n[functions."{row.library}:{row.name}"]\nfunction = "{name}"\nshould_run = "{name}.should_run"\n'
    return text


def page(path: pathlib.Path, made: str) -> str:
    """A page with another text between the lines that say so."""
    first, last = "<!-- Made by horus-python/tests/generate.py. -->\n\n", "\n<!-- End. -->\n"
    before, _, rest = path.read_text().partition(first)
    return f"{before}{first}{made}{last}{rest.partition(last)[2]}"


def files() -> dict[pathlib.Path, str]:
    """All texts that are made of the table."""
    docs = ROOT / "docs"
    made = {PACKAGE / f"{area}.pyi": stub(area) for area in AREAS} | {PACKAGE / f"{area}.py": module(area) for area in AREAS}
    made[docs / "names.md"] = page(docs / "names.md", "\n".join(map(names, AREAS)))
    chapter = docs / "book" / "src" / "unchanged.md"
    return made | {chapter: page(chapter, served()), PACKAGE / "accel" / "spatch.toml": spatch()}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
