"""matrix/audits/<environment>.json: what the audit of a wheel found, written by the tool, sorted, a kernel a line.

Kernels that can depend on order, or may, are kept one by one; the others by the name of their family.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, ValidationError

from tfdet.base.errors import DataError
from tfdet.base.files import write_atomic
from tfdet.base.folders import listed
from tfdet.base.paths import Project
from tfdet.base.untrusted import read_bytes
from tfdet.matrix.field_types import StrictModel, Text, format_validation_error

SCHEMA: Final = 1
_WIDTH = 160  # characters up to which a value stays on one line
SCANNER: Final = "1"
"""The scanner's version: who changes what it says raises it, and every audit has to be made again.

tests/host/audit/test_audit_golden.py notices by real kernels whether what it says has changed.
"""
_EARLIER = {"5b804b2bd5817baf": "1"}  # audits made when it was a hash of the scanner's files


Verdict = Literal["yes", "no", "unresolved"]  # can the result depend on the order in which threads come?


class StoredWheel(StrictModel):
    file: Text
    sha256: Text


class StoredFinding(StrictModel):
    """What some architectures hold of one kernel."""

    archs: Text = Field(description="separated by spaces; sm_70 read from machine code, compute_70 from PTX")
    order_dependent: Verdict
    reason: Text
    atomics: dict[str, int] = Field(description="kind: instructions")


class StoredKernel(StrictModel):
    name: Text = Field(description="mangled")
    findings: list[StoredFinding] = Field(min_length=1)

    @property
    def verdict(self) -> Verdict:
        """The strongest of its architectures: they are built from one source.

        Machine code that could not be followed is settled by the PTX: it is that source, one step before.
        """
        said = {found.order_dependent for found in self.findings}
        ptx = {found.order_dependent for found in self.findings if "compute_" in found.archs}
        if "yes" in said or "unresolved" not in said or ptx == {"no"}:
            return "yes" if "yes" in said else "no"
        return "unresolved"


class StoredLibrary(StrictModel):
    kernel_counts: dict[str, int] = Field(description="architecture: kernels in all")
    kernels: list[StoredKernel] = Field(description="those whose order-dependence is yes or unresolved somewhere")
    order_independent: dict[str, int] = Field(description="family: kernels whose atomics do not depend on order")
    without_atomics: list[Text] = Field(description="families without any atomic instruction")


class StoredAudit(StrictModel):
    """One file of matrix/audits."""

    schema_: Literal[1] = Field(alias="schema")
    environment: Text
    wheel: StoredWheel | None = Field(description="null for what is no wheel: such an audit is not stored")
    scanner: Text = Field(description="the scanner's version; in audits of before 2026-11-22 a hash of its code")
    architectures: dict[Literal["sass", "ptx"], list[Text]]
    environment_variables: list[Text]
    messages: list[Text]
    faults: list[Text]
    registrations: dict[str, dict[str, str]] | None = Field(
        description="op: devices: dtypes, of ops with a GPU kernel; null where TensorFlow could not be asked"
    )
    libraries: dict[str, StoredLibrary]

    @property
    def minor(self) -> str | None:
        """The build's version as ranges speak of it, such as 2.4; None of what is no wheel of a known form."""
        found = re.match(r"[^-]+-([0-9]+[.][0-9]+)", self.wheel.file) if self.wheel else None
        return found[1] if found else None

    @property
    def stale(self) -> bool:
        return _EARLIER.get(self.scanner, self.scanner) != SCANNER


def path_of(project: Project, environment: str) -> Path:
    return project.audits / f"{environment}.json"


def write(project: Project, stored: StoredAudit) -> Path:
    """All or nothing."""
    path = path_of(project, stored.environment)
    text = to_json(stored.model_dump(mode="json", by_alias=True)) + "\n"
    write_atomic(path, text, unchanged="the old audit is still there")
    return path


def to_json(value: Any, indent: int = 0) -> str:
    """JSON in which a diff can be read: whatever fits stays on one line, and so does a kernel."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(line) <= _WIDTH or "findings" in value:
        return line
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        rows = [f"{pad}{json.dumps(key)}: {to_json(item, indent + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + to_json(item, indent + 1) for item in value) + "\n" + " " * indent + "]"


def load(path: Path) -> StoredAudit:
    """DataError names every fault."""
    try:
        return StoredAudit.model_validate_json(read_bytes(path, f"Make it: tfdet audit {path.stem} --write"))
    except ValidationError as error:
        faults = [f"{path}: {format_validation_error(fault, 'file')}" for fault in error.errors()]
        advice = f"An audit is never edited: git checkout {path}, or tfdet audit {path.stem} --write."
        raise DataError("\n".join(faults[:20]), advice) from error


def load_all(project: Project) -> dict[str, StoredAudit]:
    """{environment: audit}, the stale ones too."""
    found = {path.stem: load(path) for path in listed(project.audits, "*.json")}
    strays = [key for key, audit in found.items() if audit.environment != key]
    if strays:
        raise DataError("\n".join(f"{path_of(project, key)}: of {found[key].environment}" for key in strays))
    return found
