"""The targets of `tfdet audit`: resolves environments, NAME==VERSION, wheels, folders and libraries to files."""

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

    libraries: {display name: file}.  was_named: the user named each library, so a library without GPU code is a fault.
    """

    name: str
    libraries: dict[str, Path]
    environment: str | None = None
    wheel: Wheel | None = None
    was_named: bool = False
    faults: tuple[str, ...] = ()

    def display_name(self, library: str) -> str:
        """Return a library's name, preceded by the name of its wheel or folder."""
        return (
            library
            if self.was_named
            else f"{escape_hidden(self.wheel.path.name) if self.wheel else self.name}: {library}"
        )


def resolve(project: Project, matrix: Matrix, arguments: Iterable[str]) -> tuple[list[Target], list[TfdetError]]:
    """Return the targets and the errors of arguments that cannot be resolved.

    Each environment, package, wheel and folder is a target; all library files together are another one.
    UsageError, before any download, if an argument does not exist.
    """
    unique_arguments = list(dict.fromkeys(arguments))
    for argument in unique_arguments:
        _check_argument(matrix, argument)
    files = [a for a in unique_arguments if a not in matrix.environments and Path(a).is_file() and not _is_wheel(a)]
    targets: list[Target] = []
    errors: list[TfdetError] = []
    for argument in unique_arguments:
        if argument not in files:
            try:
                targets.append(_resolve_argument(project, matrix, argument))
            except TfdetError as error:
                errors.append(error)
    if files:
        targets.append(
            Target(escape_hidden(" ".join(files)), {escape_hidden(name): Path(name) for name in files}, was_named=True)
        )
    return targets, errors


def _check_argument(matrix: Matrix, argument: str) -> None:
    """Raise UsageError if the argument is not an environment, a requirement NAME==VERSION or an existing path.

    OSError for a path that leads nowhere, such as a circle of links.
    """
    if argument in matrix.environments or _exists(Path(argument)):
        return
    if _is_requirement(argument):
        package_index.parse_requirement(argument)
        return
    if "/" in argument or ".so" in argument or argument.endswith(".whl"):
        folder = Path(argument).parent
        names = [path.name for path in folder.iterdir() if path.exists()] if folder.is_dir() else []
        near = nearest(Path(argument).name, names)
        advice = f"Did you mean {' or '.join(str(folder / name) for name in near)}?" if near else "Give its path."
        raise UsageError(f"no such file: {argument}", advice)
    raise unknown_name_error("environment, wheel, folder, library or package==version", argument, matrix.environments)


def _exists(path: Path) -> bool:
    """Return whether a file exists; unlike Path.exists(), raise OSError where that cannot be known."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _resolve_argument(project: Project, matrix: Matrix, argument: str) -> Target:
    """Return the target of an environment, a requirement, a folder or a wheel; download a wheel if necessary."""
    if argument in matrix.environments:
        wheel = package_index.environment_wheel(project, argument, matrix.environment(argument))
        return _wheel_target(argument, wheel, argument)
    path = Path(argument)
    if not path.exists() and _is_requirement(argument):
        return _wheel_target(argument, package_index.package_wheel(package_index.parse_requirement(argument)), None)
    if path.is_dir():
        return _folder_target(path)
    return _wheel_target(argument, Wheel(path, sha256(path)), None)


def _is_requirement(argument: str) -> bool:
    return re.search("[=<>~!]=|[<>]", argument) is not None


def _is_wheel(argument: str) -> bool:
    return argument.endswith((".whl", ".zip"))


def _wheel_target(name: str, wheel: Wheel, environment: str | None) -> Target:
    unpacked = wheels.unpack(wheel)
    if not unpacked.libraries and not unpacked.faults:
        advice = "Give the wheel of a build for Linux; what is Python alone has its GPU code in packages it requires."
        raise UsageError(f"{wheel.path}: no shared library in it", advice)
    return Target(
        escape_hidden(name), unpacked.libraries, environment, wheel, faults=tuple(map(escape_hidden, unpacked.faults))
    )


def _folder_target(folder: Path) -> Target:
    """Return the shared libraries and the files of GPU code below a folder; files with several links count once."""
    all_names, faults = _find_libraries(folder)
    names: dict[Path, str] = {}
    for name in without_redundant_ptx(all_names):
        names.setdefault(resolve_links(folder / name), name)
    if not names and faults:
        raise DataError("\n".join(faults), "Change the permissions, or name what can be read.")
    if not names:
        raise UsageError(
            f"{folder}: no shared library or cubin below it",
            "Give the folder of an installed package, or one in which a compiler keeps its cubins.",
        )
    libraries = {escape_hidden(name): path for path, name in names.items()}
    return Target(escape_hidden(str(folder)), libraries, faults=tuple(map(escape_hidden, faults)))


def _find_libraries(folder: Path) -> tuple[list[str], list[str]]:
    """Return (names of files that may hold GPU code, errors). Path.rglob would ignore the errors."""
    names, errors = [], list[OSError]()
    for subfolder, _, files in os.walk(folder, onerror=errors.append):
        for path in (Path(subfolder, name) for name in files if wheels.is_library(name)):
            try:
                if stat.S_ISREG(path.stat().st_mode):
                    names.append(str(path.relative_to(folder)))
            except FileNotFoundError:
                continue  # a link to a file of another package, which is not installed
            except OSError as error:
                errors.append(error)
    return names, [from_os_error(error).cause for error in errors]
