"""Texts for a framework's maintainers: each has what it needs, and stands on something that the matrix holds."""

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
def found(checkout: Project, status: Status) -> list[OpComparison]:
    return compare_ops(checkout.matrix, status, "torch")


def test_each_has_what_a_maintainer_needs(checkout: Project, found: list[OpComparison]) -> None:
    some = reports(checkout, "torch", found)
    made = texts(checkout, "torch", found)
    assert len(some) >= 12
    for report in some:
        assert report.builds, f"{report.finding.key} is taken out of upstream.toml"
        path = checkout.root / "docs" / "reference" / "upstream" / "torch" / f"{report.finding.key}.md"
        text = made[path]
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
        assert all(one.text in text for one in report.disagreements)
        assert bool(report.disagreements) == bool(report.finding.ops)


def test_what_was_read_alone_is_not_called_run(checkout: Project, found: list[OpComparison]) -> None:
    """index_reduce was run under the flag, on the virtual GPU; here it is taken for one that was not."""
    unrun = [replace(join, rows=[replace(row, verdicts={}) for row in join.rows]) for join in found]
    code_only = [
        {report.finding.key: report.is_code_only for report in reports(checkout, "torch", joins)}
        for joins in (found, unrun)
    ]
    assert [one["index-reduce"] for one in code_only] == [False, True]
    assert not any(one["lstsq-pivots"] for one in code_only)
    made = {path.stem: text for path, text in texts(checkout, "torch", unrun).items()}
    assert "did not run on a GPU with the setting yet" in made["index-reduce"]
    made = {path.stem: text for path, text in texts(checkout, "torch", found).items()}
    assert "did not run on a GPU with the setting yet" not in made["take-backward"]
    assert "| `take` | torch2.11 (2.11.0) | nvidia-h100-80gb-hbm3, UDA | raises ×2 |" in made["take-backward"]


def test_nothing_else_lies_there(checkout: Project, found: list[OpComparison]) -> None:
    folder = checkout.root / "docs" / "reference" / "upstream" / "torch"
    made = texts(checkout, "torch", found)
    assert set(folder.iterdir()) == set(made)
    findings = upstream.load(checkout.matrix, "torch")
    assert {path.name for path in (checkout.root / PROGRAMS).glob("*.py")} == {one.program for one in findings}
    assert all(f"]({one.key}.md) |" in made[folder / INDEX] for one in findings)
    assert texts(checkout, "jax", []) == {}


def write(whole_copy: Project, old: str, new: str) -> Path:
    path = whole_copy.matrix / "ops" / "torch" / "upstream.toml"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    return path


def test_a_finding_that_no_build_shows_says_so(whole_copy: Project, found: list[OpComparison]) -> None:
    """Other evidence, or none, does not keep tables from being written."""
    write(whole_copy, 'ops = ["logcumsumexp"]', 'ops = ["abs"]')
    made = {path.stem: text for path, text in texts(whole_copy, "torch", found).items()}
    assert "shows it in no build: there is nothing to send" in made["logcumsumexp"]
    assert "(logcumsumexp.md) | none |" in made["README"]
    assert texts(whole_copy, "torch", [])


def test_a_finding_without_a_program_is_refused(whole_copy: Project, found: list[OpComparison]) -> None:
    write(whole_copy, 'program = "tags.py"', 'program = "tag.py"')
    with pytest.raises(DataError, match="tags: no program"):
        reports(whole_copy, "torch", found)


def test_a_file_that_cannot_be_read_is_named(whole_copy: Project) -> None:
    path = write(whole_copy, 'kinds = ["differs"]', 'kinds = ["seems"]')
    with pytest.raises(DataError, match=str(path)):
        upstream.load(whole_copy.matrix, "torch")
