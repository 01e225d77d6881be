#!/usr/bin/env python3
"""Faults of ranks under mpirun, each in each phase of a job: one rank is killed, stopped, or slowed down, its disk full, or its directory gone.

    scripts/faults.py HORUS [--only WORDS] [--seed N] [--ranks 2,3,4]

HORUS: the program `horus`, built with the feature `mpi`, as target/release/horus. `--only "stop read"` chooses cases whose name has all the words.

A job that cannot go on must end within 5 s, every process of it, with one message; one that can must write the bytes of one process. Either way
no other file is left, and what was there before is there if the job failed. Each rank runs in a directory of its own, so that a directory is of
one rank. Phases are met without hooks in the program: by a process that appears, an input that is withheld, what rank 0 logs, a neighbour that
is held back, the unnamed file that rank 0 writes a small picture to, and its name. All ranks are halted for the moment in which the fault is made, so that none
leaves the phase. Moments within a computation are random, from the seed.

Prints a table; exit status 1 if a case fails. Needs Linux and Open MPI; 315 cases take some 15 minutes on two cores.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PHASES = ["start", "read", "plan", "compute", "exchange", "write", "end"]
SOON = 5.0
"""Seconds within which a job that cannot go on must be over."""
LONGEST = 60.0
"""Seconds after which a job that should succeed is given up."""
FULL = 1 << 14
"""Bytes of a file on a full disk."""
OUTPUT = "out.png"
TOKEN = "FAULTS_JOB"
"""A variable in the environment of all processes of a job."""


class Missed(Exception):
    """The job left the phase before the fault was made."""


def wait_for(what: Callable[[], object], seconds: float = 20.0) -> object:
    """The result of `what`, once that is true."""
    end = time.monotonic() + seconds
    while not (found := what()):
        if time.monotonic() > end:
            raise Missed
        time.sleep(0.001)
    return found


def processes(token: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The processes of a job, with their environments."""
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            words = Path(entry.path, "environ").read_bytes().decode(errors="replace").split("\0")
            if f"{TOKEN}={token}" in words:
                yield int(entry.name), dict(word.split("=", 1) for word in words if "=" in word)


class Job:
    """A running job: rank `r` in the directory `r`; rank 0 replaces `out` there."""

    def __init__(self, folder: Path, token: str, ranks: int, program: list[str], given: bytes) -> None:
        self.folder, self.token, self.ranks, self.program, self.given = folder, token, ranks, program, given
        self.output = folder / "0" / OUTPUT
        self.inode = self.output.stat().st_ino
        words = ["mpirun"]
        for rank in range(ranks):
            words += [":"] * (rank > 0) + ["-n", "1", "-wdir", str(folder / str(rank)), *program]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment(token, folder)
        )
        self.struck = 0.0
        self.said: list[str] = []
        self.reader = threading.Thread(target=self.listen, daemon=True)
        self.reader.start()

    def listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.said.append(line.decode(errors="replace").rstrip())

    def has_said(self, words: str) -> bool:
        return any(words in line for line in self.said)

    def pids(self) -> dict[int, int]:
        """The processes of the ranks that run the program by now."""
        found = {}
        for pid, variables in processes(self.token):
            rank = variables.get("OMPI_COMM_WORLD_RANK", variables.get("PMI_RANK"))
            with contextlib.suppress(OSError):
                if rank is not None and os.readlink(f"/proc/{pid}/exe") == self.program[0]:
                    found[int(rank)] = pid
        return found

    def feed(self, part: bytes, last: bool = False) -> None:
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(part)
            self.process.stdin.flush()
            if last:
                self.process.stdin.close()

    def written(self) -> bool:
        return self.output.stat().st_ino != self.inode

    def writing(self, pid: int) -> bool:
        """True once rank 0 has written to its new file, which has no name yet."""
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                to = os.readlink(entry.path)
                if to.startswith(str(self.folder / "0")) and to.endswith("(deleted)"):
                    return os.stat(entry.path).st_size > 0
        if self.written():
            raise Missed
        return False

    def over(self, seconds: float) -> bool:
        """True if the launcher and all processes of the job end within that time."""
        end = time.monotonic() + seconds
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(seconds, 0))
        while any(processes(self.token)):
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return self.process.poll() is not None

    def destroy(self) -> None:
        for pid, _ in processes(self.token):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdin:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        self.reader.join()


