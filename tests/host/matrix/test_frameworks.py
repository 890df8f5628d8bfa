"""The data of a second framework stand beside TensorFlow's in matrix/, and neither affects the other.

The data are environments (software stacks), sources of nondeterminism, and claims of documents about them. A cell is a
source in an environment, on a device and under a solution, which makes the source deterministic.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.matrix.plan import plan_cells
from tfdet.publish import render
from tfdet.verdicts.status_loading import load_status

_FINGERPRINT = re.compile(r"fingerprint of all claims and records `\w+`")
FRAMEWORK = """
name = "Other"
package = "other"
cite = ["nowhere"]
lines = {stock = "Other"}
"""
SOURCE = """
title = "a sum of another framework"
group = "gpu-confirmed"
order = 1
api = "other.sum"
direction = "forward"
devices = ["gpu", "cpu"]
cite = ["nowhere"]

[[claims]]
stock = ">=1.0"
solutions = ["none"]
outcome = "nondeterministic"
cite = ["nowhere"]
"""


@pytest.fixture
def two_frameworks(copy: Project) -> Project:
    """A copy with an environment of another framework, of a version that TensorFlow has, too."""
    (copy.matrix / "frameworks" / "other.toml").write_text(FRAMEWORK, "utf-8")
    for kind in ("environments", "sources"):
        (copy.matrix / kind / "other").mkdir()
    (copy.matrix / "sources" / "other" / "other-sum.toml").write_text(SOURCE, "utf-8")
    environments = copy.matrix / "environments"
    shutil.copy(environments / "tensorflow" / "tf2.0.toml", environments / "other" / "other2.0.toml")
    return copy


def load_error(project: Project) -> str:
    """Return the message of the error that loading the matrix raises."""
    with pytest.raises(DataError) as caught:
        load_matrix(project.matrix)
    return caught.value.cause


def test_claims_apply_to_their_own_framework(two_frameworks: Project) -> None:
    matrix = load_matrix(two_frameworks.matrix)
    other = matrix.environment("other2.0")
    assert other.framework == "other"
    of_tensorflow = matrix.for_framework("tensorflow")
    assert "other2.0" not in of_tensorflow.environments
    assert not [c for source in of_tensorflow.sources.values() for c in source.claims if c.covers(other)]
    assert {(cell.source, cell.solution) for cell in plan_cells(matrix, "other2.0")} == {("other-sum", "none")}
    assert "other-sum" not in {cell.source for cell in plan_cells(matrix, "tf2.0")}


def test_another_framework_changes_no_cell_or_table_of_tensorflow(two_frameworks: Project, few: Path) -> None:
    before, after = load_status(Project(few)), load_status(two_frameworks)
    known = [cell.as_json() for cell in after.cells if cell.key.environment != "other2.0"]
    assert known == [cell.as_json() for cell in before.cells]
    assert {cell.key.source for cell in after.cells if cell.key.environment == "other2.0"} == {"other-sum"}
    for _, old, new in render._texts(two_frameworks, after):
        assert _FINGERPRINT.sub("", new) == _FINGERPRINT.sub("", old)


def test_a_folder_without_a_framework_is_reported(copy: Project) -> None:
    (copy.matrix / "sources" / "tensorflov").mkdir()
    assert "tensorflov: no framework is called 'tensorflov'" in load_error(copy)


def test_a_key_belongs_to_one_framework(two_frameworks: Project) -> None:
    sources = two_frameworks.matrix / "sources"
    shutil.move(sources / "other" / "other-sum.toml", sources / "other" / "reduce-sum.toml")
    assert "reduce-sum.toml: another framework has a reduce-sum.toml too" in load_error(two_frameworks)


def test_a_solution_of_another_framework_is_unknown(two_frameworks: Project) -> None:
    path = two_frameworks.matrix / "sources" / "other" / "other-sum.toml"
    path.write_text(SOURCE.replace('"none"', '"TDO"'), "utf-8")
    assert f"{path}:12: no solution is called 'TDO'" in load_error(two_frameworks)


def test_the_folder_decides_the_framework(copy: Project) -> None:
    path = copy.matrix / "sources" / "tensorflow" / "reduce-sum.toml"
    path.write_text('framework = "other"\n' + path.read_text("utf-8"), "utf-8")
    assert load_error(copy) == f"{path}:1: framework: its folder says it, the file does not"


def test_a_source_without_framework_is_run_in_each(two_frameworks: Project) -> None:
    sources = two_frameworks.matrix / "sources"
    shutil.move(sources / "other" / "other-sum.toml", sources / "any-sum.toml")
    matrix = load_matrix(two_frameworks.matrix)
    for key, solution in (("other2.0", "none"), ("tf2.0", "TDO")):
        assert ("any-sum", solution) in {(cell.source, cell.solution) for cell in plan_cells(matrix, key)}
