"""Reports for a framework's maintainers, a file for each finding with documentation, measurements, source code."""

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
    """The report on one finding.

    builds: those with the finding; may be empty.  others: those without it.
    disagreements: its disagreements in the newest of `builds`.  program: the text of a program that shows it.
    """

    finding: UpstreamFinding
    builds: list[OpComparison]
    others: list[OpComparison]
    disagreements: list[Disagreement]
    program: str

    @property
    def newest(self) -> OpComparison:
        return self.builds[-1]

    @property
    def rows(self) -> list[OpRow]:
        """The rows of its ops in the newest build."""
        return [row for row in self.newest.rows if row.op.key in self.finding.ops]

    @property
    def measured(self) -> list[tuple[str, str, str, str]]:
        """(op, build, column, mark) of all measurements, the newest build first."""
        return [
            (ops.title(row.op), f"{comparison.environment} ({comparison.ops.framework_version})", column.title, mark)
            for comparison in reversed([*self.others, *self.builds])
            for row in comparison.rows
            if row.op.key in self.finding.ops
            for column, mark in zip(comparison.columns, row.measured, strict=True)
            if mark
        ]

    @property
    def sources(self) -> dict[str, str]:
        """{file:line: URL} of the places in the source code."""
        places = {name: address for disagreement in self.disagreements for name, address in disagreement.places}
        return {**places, **self.finding.sources}

    @property
    def is_code_only(self) -> bool:
        """Whether only the code shows that it raises, without a run on a GPU."""
        ran_on_gpu = [
            (row.op.key, column)
            for comparison in self.builds
            for row in comparison.rows
            for column, verdict in row.verdicts.items()
            if row.op.key in self.finding.ops and verdict is not Verdict.BLANK
            if column.documented_device == GPU and column.solution == comparison.solution
        ]
        # alert-unlisted: the code raises, and the documentation does not say so.
        return "alert-unlisted" in self.finding.kinds and not ran_on_gpu

    @property
    def readings(self) -> list[str]:
        return list(dict.fromkeys(disagreement.read for disagreement in self.disagreements if disagreement.read))


def reports(project: Project, framework: str, comparisons: Sequence[OpComparison]) -> list[UpstreamReport]:
    return [_report(project, finding, comparisons) for finding in upstream.load(project.matrix, framework)]


def _report(project: Project, finding: UpstreamFinding, comparisons: Sequence[OpComparison]) -> UpstreamReport:
    """Return the report on a finding; if no build shows it, `builds` is empty, and its text says so.

    A finding without ops is that no op of a build has the tag for nondeterminism.
    """
    path = project.root / PROGRAMS / finding.program
    if not is_there(path):
        raise DataError(f"{finding.key}: no program {path}", "Each finding has one that shows it.")
    disagreements = {comparison.environment: list(_disagreements(finding, comparison)) for comparison in comparisons}
    builds = [
        comparison
        for comparison in comparisons
        if (disagreements[comparison.environment] if finding.ops else not comparison.tagged_count)
    ]
    others = [comparison for comparison in comparisons if comparison not in builds]
    newest = disagreements[builds[-1].environment] if builds else []
    return UpstreamReport(finding, builds, others, newest, path.read_text("utf-8").rstrip())


def _disagreements(finding: UpstreamFinding, comparison: OpComparison) -> Iterator[Disagreement]:
    return (
        disagreement
        for disagreement in comparison.disagreements
        if disagreement.row.op.key in finding.ops and disagreement.kind in finding.kinds
    )


def texts(project: Project, framework: str, comparisons: Sequence[OpComparison]) -> dict[Path, str]:
    """Return {file: its text} of all reports and their index; empty if the framework has no findings."""
    all_reports = reports(project, framework, comparisons)
    folder = project.root / "docs" / "reference" / "upstream" / framework
    template = files("tfdet.publish") / "templates" / _TEMPLATE
    compiled_template = markdown.template_environment({_TEMPLATE: template.read_text("utf-8")}).get_template(_TEMPLATE)
    pages: dict[str, UpstreamReport | None] = {
        INDEX: None,
        **{f"{report.finding.key}.md": report for report in all_reports},
    }
    return {
        folder / name: compiled_template.render(report=report, reports=all_reports, title=ops.title)
        for name, report in pages.items()
        if all_reports
    }
