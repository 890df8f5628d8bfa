"""Batch invariance: whether the bytes of a row depend on the rest of its batch (matrix/batches/<device>/<env>.jsonl).

These records are not evidence of determinism, and no verdict depends on them: a row that changes with its batch can be
the same in every run.  scripts/batch-invariance writes these files, and adds those of other machines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from tfdet.base.errors import DataError
from tfdet.base.files import write_atomic
from tfdet.base.folders import list_entries
from tfdet.base.paths import Project
from tfdet.matrix.field_types import StrictModel, Text, format_validation_error
from tfdet_probe.core import batches as probe

REMEASURE_COMMAND = "scripts/batch-invariance ENV"

Invariance = Literal["invariant", "depends", "unsteady", "not run", "stale"]


class Framework(StrictModel):
    name: Text
    version: Text


class Machine(StrictModel):
    """The properties of a machine that decide which kernels a framework selects."""

    processor: Text
    capability: Text = Field(description="capability of the processor that the framework uses")
    libraries: str
    cores: int = Field(ge=1)
    threads: int = Field(ge=1)


class BatchInvarianceRecord(StrictModel):
    """The result of one case: an op, a shape and a dtype, in batches of several sizes."""

    schema_: Literal[1] = Field(alias="schema")
    environment: Text
    framework: Framework
    device: Text = Field(description="cpu, or the name of a GPU")
    machine: Machine
    threads: Literal["default", "one"]
    case: Text
    op: Text
    shape: Text
    dtype: Text
    control: bool = Field(
        description="whether the case depends on the batch by construction, so that a dependence must show"
    )
    sizes: list[int] = Field(description="sizes of the tested batches")
    differs: list[int] = Field(description="sizes at which some row differs from the same row computed alone")
    depends_on: list[Literal["size", "position", "others", "unsteady"]] = Field(
        description="unsteady: repeating the same batch gave another result, so that the record shows nothing"
    )
    max_absolute: float = Field(ge=0, description="the largest difference from the row computed alone")
    digest: str = Field(description="digest of the row computed alone")
    runs: int = Field(ge=0)
    error: str = Field(description="why the case did not run; empty: it ran")
    method: Text = Field(description="hash of the code that produced the record")
    started: Text = Field(description="UTC")
    duration_seconds: float = Field(ge=0)

    def invariance(self, method: str) -> Invariance:
        """Return what the record shows.  method: the hash of the current code; with another one the record is stale."""
        if self.method != method:
            return "stale"
        if self.error:
            return "not run"
        if "unsteady" in self.depends_on:
            return "unsteady"
        return "depends" if self.depends_on else "invariant"

    @property
    def machine_key(self) -> tuple[str, str, str, str]:
        """The environment, device, processor and processor capability of the run."""
        return self.environment, self.device, self.machine.processor, self.machine.capability

    @property
    def key(self) -> tuple[str, ...]:
        """The key of a record; a new record replaces one with the same key."""
        return *self.machine_key, self.case, self.threads


def method_hash(project: Project, framework: str) -> str:
    """Return the hash of the current code."""
    return str(probe.method(probe.__file__, str(project.suite(framework) / "batches.py")))


def load_all(project: Project) -> list[BatchInvarianceRecord]:
    return [batch for path in list_entries(folder(project), "*/*.jsonl") for batch in load(path)]


def load(path: Path) -> list[BatchInvarianceRecord]:
    """Read the records of one file; raise DataError with the invalid line."""
    records = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            records.append(BatchInvarianceRecord.model_validate_json(line))
        except ValidationError as error:
            fault = format_validation_error(error.errors()[0], "line")
            raise DataError(f"{path}:{number}: {fault}", f"Measure again: {REMEASURE_COMMAND}") from error
    return records


def folder(project: Project) -> Path:
    return project.matrix / "batches"


def add(project: Project, new: Iterable[BatchInvarianceRecord]) -> list[Path]:
    """Add records to the stored ones, and replace those with the same key; return the paths of the written files."""
    by_key = {batch.key: batch for batch in load_all(project)}
    added = {batch.key: batch for batch in new}
    by_key.update(added)
    changed = sorted({_file(project, batch) for batch in added.values()})
    for path in changed:
        rows = sorted(
            (batch for batch in by_key.values() if _file(project, batch) == path), key=lambda batch: batch.key
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, "".join(batch.model_dump_json(by_alias=True) + "\n" for batch in rows))
    return changed


def _file(project: Project, batch: BatchInvarianceRecord) -> Path:
    device = re.sub(r"[^a-z0-9]+", "-", batch.device.lower()).strip("-")
    return folder(project) / device / f"{batch.environment}.jsonl"
