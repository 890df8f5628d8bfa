"""Referential integrity of matrix/: names that no file defines, claims that contradict each other."""

from __future__ import annotations

from pathlib import Path

from tfdet.base.errors import unknown_name_error
from tfdet.base.folders import is_folder, listed
from tfdet.matrix.call_patterns import patterns_by_name
from tfdet.matrix.files import line_of
from tfdet.matrix.models import Environment, Framework, Solution, Source


def find_unknown_frameworks(folder: Path) -> list[str]:
    """Folders named after a framework that frameworks/ does not define."""
    known = {path.stem for path in listed(folder / "frameworks", "*.toml")}
    inner = [path for name in ("environments", "sources", "solutions") for path in listed(folder / name)]
    return [
        f"{p}: {unknown_name_error('framework', p.name, known).cause}"
        for p in inner
        if is_folder(p) and p.name not in known
    ]


def _path(folder: Path, what: str, key: str, framework: str) -> Path:
    return folder / what / framework / f"{key}.toml"


def find_undefined_solutions(folder: Path, sources: dict[str, Source]) -> list[str]:
    """Solutions that a source names and that no file defines."""
    faults = []
    for key, source in sources.items():
        known = _defined(folder, source.framework)
        named = [s for claim in source.claims for s in claim.solutions]
        named += [
            *source.try_solutions,
            *(rule.solution for rule in source.exclude + source.known_failures if rule.solution),
        ]
        for name in sorted(set(named) - known):
            path = _path(folder, "sources", key, source.framework)
            lines = enumerate(path.read_text("utf-8").splitlines(), 1)
            line = next((number for number, text in lines if name in text), 1)  # it may be written as an escape
            faults.append(f"{path}:{line}: {unknown_name_error('solution', name, known).cause}")
    return faults


def _defined(folder: Path, framework: str) -> set[str]:
    """By file name, so that a solution with an invalid file is reported once, not wherever it is named."""
    files = [path for inner in ("", framework) for path in listed(folder / "solutions" / inner, "*.toml")]
    return {path.stem for path in files}


def find_invalid_includes(folder: Path, solutions: dict[str, Solution]) -> list[str]:
    """Solutions that include an undefined solution, or themselves."""
    faults = []
    for key, solution in solutions.items():
        known = _defined(folder, solution.framework)
        path = _path(folder, "solutions", key, solution.framework)
        where = f"{path}:{line_of(path.read_text('utf-8'), ('includes',)) if solution.includes else 1}"
        faults += [
            f"{where}: {unknown_name_error('solution', n, known).cause}" for n in solution.includes if n not in known
        ]
        if key in _all_includes(key, solutions):
            faults.append(f"{where}: {key} includes itself")
    return faults


def _all_includes(key: str, solutions: dict[str, Solution]) -> set[str]:
    """The solutions that a solution includes, transitively."""
    found: set[str] = set()
    ahead = [key]
    while ahead:
        solution = solutions.get(ahead.pop())
        new = set(solution.includes) - found if solution else set()
        found |= new
        ahead += new
    return found


def find_conflicting_claims(
    folder: Path, sources: dict[str, Source], environments: dict[str, Environment]
) -> list[str]:
    """Claims of one source that contradict each other about the same cell."""
    faults = []
    for key, source in sources.items():
        told: set[tuple[int, int]] = set()
        for name, environment in environments.items():
            first: dict[tuple[str, str], int] = {}
            for number, claim in enumerate(source.claims):
                if not claim.covers(environment):
                    continue
                for solution in claim.solutions:
                    earlier = first.setdefault((claim.device, solution), number)
                    if source.claims[earlier].outcome == claim.outcome or (earlier, number) in told:
                        continue
                    told.add((earlier, number))
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
    """Call patterns that no call of a program can match."""
    found = [
        ("sources", key, one.framework, "calls", name) for key, one in sources.items() for name, _ in one.call_patterns
    ]
    found += [
        ("solutions", key, one.framework, "switch", name)
        for key, one in solutions.items() for step in one.switch for name, _ in patterns_by_name(step)
    ]  # fmt: skip
    faults = []
    for what, key, framework, field, name in found:
        naming = frameworks[framework].naming if framework in frameworks else None
        known = naming.to_documented(name) if naming else name
        wrong = f"documentation has it as {known}" if known != name else ""
        if naming and what == "sources" and not naming.owns_documented_name(name):
            wrong = "it is nothing that programs of this framework import"
        if wrong:
            faults.append(f"{_path(folder, what, key, framework)}: {field}: {name}: {wrong}")
    return faults
