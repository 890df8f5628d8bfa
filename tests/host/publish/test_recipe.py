"""`tfdet recipe` prints lines that run, and the ops that they do not cover."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

import pytest
import weekly

from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.publish.recipe import recipe_text, remaining_rows
from tfdet.verdicts.infer import CellKey, InferredCell, Verdict
from tfdet.verdicts.remaining_sources import recipe_of, remaining
from tfdet.verdicts.status import Status


# TDP: tfdeterminism.patch.  TDO: TF_DETERMINISTIC_OPS.  TDO-FE: with TF_CUDNN_USE_FRONTEND, too.  TEOD:
# tf.config.experimental.enable_op_determinism().  ED, below: tfdeterminism.enable_determinism().
@pytest.mark.parametrize(
    ("key", "solution"),
    [
        ("tf1.13.1", None),
        ("tf1.14", "TDP"),
        ("tf2.0", "TDP"),
        ("tf2.1", "TDO"),
        ("tf2.6", "TDO-FE"),
        ("tf2.8", "TEOD"),
        ("tf2.21", "TEOD"),
        ("ngc19.06-py3", "TDO"),
        ("ngc22.03-tf1", "TDO"),
        ("ngc22.03-tf2", "TEOD"),
        ("ngc24.05-tf2", "TEOD"),
    ],
)
def test_the_recipe_is_that_of_the_table_row_of_the_version(checkout: Project, key: str, solution: str | None) -> None:
    matrix = load_matrix(checkout.matrix)
    assert recipe_of(matrix.environments[key]).solution == solution


def test_uncovered_ops_are_listed(status: Status) -> None:
    old, new = recipe_text(status, "tf2.0"), recipe_text(status, "tf2.21")
    avoid, patched = old.split("# covered by the package's replaced ops")
    assert "os.environ['TF_CUDNN_DETERMINISTIC'] = '1'" in old
    assert "`tf.nn.max_pool_with_argmax` backprop: no solution is documented" in avoid
    assert "`tf.math.segment_sum` forward: no solution is documented" in patched
    assert "`tf.math.segment_sum`" not in new
    assert "`tf.nn.max_pool_with_argmax` backprop: raises an error" in new


def test_emulated_differences_are_listed_where_no_document_has_a_claim(status: Status) -> None:
    """Few documents speak of TensorFlow 1.13; their claims take precedence."""
    before = {row.source: row for row in remaining(Status(status.matrix, {}), "tf1.15")}
    differ = ("contrib-resampler", "dilation2d-backprop")
    cells = {CellKey("tf1.15", "vgpu-sm70", source, "ED"): InferredCell(Verdict.NONDETERMINISTIC) for source in differ}
    after = {row.source: row for row in remaining(Status(status.matrix, cells), "tf1.15")}
    assert "contrib-resampler" not in before
    added = after.pop("contrib-resampler")
    assert (added.says, added.measured) == ("differs (emulated on vgpu-sm70)", False)
    assert after == before


@pytest.mark.tensorflow
@pytest.mark.parametrize("key", weekly.select_for_today(["tf2.0", "tf2.21"]))
def test_the_printed_lines_run(checkout: Project, status: Status, tf_python: Callable[[str], Path], key: str) -> None:
    text = recipe_text(status, key)
    section = text.split("# By hand")[1].splitlines()[1:]
    by_hand = "\n".join(line[4:] for line in takewhile(lambda line: line.startswith("#   "), section))
    assert "seed(1)" in by_hand
    for lines, message in ((text, "still nondeterministic"), (by_hand, "")):
        environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(checkout.runtime), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([tf_python(key), "-c", lines], env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert message in done.stdout


def test_claims_are_not_printed_as_measurements_of_a_gpu(status: Status) -> None:
    """Claims about GPUs are not measurements on an H100, even if an H100 measured other cells."""
    rows = [row for key in ("torch2.8", "torch2.13") for row in remaining_rows(status, key) if not row["measured"]]
    kinds = {kind.claim_device.upper() for kind in status.matrix.devices.kinds.values()}
    assert len(rows) > 10
    assert {row["says"] for row in rows} <= {f"raises an error on a {k} (documented, not measured)" for k in kinds}
