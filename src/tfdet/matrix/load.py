"""Loading of matrix/ as a whole: returns a valid Matrix, or reports all faults of all files.

An environment is one pinned software stack. A source is a known source of nondeterminism; a solution is what makes it
deterministic; the control is the solution `none`, which changes nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

from tfdet.base.errors import DataError, unknown_name_error
from tfdet.base.folders import is_folder, is_there, list_entries
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
    """The files of matrix/ that people write; keys are file names without .toml."""

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
        """Return the matrix of one framework alone, with the entries that are valid for any framework."""
        accepted = ("", framework)
        return Matrix(
            {framework: self.frameworks[framework]},
            {key: entry for key, entry in self.environments.items() if entry.framework in accepted},
            {key: entry for key, entry in self.sources.items() if entry.framework in accepted},
            {key: entry for key, entry in self.solutions.items() if entry.framework in accepted},
            self.devices,
            self.keys,
        )

    @cached_property
    def for_published_framework(self) -> Matrix:
        """Return the matrix of the framework whose tables and library this project publishes."""
        return self.for_framework(next(key for key, framework in self.frameworks.items() if framework.published))

    @cached_property
    def determinism_variables(self) -> list[str]:
        """Return all environment variables that solutions set, and others that influence determinism."""
        names = {name for solution in self.solutions.values() if solution.apply for name in solution.apply.env}
        return sorted(names.union(*(framework.variables for framework in self.frameworks.values())))


def _get(kind: str, key: str, table: dict[str, M]) -> M:
    if key not in table:
        raise unknown_name_error(kind, key, table)
    return table[key]


def load_matrix(folder: Path, own_keys: Path | None = None) -> Matrix:
    """Load all files of matrix/; DataError names every fault of every file.

    own_keys: a folder of further trusted keys.
    """
    required = [folder / name for name in ("frameworks", "devices", "environments", "sources", "solutions")]
    faults = [f"{path}: no such folder" for path in required if not is_folder(path)]
    control = folder / "solutions" / f"{NONE}.toml"
    if not faults and not is_there(control):
        faults.append(f"{control}: not there; it is the control of every other solution")
    if faults:
        raise DataError("\n".join(faults), "Restore it: git checkout matrix")
    environments = _load_folders(folder / "environments", Environment, faults)
    sources = _load_folders(folder / "sources", Source, faults)
    matrix = Matrix(
        _load_folder(folder / "frameworks", Framework, faults),
        environments,
        ops.load_sources(folder, environments) | sources,
        _load_folders(folder / "solutions", Solution, faults),
        DeviceRegistry(_load_folder(folder / "devices", DeviceKind, faults)),
        _load_keys(folder / "keys", own_keys, faults),
    )
    faults += [f"{folder}/{fault}" for fault in matrix.keys.find_faults(matrix.devices.kinds)]
    faults += find_unknown_frameworks(folder)
    faults += find_undefined_solutions(folder, sources)
    faults += find_invalid_includes(folder, matrix.solutions)
    faults += find_conflicting_claims(folder, sources, environments)
    faults += find_unmatchable_calls(folder, sources, matrix.solutions, matrix.frameworks)
    faults += ops.find_faults(folder)
    return _raise_if_invalid(matrix, faults)


def _load_keys(folder: Path, own_folder: Path | None, faults: list[str]) -> Keyring:
    """Load the keys of both folders; a user's key cannot replace one of matrix/keys, which may be revoked."""
    keys = _load_folder(folder, PublicKey, faults)
    own_keys = _load_folder(own_folder, PublicKey, faults) if own_folder and own_folder != folder else {}
    faults += [
        f"{own_folder}/{name}.toml: tfdet has a key of that name: choose another" for name in own_keys if name in keys
    ]
    return Keyring(own_keys | keys)


def load_frameworks(folder: Path) -> dict[str, Framework]:
    """Load only the frameworks of matrix/."""
    faults: list[str] = []
    return _raise_if_invalid(_load_folder(folder / "frameworks", Framework, faults), faults)


def load_environments(folder: Path) -> dict[str, Environment]:
    """Load only the environments of matrix/."""
    faults: list[str] = []
    return _raise_if_invalid(_load_folders(folder / "environments", Environment, faults), faults)


def _raise_if_invalid(result: T, faults: list[str]) -> T:
    """Return the result; DataError if there are faults."""
    if faults:
        raise DataError("\n".join(faults), "Correct the named lines; nothing was read or written.")
    return result


def _load_folders(folder: Path, model: type[M], faults: list[str]) -> dict[str, M]:
    """Load the files of a folder, which are valid for any framework, and those of its subfolders, each for one."""
    entries = _load_folder(folder, model, faults)
    for subfolder in filter(is_folder, list_entries(folder)):
        new = _load_folder(subfolder, model, faults, subfolder.name)
        duplicates = new.keys() & entries.keys()
        faults += [f"{subfolder / key}.toml: another framework has a {key}.toml too" for key in duplicates]
        entries |= new
    return dict(sorted(entries.items(), key=lambda item: natural_sort_key(item[0])))


def _load_folder(folder: Path, model: type[M], faults: list[str], framework: str = "") -> dict[str, M]:
    entries: dict[str, M] = {}
    for path in list_entries(folder, "*.toml"):
        try:
            entries[path.stem] = load_file(path, model, framework)
        except DataError as error:
            faults.append(error.cause)
    return dict(sorted(entries.items(), key=lambda item: natural_sort_key(item[0])))


@cache
def natural_sort_key(key: str) -> tuple[tuple[int, int | str], ...]:
    """Return a sort key that compares digits as numbers: tf2.4 before tf2.10."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.findall(r"\d+|[^\d.]+", key))


def load_file(path: Path, model: type[M], framework: str = "") -> M:
    """Load one TOML file as `model`; DataError lists all its faults as file:line: reason.

    framework: the framework of the file's folder, if it has one.
    """
    text, content = read_toml(path)
    if "framework" in content:
        raise DataError(f"{path}:{line_of(text, ('framework',))}: framework: its folder says it, the file does not")
    return to_model(path, text, content | ({"framework": framework} if framework else {}), model)
