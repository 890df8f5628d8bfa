"""Programs with a known cause of their difference, each in a folder of `cause_programs/FRAMEWORK`, as users write them.

The README of that folder explains `expected.toml`.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "cause_programs"
FRAMEWORKS = ("torch", "tensorflow")
# Kinds of causes; each has at least two programs a framework, but for those that a framework has no example of.
# listing: of a folder; completion: the order of threads or tasks; memory: read before it is written; addresses: id();
# switches: an op that a deterministic switch mends; one-thread: an op's threads race; one-worker: who takes what.
KINDS = ("hash-seed", "clock", "pid", "random", "listing", "mtime", "files", "completion", "memory", "addresses",
         "switches", "one-thread", "one-worker")  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A kind of cause at a line, which is known by its text.  why: the reason why an alternative is right as well."""

    kind: str
    file: str
    text: str
    why: str = ""

    def line(self, folder: Path) -> int:
        """The number of the line; ValueError unless the file contains it exactly once."""
        lines = (folder / self.file).read_text("utf-8").splitlines()
        numbers = [number for number, line in enumerate(lines, 1) if line.strip() == self.text]
        if len(numbers) != 1:
            raise ValueError(f"{folder.name}: {self.file} has {len(numbers)} lines {self.text!r}")
        return numbers[0]

    def is_at(self, folder: Path, place: Mapping[str, Any]) -> bool:
        """Whether a place of an answer of `locate --json` is this place."""
        return Path(place["file"] or "").name == Path(self.file).name and place["line"] == self.line(folder)


@dataclass(frozen=True)
class Cause:
    """A cause: the place that an answer should name, and other places that are right, too."""

    place: Place
    alternatives: tuple[Place, ...]

    @property
    def places(self) -> tuple[Place, ...]:
        """The place that an answer should name, and the others that are right."""
        return (self.place, *self.alternatives)


@dataclass(frozen=True)
class Change:
    """Lines of a file, and what a good engineer writes instead. mends: the kind of one cause, of a program with two."""

    file: str
    old: str
    new: str
    mends: str = ""

    def apply(self, folder: Path) -> None:
        path = folder / self.file
        text = path.read_text("utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{folder.name}: {self.file} has {text.count(self.old)} times {self.old!r}")
        path.write_text(text.replace(self.old, self.new), "utf-8")


@dataclass(frozen=True)
class CauseProgram:
    """One program.

    Attributes:
        causes: none for a clean program.
        runs: in how many runs two surely differ; 2 unless it differs rarely.
        first_run_only: only the first run in a folder differs from all later ones.
    """

    folder: Path
    about: str
    causes: tuple[Cause, ...]
    fix: str
    changes: tuple[Change, ...]
    runs: int
    first_run_only: bool

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def framework(self) -> str:
        return self.folder.parent.name

    @property
    def kinds(self) -> set[str]:
        return {cause.place.kind for cause in self.causes}

    def copy(self, to: Path, fixed: bool = False, but: str = "") -> Path:
        """Copy the program, without its answers; fixed: and mend all causes, or all but the one of this kind."""
        shutil.copytree(self.folder, to, ignore=shutil.ignore_patterns("expected.toml", "__pycache__"))
        for change in self.changes if fixed else ():
            if not but or change.mends != but:
                change.apply(to)
        return to


def programs(framework: str, names: Iterable[str] = ()) -> list[CauseProgram]:
    """Return the programs of a framework, or those of these names; ValueError for an unknown name."""
    all_programs = {path.parent.name: _read(path) for path in sorted((FOLDER / framework).glob("*/expected.toml"))}
    if unknown := set(names) - set(all_programs):
        raise ValueError(f"no program of {framework}: {', '.join(sorted(unknown))}")
    return [all_programs[name] for name in names or all_programs]


def _read(path: Path) -> CauseProgram:
    """Read expected.toml."""
    content = tomllib.loads(path.read_text("utf-8"))
    program = CauseProgram(
        folder=path.parent,
        about=content.pop("about"),
        causes=tuple(_cause(entry) for entry in content.pop("causes", [])),
        fix=content.pop("fix", ""),
        changes=tuple(Change(**entry) for entry in content.pop("changes", [])),
        runs=content.pop("runs", 2),
        first_run_only=content.pop("first_run_only", False),
    )
    if content:
        raise ValueError(f"{path}: unknown: {', '.join(content)}")
    return program


def _cause(content: dict[str, Any]) -> Cause:
    alternatives = content.pop("also_accept", [])
    main = Place(**content)
    return Cause(main, tuple(Place(**{"kind": main.kind, "file": main.file, **entry}) for entry in alternatives))
