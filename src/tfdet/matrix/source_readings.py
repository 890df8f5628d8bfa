"""Readings: findings of people in a framework's source code, about ops on which its lists disagree.

They are in matrix/ops/<framework>/confirmed.toml.  A location is a file and the text of a line in it.
scripts/extract-op-lists searches each build for the locations and stores their line numbers; a reading is valid for the
builds that contain its first location.

Docstrings and descriptions of the models are part of matrix/schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from tfdet.base.folders import is_there
from tfdet.matrix.field_types import StrictModel, Text
from tfdet.matrix.files import load_toml

# The kinds of disagreement of publish/op_comparison.py.  tolerance, gradient: the gradient tests against the
# documentation; documentation: two of its entries; compiled: torch.compile against eager mode; fails-under: runs with
# the deterministic switch against runs without.  alert: a call of alertNotDeterministic, which raises under that
# switch; unlisted, against, missing: compared with the documentation.  under: under that switch.
ReadingKind = Literal[
    "tolerance", "gradient", "documentation",
    "differs", "differs-under", "raises", "no-error", "alert-unlisted", "alert-against", "alert-missing",
    "compiled", "fails-under",
    "gpu-differs", "gpu-differs-under", "gpu-raises", "gpu-no-error", "gpu-compiled", "gpu-fails-under",
]  # fmt: skip

# {folder in the repository: folder in a wheel} of files that are not Python.
_PACKAGED = {"tools/autograd/": "torchgen/packaged/autograd/", "aten/src/ATen/": "torchgen/packaged/ATen/"}


class SourceLocation(StrictModel):
    """A line of the framework's sources that builds contain."""

    file: Text = Field(description="path in the framework's repository")
    words: Text = Field(description="text that the line contains and no earlier line does")
    below: str = Field(
        default="", description="text of an earlier line; the location is the first match of `words` below that line"
    )

    @property
    def key(self) -> str:
        return " / ".join(part for part in (self.file, self.below, self.words) if part)


class SourceExcerpt(StrictModel):
    """A line of the framework's sources that no build contains, as read in a release."""

    file: Text = Field(description="path in the framework's repository")
    line: int = Field(ge=1)
    words: Text = Field(description="text that the line contains")


class Reading(StrictModel):
    """One finding in the framework's source code about some ops."""

    ops: list[Text] = Field(min_length=1, description="keys of the ops")
    kind: ReadingKind = Field(description="kind of the disagreement")
    finding: Text
    locations: list[SourceLocation] = Field(min_length=1)
    excerpts: list[SourceExcerpt] = Field(default=[], description="further lines that were read, in `release`")


class Readings(StrictModel):
    """The content of confirmed.toml."""

    repository: Text = Field(description="URL of the sources, which are read at the commit of a build")
    release: str = Field(default="", description="tag of the release in which the excerpts were read")
    confirmed: list[Reading] = Field(default=[])


def load(folder: Path, framework: str) -> Readings:
    path = folder / "ops" / framework / "confirmed.toml"
    if not is_there(path):
        return Readings(repository="none")
    return load_toml(path, Readings)


def locate_lines(readings: Readings, installed: Path) -> dict[str, int]:
    """Return {key of a location: line number} for the locations in a build.  installed: its site-packages."""
    lines = {location.key: _find_line(location, installed) for location in _locations(readings)}
    return {key: number for key, number in lines.items() if number}


def files_to_read(readings: Readings) -> set[str]:
    """Return the files of a build that contain the locations."""
    return {_path_in_wheel(location.file) for location in _locations(readings)}


def _locations(readings: Readings) -> Iterator[SourceLocation]:
    for reading in readings.confirmed:
        yield from reading.locations


def _find_line(location: SourceLocation, installed: Path) -> int | None:
    """Return the number of the location's line in a build; None if the build does not contain it."""
    path = installed / _path_in_wheel(location.file)
    if not is_there(path):
        return None
    is_below = not location.below  # whether the line of `below` has been passed
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if is_below and location.words in line:
            return number
        is_below = is_below or location.below in line
    return None


def _path_in_wheel(file: str) -> str:
    for source, packaged in _PACKAGED.items():
        if file.startswith(source):
            return packaged + file.removeprefix(source)
    return file


def find_reading(readings: Readings, lines: Mapping[str, int], op: str, kind: str) -> Reading | None:
    """Return the reading of this kind about an op, if a build has its first location.  lines: of `locate_lines`."""
    for reading in readings.confirmed:
        if op in reading.ops and reading.kind == kind and reading.locations[0].key in lines:
            return reading
    return None


def find_faults(readings: Readings, ops: Iterable[str]) -> Iterator[str]:
    """Yield faults: readings of ops that no build has, and excerpts without the release that contains them."""
    keys = set(ops)
    if not readings.release:
        yield from (f"{reading.ops[0]}: code of no release" for reading in readings.confirmed if reading.excerpts)
    yield from (f"{op}: no such op" for reading in readings.confirmed for op in reading.ops if op not in keys)
