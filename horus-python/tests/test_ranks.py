"""Programs on several ranks, under mpirun."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import horus_image as hi

JOBS = pathlib.Path(__file__).with_name("ranks.py")
ENVIRONMENT = os.environ | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",  # more ranks than cores, of Open MPI 4 and 5
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OPENBLAS_NUM_THREADS": "1",
}
PHOTO = (np.random.default_rng(1).random((150, 130)) * 255).astype(np.uint8)


def run(ranks: int, job: str, folder: pathlib.Path, *options: str) -> tuple[int, str]:
    """Status and standard error of a job."""
    np.save(folder / "photo.npy", PHOTO)
    command = [*os.environ.get("MPIRUN", "mpirun").split(), "-n", str(ranks), sys.executable, *options, str(JOBS)]
    done = subprocess.run([*command, job, str(folder)], env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stderr


@pytest.mark.parametrize("ranks", [3, 5])
def test_any_number_of_ranks_computes_the_same_bytes(ranks: int, tmp_path: pathlib.Path) -> None:
    assert run(ranks, "same", tmp_path) == (0, "")


def test_groups_of_ranks_compute_different_programs(tmp_path: pathlib.Path) -> None:
    assert run(3, "some", tmp_path) == (0, "")


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("one_raises", "rank 1 of 3:\nTraceback"),
        ("all_raise", "rank 0 of 3:\nTraceback"),
        ("other_arrays", "error: rank 0: the ranks run different programs: rank 0 reached `%0 = image#1 () : 150x130 u8, pixels of the sum "),
        ("one_ends", "rank 2 reached `the end of the program`"),
        pytest.param(
            "one_is_stopped", "another rank of this node, was stopped (SIGSTOP)", marks=pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
        ),
    ],
)
def test_a_rank_that_fails_ends_all_with_one_message(job: str, said: str, tmp_path: pathlib.Path) -> None:
    status, error = run(3, job, tmp_path)
    assert status != 0
    assert said in error
    assert error.count("Traceback") + error.count("error: rank") == 1, error


def test_the_program_of_the_book_has_the_same_file_on_many_ranks(tmp_path: pathlib.Path) -> None:
    program = pathlib.Path(__file__).parents[2] / "workflows" / "lines.py"
    hi.save(tmp_path / "in.png", PHOTO[:70, :80])
    for ranks in (1, 3):
        command = [*os.environ.get("MPIRUN", "mpirun").split(), "-n", str(ranks), sys.executable, str(program), "in.png", f"out{ranks}.npy"]
        told = subprocess.run(command, env=ENVIRONMENT, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        assert told.startswith(f"{ranks} ranks, strongest response 0.") and told.count("\n") == 1
    assert (tmp_path / "out1.npy").read_bytes() == (tmp_path / "out3.npy").read_bytes()


def test_a_session_without_mpi4py_says_that_it_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.warns(RuntimeWarning, match=r"started on 4 ranks without mpi4py .*horus-image\[mpi\]"):
        assert hi.session().ranks == 1
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    assert hi.session().ranks == 1


def test_a_communicator_is_one() -> None:
    with pytest.raises(TypeError, match="comm is 3; it must be a communicator of mpi4py"):
        hi.session(comm=3)  # type: ignore[arg-type]
