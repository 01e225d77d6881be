#!/usr/bin/env python3
"""Compares two commits on this machine in turns, and says whether the second is slower.

    benches/gate.py A B [--rows WORDS] [--turns N] [--python PYTHON]

A and B are commits, which are built, or folders with built programs (and with a wheel, for rows of Python). Both take turns, A B A B; the least
time of each row counts. Rows that are more than 5 % slower are measured again with as many turns; those slower twice are failures, and the exit
status is 1. Rows: kernels and detectors (`horus-bench`), everyday operations (`horus-bench --op everyday`), a start, files of each format in and
out, and with `--python`, an interpreter with what `everyday.py` needs, everyday functions from Python. `--rows "median 512"` chooses rows whose name
has one of the words, `--kinds kernels,start` those of some kinds. For two commits it also prints the sizes of programs, the time to build
them and the lines of each crate (`--tests`: also the time of scripts/test.sh, 15 minutes each).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SLOWER = 1.05
ROOT = Path(__file__).resolve().parent.parent
Rows = dict[str, float]
"""Milliseconds by name."""


def run(words: list[str | Path], **more: object) -> str:
    done = subprocess.run([*map(str, words)], stdout=subprocess.PIPE, text=True, **more)  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: status {done.returncode}")
    return str(done.stdout)


class Build:
    """Programs of one side, and what is known of how they came to be."""

    def __init__(self, name: str, work: Path, wheel: bool, tests: bool) -> None:
        self.name, self.facts = name, {}
        if Path(name).is_dir():
            self.programs = Path(name).resolve()
        else:
            commit = run(["git", "rev-parse", "--short", f"{name}^{{commit}}"], cwd=ROOT).strip()
            tree, self.programs = work / commit, work / commit / "target" / "release"
            if not tree.exists():
                run(["git", "worktree", "prune"], cwd=ROOT)
                run(["git", "worktree", "add", "--quiet", "--detach", tree, commit], cwd=ROOT)
            variables = {**os.environ, "CARGO_TARGET_DIR": str(tree / "target"), "CARGO_INCREMENTAL": "0"}
            begin = time.monotonic()
            run(["cargo", "build", "--release", "--quiet", "-p", "horus-apps", "-p", "horus-models", "-p", "horus-tools", "--bins"], cwd=tree, env=variables)
            self.facts["build, s (0: was built)"] = time.monotonic() - begin
            if wheel:
                run([tree / "scripts/wheel.sh", self.programs], cwd=tree, env=variables)
            if tests:
                begin = time.monotonic()
                run([tree / "scripts/test.sh"], cwd=tree, env=variables)
                self.facts["scripts/test.sh, s"] = time.monotonic() - begin
            for crate in [tree, *sorted(tree.glob("horus-*"))]:
                lines = sum(file.read_bytes().count(b"\n") for file in (crate / "src").rglob("*.rs"))
                self.facts[f"lines of {'horus-image' if crate == tree else crate.name}"] = lines
        for program in ("horus", "convrot"):
            with tempfile.NamedTemporaryFile() as stripped:
                run(["strip", "-o", stripped.name, self.programs / program])
                self.facts[f"{program}, stripped, kB"] = Path(stripped.name).stat().st_size / 1e3
        self.package = work / f"python-{re.sub(r'[^0-9A-Za-z]+', '-', name)}"

    def install(self, python: str) -> None:
        """The wheel in a folder of its own, so that one interpreter has the peers for both."""
        wheels = list(self.programs.glob("horus_image-*.whl"))
        if len(wheels) != 1:
            raise SystemExit(f"{self.programs} has {len(wheels)} wheels; rows of Python need one")
        shutil.rmtree(self.package, ignore_errors=True)
        run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--target", self.package, wheels[0]])


Unit = Callable[[Build], Rows]
"""Measures some rows of one side: few, so that both sides take turns within seconds."""

OPERATIONS = "copy sep19 sep43 conv7 conv17 conv43 gauss10 rot30 pixel sum minmax record convrot convuv conv2d".split()


def bench(work: Path, words: list[str]) -> Unit:
    def unit(build: Build) -> Rows:
        at = work / "rows.json"
        run([build.programs / "horus-bench", *words, "--json", at], stderr=subprocess.DEVNULL)
        found = json.loads(at.read_text())
        return {f"{row['op']} {row['size']}": row.get("min_ms", 1e3 * row.get("measured", 0))
                for row in (found["results"] if isinstance(found, dict) else found)}

    return unit


def kernels(work: Path, options: argparse.Namespace) -> list[Unit]:
    return [bench(work, ["--op", name, "--size", size, "--budget", "0.5"]) for size in options.sizes.split(",") for name in OPERATIONS]


def everyday(work: Path, options: argparse.Namespace) -> list[Unit]:
    return [bench(work, ["--op", "everyday", "--size", size, "--budget", "0.1", "--runs", "20"]) for size in options.sizes.split(",")]


def process(name: str, words: Callable[[Build], list[str | Path]]) -> Unit:
    """The least milliseconds of a process."""
    def unit(build: Build) -> Rows:
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            run(words(build), stderr=subprocess.DEVNULL)
            times.append(1e3 * (time.perf_counter() - begin))
        return {name: min(times)}

    return unit


def start(work: Path, _: argparse.Namespace) -> list[Unit]:
    small = ROOT / "assets" / "small.png"
    return [
        process("start of horus", lambda build: [build.programs / "horus", "--version"]),
        process("start, small picture", lambda build: [build.programs / "horus", small, work / "small.png", "--quiet", "gauss", "1"]),
    ]


def files(work: Path, _: argparse.Namespace) -> list[Unit]:
    """Each format from and to arrays, which cost least."""
    source, side = work / "source.pgm", 2048
    source.write_bytes(b"P5\n%d %d\n255\n" % (side, side) + bytes((x * y + 7 * x + (y * y >> 3)) >> 4 & 255 for y in range(side) for x in range(side)))

    def both(name: str, how: list[str]) -> list[Unit]:
        at, called = work / name, " ".join([name, *how[1:]])
        return [
            process(f"write {called} {side}", lambda build: [build.programs / "horus", source, at, "--quiet", *how, "convert", "u8"]),
            process(f"read {called} {side}", lambda build: [build.programs / "horus", at, work / "out.npy", "--quiet", "convert", "u8"]),
        ]

    units = [unit for name in ("a.png", "a.jpg", "a.pgm", "a.npy", "a.tif") for unit in both(name, [])]
    return units + [unit for how in ("deflate", "zstd") for unit in both("a.tif", ["--compression", how])]


def python(_: Path, options: argparse.Namespace) -> list[Unit]:
    def unit(build: Build) -> Rows:
        words = [options.python, ROOT / "benches/everyday.py", "--sizes", "512", "--threads", "1", "--seconds", "0.05"]
        text = run(words, env={**os.environ, "PYTHONPATH": str(build.package)}, stderr=subprocess.DEVNULL)
        found = re.finditer(r"^(.{26}) (\w+) +(\S+) \d+ threads.*?  horus ([0-9.]+) ms", text, re.MULTILINE)
        return {f"python: {m[1].strip()} {m[2]} {m[3]}": float(m[4]) for m in found}

    return [unit]


KINDS: dict[str, Callable[[Path, argparse.Namespace], list[Unit]]] = {
    "kernels": kernels, "everyday": everyday, "start": start, "files": files, "python": python,
}


def measured(builds: list[Build], unit: Unit, options: argparse.Namespace) -> tuple[Rows, Rows]:
    """The least time of each row of each build, in turns, of which every other one begins with B."""
    rows: tuple[Rows, Rows] = {}, {}
    for turn in range(options.turns):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            for name, ms in unit(builds[which]).items():
                if not options.rows or any(word in name for word in options.rows.split()):
                    rows[which][name] = min(ms, rows[which].get(name, ms))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sides", nargs=2, metavar="COMMIT")
    parser.add_argument("--rows", default="")
    parser.add_argument("--kinds", default="")
    parser.add_argument("--sizes", default="512,1024", help="rows and columns of the images of kernels")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--python", default="")
    parser.add_argument("--tests", action="store_true")
    options = parser.parse_args()
    kinds = options.kinds.split(",") if options.kinds else [kind for kind in KINDS if kind != "python" or options.python]
    work = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "gate"
    work.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("HORUS_PROFILE", "default")
    builds = [Build(side, work, "python" in kinds, options.tests) for side in options.sides]
    if "python" in kinds:
        for build in builds:
            build.install(options.python)
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > 0.3 * cores:
        print(f"the machine is busy (load {load:.1f} on {cores} processors): small differences are chance", flush=True)
    told, slower, rows = [], [], 0
    for kind in kinds:
        ratios, again, gone = {}, 0, set()
        for unit in KINDS[kind](work, options):
            first, second = measured(builds, unit, options)
            gone |= first.keys() ^ second.keys()
            found = {name: second[name] / ms for name, ms in first.items() if name in second}
            ratios.update(found)
            suspects = [name for name, ratio in found.items() if ratio > SLOWER]
            if suspects:
                again += len(suspects)
                one, other = measured(builds, unit, options)
                for name in suspects:
                    ratio = other[name] / one[name]
                    told.append(f"| {name} | {first[name]:.3f} | {second[name]:.3f} | {found[name]:.3f} | {ratio:.3f} |")
                    slower += [name] * (ratio > SLOWER)
        if gone:
            print(f"  on one side only: {', '.join(sorted(gone))}")
        if ratios:
            rows += len(ratios)
            middle = sorted(ratios.values())
            print(f"{kind}: {len(ratios)} rows, B/A least {middle[0]:.3f}, median {middle[len(middle) // 2]:.3f}, "
                  f"largest {middle[-1]:.3f}; {again} more than 5 % slower once", flush=True)
    if told:
        print("\n| slower once | A ms | B ms | ratio | again |\n| --- | --- | --- | --- | --- |\n" + "\n".join(told))
    print("\n| | A | B | ratio |\n| --- | --- | --- | --- |")
    for fact in builds[0].facts:
        a, b = builds[0].facts[fact], builds[1].facts.get(fact, 0)
        if a != b:
            print(f"| {fact} | {a:.0f} | {b:.0f} | {b / a if a else 0:.3f} |")
    print(f"\n{builds[0].name} and {builds[1].name}: {rows} rows, {len(slower)} slower twice: {'no' if slower else 'yes'}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
