#!/usr/bin/env python3
"""Chains of the command, profiles, tables of launch shapes, packages of kernels and caches, broken at random.

    python scripts/broken_settings.py HORUS [--seconds 60] [--processes 4] [--seed 1]

HORUS is the program `horus`, beside which is `horus-machine`, which measures the profile. The table is the repository's; a package is broken if there is
one beside HORUS (`horus-kernels`), a cache if there is a GPU.
Each run of the program reads one thing that one to four mutations have broken. It must end within 20 seconds, by itself, with exit status 0, 1 or 2
and without a panic; and whatever it is told by a profile, a table, a package or a cache, a result that it writes has the bytes of the unbroken one.

Prints the number of runs by kind and by exit status; exit status 1 if one was not as it must be, whose files are kept.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

LONGEST = 20
CHAIN = "gauss 1.5 border=wrap convert f32 rotate 30 grow absdiv 2 0.1 clamp 0 90 convert u8".split()
WORDS = "gauss median sobel rotate crop scale max select otsu stack add border=mirror sigma=-1 size=1e9 @in @none 1e308 -1 0 nan 3x3 0x0 4294967296 x é".split()
EXTREMES = [b"0", b"-1", b"1e999", b"NaN", b"null", b"[]", b"{}", b'"', b"18446744073709551616", b"\xff", b"\0", b"1e-320"]


def broken(whole: bytes, rng: random.Random) -> bytes:
    """Bytes with one to four mutations: a bit, a byte, a number, a piece doubled or lost, an early end."""
    data = bytearray(whole)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(6):
            case 0 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(data):
                data[at] = rng.randrange(256)
            case 2:
                data[at : at + rng.randrange(4)] = rng.choice(EXTREMES)
            case 3:
                del data[at : at + rng.randint(1, 64)]
            case 4:
                data[at:at] = data[at : at + rng.randint(1, 64)]
            case _:
                del data[rng.randrange(at + 1) :]
    return bytes(data)


def broken_chain(rng: random.Random) -> list[str]:
    words = list(CHAIN)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(words) + 1)
        match rng.randrange(4):
            case 0:
                words.insert(at, rng.choice(WORDS))
            case 1:
                words[at : at + 1] = [rng.choice(WORDS)]
            case 2:
                del words[at : at + 1]
            case _ if at < len(words):
                text = broken(words[at].encode(), rng).replace(b"\0", b"0")
                words[at] = text.decode("utf-8", "replace")
    return words


@dataclass(frozen=True)
class Subject:
    """What is broken: a file, or one of a folder, and the variable that names it."""

    name: str
    variable: str
    whole: Path

    def placed(self, at: Path, rng: random.Random) -> dict[str, str]:
        """Breaks a copy, in a folder of this run."""
        copy = victim = at / self.whole.name
        if self.whole.is_dir():
            shutil.copytree(self.whole, copy)
            victim = rng.choice(sorted(path for path in copy.rglob("*") if path.is_file()))
        else:
            shutil.copy(self.whole, copy)
        victim.write_bytes(broken(victim.read_bytes(), rng))
        return {self.variable: str(copy)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("horus", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    horus = args.horus.resolve()
    work = Path(tempfile.mkdtemp(prefix="horus-broken-"))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HORUS_") or name in ("HORUS_NVRTC", "HORUS_DEVICE")}

    picture = work / "in.pgm"
    rng = random.Random(args.seed)
    picture.write_bytes(b"P5\n67 43\n255\n" + bytes(rng.randrange(256) for _ in range(67 * 43)))
    cache = work / "cache"
    profile = work / "profile"

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(list(map(str, words)), env=clean | {"HORUS_CACHE": str(cache)}, capture_output=True, text=True)

    made = run(horus.with_name("horus-machine"), "--out", profile)
    if made.returncode:
        sys.exit(f"horus-machine: {made.stderr}")
    whole = work / "whole.tif"
    first = run(horus, picture, whole, *CHAIN)
    if first.returncode:
        sys.exit(f"the unbroken chain: {first.stderr}")
    expected = whole.read_bytes()
    subjects = [Subject("profile", "HORUS_PROFILE", profile)]
    if cache.is_dir() and any(path.is_file() for path in cache.rglob("*")):
        subjects.append(Subject("cache", "HORUS_CACHE", cache))
    package = horus.with_name("horus-kernels.bin")
    if package.exists():
        subjects.append(Subject("package", "HORUS_KERNELS", package))
    table = Path(__file__).resolve().parent.parent / "kernels/tuning/sm_90.json"
    subjects.append(Subject("table", "HORUS_TUNING", table))

    begin = time.monotonic()
    counts: Counter[tuple[str, int]] = Counter()
    faults: list[str] = []

    def loop(number: int) -> None:
        rng = random.Random(args.seed * 1000 + number)
        runs = 0
        while time.monotonic() - begin < args.seconds and not faults:
            runs += 1
            here = work / f"{number}-{runs}"
            here.mkdir()
            environment, words, name = {"HORUS_CACHE": str(cache)}, list(CHAIN), "chain"
            if rng.randrange(len(subjects) + 1):
                subject = rng.choice(subjects)
                name = subject.name
                environment |= subject.placed(here, rng)
            else:
                words = broken_chain(rng)
            out = here / "out.tif"
            try:
                done = subprocess.run([str(horus), str(picture), str(out), *words], env=clean | environment, capture_output=True, timeout=LONGEST)
                code, told = done.returncode, done.stderr.decode("utf-8", "replace")
            except subprocess.TimeoutExpired:
                code, told = 124, f"not over after {LONGEST} s"
            counts[name, code] += 1
            fault = None
            if code not in (0, 1, 2) or "panicked" in told:
                fault = f"exit status {code}: {told}"
            elif code and not told.strip():
                fault = f"exit status {code}, and no message"
            elif code and out.exists():
                fault = "an error, and a file"
            elif not code and name != "chain" and out.read_bytes() != expected:
                fault = "other bytes"
            if fault:
                faults.append(f"{name} in {here}: {' '.join(words)}\n{fault}")
            else:
                shutil.rmtree(here)

    with ThreadPoolExecutor(args.processes) as pool:
        list(pool.map(loop, range(args.processes)))
    for (name, code), count in sorted(counts.items()):
        print(f"{name:8} exit status {code}: {count:7}")
    for fault in faults:
        print(fault)
    if not faults:
        shutil.rmtree(work)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
