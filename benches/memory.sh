#!/usr/bin/env bash
# HORUS_HOST_MEMORY as a promise, for random programs under random limits: chains of operations, detectors, loops, smaller sizes, series,
# files of colours and volumes, stores. The largest resident memory of a process is at most the limit, 64 MiB and the memory of a process
# that does nothing; or there is one error, before anything is computed, that names a limit which suffices. Prints a table, and exits with 1
# if a program breaks its promise. The same seed draws the same programs.
#
#   benches/memory.sh [SEED [COUNT]]   (1 40)
#   BIN=DIR   binaries; built, if not given: optimised ones take minutes the first time
#   WORK=DIR  for pictures; a temporary folder, if not given
#   ONLY=K    only the K-th program
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${BIN:-}" ]; then
  cargo build --release --quiet -p horus-apps -p horus-models --features horus-apps/zarr --bin horus --bin convrot --bin perona_malik --bin jacobi
  BIN=target/release
fi
work=${WORK:-$(mktemp -d)}
[ -n "${WORK:-}" ] || trap 'rm -rf "$work"' EXIT
mkdir -p "$work"
# Child processes count the memory of the one that starts them, which is small therefore: no NumPy.
BIN=$(realpath "$BIN") python3 - "$work" "${1:-1}" "${2:-40}" "${ONLY:-0}" <<'PYTHON'
import math
import os
import random
import re
import shutil
import struct
import sys
import time
import zlib

work, seed, count, only = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
os.chdir(work)
MIB = 1 << 20
BESIDE = 64  # MiB beside the limit
SECONDS = 300


