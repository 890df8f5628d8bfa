"""Findings to report to a framework's developers: matrix/ops/<framework>/upstream.toml, which people write.

Docstrings and descriptions of the models are part of matrix/schema.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from tfdet.base.folders import is_there
from tfdet.matrix.field_types import StrictModel, Text
from tfdet.matrix.files import load_toml
from tfdet.matrix.source_readings import ReadingKind


class UpstreamFinding(StrictModel):
    """A finding about the disagreements of `kinds` on `ops`.  No ops: no op of the build has the nondeterminism tag."""

    key: Text = Field(pattern="^[a-z0-9-]+$")
    title: Text
    ops: list[Text]  # keys; empty: the finding is of builds in which no op has the tag nondeterministic_bitwise
    kinds: list[ReadingKind]
    description: Text = Field(description="the problem")
    request: Text = Field(description="the requested change")
    sources: dict[str, str] = Field(
        default={}, description="{file:line: URL}, in addition to the locations of the readings"
    )
    program: Text = Field(description="file of tests/runtime/upstream that reproduces the problem")
    reproducer_output: Text = Field(description="pattern of the program's output on a CPU")
    emulated_output: Text | None = Field(
        default=None, description="pattern of its output on the virtual GPU under the schedule random:1"
    )


class Upstream(StrictModel):
    """The content of upstream.toml."""

    findings: list[UpstreamFinding]


def load(folder: Path, framework: str) -> list[UpstreamFinding]:
    """Load the findings of a framework.  folder: matrix/."""
    path = folder / "ops" / framework / "upstream.toml"
    return load_toml(path, Upstream).findings if is_there(path) else []
