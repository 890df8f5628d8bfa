"""What the matrix knows of an installation, or of what a program calls in it."""

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
_MAX_LISTED_NAMES = 8  # of calls that match no source


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
    """error: an op differs.  warning: it may differ.  note: an enabled solution resolves it, or nothing is known.

    settled_by: solutions that would resolve it, or do.  calls: the program's calls of the op.  rule: for findings that
    belong to no source.
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
        """What the rule finds, and why."""
        return f"docs/reference/check-rules.md#{'sources' if self.source else self.rule}"

    def as_json(self) -> dict[str, Any]:
        calls = [_place(call) for call in self.calls]
        return {"level": self.level, "source": self.source, "rule": self.rule_id, "page": self.page,
                "text": self.text, "settled_by": list(self.settled_by), "calls": calls}  # fmt: skip


def _place(call: Call) -> dict[str, Any]:
    return {"name": call.name, "file": call.file, "line": call.line} | ({"cell": call.cell} if call.cell else {})


def match_builds(matrix: Matrix, installed: Mapping[str, str]) -> list[InstalledBuild]:
    """installed: {package: version}, names in lower case.  Of a framework that no environment is like: none."""
    found = []
    for package, version in sorted(installed.items()):
        like = [key for key, one in matrix.environments.items() if package in _packages(one)]
        exact = [key for key in like if matrix.environments[key].framework_version == version.partition("+")[0]]
        near = [key for key in like if _minor(matrix.environments[key].framework_version) == _minor(version)]
        if exact or near:
            found.append(InstalledBuild(package, version, (exact or near)[0], bool(exact)))
    return found


def _packages(environment: Environment) -> set[str]:
    pip = environment.pip
    return {re.split(r"[^\w-]", text)[0].lower() for text in (pip.cpu, pip.gpu)} if pip else set()


def _minor(version: str) -> str | None:
    known = leading_version(version)
    return ".".join(known.split(".")[:2]) if known else None


def check_program(
    status: Status, build: InstalledBuild, device: Device, program: Program | None, solutions: set[str]
) -> list[ProgramFinding]:
    """The worst first; of a program only what it calls.  Without one, also kernels that no source lists."""
    environment = status.matrix.environment(build.environment)
    matrix = status.matrix.for_framework(environment.framework)
    by_source = _cells(status, build.environment, device)
    reached, found = _reached(matrix, environment.framework, program) if program else ({}, [])
    if program:
        others = status.matrix.sources.keys() - matrix.sources.keys()
        found += _unused_ignores(program, reached, {one for one in program.ignores if one.rule not in others})
        reached = _without_ignored(reached, program.ignores)
        found += _entropy_findings(program, solutions)
    for key, source in matrix.sources.items():
        if device in source.devices and (key in reached or program is None):
            found += list(_finding(key, source, by_source.get(key, []), solutions, reached.get(key, [])))
    if program is None and device == "gpu":
        found += _unlisted(status, build.environment, matrix.sources.values())
    return sorted(found, key=lambda one: ["error", "warning", "note"].index(one.level))


def _reached(
    matrix: Matrix, framework: str, program: Program
) -> tuple[dict[str, list[SourceMatch]], list[ProgramFinding]]:
    """By source; and what is to be said of calls of which nothing is known."""
    named = matrix.frameworks[framework]
    if named.naming is None:
        return {}, [
            _unknown_call_finding(
                "warning", f"how programs call {named.name} is not known: of this one nothing is told"
            )
        ]
    index = SourceIndex(named.naming, matrix.sources)
    reached: dict[str, list[SourceMatch]] = {}
    for reach in index.match_program(program):
        reached.setdefault(reach.source, []).append(reach)
    switches = {name for one in matrix.solutions.values() for step in one.switch for name, _ in patterns_by_name(step)}
    called = calls_of(named.naming, program)
    strange = [name for name in called if name not in switches and not index.sources_named(name)]
    return reached, list(_unknown(named, called, strange, bool(reached)))


def _without_ignored(
    reached: Mapping[str, Sequence[SourceMatch]], ignores: Set[Ignore]
) -> dict[str, list[SourceMatch]]:
    """Without the calls on whose line a comment names the source; a source of which no call is left is gone."""
    left = {
        source: [match for match in some if Ignore(source, *match.call.place) not in ignores]
        for source, some in reached.items()
    }
    return {source: some for source, some in left.items() if some}


def _entropy_findings(program: Program, solutions: set[str]) -> Iterator[ProgramFinding]:
    """One for each rule: whether a difference reaches a result, the text does not show."""
    by_rule: dict[Rule, list[Call]] = {}
    for rule, call in program.entropy:
        if Ignore(rule.id, *call.place) not in program.ignores:
            by_rule.setdefault(rule, []).append(call)
    for rule, some in by_rule.items():
        done = [name for name in rule.settled_by if name in solutions]
        text = f"{rule.title}; settled by {', '.join(done)}" if done else f"{rule.title}: {rule.mend}"
        yield ProgramFinding("note" if done else "warning", "", text, rule.settled_by, tuple(some), rule.id)


def _unused_ignores(
    program: Program, reached: Mapping[str, Sequence[SourceMatch]], ignores: Set[Ignore]
) -> Iterator[ProgramFinding]:
    places = {Ignore(source, *match.call.place) for source, some in reached.items() for match in some}
    places |= {Ignore(rule.id, *call.place) for rule, call in program.entropy}
    for one in sorted(ignores - places):
        call = Call(one.rule, one.file, one.line, one.cell)
        text = f"nothing on this line is found by {one.rule!r}, which its comment ignores"
        yield ProgramFinding("warning", "", text, calls=(call,), rule="unused-ignore")


def _unknown(framework: Framework, called: list[str], strange: list[str], reached: bool) -> Iterator[ProgramFinding]:
    if not called and not reached:
        yield _unknown_call_finding("note", f"this program calls nothing of {framework.name} by its name")
    elif strange:
        some = ", ".join(strange[:_MAX_LISTED_NAMES]) + (", ..." if len(strange) > _MAX_LISTED_NAMES else "")
        said = f"{len(strange)} of {len(called)} called names match no source: {some}"
        yield _unknown_call_finding("note" if reached else "warning", said)


def _unknown_call_finding(level: Level, text: str) -> ProgramFinding:
    return ProgramFinding(level, "", text, rule="unknown-calls")


def _cells(status: Status, environment: str, device: Device) -> dict[str, list[StatusCell]]:
    found: dict[str, list[StatusCell]] = {}
    for cell in status.cells:
        if cell.key.environment == environment and status.matrix.devices.claim_device(cell.key.device) == device:
            found.setdefault(cell.key.source, []).append(cell)
    return found


def _finding(
    key: str, source: Source, cells: list[StatusCell], solutions: set[str], reached: Sequence[SourceMatch]
) -> Iterator[ProgramFinding]:
    control = [cell for cell in cells if cell.key.solution == NONE]
    differs = next((cell for cell in control if cell.cell.verdict is Verdict.NONDETERMINISTIC), None)
    held = next(
        (cell for cell in control if cell.audited and cell.finding and cell.finding.kind == "order-dependent"), None
    )
    said = next((cell for cell in control if cell.claimed_outcome == "nondeterministic"), None)
    settle = tuple(sorted({cell.key.solution for cell in cells if _is_resolved_by(cell, cells)}))
    if not (differs or held or said):
        # A method of that name says too little to speak of what does not differ.
        if named := tuple(reach.call for reach in reached if not reach.method):
            yield ProgramFinding("note", key, f"{source.title}: nothing here shows that it differs", settle, named)
        return
    why = f"{source.title}: {_why(differs, held)}"
    if done := [name for name in settle if name in solutions]:
        calls = tuple(reach.call for reach in reached)
        yield ProgramFinding("note", key, f"{why}; settled by {', '.join(done)}", settle, calls)
        return
    sure = tuple(reach.call for reach in reached if not reach.may)
    if sure or not reached:
        yield ProgramFinding("error" if differs or held else "warning", key, why, settle, sure)
    if open_to := [reach for reach in reached if reach.may]:
        asked = " / ".join(dict.fromkeys(reach.may for reach in open_to))
        yield ProgramFinding(
            "warning", key, f"{why}, if it is so called: {asked}", settle, tuple(one.call for one in open_to)
        )


def _why(differs: StatusCell | None, held: StatusCell | None) -> str:
    if differs:
        return (
            f"differs ({differs.backing} on {differs.key.device}, {differs.cell.differed} of {differs.cell.runs} runs)"
        )
    return "its kernels depend on order (audited)" if held else "differs (documented)"


def _is_resolved_by(cell: StatusCell, cells: list[StatusCell]) -> bool:
    """Shown, or claimed and contradicted by nothing that was seen."""
    same = [one.cell for one in cells if one.key.solution == cell.key.solution]
    verdicts = {one.verdict for one in same}
    good = (
        any(one.is_shown_deterministic for one in same)
        or Verdict.RAISES in verdicts
        or cell.claimed_outcome in ("deterministic", "raises")
    )
    return cell.key.solution != NONE and good and Verdict.NONDETERMINISTIC not in verdicts


def _unlisted(status: Status, environment: str, sources: Iterable[Source]) -> list[ProgramFinding]:
    audited = status.audits.get(environment)
    if audited is None:
        return [ProgramFinding("note", "", f"binaries of {environment} not audited")]
    return [
        ProgramFinding(
            "warning", "", f"unlisted: {number} kernels of {family} depend on order, or may, and no source names them"
        )
        for family, number in count_by_family(audited.unclaimed(sources)).items()
    ]
