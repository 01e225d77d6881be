"""A wrapper for Snakemake: applies operations of the command `horus` to the pictures of a rule.

    rule edges:
        input: "in/{name}.tif"
        output: "out/{name}.png"
        params: operations="luminance gauss 2 sobel", options="--depth 16"
        log: "logs/{name}.log"
        threads: 4
        script: "workflows/snakemake_horus.py"

An output without a suffix is a `directory(...)`, which gets a picture for each input (`options="--format tif"`, else PNG). An output
`.tsv` or `.json` gets the numbers of operations such as `mean`. If an input is named `pictures`, the other inputs are operands:
`operations=lambda wildcards, input: f"sub @{input.dark}"`. Operations and options are words as in a shell.

The directive is `script`, because `wrapper` asks for a second file, which describes an environment of Conda.
"""

import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

snakemake: Any  # The job, which Snakemake defines before it runs this file.


def command(job: Any) -> tuple[list[str], str | None]:
    """The words of the command, and the file that its output goes to."""
    operations, options = (shlex.split(job.params.get(name, "")) for name in ("operations", "options"))
    pictures = job.input.get("pictures", list(job.input))
    words = ["horus", "--threads", str(job.threads), *options]
    words += [pictures] if isinstance(pictures, str) else pictures
    if len(job.output) != 1:
        raise ValueError(f"horus: a rule has one output, a file or a directory, not {len(job.output)}")
    output = str(job.output[0])
    suffix = Path(output).suffix.lower()
    if suffix in (".tsv", ".json"):
        return [*words, *(["--json"] if suffix == ".json" else []), *operations], output
    return [*words, *([output] if suffix else ["--out-dir", output]), *operations], None


def run(job: Any) -> None:
    words, output = command(job)
    with ExitStack() as files:
        numbers = files.enter_context(open(output, "w")) if output else None
        log = files.enter_context(open(job.log[0], "w")) if job.log else None
        status = subprocess.run(words, stdout=numbers, stderr=log).returncode
    if status != 0:
        sys.exit(status)


run(snakemake)
