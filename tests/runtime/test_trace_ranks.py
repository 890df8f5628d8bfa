"""Causes in programs of several ranks, which a launcher starts.

`locate` exits with 1 if runs differ, with 5 if a fix holds. A pin gives a program the same value in every run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from interposed_programs import located, located_words, write_program

from tfdeterminism.trace import command_line
from tfdeterminism.trace.interpose import variables

# A program, and a stand-in for Horovod, whose sums vary while tensors are fused (put together into one sum).
FUSING = """
import os, sys
from horovod.torch import mpi_ops

def total(numbers):
    return mpi_ops.allreduce_async(numbers)

print(total([1, 2]), total([3]))
"""
MPI_OPS = """
import os

def size():
    return {ranks}

def allreduce_async(numbers):  # as Horovod does, it asks the environment what to put together
    is_off = os.environ.get("HOROVOD_FUSION_THRESHOLD") == "0"
    return numbers, [] if is_off else os.read(os.open("/dev/urandom", os.O_RDONLY), 4)
"""


@pytest.fixture
def horovod(tmp_path: Path) -> Any:
    """Return a function that writes the program for so many ranks; -m launch runs it as a launcher does."""

    def program(ranks: int) -> Path:
        program_folder = write_program(tmp_path, main=FUSING, launch="import runpy, sys\nrunpy.run_path(sys.argv[1])")
        (program_folder / "horovod" / "torch").mkdir(parents=True)
        (program_folder / "horovod" / "torch" / "mpi_ops.py").write_text(MPI_OPS.format(ranks=ranks))
        return program_folder

    return program


def test_tensor_fusion_is_proved_and_switched_off(horovod: Any) -> None:
    code, output = located_words(horovod(3), "--fix", "--max-runs", "3", "--", "-m", "launch", "main.py")
    (cause,) = output["causes"]
    assert (code, cause["kind"], cause["fix"]["result"]) == (5, "tensor-fusion", "holds")
    assert [(place["file"], place["line"]) for place in cause["places"]] == [("main.py", 5)]
    assert '+os.environ["HOROVOD_FUSION_THRESHOLD"] = "0"  # before hvd.init()' in cause["fix"]["diff"]


def test_two_ranks_sum_alike_in_any_order(horovod: Any) -> None:
    code, output = located(horovod(2), "--max-runs", "3")
    assert (code, output["causes"], output["interventions"]["verdict"]) == (1, [], "not proved")


STARTS = """
import os, subprocess, sys
urandom = os.open("/dev/urandom", os.O_RDONLY)
ranks = sorted(["0", "1", "2"], key=lambda one: os.read(urandom, 4))
started = [subprocess.Popen([sys.executable, sys.argv[1]], env=dict(os.environ, RANK=one)) for one in ranks]
for one in started:
    one.wait()
"""
ONE_RANK = """
import os, random
number = 1.5 if os.environ["RANK"] != "2" else random.random()
with open("rank" + os.environ["RANK"], "w") as target:
    target.write(str(number))
"""


def test_a_rank_is_told_by_its_number_and_not_by_its_start(tmp_path: Path) -> None:
    program = write_program(tmp_path, launch=STARTS, main=ONE_RANK)
    code, output = located_words(program, "--fix", "--max-runs", "3", "--", "-m", "launch", "main.py")
    (cause,) = output["causes"]
    assert (code, cause["kind"], cause["fix"]["result"]) == (5, "random", "holds")
    assert [(place["file"], place["line"]) for place in cause["places"]] == [("main.py", 2)]
    assert cause["details"] == ["in rank 2 only, of 3 ranks"]


@pytest.mark.parametrize(
    ("launcher_variables", "position"),
    [
        ({}, "0"),
        ({"TFDET_POSITION": "0.2"}, "0.2"),
        ({"TFDET_POSITION": "0.2", "TFDET_PARENT_RANK": "", "RANK": "0"}, "rank0"),
        ({"TFDET_POSITION": "rank0.1", "TFDET_PARENT_RANK": "0", "RANK": "0"}, "rank0.1"),
    ],
)
def test_only_a_child_of_the_launcher_is_a_rank(
    launcher_variables: dict[str, str], position: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # "0.2" is the second child of the process "0"; a launcher's child is named by its rank.
    for name in ("TF_CONFIG", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK", "SLURM_PROCID", "RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in launcher_variables.items():
        monkeypatch.setenv(name, value)
    assert variables.position() == position


@pytest.mark.parametrize(
    ("words", "argv"),
    [
        (["--", "main.py", "--", "1"], ["main.py", "--", "1"]),
        (["--", "python3.11", "main.py"], ["main.py"]),
        (["torchrun", "--standalone", "main.py"], ["-m", "torch.distributed.run", "--standalone", "main.py"]),
        (["--", "horovodrun", "-np", "4", "main.py"], ["-m", "horovod.runner.launch", "-np", "4", "main.py"]),
        (["-m", "package"], ["-m", "package"]),
        (["--"], []),
    ],
)  # fmt: skip
def test_python_runs_the_arguments_that_a_shell_would_pass(words: list[str], argv: list[str]) -> None:
    assert command_line.program_of(words) == argv


def test_a_file_of_the_users_is_no_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchrun").touch()
    assert command_line.program_of(["torchrun", "1"]) == ["torchrun", "1"]
