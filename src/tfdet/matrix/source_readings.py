"""What people read in a framework's sources where its lists disagree: matrix/ops/<framework>/confirmed.toml.

A place in the sources is a file and words of a line there.  scripts/extract-op-lists looks them up in each build, which
has those files, and keeps line numbers: a reading holds for the builds in which the first of its places was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from tfdet.base.folders import is_there
from tfdet.matrix.field_types import StrictModel, Text
from tfdet.matrix.files import load_toml

ReadingKind = Literal[
    "tolerance", "gradient", "documentation",
    "differs", "differs-under", "raises", "no-error", "alert-unlisted", "alert-against", "alert-missing",
    "compiled", "fails-under",
    "gpu-differs", "gpu-differs-under", "gpu-raises", "gpu-no-error", "gpu-compiled", "gpu-fails-under",
]  # fmt: skip

# Where a wheel has files of the repository that are no Python.
_PACKAGED = {"tools/autograd/": "torchgen/packaged/autograd/", "aten/src/ATen/": "torchgen/packaged/ATen/"}


class SourceLocation(StrictModel):
    """A line of the sources."""

    file: Text = Field(description="in the framework's repository")
    words: Text = Field(description="which that line holds, and no line before it")
    below: str = Field(default="", description="of a line above it: it is the first one below that")

    @property
    def key(self) -> str:
        return " / ".join(part for part in (self.file, self.below, self.words) if part)


class SourceExcerpt(StrictModel):
    """A line of the sources that no build carries: as it was read in a release."""

    file: Text = Field(description="in the framework's repository")
    line: int = Field(ge=1)
    words: Text = Field(description="which that line holds")


class Reading(StrictModel):
    """One reading."""

    ops: list[Text] = Field(min_length=1, description="their keys")
    kind: ReadingKind = Field(description="of what does not fit")
    finding: Text
    locations: list[SourceLocation] = Field(min_length=1)
    excerpts: list[SourceExcerpt] = Field(default=[], description="what was read besides, in the release of this file")


class Readings(StrictModel):
    """confirmed.toml."""

    repository: Text = Field(description="where the sources are, at the commit of a build")
    release: str = Field(default="", description="the tag at which lines of code were read")
    confirmed: list[Reading] = Field(default=[])


def load(folder: Path, framework: str) -> Readings:
    path = folder / "ops" / framework / "confirmed.toml"
    if not is_there(path):
        return Readings(repository="none")
    return load_toml(path, Readings)


def locate_lines(readings: Readings, installed: Path) -> dict[str, int]:
    """{a place's key: its line} of those that are in a build; installed: its site-packages."""
    found = {place.key: _line(place, installed) for place in _locations(readings)}
    return {key: number for key, number in found.items() if number}


def files_to_read(readings: Readings) -> set[str]:
    """Those of a build in which places are looked up."""
    return {_shipped(place.file) for place in _locations(readings)}


def _locations(readings: Readings) -> Iterator[SourceLocation]:
    for one in readings.confirmed:
        yield from one.locations


def _line(place: SourceLocation, installed: Path) -> int | None:
    path = installed / _shipped(place.file)
    if not is_there(path):
        return None
    above = not place.below
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if above and place.words in line:
            return number
        above = above or place.below in line
    return None


def _shipped(file: str) -> str:
    for source, packaged in _PACKAGED.items():
        if file.startswith(source):
            return packaged + file.removeprefix(source)
    return file


def find_reading(readings: Readings, known: Mapping[str, int], op: str, kind: str) -> Reading | None:
    """What was read of this op, if its first place is in that build."""
    for one in readings.confirmed:
        if op in one.ops and one.kind == kind and one.locations[0].key in known:
            return one
    return None


def find_faults(readings: Readings, ops: Iterable[str]) -> Iterator[str]:
    """Readings of ops that no build has, and code that was read nobody knows where."""
    keys = set(ops)
    if not readings.release:
        yield from (f"{one.ops[0]}: code of no release" for one in readings.confirmed if one.excerpts)
    yield from (f"{op}: no such op" for one in readings.confirmed for op in one.ops if op not in keys)
