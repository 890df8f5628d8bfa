"""Read matrix/: every fault of a file with its line, nothing half read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

import tomli
from pydantic import ValidationError

from tfdet.base.errors import DataError, unknown
from tfdet.matrix.models import NONE, Environment, Model, Solution, Source

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Matrix:
    """The claims' side of the matrix; keys are file names without .toml."""

    environments: dict[str, Environment]
    sources: dict[str, Source]
    solutions: dict[str, Solution]

    def environment(self, key: str) -> Environment:
        return _get("environment", key, self.environments)

    def source(self, key: str) -> Source:
        return _get("source", key, self.sources)

    def solution(self, key: str) -> Solution:
        return _get("solution", key, self.solutions)

    @cached_property
    def determinism_variables(self) -> list[str]:
        """Every environment variable that a solution sets, and the one that defeats two of them."""
        named = {name for solution in self.solutions.values() if solution.apply for name in solution.apply.env}
        return sorted(named | {"TF_CUDNN_USE_AUTOTUNE"})


def _get(kind: str, key: str, table: dict[str, M]) -> M:
    if key not in table:
        raise unknown(kind, key, table)
    return table[key]


def load_matrix(folder: Path) -> Matrix:
    """All of matrix/; raises DataError naming every fault of every file."""
    wanted = [folder / name for name in ("environments", "sources", "solutions")]
    faults = [f"{path}: no such folder" for path in wanted if not path.is_dir()]
    control = folder / "solutions" / f"{NONE}.toml"
    if not faults and not control.is_file():
        faults.append(f"{control}: not there; it is the control of every other solution")
    if faults:
        raise DataError("\n".join(faults), "Bring it back: git checkout matrix")
    environments = _load_folder(folder / "environments", Environment, faults)
    sources = _load_folder(folder / "sources", Source, faults)
    solutions = _load_folder(folder / "solutions", Solution, faults)
    faults += _dangling(folder, sources, solutions)
    faults += _includes(folder, solutions)
    faults += _disagreeing(folder, sources, environments)
    if faults:
        raise DataError("\n".join(faults), "Mend the named lines; nothing was read or written.")
    return Matrix(environments, sources, solutions)


def load_environments(folder: Path) -> dict[str, Environment]:
    """Those of matrix/ alone."""
    faults: list[str] = []
    found = _load_folder(folder / "environments", Environment, faults)
    if faults:
        raise DataError("\n".join(faults), "Mend the named lines; nothing was read or written.")
    return found


def _load_folder(folder: Path, model: type[M], faults: list[str]) -> dict[str, M]:
    found: dict[str, M] = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            found[path.stem] = load_file(path, model)
        except DataError as error:
            faults.append(error.cause)
    return dict(sorted(found.items(), key=lambda item: natural(item[0])))


@cache
def natural(key: str) -> tuple[tuple[int, int | str], ...]:
    """A sort key in which tf2.4 comes before tf2.10."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.findall(r"\d+|[^\d.]+", key))


def load_file(path: Path, model: type[M]) -> M:
    """One TOML file as `model`; DataError lists all its faults as file:line: reason."""
    try:
        text = path.read_text("utf-8")
        content = tomli.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}") from error
    except RecursionError as error:
        raise DataError(f"{path}:1: nested too deeply") from error
    except tomli.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        raise DataError(f"{path}:{line.group(1) if line else '?'}: {error}") from error
    try:
        return model.model_validate(content)
    except ValidationError as error:
        faults = [
            f"{path}:{line_of(text, fault['loc'])}: {'.'.join(map(str, fault['loc'])) or 'file'}: {fault['msg']}"
            for fault in error.errors()
        ]
        raise DataError("\n".join(faults)) from error


def line_of(text: str, location: tuple[int | str, ...]) -> int:
    """The line on which the value at `location` stands, or its nearest enclosing table."""
    lines = text.splitlines()
    at, end = 0, len(lines)
    path: list[str] = []
    for number, part in enumerate(location):
        if isinstance(part, int):
            continue
        path.append(part)
        index = location[number + 1] if number + 1 < len(location) else None
        headers = [
            i for i, line in enumerate(lines) if re.match(rf"\s*\[\[?\s*{re.escape('.'.join(path))}\s*\]", line)
        ]
        if headers:
            at = headers[index] if isinstance(index, int) and index < len(headers) else headers[0]
            end = next((i for i in range(at + 1, len(lines)) if lines[i].startswith("[")), len(lines))
            continue
        at = next((i for i in range(at, end) if re.match(rf'\s*"?{re.escape(part)}"?\s*=', lines[i])), at)
    return at + 1


def _dangling(folder: Path, sources: dict[str, Source], solutions: dict[str, Solution]) -> list[str]:
    """Solutions that a source names and no file defines."""
    known = _defined(folder, solutions)
    faults = []
    for key, source in sources.items():
        named = [s for claim in source.claims for s in claim.solutions]
        named += [*source.try_solutions, *(rule.solution for rule in source.exclude + source.known_failures if rule.solution)]
        for name in sorted(set(named) - known):
            path = folder / "sources" / f"{key}.toml"
            lines = enumerate(path.read_text("utf-8").splitlines(), 1)
            line = next((number for number, text in lines if name in text), 1)  # it may be written as an escape
            faults.append(f"{path}:{line}: {unknown('solution', name, known).cause}")
    return faults


def _defined(folder: Path, solutions: dict[str, Solution]) -> set[str]:
    """A solution whose file is faulty is told once, not again wherever it is named."""
    return set(solutions) | {path.stem for path in (folder / "solutions").glob("*.toml")}


def _includes(folder: Path, solutions: dict[str, Solution]) -> list[str]:
    """Solutions that include one that is not there, or themselves."""
    known = _defined(folder, solutions)
    faults = []
    for key, solution in solutions.items():
        path = folder / "solutions" / f"{key}.toml"
        where = f"{path}:{line_of(path.read_text('utf-8'), ('includes',)) if solution.includes else 1}"
        faults += [f"{where}: {unknown('solution', n, known).cause}" for n in solution.includes if n not in known]
        if key in _included(key, solutions):
            faults.append(f"{where}: {key} includes itself")
    return faults


def _included(key: str, solutions: dict[str, Solution]) -> set[str]:
    """All that a solution includes, and what those include."""
    found: set[str] = set()
    ahead = [key]
    while ahead:
        solution = solutions.get(ahead.pop())
        new = set(solution.includes) - found if solution else set()
        found |= new
        ahead += new
    return found


def _disagreeing(folder: Path, sources: dict[str, Source], environments: dict[str, Environment]) -> list[str]:
    """Claims of one source that say different things of the same cell."""
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
                    if source.claims[earlier].says == claim.says or (earlier, number) in told:
                        continue
                    told.add((earlier, number))
                    path = folder / "sources" / f"{key}.toml"
                    text = path.read_text("utf-8")
                    faults.append(
                        f"{path}:{line_of(text, ('claims', number))}: {solution} in {name} on the {claim.device} is "
                        f"claimed {claim.says} here and {source.claims[earlier].says} in line "
                        f"{line_of(text, ('claims', earlier))}"
                    )
    return faults
