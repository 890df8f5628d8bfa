"""Compare an installed framework, or a program's calls to it, with the matrix: the findings of `tfdet check`.

The matrix has the known sources of nondeterminism, and the solutions, which make them deterministic.  A cell is one
environment, device, source and solution.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

from tfdet.matrix.call_patterns import patterns_by_name
from tfdet.matrix.field_types import Device
from tfdet.matrix.load import Matrix
from tfdet.matrix.models import NONE, Environment, Framework, Source
from tfdet.matrix.ranges import leading_version
from tfdet.verdicts.audit_findings import count_by_family
from tfdet.verdicts.entropy.rule import Rule
from tfdet.verdicts.ignore_comments import Ignore
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.programs import Call, Program
from tfdet.verdicts.reachable_sources import SourceIndex, SourceMatch, calls_of
from tfdet.verdicts.status import Status, StatusCell

Level = Literal["error", "warning", "note"]
_MAX_LISTED_NAMES = 8  # called names that match no source, in one message


@dataclass(frozen=True)
class InstalledBuild:
    """An installed framework, and the most similar environment of the matrix.

    exact_version: the environment has the same version.
    """

    package: str
    version: str
    environment: str
    exact_version: bool


@dataclass(frozen=True)
class ProgramFinding:
    """A finding about a source, or by a rule.

    level: `error` if an op differs, `warning` if it may differ, `note` if an enabled solution resolves it or nothing is
    known.  settled_by: solutions that resolve it, enabled or not.  calls: the program's calls of the op.
    rule: the rule of a finding without a source.
    """

    level: Level
    source: str
    text: str
    settled_by: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    rule: str = "unlisted-kernels"

    @property
    def rule_id(self) -> str:
        return self.source or self.rule

    @property
    def page(self) -> str:
        """The section of the documentation about the rule."""
        return f"docs/reference/check-rules.md#{'sources' if self.source else self.rule}"

    def as_json(self) -> dict[str, Any]:
        calls = [_place(call) for call in self.calls]
        return {"level": self.level, "source": self.source, "rule": self.rule_id, "page": self.page,
                "text": self.text, "settled_by": list(self.settled_by), "calls": calls}  # fmt: skip


def _place(call: Call) -> dict[str, Any]:
    return {"name": call.name, "file": call.file, "line": call.line} | (
        {"cell": call.notebook_cell} if call.notebook_cell else {}
    )


def match_builds(matrix: Matrix, installed: Mapping[str, str]) -> list[InstalledBuild]:
    """Return the installed frameworks of which the matrix has an environment with the same minor version.

    installed: {package: version}, with package names in lower case.
    """
    builds = []
    for package, version in sorted(installed.items()):
        candidates = [key for key, environment in matrix.environments.items() if package in _packages(environment)]
        exact = [key for key in candidates if matrix.environments[key].framework_version == version.partition("+")[0]]
        same_minor = [
            key for key in candidates if _minor(matrix.environments[key].framework_version) == _minor(version)
        ]
        if exact or same_minor:
            builds.append(InstalledBuild(package, version, (exact or same_minor)[0], bool(exact)))
    return builds


def _packages(environment: Environment) -> set[str]:
    pip = environment.pip
    return {re.split(r"[^\w-]", text)[0].lower() for text in (pip.cpu, pip.gpu)} if pip else set()


def _minor(version: str) -> str | None:
    leading = leading_version(version)
    return ".".join(leading.split(".")[:2]) if leading else None


def check_program(
    status: Status, build: InstalledBuild, device: Device, program: Program | None, solutions: set[str]
) -> list[ProgramFinding]:
    """Return the findings, the most severe first: for a program only those on its calls, else all of the build.

    Without a program, order-dependent kernels that no source lists are reported, too.
    """
    environment = status.matrix.environment(build.environment)
    matrix = status.matrix.for_framework(environment.framework)
    by_source = _cells_by_source(status, build.environment, device)
    reached, findings = _match_sources(matrix, environment.framework, program) if program else ({}, [])
    if program:
        other_sources = status.matrix.sources.keys() - matrix.sources.keys()
        findings += _unused_ignores(
            program, reached, {ignore for ignore in program.ignores if ignore.rule not in other_sources}
        )
        reached = _without_ignored(reached, program.ignores)
        findings += _entropy_findings(program, solutions)
    for key, source in matrix.sources.items():
        if device in source.devices and (key in reached or program is None):
            findings += list(_finding(key, source, by_source.get(key, []), solutions, reached.get(key, [])))
    if program is None and device == "gpu":
        findings += _unlisted(status, build.environment, matrix.sources.values())
    return sorted(findings, key=lambda finding: ["error", "warning", "note"].index(finding.level))


def _match_sources(
    matrix: Matrix, framework: str, program: Program
) -> tuple[dict[str, list[SourceMatch]], list[ProgramFinding]]:
    """Return ({source: the calls that reach it}, findings about calls that match no source)."""
    framework_model = matrix.frameworks[framework]
    if framework_model.naming is None:
        return {}, [
            _unknown_call_finding(
                "warning", f"how programs call {framework_model.name} is not known: of this one nothing is told"
            )
        ]
    index = SourceIndex(framework_model.naming, matrix.sources)
    reached: dict[str, list[SourceMatch]] = {}
    for match in index.match_program(program):
        reached.setdefault(match.source, []).append(match)
    switches = {  # calls that enable a solution
        name for solution in matrix.solutions.values() for step in solution.switch for name, _ in patterns_by_name(step)
    }
    called = calls_of(framework_model.naming, program)
    unmatched = [name for name in called if name not in switches and not index.sources_named(name)]
    return reached, list(_unmatched_call_findings(framework_model, called, unmatched, bool(reached)))


def _without_ignored(
    reached: Mapping[str, Sequence[SourceMatch]], ignores: Set[Ignore]
) -> dict[str, list[SourceMatch]]:
    """Remove the calls on whose line a comment ignores the source, and the sources without remaining calls."""
    remaining = {
        source: [match for match in matches if Ignore(source, *match.call.place) not in ignores]
        for source, matches in reached.items()
    }
    return {source: matches for source, matches in remaining.items() if matches}


def _entropy_findings(program: Program, solutions: set[str]) -> Iterator[ProgramFinding]:
    """Yield a finding for each rule: a warning, because the text does not show whether a result depends on it."""
    by_rule: dict[Rule, list[Call]] = {}
    for rule, call in program.entropy:
        if Ignore(rule.id, *call.place) not in program.ignores:
            by_rule.setdefault(rule, []).append(call)
    for rule, calls in by_rule.items():
        enabled = [name for name in rule.settled_by if name in solutions]
        text = f"{rule.title}; settled by {', '.join(enabled)}" if enabled else f"{rule.title}: {rule.advice}"
        yield ProgramFinding("note" if enabled else "warning", "", text, rule.settled_by, tuple(calls), rule.id)


def _unused_ignores(
    program: Program, reached: Mapping[str, Sequence[SourceMatch]], ignores: Set[Ignore]
) -> Iterator[ProgramFinding]:
    places = {Ignore(source, *match.call.place) for source, matches in reached.items() for match in matches}
    places |= {Ignore(rule.id, *call.place) for rule, call in program.entropy}
    for ignore in sorted(ignores - places):
        call = Call(ignore.rule, ignore.file, ignore.line, ignore.cell)
        text = f"nothing on this line is found by {ignore.rule!r}, which its comment ignores"
        yield ProgramFinding("warning", "", text, calls=(call,), rule="unused-ignore")


def _unmatched_call_findings(
    framework: Framework, called: list[str], unmatched: list[str], has_matches: bool
) -> Iterator[ProgramFinding]:
    if not called and not has_matches:
        yield _unknown_call_finding("note", f"this program calls nothing of {framework.name} by its name")
    elif unmatched:
        listed = ", ".join(unmatched[:_MAX_LISTED_NAMES]) + (", ..." if len(unmatched) > _MAX_LISTED_NAMES else "")
        text = f"{len(unmatched)} of {len(called)} called names match no source: {listed}"
        yield _unknown_call_finding("note" if has_matches else "warning", text)


def _unknown_call_finding(level: Level, text: str) -> ProgramFinding:
    return ProgramFinding(level, "", text, rule="unknown-calls")


def _cells_by_source(status: Status, environment: str, device: Device) -> dict[str, list[StatusCell]]:
    by_source: dict[str, list[StatusCell]] = {}
    for cell in status.cells:
        if cell.key.environment == environment and status.matrix.devices.claim_device(cell.key.device) == device:
            by_source.setdefault(cell.key.source, []).append(cell)
    return by_source


def _finding(
    key: str, source: Source, cells: list[StatusCell], solutions: set[str], matches: Sequence[SourceMatch]
) -> Iterator[ProgramFinding]:
    control = [cell for cell in cells if cell.key.solution == NONE]
    differs = next((cell for cell in control if cell.inferred.verdict is Verdict.NONDETERMINISTIC), None)
    audited = next(
        (cell for cell in control if cell.audited and cell.finding and cell.finding.kind == "order-dependent"), None
    )
    claimed = next((cell for cell in control if cell.claimed_outcome == "nondeterministic"), None)
    settled_by = tuple(sorted({cell.key.solution for cell in cells if _is_resolved_by(cell, cells)}))
    if not (differs or audited or claimed):
        # No note for a match by a method's name only, which is too uncertain.
        if calls := tuple(match.call for match in matches if not match.is_method_guess):
            yield ProgramFinding("note", key, f"{source.title}: nothing here shows that it differs", settled_by, calls)
        return
    text = f"{source.title}: {_reason(differs, audited)}"
    if enabled := [name for name in settled_by if name in solutions]:
        calls = tuple(match.call for match in matches)
        yield ProgramFinding("note", key, f"{text}; settled by {', '.join(enabled)}", settled_by, calls)
        return
    certain = tuple(match.call for match in matches if not match.open_condition)
    if certain or not matches:
        yield ProgramFinding("error" if differs or audited else "warning", key, text, settled_by, certain)
    # Those with a condition that the text of the call leaves open.
    if conditional := [match for match in matches if match.open_condition]:
        conditions = " / ".join(dict.fromkeys(match.open_condition for match in conditional))
        yield ProgramFinding(
            "warning",
            key,
            f"{text}, if it is so called: {conditions}",
            settled_by,
            tuple(match.call for match in conditional),
        )


def _reason(differs: StatusCell | None, audited: StatusCell | None) -> str:
    if differs:
        inferred = differs.inferred
        return f"differs ({differs.backing} on {differs.key.device}, {inferred.differed} of {inferred.runs} runs)"
    return "its kernels depend on order (audited)" if audited else "differs (documented)"


def _is_resolved_by(cell: StatusCell, cells: list[StatusCell]) -> bool:
    """Return whether a cell's solution is shown or claimed to resolve the source, and no run contradicts that."""
    same_solution = [other.inferred for other in cells if other.key.solution == cell.key.solution]
    verdicts = {inferred.verdict for inferred in same_solution}
    is_resolved = (
        any(inferred.is_shown_deterministic for inferred in same_solution)
        or Verdict.RAISES in verdicts
        or cell.claimed_outcome in ("deterministic", "raises")
    )
    return cell.key.solution != NONE and is_resolved and Verdict.NONDETERMINISTIC not in verdicts


def _unlisted(status: Status, environment: str, sources: Iterable[Source]) -> list[ProgramFinding]:
    audited = status.audits.get(environment)
    if audited is None:
        return [ProgramFinding("note", "", f"binaries of {environment} not audited")]
    return [
        ProgramFinding(
            "warning", "", f"unlisted: {number} kernels of {family} depend on order, or may, and no source names them"
        )
        for family, number in count_by_family(audited.kernels_without_source(sources)).items()
    ]
