"""Reports for a framework's maintainers are complete and based on data of the matrix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.matrix import upstream
from tfdet.publish.op_comparison import OpComparison, compare_ops
from tfdet.publish.upstream_reports import INDEX, PROGRAMS, reports, texts
from tfdet.verdicts.status import Status


@pytest.fixture(scope="module")
def comparisons(checkout: Project, status: Status) -> list[OpComparison]:
    return compare_ops(checkout.matrix, status, "torch")


def test_each_report_is_complete(checkout: Project, comparisons: list[OpComparison]) -> None:
    upstream_reports = reports(checkout, "torch", comparisons)
    texts_by_path = texts(checkout, "torch", comparisons)
    assert len(upstream_reports) >= 12
    for report in upstream_reports:
        assert report.builds, f"{report.finding.key} is taken out of upstream.toml"
        path = checkout.root / "docs" / "reference" / "upstream" / "torch" / f"{report.finding.key}.md"
        text = texts_by_path[path]
        assert text == path.read_text("utf-8")
        assert text.startswith(f"# {report.finding.title}\n")
        assert f"**Request:** {report.finding.request}" in text
        assert f"Affected builds: {report.builds[0].ops.framework_version}" in text
        assert "## What the documentation" in text
        assert f"```python\n{report.program}\n```" in text
        assert all(
            address.startswith("https://github.com/pytorch/pytorch/blob/") for address in report.sources.values()
        )
        assert report.sources, f"{report.finding.key}: no file and line"
        assert all(f"[{name}]({address})" in text for name, address in report.sources.items())
        assert all(disagreement.text in text for disagreement in report.disagreements)
        assert bool(report.disagreements) == bool(report.finding.ops)


def test_a_report_says_if_the_code_was_read_and_not_run(checkout: Project, comparisons: list[OpComparison]) -> None:
    """`unrun` is the comparisons without any verdict of a record."""
    unrun = [
        replace(comparison, rows=[replace(row, verdicts={}) for row in comparison.rows]) for comparison in comparisons
    ]
    code_only = [
        {report.finding.key: report.is_code_only for report in reports(checkout, "torch", compared)}
        for compared in (comparisons, unrun)
    ]
    assert [by_key["index-reduce"] for by_key in code_only] == [False, True]
    assert not any(by_key["lstsq-pivots"] for by_key in code_only)
    texts_by_path = {path.stem: text for path, text in texts(checkout, "torch", unrun).items()}
    assert "did not run on a GPU with the setting yet" in texts_by_path["index-reduce"]
    texts_by_path = {path.stem: text for path, text in texts(checkout, "torch", comparisons).items()}
    assert "did not run on a GPU with the setting yet" not in texts_by_path["take-backward"]
    assert "| `take` | torch2.11 (2.11.0) | nvidia-h100-80gb-hbm3, UDA | raises ×2 |" in texts_by_path["take-backward"]


def test_the_folder_contains_only_the_reports(checkout: Project, comparisons: list[OpComparison]) -> None:
    folder = checkout.root / "docs" / "reference" / "upstream" / "torch"
    texts_by_path = texts(checkout, "torch", comparisons)
    assert set(folder.iterdir()) == set(texts_by_path)
    findings = upstream.load(checkout.matrix, "torch")
    assert {path.name for path in (checkout.root / PROGRAMS).glob("*.py")} == {finding.program for finding in findings}
    assert all(f"]({finding.key}.md) |" in texts_by_path[folder / INDEX] for finding in findings)
    assert texts(checkout, "jax", []) == {}


def change_upstream_file(whole_copy: Project, old: str, new: str) -> Path:
    """Replace a text in the file of findings (upstream.toml); return its path."""
    path = whole_copy.matrix / "ops" / "torch" / "upstream.toml"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    return path


def test_a_finding_without_evidence_is_reported_as_such(whole_copy: Project, comparisons: list[OpComparison]) -> None:
    """Missing evidence does not prevent the tables from being written."""
    change_upstream_file(whole_copy, 'ops = ["logcumsumexp"]', 'ops = ["abs"]')
    texts_by_path = {path.stem: text for path, text in texts(whole_copy, "torch", comparisons).items()}
    assert "shows it in no build: there is nothing to send" in texts_by_path["logcumsumexp"]
    assert "(logcumsumexp.md) | none |" in texts_by_path["README"]
    assert texts(whole_copy, "torch", [])


def test_a_finding_without_a_program_is_refused(whole_copy: Project, comparisons: list[OpComparison]) -> None:
    change_upstream_file(whole_copy, 'program = "tags.py"', 'program = "tag.py"')
    with pytest.raises(DataError, match="tags: no program"):
        reports(whole_copy, "torch", comparisons)


def test_an_invalid_file_is_named_in_the_error(whole_copy: Project) -> None:
    path = change_upstream_file(whole_copy, 'kinds = ["differs"]', 'kinds = ["seems"]')
    with pytest.raises(DataError, match=str(path)):
        upstream.load(whole_copy.matrix, "torch")
