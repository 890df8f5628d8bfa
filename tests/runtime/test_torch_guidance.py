"""What the guidance on PyTorch in NVIDIA's framework-reproducibility advises, as programs: each works, and each part of
it is needed (the controls).

Cite: doc/d9m/pytorch.md of that repository: Seeds, Data Loader, Reproducible Checkpointing.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "torch_programs"


def run_program(python: Path, program: str, *arguments: str, hash_seed: str = "0") -> str:
    """Run a program in a fresh process, as users do."""
    environ = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": hash_seed}
    command = [python, PROGRAMS / f"{program}.py", *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.tensorflow
def test_each_seed_of_the_guidance_is_needed(torch_python: Path) -> None:
    free, seeded = run_program(torch_python, "seeds").split()
    second = run_program(torch_python, "seeds").split()
    assert second[1] == seeded
    assert len({free, second[0], seeded}) == 3
    assert run_program(torch_python, "seeds", hash_seed="1").split()[1] != seeded, "the order of a set is in it"


@pytest.mark.tensorflow
def test_each_part_of_the_data_loader_guidance_is_needed(torch_python: Path) -> None:
    (first, second), free = json.loads(run_program(torch_python, "loader"))
    seeded, free_again = json.loads(run_program(torch_python, "loader"))
    assert seeded == [first, second]
    assert first != second, "each epoch is shuffled, and draws, differently"
    assert free != free_again


@pytest.mark.tensorflow
def test_each_part_of_the_checkpoint_guidance_is_needed(torch_python: Path, tmp_path: Path) -> None:
    uninterrupted = run_program(torch_python, "checkpoint", "save", str(tmp_path / "state"))
    parts = ["nothing", "model", "optimizer", "rate", "torch", "numpy", "python"]
    digests = dict(
        zip(
            parts,
            run_program(torch_python, "checkpoint", "resume", str(tmp_path / "state"), *parts).split(),
            strict=True,
        )
    )
    assert digests.pop("nothing") == uninterrupted
    assert uninterrupted not in digests.values(), "what is left out of the checkpoint is missed"
