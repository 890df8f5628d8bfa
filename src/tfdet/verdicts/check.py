"""What the matrix knows of an installation, or of what a program calls in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from tfdet.matrix.load import Matrix
from tfdet.matrix.models import NONE, Device, Environment, Solution, Source
from tfdet.matrix.ranges import leading_version
from tfdet.verdicts.findings import families
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.programs import Call, Program
from tfdet.verdicts.status import Status, StatusCell

Level = Literal["error", "warning", "note"]
_NAME = re.compile(r"\b(?:tf|tfa|torch|hvd)\.[\w.*/]+")


@dataclass(frozen=True)
class Build:
    """What is installed, and the environment of the matrix that is most like it.  same: of the very version."""

    package: str
    version: str
    environment: str
    same: bool


@dataclass(frozen=True)
class Finding:
    """error: it differs.  warning: it may.  note: a solution that is in effect settles it, or nothing is known.

    settled_by: what would settle it, or does.  calls: where the program asks for it.
    """

    level: Level
    source: str
    text: str
    settled_by: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()

    def as_json(self) -> dict[str, Any]:
        calls = [{"name": call.name, "file": call.file, "line": call.line} for call in self.calls]
        return {"level": self.level, "source": self.source, "text": self.text, "settled_by": list(self.settled_by),
                "calls": calls}  # fmt: skip


def builds(matrix: Matrix, installed: Mapping[str, str]) -> list[Build]:
    """installed: {package: version}, names in lower case.  Of a framework that no environment is like: none."""
    found = []
    for package, version in sorted(installed.items()):
        like = [key for key, one in matrix.environments.items() if package in _packages(one)]
        exact = [key for key in like if matrix.environments[key].framework_version == version.partition("+")[0]]
        near = [key for key in like if _minor(matrix.environments[key].framework_version) == _minor(version)]
        if exact or near:
            found.append(Build(package, version, (exact or near)[0], bool(exact)))
    return found


def _packages(environment: Environment) -> set[str]:
    pip = environment.pip
    return {re.split(r"[^\w-]", text)[0].lower() for text in (pip.cpu, pip.gpu)} if pip else set()


def _minor(version: str) -> str | None:
    known = leading_version(version)
    return ".".join(known.split(".")[:2]) if known else None


def in_effect(matrix: Matrix, program: Program | None, named: Iterable[str]) -> set[str]:
    """Solutions that are asked for, those that the program's own lines switch on, and what these include."""
    found = set(named)
    for key, solution in matrix.solutions.items() if program else ():
        found |= {key} if program and _switched_on(solution, program) else set()
    for key in list(found):
        found |= set(matrix.solutions[key].includes)
    return found


def _switched_on(solution: Solution, program: Program) -> bool:
    if solution.apply is None or not (solution.apply.call or solution.apply.env):
        return False
    called = {call.name.rpartition(".")[2] for call in program.calls}
    by_call = solution.apply.call is None or solution.apply.call in called
    return by_call and solution.apply.env.items() <= program.environ.items()


def findings(
    status: Status, build: Build, device: Device, program: Program | None, solutions: set[str]
) -> list[Finding]:
    """The worst first; of a program only what it calls.  Without one, also kernels that no source lists."""
    environment = status.matrix.environment(build.environment)
    sources = status.matrix.of(environment.framework).sources
    by_source = _cells(status, build.environment, device)
    found = []
    for key, source in sources.items():
        calls = tuple(call for call in program.calls if _is_of(call, source)) if program else ()
        if device in source.devices and (calls or program is None):
            found += list(_finding(key, source, by_source.get(key, []), solutions, calls))
    if program is None and device == "gpu":
        found += _unlisted(status, build.environment, sources.values())
    return sorted(found, key=lambda one: ["error", "warning", "note"].index(one.level))


def _cells(status: Status, environment: str, device: Device) -> dict[str, list[StatusCell]]:
    found: dict[str, list[StatusCell]] = {}
    for cell in status.cells:
        if cell.key.environment == environment and status.matrix.devices.claimed_as(cell.key.device) == device:
            found.setdefault(cell.key.source, []).append(cell)
    return found


def _is_of(call: Call, source: Source) -> bool:
    if call.name.startswith("tf.raw_ops."):
        return call.name.rpartition(".")[2] in source.raw_ops
    return any(fnmatchcase(call.name, name) for name in names(source))


def names(source: Source) -> list[str]:
    """As its `api` tells them: `tf.nn.conv1d/conv2d` are two."""
    found = []
    for text in _NAME.findall(source.api):
        first, *others = text.rstrip(".").split("/")
        parent = first.rpartition(".")[0]
        found += [first, *(other if "." in other else f"{parent}.{other}" for other in others)]
    return found


def _finding(
    key: str, source: Source, cells: list[StatusCell], solutions: set[str], calls: tuple[Call, ...]
) -> Iterator[Finding]:
    control = [cell for cell in cells if cell.key.solution == NONE]
    differs = next((cell for cell in control if cell.cell.verdict is Verdict.NONDETERMINISTIC), None)
    held = next(
        (cell for cell in control if cell.audited and cell.finding and cell.finding.what == "order-dependent"), None
    )
    said = next((cell for cell in control if cell.says == "nondeterministic"), None)
    settle = tuple(sorted({cell.key.solution for cell in cells if _settles(cell, cells)}))
    if not (differs or held or said):
        if calls:
            yield Finding("note", key, f"{source.title}: nothing here shows that it differs", settle, calls)
        return
    why = _why(differs, held)
    if done := [name for name in settle if name in solutions]:
        yield Finding("note", key, f"{source.title}: {why}; settled by {', '.join(done)}", settle, calls)
    else:
        yield Finding("error" if differs or held else "warning", key, f"{source.title}: {why}", settle, calls)


def _why(differs: StatusCell | None, held: StatusCell | None) -> str:
    if differs:
        return (
            f"differs ({differs.backing} on {differs.key.device}, {differs.cell.differed} of {differs.cell.runs} runs)"
        )
    return "its kernels depend on order (audited)" if held else "differs (documented)"


def _settles(cell: StatusCell, cells: list[StatusCell]) -> bool:
    """Shown, or claimed and contradicted by nothing that was seen."""
    verdicts = {one.cell.verdict for one in cells if one.key.solution == cell.key.solution}
    good = Verdict.DETERMINISTIC in verdicts or Verdict.RAISES in verdicts or cell.says in ("deterministic", "raises")
    return cell.key.solution != NONE and good and Verdict.NONDETERMINISTIC not in verdicts


def _unlisted(status: Status, environment: str, sources: Iterable[Source]) -> list[Finding]:
    audited = status.audits.get(environment)
    if audited is None:
        return [Finding("note", "", f"nobody read the binaries of {environment}")]
    return [
        Finding(
            "warning", "", f"unlisted: {number} kernels of {family} depend on order, or may, and no source names them"
        )
        for family, number in families(audited.unclaimed(sources)).items()
    ]
