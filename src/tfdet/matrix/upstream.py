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
    """ops, kinds: which disagreements it is made of; of no op: that no op has the tag of what is nondeterministic."""

    key: Text = Field(pattern="^[a-z0-9-]+$")
    title: Text
    ops: list[Text]
    kinds: list[ReadingKind]
    description: Text = Field(description="is the matter")
    request: Text = Field(description="what is asked for")
    sources: dict[str, str] = Field(default={}, description="file:line: address, beside those of what was read")
    program: Text = Field(description="that shows it: a file of tests/runtime/upstream")
    reproducer_output: Text = Field(description="what it prints on a processor, as a pattern")
    emulated_output: Text | None = Field(
        default=None, description="what it prints on the virtual GPU under the schedule random:1, as a pattern"
    )


class Upstream(StrictModel):
    """upstream.toml."""

    findings: list[UpstreamFinding]


def load(folder: Path, framework: str) -> list[UpstreamFinding]:
    """Load the findings of a framework.  folder: matrix/."""
    path = folder / "ops" / framework / "upstream.toml"
    return load_toml(path, Upstream).findings if is_there(path) else []
