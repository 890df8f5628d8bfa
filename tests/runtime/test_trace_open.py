"""The trace level `unordered` records only ops that a graph leaves unordered.

There a race shows, and is named, that does not occur while every op is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from forks import Forks, Job, traced

from tfdeterminism.trace.causes import trace_diff

PROGRAMS = Path(__file__).resolve().parent / "collection"
RUNS = 6  # at most; on a machine that is at rest the first two differ

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize(
    ("key", "name"),
    [("tf2.21", "map_fn_random"), ("tf2.0", "map_fn_random"), ("tf1.14", "map_fn_random_session")],
)
def test_iterations_of_a_loop_overlap_as_without_tracing(
    forks: Callable[[str], Forks], tmp_path: Path, key: str, name: str
) -> None:
    program = PROGRAMS / f"{name}.py"
    first, *other_runs = [traced(tmp_path / str(run), program, options=("--level", "unordered")) for run in range(RUNS)]
    assert exit_code(forks(key), first) == 0
    for number, job in enumerate(other_runs, 1):
        assert exit_code(forks(key), job) == 0
        diff = trace_diff.compare([str(tmp_path / "0"), str(tmp_path / str(number))])
        if diff.culprits:
            break
    lines = program.read_text("utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if text.endswith("# <- culprit"))
    assert [(culprit["op_type"], culprit["class"], culprit["line"]) for culprit in diff.culprits] == [
        ("RandomStandardNormal", "unordered access", line)]  # fmt: skip


def exit_code(forks: Forks, job: Job) -> int:
    """Run the job; return its exit code."""
    (ran,) = forks.run([job])
    return ran.returncode


@pytest.mark.parametrize("key", ["tf2.21", "tf1.14"])
def test_iterations_recorded_in_another_order_are_no_difference(
    forks: Callable[[str], Forks], tmp_path: Path, key: str
) -> None:
    """The order in which iterations are recorded is random, their values are not."""
    program = tmp_path / "train.py"
    program.write_text(
        "import random, time\nimport numpy as np\nimport tensorflow as tf\n"
        "tf.compat.v1.disable_eager_execution()\n"
        "def give(row):\n    time.sleep(random.random() * 0.02)\n    return row * 2\n"
        "rows = tf.constant(np.arange(32, dtype=np.float32).reshape(16, 2))\n"
        "total = tf.reduce_sum(tf.map_fn(lambda row: tf.compat.v1.py_func(give, [row], tf.float32), rows,"
        " parallel_iterations=8))\n"
        "with tf.compat.v1.Session() as session:\n    print(session.run(total))\n"
    )
    folders = [tmp_path / str(run) for run in range(3)]
    for folder in folders:
        assert exit_code(forks(key), traced(folder, program, options=("--level", "unordered"))) == 0
    diff = trace_diff.compare([str(folder) for folder in folders])
    assert (diff.result, diff.culprits) == ("same", [])
    assert diff.compared >= 16
