"""Read matrix/: every fault of a file with its line, nothing half read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

from tfdet.base.errors import DataError, unknown_name_error
from tfdet.base.folders import is_folder, is_there, listed
from tfdet.matrix import ops
from tfdet.matrix.devices import DeviceKind, DeviceRegistry
from tfdet.matrix.field_types import StrictModel
from tfdet.matrix.files import line_of, read_toml, to_model
from tfdet.matrix.integrity import (
    find_conflicting_claims,
    find_invalid_includes,
    find_undefined_solutions,
    find_unknown_frameworks,
    find_unmatchable_calls,
)
from tfdet.matrix.keys import Keyring, PublicKey
from tfdet.matrix.models import NONE, Environment, Framework, Solution, Source

M = TypeVar("M", bound=StrictModel)
T = TypeVar("T")


@dataclass(frozen=True)
class Matrix:
    """The claims' side of the matrix; keys are file names without .toml."""

    frameworks: dict[str, Framework]
    environments: dict[str, Environment]
    sources: dict[str, Source]
    solutions: dict[str, Solution]
    devices: DeviceRegistry
    keys: Keyring = field(default_factory=Keyring)

    def environment(self, key: str) -> Environment:
        return _get("environment", key, self.environments)

    def source(self, key: str) -> Source:
        return _get("source", key, self.sources)

    def solution(self, key: str) -> Solution:
        return _get("solution", key, self.solutions)

    def for_framework(self, framework: str) -> Matrix:
        """Of one framework alone, and what is any framework's."""
        kept = ("", framework)
        return Matrix(
            {framework: self.frameworks[framework]},
            {key: one for key, one in self.environments.items() if one.framework in kept},
            {key: one for key, one in self.sources.items() if one.framework in kept},
            {key: one for key, one in self.solutions.items() if one.framework in kept},
            self.devices,
            self.keys,
        )

    @cached_property
    def for_published_framework(self) -> Matrix:
        """Of the framework whose tables and library this project publishes."""
        return self.for_framework(next(key for key, framework in self.frameworks.items() if framework.published))

    @cached_property
    def determinism_variables(self) -> list[str]:
        """Every environment variable that a solution sets, and those that defeat one."""
        named = {name for solution in self.solutions.values() if solution.apply for name in solution.apply.env}
        return sorted(named.union(*(framework.variables for framework in self.frameworks.values())))


def _get(kind: str, key: str, table: dict[str, M]) -> M:
    if key not in table:
        raise unknown_name_error(kind, key, table)
    return table[key]


def load_matrix(folder: Path, own_keys: Path | None = None) -> Matrix:
    """All of matrix/; raises DataError naming every fault of every file.

    own_keys: where further keys lie that are believed.
    """
    wanted = [folder / name for name in ("frameworks", "devices", "environments", "sources", "solutions")]
    faults = [f"{path}: no such folder" for path in wanted if not is_folder(path)]
    control = folder / "solutions" / f"{NONE}.toml"
    if not faults and not is_there(control):
        faults.append(f"{control}: not there; it is the control of every other solution")
    if faults:
        raise DataError("\n".join(faults), "Restore it: git checkout matrix")
    environments = _load_folders(folder / "environments", Environment, faults)
    written = _load_folders(folder / "sources", Source, faults)
    found = Matrix(
        _load_folder(folder / "frameworks", Framework, faults),
        environments,
        ops.sources(folder, environments) | written,
        _load_folders(folder / "solutions", Solution, faults),
        DeviceRegistry(_load_folder(folder / "devices", DeviceKind, faults)),
        _load_keys(folder / "keys", own_keys, faults),
    )
    faults += [f"{folder}/{fault}" for fault in found.keys.find_faults(found.devices.kinds)]
    faults += find_unknown_frameworks(folder)
    faults += find_undefined_solutions(folder, written)
    faults += find_invalid_includes(folder, found.solutions)
    faults += find_conflicting_claims(folder, written, environments)
    faults += find_unmatchable_calls(folder, written, found.solutions, found.frameworks)
    faults += ops.find_faults(folder)
    return _raise_if_invalid(found, faults)


def _load_keys(brought: Path, own: Path | None, faults: list[str]) -> Keyring:
    """A key that came with tfdet gives way to none: it may be a revoked one."""
    found = _load_folder(brought, PublicKey, faults)
    more = _load_folder(own, PublicKey, faults) if own and own != brought else {}
    faults += [f"{own}/{name}.toml: tfdet has a key of that name: choose another" for name in more if name in found]
    return Keyring(more | found)


def load_frameworks(folder: Path) -> dict[str, Framework]:
    """Those of matrix/ alone."""
    faults: list[str] = []
    return _raise_if_invalid(_load_folder(folder / "frameworks", Framework, faults), faults)


def load_environments(folder: Path) -> dict[str, Environment]:
    """Those of matrix/ alone."""
    faults: list[str] = []
    return _raise_if_invalid(_load_folders(folder / "environments", Environment, faults), faults)


def _raise_if_invalid(found: T, faults: list[str]) -> T:
    """What was found; DataError where anything is wrong with it."""
    if faults:
        raise DataError("\n".join(faults), "Correct the named lines; nothing was read or written.")
    return found


def _load_folders(folder: Path, model: type[M], faults: list[str]) -> dict[str, M]:
    """What lies in the folder is any framework's, what lies in a folder of it that framework's."""
    found = _load_folder(folder, model, faults)
    for inner in filter(is_folder, listed(folder)):
        some = _load_folder(inner, model, faults, inner.name)
        faults += [f"{inner / key}.toml: another framework has a {key}.toml too" for key in some.keys() & found.keys()]
        found |= some
    return dict(sorted(found.items(), key=lambda item: natural_sort_key(item[0])))


def _load_folder(folder: Path, model: type[M], faults: list[str], framework: str = "") -> dict[str, M]:
    found: dict[str, M] = {}
    for path in listed(folder, "*.toml"):
        try:
            found[path.stem] = load_file(path, model, framework)
        except DataError as error:
            faults.append(error.cause)
    return dict(sorted(found.items(), key=lambda item: natural_sort_key(item[0])))


@cache
def natural_sort_key(key: str) -> tuple[tuple[int, int | str], ...]:
    """A sort key in which tf2.4 comes before tf2.10."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.findall(r"\d+|[^\d.]+", key))


def load_file(path: Path, model: type[M], framework: str = "") -> M:
    """One TOML file as `model`; DataError lists all its faults as file:line: reason.

    framework: the folder that it lies in, where that means one.
    """
    text, content = read_toml(path)
    if "framework" in content:
        raise DataError(f"{path}:{line_of(text, ('framework',))}: framework: its folder says it, the file does not")
    return to_model(path, text, content | ({"framework": framework} if framework else {}), model)
