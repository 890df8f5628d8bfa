"""patch() and enable_determinism() as solutions of the matrix: applied, on the right device, without the CPU race."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import weekly

from tfdet.base.paths import Project
from tfdet.store.records import Record, read_records
from tfdet_probe import frameworks
from tfdet_probe.base.errors import WrongPlacementError
from tfdet_probe.core import placement

CPU, GPU = "CPU:0", "GPU:0"


def check(ops: list[str], device: str, placed: list[tuple[str, str]], replaced: bool = False) -> list[str]:
    """Return the devices on which placement.check() saw these ops; it raises if an op ran elsewhere."""
    devices: list[str] = placement.check(ops, device, placed, frameworks.load_adapter("tensorflow").is_op, replaced)
    return devices


def test_a_replaced_op_need_not_be_placed() -> None:
    placed = [("Sum", CPU), ("Mul", CPU)]
    assert check(["BiasAddGrad"], CPU, placed, replaced=True) == ["CPU:0"]
    with pytest.raises(WrongPlacementError, match="not seen"):
        check(["BiasAddGrad"], CPU, placed)
    with pytest.raises(WrongPlacementError, match="not seen"):
        check(["BiasAddGrad"], GPU, placed, replaced=True)
    with pytest.raises(WrongPlacementError, match="ran"):
        check(["BiasAddGrad"], GPU, [("Sum", GPU), ("BiasAddGrad", CPU)], replaced=True)


def records_of(checkout: Project, key: str, out: Path, *arguments: str) -> list[Record]:
    """Return the records of a run in that environment on the CPU."""
    command = ["run", key, "--device", "cpu", "--repeats", "2", "--processes", "1", "--out", str(out), *arguments]
    done = subprocess.run(
        [sys.executable, "-m", "tfdet", *command],
        env={**os.environ, "TFDET_ROOT": str(checkout.root)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return list(read_records(out))


@pytest.mark.tensorflow
@pytest.mark.parametrize("key", weekly.select_for_today(["tf1.14", "tf2.0"], days=weekly.DAYS))
def test_both_solutions_remove_the_race_of_crop_and_resize(
    checkout: Project, tf_python: Callable[[str], Path], tmp_path: Path, key: str
) -> None:
    tf_python(key)
    cells = {("crop-and-resize-backprop", "ED"), ("bias-add-backprop", "TDP")}  # ED: enable_determinism(), TDP: patch()
    records = [
        record
        for source, solution in cells
        for record in records_of(
            checkout, key, tmp_path / f"{solution}.jsonl", "--source", source, "--solution", solution
        )
    ]
    solved = [record for record in records if record.solution != "none"]  # the control comes along
    assert {(r.source, r.solution) for r in solved} == cells
    assert {(r.observation, r.differed) for r in solved} == {("equal", 0)}
    assert {tuple(r.ran_on) for r in solved} == {("CPU:0",)}
