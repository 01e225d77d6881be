#!/usr/bin/env python3
"""The parts of a crate, as CycloneDX on standard output, and their licences.

    scripts/parts.py CRATE [--licences FILE] [--zig FOLDER] [OPTIONS OF cargo tree]

Parts are the crates that are compiled into CRATE with these options (`--target T`, `--all-features`), in the versions of Cargo.lock, with its
checksums. Crates that only run while it is compiled are none. SOURCE_DATE_EPOCH, if it is set, is the time of the list.

`--licences FILE` is for a compiled program, which the standard library of Rust is a part of: FILE gets the texts in the sources of all parts,
each text once. A part without any is an error. `--zig FOLDER`: it is linked by the Python package `ziglang` in FOLDER, which adds its libunwind.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import subprocess
import sys
import textwrap
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
TEXT = re.compile(r"(UN)?LICEN[CS]E|NOTICE|COPYRIGHT")
"""Names of files with licences. A COPYING beside them is a summary, or a choice that is not made (the GPL, of zstd)."""

ELSEWHERE = ("fortanix", "hermit", "moto", "r-efi", "vex", "wasi", "windows", "wit")
"""Parts of the standard library that are none on Linux."""

Part = tuple[str, str]
"""Name and version."""


def said(*command: str) -> str:
    """Output of a command, which has told why if it failed."""
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


def parts(crate: str, options: list[str]) -> dict[Part, set[Part]]:
    """Each part, the crate itself first, with the parts that it depends on."""
    tree = said("cargo", "tree", "--locked", "-p", crate, "-e", "normal,no-proc-macro", "--prefix", "depth", "-f", " {p}", *options)
    found: dict[Part, set[Part]] = {}
    path: list[Part] = []
    for line in tree.splitlines():
        depth, name, version = line.split()[:3]
        part = name, version.removeprefix("v")
        found.setdefault(part, set())
        path[int(depth) :] = [part]
        if len(path) > 1:
            found[path[-2]].add(part)
    return found


def expression(licence: str) -> str:
    return licence.replace("/", " OR ")


def bill(found: dict[Part, set[Part]], packages: dict[Part, dict], linked: dict[Part, str]) -> dict:
    """The list of parts, and of those that are no crates with their licences."""
    lock = (ROOT / "Cargo.lock").read_text("utf-8")
    sums = {(name, version): sum for name, version, sum in re.findall(r'name = "(.*)"\nversion = "(.*)"\nsource = .*\nchecksum = "(.*)"', lock)}

    def reference(part: Part) -> str:
        return "pkg:cargo/{}@{}".format(*map(quote, part))

    def component(part: Part) -> dict:
        name, version = part
        row: dict = {"type": "library", "bom-ref": reference(part), "name": name, "version": version, "purl": reference(part)}
        row["licenses"] = [{"expression": expression(packages[part]["license"])}]
        if packages[part]["source"]:
            row["hashes"] = [{"alg": "SHA-256", "content": sums[part]}]
        return row

    itself, *others = found
    components = [component(part) for part in sorted(others)]
    for (name, version), licence in linked.items():
        components.append({"type": "library", "bom-ref": name, "name": name, "version": version, "licenses": [{"expression": licence}]})
    edges = {reference(part): sorted(map(reference, found[part])) for part in sorted(found)}
    edges[reference(itself)] += [name for name, _ in linked]
    metadata: dict = {"component": component(itself)}
    if time := os.environ.get("SOURCE_DATE_EPOCH"):
        metadata["timestamp"] = datetime.fromtimestamp(int(time), timezone.utc).isoformat()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": metadata,
        "components": components,
        "dependencies": [{"ref": part, "dependsOn": of} for part, of in edges.items()],
    }


def licences(found: list[Part], packages: dict[Part, dict], linked: dict[Part, str], zig: Path | None) -> str:
    """Texts of licences with the parts that they are of, those of this repository left out."""
    texts: dict[str, tuple[str, list[str]]] = {}

    def add(text: str, part: str) -> None:
        users = texts.setdefault(" ".join(text.split()), (text.strip("\n").rstrip(), []))[1]
        if part not in users:
            users.append(part)

    def files(package: dict) -> list[Path]:
        folder = Path(package["manifest_path"]).parent
        inside = (file for file in folder.rglob("*") if TEXT.match(file.name) and file.is_file())
        return sorted(file for file in inside if "tests" not in file.relative_to(folder).parts)

    def repository(package: dict) -> str:
        return (package["repository"] or package["homepage"] or package["manifest_path"]).partition("/tree/")[0]

    rows = [f"{name} {version}: {licence}" for (name, version), licence in linked.items()]
    std, *linkers = map(" ".join, linked)
    documents = Path(said("rustc", "--print", "sysroot").strip(), "share/doc/rust")
    if documents.is_dir():
        add((documents / "licenses/Apache-2.0.txt").read_text("utf-8"), std)
        add((documents / "licenses/Unicode-3.0.txt").read_text("utf-8"), std)
        for section in (documents / "COPYRIGHT-library.html").read_text("utf-8").split("<h3>📦 ")[1:]:
            name = section.partition("</h3>")[0]
            for text in re.findall(r"<pre>(.*?)</pre>", section, re.DOTALL) if not name.startswith(ELSEWHERE) else ():
                add(html.unescape(text), f"std's {name}")
    else:
        print(f"no {documents}: licences of the standard library are left out", file=sys.stderr)
    if zig:
        add((zig / "LICENSE").read_text("utf-8"), *linkers)
        add((zig / "lib/libcxx/LICENSE.TXT").read_text("utf-8"), *linkers)
    for part in sorted(found):
        package = packages[part]
        if not package["source"]:
            continue
        rows.append("{} {}: {}".format(*part, expression(package["license"])))
        # One of several crates of a repository may leave the text to another.
        beside = (other for other in packages.values() if repository(other) == repository(package))
        paths = files(package) or next((paths for other in beside if (paths := files(other))), [])
        # Archives without a text: the project's own is here.
        ours = Path(__file__).parent.parent / "horus-zarr/licences/{}.txt".format(part[0])
        paths = paths or [ours] * ours.exists()
        if not paths:
            sys.exit("no licence in {}".format(package["manifest_path"]))
        for path in paths:
            add(path.read_text("utf-8"), " ".join(part))
    head = (
        "The compiled module of this package contains the standard library of Rust (std, and as its distribution lists them, std's own parts), "
        "what Zig's linker adds (libunwind and compiler_rt) if zig is named, and these crates, C code inside some of them. The texts of their licences follow, each with its parts. This software is based in part "
        "on the work of the Independent JPEG Group."
    )
    result = textwrap.fill(head, 100) + "\n\n" + "\n".join(rows) + "\n"
    for text, users in texts.values():
        result += f"\n{'=' * 100}\n{textwrap.fill(', '.join(users), 100, break_on_hyphens=False)}\n\n{text}\n"
    return result


def main() -> None:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("crate")
    parser.add_argument("--licences", type=Path)
    parser.add_argument("--zig", type=Path)
    arguments, options = parser.parse_known_args()
    metadata = json.loads(said("cargo", "metadata", "--locked", "--format-version", "1", *({"--all-features"} & {*options})))
    packages = {(package["name"], package["version"]): package for package in metadata["packages"]}
    found = parts(arguments.crate, options)
    linked: dict[Part, str] = {}
    if arguments.licences:
        linked["std", said("rustc", "--version").split()[1]] = "MIT OR Apache-2.0"
        if arguments.zig:
            [about] = arguments.zig.parent.glob("ziglang-*.dist-info")
            linked["zig", about.stem.partition("-")[2]] = "MIT AND Apache-2.0 WITH LLVM-exception"
        arguments.licences.write_text(licences(list(found), packages, linked, arguments.zig), "utf-8")
    json.dump(bill(found, packages, linked), sys.stdout, indent=1)
    print()


main()
