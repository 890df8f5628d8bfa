"""Checks across files of matrix/: names that no file defines, claims that contradict each other.

A source is a known source of nondeterminism; a solution is what makes it deterministic. A claim is what a cited
document says of a source in some versions. A cell is one environment, device, source and solution.
"""

from __future__ import annotations

from pathlib import Path

from tfdet.base.errors import unknown_name_error
from tfdet.base.folders import is_folder, list_entries
from tfdet.matrix.call_patterns import patterns_by_name
from tfdet.matrix.files import line_of
from tfdet.matrix.models import Environment, Framework, Solution, Source


def find_unknown_frameworks(folder: Path) -> list[str]:
    """Return faults: folders named after a framework that frameworks/ does not define."""
    known = {path.stem for path in list_entries(folder / "frameworks", "*.toml")}
    paths = [path for name in ("environments", "sources", "solutions") for path in list_entries(folder / name)]
    return [
        f"{path}: {unknown_name_error('framework', path.name, known).cause}"
        for path in paths
        if is_folder(path) and path.name not in known
    ]


def _path(folder: Path, subfolder: str, key: str, framework: str) -> Path:
    return folder / subfolder / framework / f"{key}.toml"


def find_undefined_solutions(folder: Path, sources: dict[str, Source]) -> list[str]:
    """Return faults: solutions that a source names and that no file defines."""
    faults = []
    for key, source in sources.items():
        known = _defined_solutions(folder, source.framework)
        named = [s for claim in source.claims for s in claim.solutions]
        named += [
            *source.try_solutions,
            *(rule.solution for rule in source.exclude + source.known_failures if rule.solution),
        ]
        for name in sorted(set(named) - known):
            path = _path(folder, "sources", key, source.framework)
            lines = enumerate(path.read_text("utf-8").splitlines(), 1)
            line = next((number for number, text in lines if name in text), 1)  # TOML escapes may hide the name
            faults.append(f"{path}:{line}: {unknown_name_error('solution', name, known).cause}")
    return faults


def _defined_solutions(folder: Path, framework: str) -> set[str]:
    """Return the keys of solutions by the file names: an invalid file is reported once, not at each use of its key."""
    files = [path for name in ("", framework) for path in list_entries(folder / "solutions" / name, "*.toml")]
    return {path.stem for path in files}


def find_invalid_includes(folder: Path, solutions: dict[str, Solution]) -> list[str]:
    """Return faults: solutions that include an undefined solution, or themselves."""
    faults = []
    for key, solution in solutions.items():
        known = _defined_solutions(folder, solution.framework)
        path = _path(folder, "solutions", key, solution.framework)
        where = f"{path}:{line_of(path.read_text('utf-8'), ('includes',)) if solution.includes else 1}"
        faults += [
            f"{where}: {unknown_name_error('solution', n, known).cause}" for n in solution.includes if n not in known
        ]
        if key in _all_includes(key, solutions):
            faults.append(f"{where}: {key} includes itself")
    return faults


def _all_includes(key: str, solutions: dict[str, Solution]) -> set[str]:
    """Return the solutions that a solution includes, transitively."""
    included: set[str] = set()
    pending = [key]
    while pending:
        solution = solutions.get(pending.pop())
        new = set(solution.includes) - included if solution else set()
        included |= new
        pending += new
    return included


def find_conflicting_claims(
    folder: Path, sources: dict[str, Source], environments: dict[str, Environment]
) -> list[str]:
    """Return faults: claims of one source that contradict each other about the same cell."""
    faults = []
    for key, source in sources.items():
        reported: set[tuple[int, int]] = set()
        for name, environment in environments.items():
            first: dict[tuple[str, str], int] = {}
            for number, claim in enumerate(source.claims):
                if not claim.covers(environment):
                    continue
                for solution in claim.solutions:
                    earlier = first.setdefault((claim.device, solution), number)
                    if source.claims[earlier].outcome == claim.outcome or (earlier, number) in reported:
                        continue
                    reported.add((earlier, number))
                    path = _path(folder, "sources", key, source.framework)
                    text = path.read_text("utf-8")
                    faults.append(
                        f"{path}:{line_of(text, ('claims', number))}: {solution} in {name} on the {claim.device} is "
                        f"claimed {claim.outcome} here and {source.claims[earlier].outcome} in line "
                        f"{line_of(text, ('claims', earlier))}"
                    )
    return faults


def find_unmatchable_calls(
    folder: Path, sources: dict[str, Source], solutions: dict[str, Solution], frameworks: dict[str, Framework]
) -> list[str]:
    """Return faults: call patterns that no call of a program can match."""
    names = [
        ("sources", key, source.framework, "calls", name)
        for key, source in sources.items()
        for name, _ in source.call_patterns
    ]
    names += [
        ("solutions", key, solution.framework, "switch", name)
        for key, solution in solutions.items() for step in solution.switch for name, _ in patterns_by_name(step)
    ]  # fmt: skip
    faults = []
    for subfolder, key, framework, field, name in names:
        naming = frameworks[framework].naming if framework in frameworks else None
        documented = naming.to_documented(name) if naming else name
        fault = f"documentation has it as {documented}" if documented != name else ""
        if naming and subfolder == "sources" and not naming.owns_documented_name(name):
            fault = "it is nothing that programs of this framework import"
        if fault:
            faults.append(f"{_path(folder, subfolder, key, framework)}: {field}: {name}: {fault}")
    return faults
