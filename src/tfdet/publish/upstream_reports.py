"""Texts for a framework's maintainers, a file a finding: what its lists say, what was seen, where, how to see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from tfdet.base.errors import DataError
from tfdet.base.folders import is_there
from tfdet.base.paths import Project
from tfdet.matrix import ops, upstream
from tfdet.matrix.devices import GPU
from tfdet.matrix.upstream import UpstreamFinding
from tfdet.publish import markdown
from tfdet.publish.op_comparison import Disagreement, OpComparison, OpRow
from tfdet.verdicts.infer import Verdict

PROGRAMS = Path("tests", "runtime", "upstream")
INDEX = "README.md"
_TEMPLATE = "upstream.j2"


@dataclass(frozen=True)
class UpstreamReport:
    """One finding, with the builds in which it shows, if any; found: its disagreements there, of the newest."""

    finding: UpstreamFinding
    builds: list[OpComparison]
    others: list[OpComparison]
    found: list[Disagreement]
    program: str

    @property
    def newest(self) -> OpComparison:
        return self.builds[-1]

    @property
    def rows(self) -> list[OpRow]:
        """Of the newest build."""
        return [row for row in self.newest.rows if row.op.key in self.finding.ops]

    @property
    def measured(self) -> list[tuple[str, str, str, str]]:
        """(op, build, where, mark) of all that ran, the newest build first."""
        return [
            (ops.title(row.op), f"{join.environment} ({join.ops.framework_version})", place.title, mark)
            for join in reversed([*self.others, *self.builds])
            for row in join.rows
            if row.op.key in self.finding.ops
            for place, mark in zip(join.columns, row.measured, strict=True)
            if mark
        ]

    @property
    def sources(self) -> dict[str, str]:
        """{file:line: address}"""
        read = {name: address for one in self.found for name, address in one.places}
        return {**read, **self.finding.sources}

    @property
    def is_code_only(self) -> bool:
        """Is it read out of code alone that it raises?"""
        ran = [
            (row.op.key, place)
            for join in self.builds
            for row in join.rows
            for place, verdict in row.verdicts.items()
            if row.op.key in self.finding.ops and verdict is not Verdict.BLANK
            if place.documented_device == GPU and place.solution == join.solution
        ]
        return "alert-unlisted" in self.finding.kinds and not ran

    @property
    def readings(self) -> list[str]:
        return list(dict.fromkeys(one.read for one in self.found if one.read))


def reports(project: Project, framework: str, joins: Sequence[OpComparison]) -> list[UpstreamReport]:
    return [_report(project, finding, joins) for finding in upstream.load(project.matrix, framework)]


def _report(project: Project, finding: UpstreamFinding, joins: Sequence[OpComparison]) -> UpstreamReport:
    """Where the evidence at hand shows it in no build, `builds` is empty, and its text says so."""
    path = project.root / PROGRAMS / finding.program
    if not is_there(path):
        raise DataError(f"{finding.key}: no program {path}", "Each finding has one that shows it.")
    found = {join.environment: list(_disagreements(finding, join)) for join in joins}
    builds = [join for join in joins if (found[join.environment] if finding.ops else not join.tagged)]
    others = [join for join in joins if join not in builds]
    newest = found[builds[-1].environment] if builds else []
    return UpstreamReport(finding, builds, others, newest, path.read_text("utf-8").rstrip())


def _disagreements(finding: UpstreamFinding, join: OpComparison) -> Iterator[Disagreement]:
    return (one for one in join.disagreements if one.row.op.key in finding.ops and one.kind in finding.kinds)


def texts(project: Project, framework: str, joins: Sequence[OpComparison]) -> dict[Path, str]:
    """{file: its text}, an index among them; none where nobody wrote of that framework."""
    some = reports(project, framework, joins)
    folder = project.root / "docs" / "reference" / "upstream" / framework
    template = files("tfdet.publish") / "templates" / _TEMPLATE
    made = markdown.template_environment({_TEMPLATE: template.read_text("utf-8")}).get_template(_TEMPLATE)
    pages: dict[str, UpstreamReport | None] = {INDEX: None, **{f"{report.finding.key}.md": report for report in some}}
    return {
        folder / name: made.render(report=report, reports=some, title=ops.title)
        for name, report in pages.items()
        if some
    }
