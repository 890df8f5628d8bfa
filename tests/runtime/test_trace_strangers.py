"""Replaying an untrusted file of captured inputs in a real TensorFlow only computes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from forks import TRACE, Forks, Job
from traces import TraceBuilder

pytestmark = pytest.mark.tensorflow


def _capture_file(folder: Path, op: str, attrs: list[object], *inputs: str) -> Path:
    """Write a file of captured inputs, and a trace (by a TraceBuilder) that names it; return the file's path."""
    arrays = {f"input_{n}": numpy.frombuffer(text.encode(), numpy.uint8) for n, text in enumerate(inputs)}
    arrays.update({f"lengths_{n}": numpy.array([len(text)]) for n, text in enumerate(inputs)})
    meta = {"framework": "tensorflow", "op": op, "outputs": 0, "eager_attrs": attrs, "dtypes": ["string"] * len(inputs),
            "shapes": [[]] * len(inputs), "device": ""}  # fmt: skip
    arrays["meta"] = numpy.frombuffer(json.dumps(meta).encode(), numpy.uint8)
    numpy.savez(folder / "capture-0.npz", **arrays)
    builder = TraceBuilder(folder / "trace-0.tfdt")
    builder._writer.capture(builder.op(op, op), occurrence=0, step=0, name="capture-0.npz")
    builder.end()
    return folder / "capture-0.npz"


@pytest.mark.parametrize("key", ["tf2.21", "tf2.0", "tf1.14"])
@pytest.mark.parametrize("named", [True, False])
def test_replay_of_an_untrusted_file_runs_only_computing_ops(
    forks: Callable[[str], Forks], tmp_path: Path, key: str, named: bool
) -> None:
    target = tmp_path / "written"
    capture = _capture_file(tmp_path, "WriteFile", [], str(target), "content")
    if not named:
        (tmp_path / "trace-0.tfdt").unlink()
    (ran,) = forks(key).run([Job([*TRACE, "replay", str(capture)])])
    assert (ran.returncode, ran.stdout, target.exists()) == (2, "", False)
    assert ("more than compute" if named else "holds no trace") in ran.stderr