def run(words, limit=None):
    """Runs a program; returns how it ended, its peak in MiB, its seconds and its errors."""
    env = {"PATH": os.environ["PATH"], "HORUS_DEVICE": "cpu", "HORUS_THREADS": "2", "TMPDIR": os.environ.get("TMPDIR", "/tmp")}
    if limit:
        env["HORUS_HOST_MEMORY"] = f"{limit}M"
    for out in ["out.png", "out.jpg", "out.tif", "out.npy", "out.ppm", "out.pgm"]:
        if os.path.exists(out):
            os.remove(out)
    for out in ["out.zarr", "outs"]:
        shutil.rmtree(out, ignore_errors=True)
    program = os.path.join(os.environ["BIN"], words[0])
    told = os.open("told", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    words = ["timeout", str(SECONDS), program, *words[1:]]
    begun = time.time()
    files = [(os.POSIX_SPAWN_DUP2, told, 1), (os.POSIX_SPAWN_DUP2, told, 2)]
    _, status, used = os.wait4(os.posix_spawnp("timeout", words, env, file_actions=files), 0)
    os.lseek(told, 0, 0)
    text = os.read(told, 1 << 16).decode(errors="replace")
    os.close(told)
    return os.waitstatus_to_exitcode(status), used.ru_maxrss / 1024, time.time() - begun, text


def rows(height, width, channels):
    """Rows of smooth shapes and some noise, as bytes."""
    noise = random.Random(7).randbytes(2 * width * channels)
    wave = [[int(90 + 60 * math.sin(x / 97 + c) + 40 * math.sin(k / 16)) for x in range(width) for c in range(channels)] for k in range(100)]
    for y in range(height):
        at = y * 131 % (width * channels)
        yield bytes((a + (b & 15)) & 255 for a, b in zip(wave[y // 8 % 100], noise[at : at + width * channels]))


def pictures(prefix, height, width):
    """The files of one size that programs read."""
    if os.path.exists(prefix + "done"):
        return
    for name, magic, channels in [("g.pgm", "P5", 1), ("c.ppm", "P6", 3)]:
        with open(prefix + name, "wb") as file:
            file.write(f"{magic} {width} {height} 255\n".encode())
            file.writelines(rows(height, width, channels))
    with open(prefix + "v.npy", "wb") as file:
        shape = (8, height // 4, width // 2)
        header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
        file.write(b"\x93NUMPY\x01\0" + struct.pack("<H", 118) + header.encode())
        for level in range(8):
            file.writelines(rows(height // 4, width // 2, 1))
    # One deflated strip, as some programs write.
    strip = zlib.compress(b"".join(rows(height, width, 1)), 6)
    tags = [(256, width), (257, height), (258, 8), (259, 8), (262, 1), (273, 8), (277, 1), (278, height), (279, len(strip))]
    with open(prefix + "one.tif", "wb") as file:
        file.write(b"II*\0" + struct.pack("<I", 8 + len(strip) + len(strip) % 2) + strip + b"\0" * (len(strip) % 2))
        file.write(struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags) + b"\0" * 4)
    for words in [
        ["g.pgm", "f.npy", "to_unit"],
        ["g.pgm", "tiled.tif", "invert", "--tile", "256", "--compression", "deflate"],
        ["c.ppm", "c.tif", "invert", "--tile", "512", "--compression", "zstd"],
        ["c.ppm", "c.png", "invert"],
        ["c.ppm", "c.jpg", "invert"],
        ["g.pgm", "s.tif", "invert"],
        ["g.pgm", "g.zarr", "invert"],
    ]:
        shutil.rmtree(prefix + words[1], ignore_errors=True)
        code, _, _, text = run(["horus", prefix + words[0], prefix + words[1], *words[2:]])
        assert code == 0, text
    open(prefix + "done", "w").close()


FILES = ["g.pgm", "c.ppm", "f.npy", "tiled.tif", "c.tif", "one.tif", "s.tif", "c.png", "c.jpg", "g.zarr"]
OUT = ["out.png", "out.tif", "out.tif", "out.npy", "out.ppm", "out.pgm", "out.jpg", "out.zarr"]
ONE = [
    "gauss 2", "gauss 9", "median 3", "median 5", "box 31", "sharpen", "sobel", "invert", "dilate 5", "erode 3", "equalize", "rotate 30", "rotate 90",
    "flip horizontal", "resize 700 500", "luminance", "normalize", "sqrt", "otsu", "transpose", "cumsum rows", "cumsum columns",
]
LIMITS = [20, 30, 48, 64, 100, 160, 256]


def draw(rng):
    """A program over the files of a size."""
    kind = rng.choice(["chain"] * 6 + ["volume", "detector", "loop", "sizes", "series"])
    chain = [word for _ in range(rng.randint(1, 3)) for word in rng.choice(ONE).split()]
    stored = rng.choice([[], [], ["--compression", "deflate"], ["--tile", "256"], ["--tile", "128", "--compression", "zstd"]])
    source = rng.choice(FILES)
    if kind == "chain":
        out = rng.choice(OUT)
        return ["horus", source, out, *chain, *(stored if out == "out.tif" else [])]
    if kind == "volume":
        return ["horus", "v.npy", rng.choice(["out.npy", "out.tif"]), "--volume", *chain]
    if kind == "detector":
        some = ["--theta-step", rng.choice(["45", "90"]), "--sigma-u", "3", "--sigma-v", rng.choice(["1", "1,2"])]
        return ["convrot", source, rng.choice(["out.tif", "out.npy"]), *some]
    if kind == "loop":
        return ["perona_malik", source, rng.choice(["out.tif", "out.npy"]), "--steps", str(rng.randint(1, 6))]
    if kind == "sizes":
        return ["horus", source, "out.tif", *chain, "--sizes", str(rng.randint(2, 4)), *stored]
    others = rng.sample([file for file in FILES if file[0] != "f" and not file.endswith("zarr")], 3)
    return ["horus", *others, "--out-dir", "outs", *chain]


def of_size(words, prefix):
    known = [*FILES, "v.npy"]
    return [prefix + word if word in known else word for word in words]


def enough(text):
    """The limit that an error names, in MiB."""
    found = re.search(r"at least (\d+)([MG]) are needed", text)
    return int(found[1]) * (1024 if found[2] == "G" else 1) if found else None


# Another process makes the pictures: this one stays small.
if not (making := os.fork()):
    pictures("tiny-", 64, 96)
    pictures("", 3000, 4000)
    os._exit(0)
assert os.waitpid(making, 0)[1] == 0
empty = run(["horus", "tiny-g.pgm", "out.pgm", "invert"])[1]
print(f"seed {seed}; a process that does nothing takes {empty:.0f} MiB\n")
print("| # | program | limit | peak | beyond the promise | seconds | without a limit | end |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
rng, broken = random.Random(seed), 0
for number in range(1, count + 1):
    # Programs that are wrong whatever the memory are drawn again.
    while True:
        words = draw(rng)
        if run(of_size(words, "tiny-"))[0] == 0:
            break
    limit = rng.choice(LIMITS)
    if only not in (0, number):
        continue
    free = run(of_size(words, ""))
    faults = [] if free[0] == 0 else ["fails without a limit"]
    code, peak, seconds, text = run(of_size(words, ""), limit)
    end = "done"
    # Pictures of a series have an error each, while others are computed and read ahead.
    series = "--out-dir" in words
    for _ in range(5 if series else 1):
        if code == 0 or not (named := enough(text)):
            break
        if peak > empty + 16 and not series:
            faults.append("computes before the error")
        end = f"names {named} M at {limit} M" if end == "done" else f"{end}, {named} M then"
        limit = named
        code, peak, seconds, text = run(of_size(words, ""), limit)
    if code != 0 and end != "done":
        faults.append(f"which does not suffice: {' '.join(text.split())[-400:]}")
    elif code != 0:
        faults.append(f"ends with {code}: {' '.join(text.split())[-400:]}")
    beyond = peak - limit - BESIDE - empty
    if beyond > 0:
        faults.append("PEAK")
    if seconds > 3 * free[2] + 3:
        faults.append("SLOW")
    broken += bool(faults)
    told = "; ".join([end, *faults])
    print(f"| {number} | {' '.join(words)} | {limit} M | {peak:.0f} MiB | {max(beyond, 0):.0f} MiB | {seconds:.1f} | {free[2]:.1f} | {told} |", flush=True)
print(f"\n{broken} of {count} break their promise")
sys.exit(broken > 0)
PYTHON
