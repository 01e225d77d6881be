"""The Python code of the book and of the READMEs, and names of other libraries."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import horus_image as hi
from horus_image._public import FUNCTIONS

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "docs" / "book" / "src").glob("*.md"))
PAGES = [*CHAPTERS, ROOT / "docs" / "python.md", ROOT / "horus-python" / "README.md", ROOT / "README.md"]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Languages and texts of the fenced blocks of code and of what it prints."""
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_code_of_a_page_runs_and_prints_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "assets").mkdir()
    for name in ("vessels.png", "small.png"):
        shutil.copy(ROOT / "assets" / name, tmp_path / "assets")
    shutil.copy(ROOT / "assets" / "vessels.png", tmp_path / "in.png")
    monkeypatch.chdir(tmp_path)
    # A page may speak of a picture that the reader has.
    names: dict[str, Any] = {"photo": hi.open("in.png").luminance().compute()}
    printed = io.StringIO()
    previous = ""
    for language, text in blocks(page):
        if language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(text, str(page), "exec"), names)
        elif previous == "python":
            rest = iter(printed.getvalue().splitlines())
            for line in text.splitlines():
                # In this order, perhaps with others between; a line may go on.
                assert line == "..." or any(found.startswith(line.rstrip()) for found in rest), line
        previous = language


def test_the_program_of_the_readme_draws_the_picture_of_the_one_in_rust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "assets", tmp_path / "assets")
    monkeypatch.chdir(tmp_path)
    program = next(text for language, text in blocks(ROOT / "README.md") if language == "python")
    exec(compile(program, "README.md", "exec"), {})
    ours, theirs = hi.open("lines.png"), hi.open("assets/gallery/lines.png")
    np.testing.assert_array_equal(ours.compute(), theirs.compute())


def test_the_book_has_code_in_python() -> None:
    assert sum(language == "python" for page in CHAPTERS for language, _ in blocks(page)) >= 20


def test_names_are_those_of_other_libraries() -> None:
    for row in FUNCTIONS:
        if row.module:
            assert all(hasattr(importlib.import_module(module), row.name) for module in (row.module, row.library)), row.public
