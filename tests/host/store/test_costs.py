"""The costs of replaced ops: stored as measured, rejected when damaged, shown beside the source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.cli.main import app
from tfdet.store.costs import Cost, costs_of_source, load, write

CROP = {
    "environment": "tf2.0", "device": "cpu", "patch": "crop-and-resize", "size": "256 boxes", "seconds": 0.05,
    "original_seconds": 0.002, "mib": 60.0, "original_mib": 0.5, "eager_seconds": 0.001, "original_eager_seconds": None,
    "repeats": 3, "tensorflow": "2.0.0",
    "processor": "one", "started": "2026-11-21T00:00:00+00:00",
}  # fmt: skip


def test_a_stored_cost_is_found_by_source(tmp_path: Path) -> None:
    project = Project(tmp_path)
    cost = Cost.model_validate(CROP)
    write(project, "cpu", "tf2.0", [cost])
    assert costs_of_source(project, "tf2.0", "crop-and-resize-backprop") == [cost]
    assert costs_of_source(project, "tf2.0", "segment-sum") == []
    assert costs_of_source(project, "tf2.1", "crop-and-resize-backprop") == []
    assert (round(cost.time_ratio, 3), cost.memory_ratio) == (25.0, 60.0)  # original memory counts as 1 MiB or more


@pytest.mark.parametrize(
    ("change", "reason"), [({"seconds": 0}, "seconds"), ({"more": 1}, "more"), ({"mib": None}, "mib"), (None, "JSON")]
)
def test_a_damaged_line_is_named(tmp_path: Path, change: dict[str, object] | None, reason: str) -> None:
    path = tmp_path / "tf2.0.jsonl"
    path.write_text(json.dumps(CROP) + "\n" + (json.dumps(CROP | change) if change else "{") + "\n")
    with pytest.raises(DataError, match=f"tf2.0.jsonl:2: .*{reason}"):
        load(path)


def test_show_prints_the_cost_of_a_replaced_op(copy: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    write(copy, "cpu", "tf2.0", [Cost.model_validate(CROP)])
    monkeypatch.setenv("TFDET_ROOT", str(copy.root))
    monkeypatch.setenv("COLUMNS", "200")
    output = CliRunner().invoke(app, ["show", "tf2.0", "crop-and-resize-backprop"]).output
    assert "what replacing the op costs" in output
    assert "× 25.0" in output and "× 60.0" in output


def test_every_stored_cost_is_valid(checkout: Project) -> None:
    for path in checkout.costs.glob("*/*.jsonl"):
        costs = load(path)
        assert costs and {(cost.device, cost.environment) for cost in costs} == {(path.parent.name, path.stem)}
