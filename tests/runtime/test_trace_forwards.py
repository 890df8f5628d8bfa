"""Each op of a gradient refers to the line of its forward op, in real TensorFlows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from forks import Forks, traced

from tfdeterminism.trace.align.table import AlignedPair, TraceTable
from tfdeterminism.trace.causes.forward_ops import ForwardOps

PROGRAM = Path(__file__).resolve().parent / "recorded" / "gradients.py"


def line_of(op: str) -> int:
    """Return the line of the program that is marked `# line: OP`."""
    lines = PROGRAM.read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# line: {op}"))


@pytest.mark.tensorflow
@pytest.mark.parametrize("how", ["eager", "function"])
@pytest.mark.parametrize("key", ["tf2.21", "tf2.0", "tf1.14"])
def test_each_gradient_knows_its_forward_op(forks: Callable[[str], Forks], tmp_path: Path, key: str, how: str) -> None:
    """TensorFlow stores no reference to some forward ops, and sums rows in other functions."""
    (done,) = forks(key).run([traced(tmp_path / "A", PROGRAM, how)])
    assert done.returncode == 0, done.stderr[-3000:]
    runs = [TraceTable(str(tmp_path / "A" / "trace-0.tfdt")) for _ in "AB"]
    forwards = ForwardOps(AlignedPair(*runs))
    for op in ("BiasAddGrad", "UnsortedSegmentSum"):
        definitions = [definition for definition in map(runs[0].definition, runs[0].ids()) if definition["op"] == op]
        lines = {(forwards.find(definition, 0) or definition)["line"] for definition in definitions}
        assert lines == {line_of(op)}, op
