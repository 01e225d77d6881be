"""The wheel's list of its parts and their licences, against the compiled module and Cargo.lock."""

from __future__ import annotations

import importlib.metadata
import json
import re
from pathlib import Path

from horus_image import _horus

ROOT = Path(__file__).parents[2]


def text(name: str) -> str:
    [path] = [path for path in importlib.metadata.files("horus-image") or [] if path.name == name]
    return path.read_text("utf-8")


def test_parts_and_licences_are_of_what_is_compiled() -> None:
    parts = {(part["name"], part["version"]): part for part in json.loads(text("horus-python.cdx.json"))["components"]}
    # Messages of panics name the files of crates.
    module = Path(_horus.__file__).read_bytes()
    compiled = {(name.decode(), version.decode()) for name, version in re.findall(rb"index\.crates\.io-\w+/([\w-]+?)-(\d+\.[^/]+)/", module)}
    assert len(compiled) > 20
    assert compiled <= parts.keys()
    # So do those of libunwind, which a linker may add.
    names = {name for name, _ in parts}
    assert (b"libunwind: malformed" in module) == ("zig" in names)

    lock = (ROOT / "Cargo.lock").read_text()
    licences = text("THIRD-PARTY.txt")
    for (name, version), part in parts.items():
        if name.startswith("horus-"):
            continue
        assert f"\n{name} {version}: {part['licenses'][0]['expression']}\n" in licences
        if name not in ("std", "zig"):
            [checksum] = part["hashes"]
            source = "registry+https://github.com/rust-lang/crates.io-index"
            assert f'name = "{name}"\nversion = "{version}"\nsource = "{source}"\nchecksum = "{checksum["content"]}"\n' in lock


def test_licences_are_those_in_the_sources() -> None:
    licences = text("THIRD-PARTY.txt")
    # Of a crate, of C code in another, of what generated tables are made from, and of a crate without a text, which is its neighbour's.
    for notice in ("Copyright (c) 2015 Andrew Gallant", "Copyright (c) Meta Platforms, Inc.", "UNICODE LICENSE V3", "zarrs_plugin"):
        assert notice in licences
    assert "GNU GENERAL PUBLIC LICENSE" not in licences
