"""What `tfdet audit` is asked to read, to files on disk: environments, versions of packages, wheels, folders, files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tfdet.audit import package_index, wheels
from tfdet.audit.standalone_code import without_redundant_ptx
from tfdet.audit.wheels import Wheel
from tfdet.base.errors import DataError, TfdetError, UsageError, from_os_error, unknown_name_error
from tfdet.base.nearest import nearest
from tfdet.base.paths import Project
from tfdet.base.sanitize import escape_hidden
from tfdet.base.untrusted import resolve as resolve_links
from tfdet.base.untrusted import sha256
from tfdet.matrix.load import Matrix


@dataclass(frozen=True)
class Target:
    """One thing to audit.

    libraries: {display name: file}.  was_named: the user named each library, so that one without GPU code is a fault.
    """

    name: str
    libraries: dict[str, Path]
    environment: str | None = None
    wheel: Wheel | None = None
    was_named: bool = False
    faults: tuple[str, ...] = ()

    def display_name(self, library: str) -> str:
        """A library's name with that of what it came from."""
        return (
            library
            if self.was_named
            else f"{escape_hidden(self.wheel.path.name) if self.wheel else self.name}: {library}"
        )


def resolve(project: Project, matrix: Matrix, arguments: Iterable[str]) -> tuple[list[Target], list[TfdetError]]:
    """A target for each environment, package, wheel and folder; all files that are named by themselves are one target.

    UsageError, before anything is brought, where an argument is nothing that exists; what fails later is returned
    beside the targets that did not.
    """
    asked = list(dict.fromkeys(arguments))
    for argument in asked:
        _check(matrix, argument)
    loose = [a for a in asked if a not in matrix.environments and Path(a).is_file() and not _is_wheel(a)]
    targets: list[Target] = []
    failed: list[TfdetError] = []
    for argument in asked:
        if argument not in loose:
            try:
                targets.append(_resolve(project, matrix, argument))
            except TfdetError as error:
                failed.append(error)
    if loose:
        targets.append(
            Target(escape_hidden(" ".join(loose)), {escape_hidden(name): Path(name) for name in loose}, was_named=True)
        )
    return targets, failed


def _check(matrix: Matrix, argument: str) -> None:
    if argument in matrix.environments or Path(argument).exists():
        return
    if _is_requirement(argument):
        package_index.requirement(argument)
        return
    if "/" in argument or ".so" in argument or argument.endswith(".whl"):
        folder = Path(argument).parent
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        near = nearest(Path(argument).name, names)
        advice = f"Did you mean {' or '.join(str(folder / name) for name in near)}?" if near else "Give its path."
        raise UsageError(f"no such file: {argument}", advice)
    raise unknown_name_error("environment, wheel, folder, library or package==version", argument, matrix.environments)


def _resolve(project: Project, matrix: Matrix, argument: str) -> Target:
    if argument in matrix.environments:
        wheel = package_index.environment_wheel(project, argument, matrix.environment(argument))
        return _from_wheel(argument, wheel, argument)
    path = Path(argument)
    if not path.exists() and _is_requirement(argument):
        return _from_wheel(argument, package_index.any_wheel(package_index.requirement(argument)), None)
    if path.is_dir():
        return _from_folder(path)
    return _from_wheel(argument, Wheel(path, sha256(path)), None)


def _is_requirement(argument: str) -> bool:
    return re.search("[=<>~!]=|[<>]", argument) is not None


def _is_wheel(argument: str) -> bool:
    return argument.endswith((".whl", ".zip"))


def _from_wheel(name: str, wheel: Wheel, environment: str | None) -> Target:
    found = wheels.unpack(wheel)
    if not found.libraries and not found.faults:
        advice = "Give the wheel of a build for Linux; what is Python alone has its GPU code in packages it requires."
        raise UsageError(f"{wheel.path}: no shared library in it", advice)
    return Target(
        escape_hidden(name), found.libraries, environment, wheel, faults=tuple(map(escape_hidden, found.faults))
    )


def _from_folder(folder: Path) -> Target:
    """Every shared library and file of GPU code below a folder, each once, however many links lead to it."""
    there, faults = _below(folder)
    found: dict[Path, str] = {}
    for name in without_redundant_ptx(there):
        found.setdefault(resolve_links(folder / name), name)
    if not found and faults:
        raise DataError("\n".join(faults), "Change the permissions, or name what can be read.")
    if not found:
        raise UsageError(
            f"{folder}: no shared library or cubin below it",
            "Give the folder of an installed package, or one in which a compiler keeps its cubins.",
        )
    libraries = {escape_hidden(name): path for path, name in found.items()}
    return Target(escape_hidden(str(folder)), libraries, faults=tuple(map(escape_hidden, faults)))


def _below(folder: Path) -> tuple[list[str], list[str]]:
    """(names of what may hold code, why something cannot be read): Path.rglob takes that for nothing."""
    names, refused = [], list[OSError]()
    for inner, _, files in os.walk(folder, onerror=refused.append):
        for path in (Path(inner, name) for name in files if wheels.is_library(name)):
            try:
                if stat.S_ISREG(path.stat().st_mode):
                    names.append(str(path.relative_to(folder)))
            except FileNotFoundError:
                continue  # a link to what another package would have brought
            except OSError as error:
                refused.append(error)
    return names, [from_os_error(error).cause for error in refused]
