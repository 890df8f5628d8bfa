"""`pytest --tfdet` in a user's repository: which tests pass or fail, and what the report says."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import weekly
from fleets import ROOT
from pytest_sessions import ARGUMENTS, run_in, run_session

from tfdet.base.paths import cache_dir
from tfdet.store.records import read_records

GUIDE = (ROOT / "docs" / "how-to" / "test-your-own-op.md").read_text("utf-8")
# ARGUMENTS choose a fake framework and 5 repeats, in each of 2 processes.
MODULE = """
import itertools
import os
import numpy as np
from tfdet_probe import case

drawn = itertools.count()


@case("steady", modes=["host"], n=[1, 2])
def test_steady(make, n):
    return make.host(lambda: [np.arange(n)])


@case("drifting", modes=["host"])
def test_drifting(make):
    return make.host(lambda: [np.float32(next(drawn) // 4)])


@case("counting", modes=["host"])
def test_counting(make):
    return make.host(lambda: [np.array(["a", "b"][next(drawn) // 4 % 2])])


@case("broken", modes=["host"])
def test_broken(make):
    raise LookupError("no such layer")


def test_of_another_kind():
    assert True
"""
IMPORTING = """
import layer
import numpy as np
from tfdet_probe import case

@case("mine", modes=["host"])
def test_mine(make):
    return make.host(lambda: [np.float32(layer.value())])
"""


@pytest.fixture
def module_path(tmp_path: Path) -> Path:
    """Write MODULE to test_mine.py; return its path."""
    path = tmp_path / "test_mine.py"
    path.write_text(MODULE, "utf-8")
    return path


def test_cases_that_differ_or_crash_fail_and_others_pass(module_path: Path) -> None:
    done = run_session(module_path.parent, *ARGUMENTS, "--tfdet-out", "records")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "3 failed, 2 passed" in done.stdout
    assert "steady under none: not shown to differ, 0 of 20 runs differed" in done.stdout
    assert re.search(
        r"drifting under none: nondeterministic, \d+ of 10 runs differed \(at most by \d+ ulp\)", done.stdout
    )
    assert re.search(r"counting under none: nondeterministic, \d+ of 10 runs differed\n", done.stdout), "of no number"
    assert "LookupError: no such layer" in done.stdout
    records = list(read_records(module_path.parent / "records" / "test_mine.jsonl"))
    assert {(r.environment, r.source, r.runs) for r in records if r.observation == "equal"} == {("here", "steady", 10)}


def test_stored_records_are_used_only_for_unchanged_imports(module_path: Path) -> None:
    """A case's hash does not cover the modules under test."""
    module_path.write_text(IMPORTING, "utf-8")
    for value, passed in (("1", True), ("os.getpid()", False)):
        (module_path.parent / "layer.py").write_text(f"import os\n\n\ndef value():\n    return {value}\n")
        done = run_session(module_path.parent, *ARGUMENTS, "--tfdet-out", "records")
        assert (done.returncode == 0) is passed, done.stdout


def test_without_tfdet_no_case_runs(module_path: Path) -> None:
    done = run_session(module_path.parent)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout


def test_a_module_of_no_framework_is_reported(module_path: Path) -> None:
    done = run_session(module_path.parent, "--tfdet", "-k", "steady")
    assert "test_mine.py imports no framework: name one by --tfdet-framework" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tfdet-schedules", "3"], "--tfdet-schedule requires --tfdet-device vgpu"),
        (["--tfdet-cpu-fallbacks"], "--tfdet-cpu-fallbacks requires --tfdet-device vgpu"),
        (["--tfdet-schedules", "0"], "0 is not a number of schedules"),
        (["--tfdet-device", "vgpu", "--tfdet-schedule", "random"], "--tfdet-schedule random: schedule not found"),
    ],
)
def test_options_of_the_virtual_gpu_are_checked(module_path: Path, words: list[str], message: str) -> None:
    done = run_session(module_path.parent, "--tfdet", *words)
    assert done.returncode == 4 and message in done.stderr


def test_an_unknown_solution_is_reported_with_advice(module_path: Path) -> None:
    done = run_session(module_path.parent, *ARGUMENTS, "--tfdet-solution", "TEODD", "-k", "steady")
    assert "no solution is called 'TEODD'" in done.stdout and "Did you mean TEOD" in done.stdout


@weekly.on_day(1)
@pytest.mark.tensorflow
def test_the_guide_is_followed_in_a_real_tensorflow(tf_python: Callable[[str], Path], tmp_path: Path) -> None:
    """Run both commands of the guide."""
    ((name, text),) = re.findall(r"^```python file=(\S+)\n(.*?)^```", GUIDE, re.M | re.S)
    (tmp_path / name).write_text(text, "utf-8")
    for line in re.findall(r"^\$ pytest (.*)", GUIDE, re.M):
        done = run_in(tf_python("tf2.21"), tmp_path, *line.split())
        assert done.returncode == 0, done.stdout + done.stderr
        assert "my-layer under" in done.stdout and "1 passed" in done.stdout


OF_TENSORFLOW = """
import tensorflow as tf
from tfdet_probe import case

@case("segments", unplaced="a sum of ours", modes=["eager"])
def test_segments(make):
    ids = make.integers(0, 7, (4096,))
    return make.forward(lambda x: tf.math.unsorted_segment_sum(x, ids, 7), [make.uniform((4096, 4))])

@case("steady", unplaced="a layer of ours", modes=["eager"])
def test_steady(make):
    return make.forward(lambda x: tf.nn.relu(x) * 2.0, [make.uniform((64, 7))])
"""
OF_PYTORCH = """
import torch
from tfdet_probe import case

@case("segments", unplaced="a sum of ours", modes=["eager"])
def test_segments(make):
    index, values = make.integers(0, 7, (4096,), "int64"), make.uniform((4096, 4))
    return make.forward(lambda i, x: x.new_zeros((7, 4)).index_add(0, i, x), [index, values])

@case("steady", unplaced="a layer of ours", modes=["eager"])
def test_steady(make):
    return make.forward(lambda x: torch.relu(x) * 2.0, [make.uniform((64, 7))])
"""


def on_the_virtual_gpu(folder: Path, environments: str, text: str, *words: str) -> str:
    """Return pytest's output in a real GPU build; skip where none is installed, as it is too large to download here."""
    own_packages = (
        f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"  # whose packages it borrows
    )
    folders = (complete.parent for complete in sorted(cache_dir().glob(f"venvs/{environments}-gpu-*/complete")))
    usable = [venv for venv in folders if (venv / own_packages).is_dir()]
    if not usable:
        pytest.skip(f"no {environments} for GPUs and this Python: tfdet run ENV --device vgpu makes one")
    (folder / "test_sums.py").write_text(text, "utf-8")
    done = run_in(usable[0] / "bin" / "python", folder, "--tfdet", *words)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    return done.stdout


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("environments", "text"), [("tf2.1[6-9]", OF_TENSORFLOW), ("torch2.*", OF_PYTORCH)], ids=["tensorflow", "torch"]
)
def test_a_case_that_differs_only_on_the_virtual_gpu_fails_there(tmp_path: Path, environments: str, text: str) -> None:
    device = ["--tfdet-device", "vgpu", "--tfdet-repeats", "3", "--tfdet-processes", "1"]
    output = on_the_virtual_gpu(tmp_path, environments, text, *device)
    assert "segments under none: nondeterministic" in output
    assert "steady under none: not shown to differ, 0 of" in output


@pytest.mark.tensorflow
def test_a_proved_case_passes(tmp_path: Path) -> None:
    output = on_the_virtual_gpu(tmp_path, "tf2.1[6-9]", OF_TENSORFLOW, "--prove")
    assert "steady under none: schedule-independent, 0 of 1 runs differed" in output


def test_the_guides_table_lists_the_options_and_defaults(module_path: Path) -> None:
    documented = dict(re.findall(r"^\| `--(tfdet-[a-z]+) ?([^`]*)`", GUIDE, re.M))
    helped = run_session(module_path.parent, "--help").stdout
    assert set(documented) == set(re.findall(r"--(tfdet-[a-z]+)", helped))
    for name in ("device", "repeats", "processes"):
        assert f"(default: {documented[f'tfdet-{name}']})" in helped[helped.index(f"--tfdet-{name}") :][:200]