def environment(token: str, folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not re.match("HORUS_|OMPI_|PRTE_|PMI", name)}
    # Containers run as root, which Open MPI requires to be confirmed twice; more ranks than cores, for its versions 4 and 5.
    return {
        **kept, TOKEN: token, "TMPDIR": str(folder / "tmp"), "HORUS_THREADS": "1", "HORUS_PROFILE": "default",
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }


@contextlib.contextmanager
def halted(pids: dict[int, int]) -> Iterator[None]:
    """All ranks stand still within, for a moment."""
    for pid in pids.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def kill(job: Job, pid: int, _: int) -> None:
    os.kill(pid, signal.SIGKILL)


def stop(job: Job, pid: int, _: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def slow(job: Job, pid: int, _: int) -> None:
    """A tenth of the time for a while: the ranks must not take it for one that was stopped."""
    def brake() -> None:
        end = time.monotonic() + 2.5
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < end:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.09)
                os.kill(pid, signal.SIGCONT)
                time.sleep(0.01)

    threading.Thread(target=brake).start()


def full(job: Job, pid: int, _: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (FULL, FULL))


def gone(job: Job, _: int, rank: int) -> None:
    shutil.rmtree(job.folder / str(rank))


Fault = Callable[[Job, int, int], None]
"""Does something to a job, the process of a rank, and that rank."""
FAULTS: dict[str, Fault] = {"kill": kill, "stop": stop, "slow": slow, "full": full, "gone": gone}
UNDONE = (stop, slow)
"""Faults that the end of a halt would undo."""


def meet(job: Job, phase: str, rank: int, chance: random.Random, fault: Fault) -> None:
    """Makes a fault when the job is in a phase; rank 0 has its input by the end."""
    def strike() -> None:
        fault(job, pids[rank], rank)
        job.struck = time.monotonic()

    half = len(job.given) // 2
    if phase == "start":
        wait_for(lambda: rank in job.pids())
        pids = job.pids()
        strike()
        job.feed(job.given, last=True)
        return
    wait_for(lambda: len(job.pids()) == job.ranks)
    pids = job.pids()
    wait_for(lambda: sum("costs are predicted" in line for line in job.said) == job.ranks)
    if phase == "read":
        job.feed(job.given[:half])
        time.sleep(0.05 + 0.1 * chance.random())
        strike()
        job.feed(job.given[half:], last=True)
        return
    job.feed(job.given, last=True)
    wait_for(lambda: job.has_said("recorded:" if phase == "plan" else "plan:"))
    if phase in ("compute", "exchange"):
        time.sleep(0.3 * chance.random())
    if phase == "exchange":
        # A rank that is held back lets the others come to where they wait for it.
        os.kill(pids[(rank + 1) % job.ranks], signal.SIGSTOP)
        time.sleep(0.2 + 0.1 * chance.random())
    elif phase == "write":
        wait_for(lambda: job.writing(pids[0]), LONGEST)
    elif phase == "end":
        wait_for(job.written, LONGEST)
    with halted(pids):
        if phase in ("plan", "compute", "exchange") and job.written():
            raise Missed
        if fault not in UNDONE:
            strike()
    if fault in UNDONE:
        strike()


