"""The files of the folder `workflows`, as far as they can be checked without the programs that run them."""

from __future__ import annotations

import re
import runpy
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "workflows"
CARGO = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]


class Job(dict[str, Any]):
    """Inputs or parameters of a job of Snakemake, some with names; as a sequence, the values."""

    def __init__(self, *values: str, **named: Any) -> None:
        super().__init__(named)
        self._all = [*values, *named.values()]

    def __iter__(self) -> Any:
        return iter(self._all)


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the words, one a line, that a stand-in for the command `horus` is called with."""
    program = tmp_path / "bin" / "horus"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\" > words\necho told >&2\necho 0.5\n[ \"$4\" != broken.png ]\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "words"


def snakemake(inputs: Job, output: str, **params: str) -> None:
    job = SimpleNamespace(input=inputs, output=[output], params=Job(**params), threads=3, log=["log"])
    runpy.run_path(str(FOLDER / "snakemake_horus.py"), {"snakemake": job})


def test_the_wrapper_of_snakemake_writes_pictures_series_and_numbers(words: Path) -> None:
    snakemake(Job("a b.png"), "out.tif", operations="gauss 2 add '@c d.tif'", options="--depth 16")
    assert words.read_text().splitlines() == ["--threads", "3", "--depth", "16", "a b.png", "out.tif", "gauss", "2", "add", "@c d.tif"]
    assert Path("log").read_text() == "told\n"
    snakemake(Job("a.png", "b.png"), "results", operations="sobel")
    assert words.read_text().splitlines()[2:] == ["a.png", "b.png", "--out-dir", "results", "sobel"]
    snakemake(Job(pictures=["a.png", "b.png"], dark="dark.tif"), "found.tsv", operations="sub @dark.tif mean")
    assert words.read_text().splitlines()[2:] == ["a.png", "b.png", "sub", "@dark.tif", "mean"]
    assert Path("found.tsv").read_text() == "0.5\n"
    snakemake(Job(pictures="a.png"), "found.json", operations="mean")
    assert words.read_text().splitlines()[2:] == ["a.png", "--json", "mean"]


def test_a_job_of_snakemake_fails_as_the_command_does(words: Path) -> None:
    with pytest.raises(SystemExit, match="1"):
        snakemake(Job("x.png", "broken.png"), "results", operations="sobel")
    job = SimpleNamespace(input=Job("a.png"), output=["b.png", "c.png"], params=Job(), threads=1, log=[])
    with pytest.raises(ValueError, match="horus: a rule has one output, a file or a directory, not 2"):
        runpy.run_path(str(FOLDER / "snakemake_horus.py"), {"snakemake": job})


def test_the_processes_of_nextflow_call_the_command(words: Path) -> None:
    scripts = re.findall(r'^process (\w+) \{.*?"""\n(.*?)"""', (FOLDER / "horus.nf").read_text(), re.MULTILINE | re.DOTALL)
    values = {"task.cpus": "2", "task.ext.args ?: ''": "--depth 16", "pictures": "a.tif b.tif", "operations": "gauss 2"}
    called = {}
    for name, script in scripts:
        subprocess.run(["bash", "-euc", re.sub(r"\$\{(.*?)\}", lambda found: values[found[1]], script)], check=True)
        called[name] = words.read_text().split()
    first = ["--threads", "2", "--depth", "16", "a.tif", "b.tif"]
    assert called == {"HORUS": [*first, "--out-dir", "results", "gauss", "2"], "HORUS_NUMBERS": [*first, "gauss", "2"]}
    assert Path("numbers.tsv").read_text() == "0.5\n"


def test_options_and_programs_are_there() -> None:
    source = "".join(path.read_text() for path in (ROOT / "horus-apps" / "src").rglob("*.rs"))
    for name in ("snakemake_horus.py", "horus.nf", "Horus_Fiji.groovy", "Horus_QuPath.groovy"):
        for option in set(re.findall(r"--([a-z-]+)", (FOLDER / name).read_text())):
            assert re.search(rf"^    (pub )?{option.replace('-', '_')}: \w+(<.*>)?,$", source, re.MULTILINE), f"{name}: --{option}"
    for name in ("Dockerfile", "horus.def"):
        programs = set(re.findall(r"/target/release/(\w+)", (FOLDER / name).read_text()))
        assert programs == {path.stem for path in (ROOT / "horus-apps" / "src" / "bin").glob("*.rs")}, name


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.sbatch")), ids=lambda path: path.name)
def test_scripts_of_slurm_give_each_rank_a_gpu(path: Path) -> None:
    subprocess.run(["bash", "-n", path], check=True)
    assert "#SBATCH --gpus-per-task=1\n" in path.read_text()


def test_the_recipe_says_what_the_packages_say() -> None:
    recipe = yaml.safe_load((FOLDER / "recipe.yaml").read_text())
    project = tomllib.loads((ROOT / "horus-python" / "pyproject.toml").read_text())
    assert recipe["context"]["version"] == CARGO["version"]
    assert (FOLDER / recipe["source"]["path"] / "Cargo.lock").exists()
    command, package = recipe["outputs"]
    assert (ROOT / command["package"]["name"] / "Cargo.toml").exists()
    assert package["package"]["name"] == project["project"]["name"]
    assert [about["license"] for about in (command["about"], package["about"])] == [CARGO["license"]] * 2
    run, host = package["requirements"]["run"], package["requirements"]["host"]
    required = [f"python{project['project']['requires-python']}", *project["project"]["dependencies"]]
    assert [text.replace(" ", "") for text in run] == required
    assert set(project["build-system"]["requires"]) <= {text.replace(" ", "") for text in host}


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == CARGO["version"]
    assert " OR ".join(citation["license"]) == CARGO["license"]
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    for work in citation["references"]:
        assert {"type", "title", "authors"} <= set(work)


def test_the_page_tells_of_each_file() -> None:
    page = (FOLDER / "README.md").read_text()
    told = set(re.findall(r"\]\(([\w.-]+)\)", page))
    assert told == {path.name for path in FOLDER.iterdir()} - {"README.md"}
    for path in re.findall(r"\]\((\.\./[^)#]+)", page):
        assert (FOLDER / path).exists(), path