class Matrix:
    def __init__(self, horus: Path, folder: Path, seed: int) -> None:
        self.folder, self.chance, self.number = folder, random.Random(seed), 0
        side = 1800
        pixels = bytes((x * y + 7 * x + (y * y >> 3)) & 255 for y in range(side) for x in range(side))
        self.picture = b"P5\n%d %d\n255\n" % (side, side) + pixels
        # A computation of about two seconds of processor time, which needs rows of neighbours.
        little = [str(horus), "-", OUTPUT, *["median", "5", "gauss", "3"] * 4]
        pairs = int(4 * 2.0 / self.alone(little)[0])
        self.program = [*little[:3], *little[3:7] * max(4, pairs)]
        self.expected = self.alone(self.program)[1]
        self.program += ["-vv", "--explain"]

    def alone(self, program: list[str]) -> tuple[float, bytes]:
        """Seconds of processor time of one process, and the file that it writes."""
        at = self.folder / "one"
        at.mkdir(exist_ok=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([*program, "--quiet"], cwd=at, input=self.picture, env=environment("one", self.folder), check=True)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, (at / OUTPUT).read_bytes()

    def case(self, fault: str, phase: str, ranks: int, target: int) -> tuple[str, float]:
        """The reason for which a case fails, or nothing, and the seconds from the fault to the end of the job."""
        self.told = ""
        for _ in range(5):
            self.number += 1
            try:
                return self.attempt(fault, phase, ranks, target)
            except Missed:
                continue
        return "the phase was not met", 0.0

    def attempt(self, fault: str, phase: str, ranks: int, target: int) -> tuple[str, float]:
        folder = self.folder / f"job{self.number}"
        for name in ["tmp", *map(str, range(ranks))]:
            (folder / name).mkdir(parents=True)
        before = b"what was there"
        (folder / "0" / OUTPUT).write_bytes(before)
        job = Job(folder, f"{os.getpid()}-{self.number}", ranks, self.program, self.picture)
        try:
            meet(job, phase, target, self.chance, FAULTS[fault])
            harmless = fault == "slow" or (fault in ("full", "gone") and (target > 0 or phase == "end"))
            limit = job.struck + (SOON if fault in ("kill", "stop") else LONGEST)
            ended = job.over(limit - time.monotonic())
            took = time.monotonic() - job.struck
            if not ended:
                return f"still running after {took:.0f} s", took
            job.reader.join()
            return self.judge(job, fault, phase, target, harmless, before), took
        finally:
            job.destroy()
            shutil.rmtree(folder, ignore_errors=True)

    def judge(self, job: Job, fault: str, phase: str, target: int, harmless: bool, before: bytes) -> str:
        # In a line of its own, or after what a rank had said of one when it was halted.
        errors = [line[line.index("error: "):] for line in job.said if "error: " in line]
        succeeded = job.process.returncode == 0
        told = " / ".join(errors) or next((line for line in job.said if "mpirun noticed" in line), "")
        if not succeeded and not told:
            told = " / ".join(line for line in job.said if line)[-300:]
        self.told = told
        # A rank that has done all its work may be killed or stopped without harm to the job.
        if harmless and not succeeded and not (fault == "full" and phase == "start"):
            return f"fails: {told}"
        if not harmless and succeeded and phase not in ("write", "end"):
            return "succeeds"
        if len(errors) > 1:
            return f"{len(errors)} messages: {told}"
        if not succeeded and not errors and not (fault == "kill" or phase == "start"):
            return f"no message: {told}"
        if not succeeded and not any(job.said):
            return "nothing is said"
        if any("panicked" in line for line in job.said):
            return f"panics: {told}"
        kept = {path for path in job.folder.rglob("*") if path.is_file() and "ompi." not in str(path)}
        if fault == "gone" and target == 0:
            return f"leaves {sorted(map(str, kept))}" if kept else ""
        if kept != {job.output}:
            return f"leaves {sorted(str(path.relative_to(job.folder)) for path in kept)}"
        holds = job.output.read_bytes()
        allowed = [self.expected] if succeeded else [before, self.expected] if phase in ("write", "end") else [before]
        return "" if holds in allowed else f"writes {len(holds)} other bytes"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("horus", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", default="2,3,4")
    options = parser.parse_args()
    sizes = [int(n) for n in options.ranks.split(",")]
    cases = [(fault, phase, n, rank) for n in sizes for fault in FAULTS for phase in PHASES for rank in range(n)]
    failures: list[str] = []
    table: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        matrix = Matrix(options.horus.resolve(), Path(folder).resolve(), options.seed)
        for fault, phase, ranks, target in cases:
            name = f"{fault} {phase} {ranks} ranks, rank {target}"
            if not all(word in name.replace(",", "").split() for word in options.only.split()):
                continue
            why, took = matrix.case(fault, phase, ranks, target)
            table.setdefault((fault, phase), []).append(took)
            if why:
                failures.append(f"{name}: {why}")
            print(f"{name}: {why or 'ok, ' + (matrix.told or 'no message')} ({took:.1f} s)", flush=True)
    print("\n| longest s until a job is over (cases) |", " | ".join(PHASES), "|\n|", " --- |" * (len(PHASES) + 1))
    for fault in FAULTS:
        cells = [table.get((fault, phase), []) for phase in PHASES]
        print(f"| {fault} |", " | ".join(f"{max(cell):.1f} ({len(cell)})" if cell else "" for cell in cells), "|")
    print(f"\n{sum(map(len, table.values()))} cases, seed {options.seed}, {len(failures)} failures")
    for failure in failures:
        print(failure)
    return 1 if failures or not table else 0


if __name__ == "__main__":
    sys.exit(main())
