"""Stored audits: matrix/audits/<environment>.json, the findings of the audit of a wheel, sorted, one kernel per line.

An audit reads the GPU kernels of shipped binaries, and runs none.  Kernels that are order-dependent, or unresolved (not
decided), are stored one by one; the others by their family, which is a kernel's name without template arguments.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, ValidationError

from tfdet.base.errors import DataError
from tfdet.base.files import write_atomic
from tfdet.base.folders import list_entries
from tfdet.base.paths import Project
from tfdet.base.untrusted import read_bytes
from tfdet.matrix.field_types import StrictModel, Text, format_validation_error

SCHEMA: Final = 1
_WIDTH = 160  # characters up to which a value stays on one line
SCANNER: Final = "1"
"""The scanner's version.  Increase it after a change of the scanner's results; then every audit must be made again.

tests/host/audit/test_audit_golden.py detects such changes with real kernels.
"""
_EARLIER = {"5b804b2bd5817baf": "1"}  # {hash of the scanner's files, as earlier audits store it: scanner version}

Verdict = Literal["yes", "no", "unresolved"]  # whether the result can depend on the order of execution


class StoredWheel(StrictModel):
    file: Text
    sha256: Text


class StoredFinding(StrictModel):
    """The verdict on one kernel in the code for some architectures."""

    archs: Text = Field(
        description="names separated by spaces; sm_70: read from machine code, compute_70: read from PTX"
    )
    order_dependent: Verdict
    reason: Text
    atomics: dict[str, int] = Field(description="{kind of atomic: number of instructions}")


class StoredKernel(StrictModel):
    name: Text = Field(description="mangled name")
    findings: list[StoredFinding] = Field(min_length=1)

    @property
    def verdict(self) -> Verdict:
        """The strongest verdict of its architectures, which are built from the same source.

        If machine code is unresolved, the verdict of the PTX counts, from which it was compiled.
        """
        verdicts = {finding.order_dependent for finding in self.findings}
        ptx = {finding.order_dependent for finding in self.findings if "compute_" in finding.archs}
        if "yes" in verdicts or "unresolved" not in verdicts or ptx == {"no"}:
            return "yes" if "yes" in verdicts else "no"
        return "unresolved"


class StoredLibrary(StrictModel):
    kernel_counts: dict[str, int] = Field(description="{architecture: number of all kernels}")
    kernels: list[StoredKernel] = Field(description="kernels whose verdict is yes or unresolved for some architecture")
    order_independent: dict[str, int] = Field(
        description="{family: number of kernels with atomics that are not order-dependent}"
    )
    without_atomics: list[Text] = Field(description="families of kernels without atomic instructions")


class StoredAudit(StrictModel):
    """The content of a file of matrix/audits."""

    schema_: Literal[1] = Field(alias="schema")
    environment: Text
    wheel: StoredWheel | None = Field(
        description="null: the audited files are not from a wheel; such an audit is not stored"
    )
    scanner: Text = Field(description="the scanner's version; in audits from before 2026-11-22, a hash of its code")
    architectures: dict[Literal["sass", "ptx"], list[Text]]
    environment_variables: list[Text]
    messages: list[Text]
    faults: list[Text]
    registrations: dict[str, dict[str, str]] | None = Field(
        description="{op: {devices: dtypes}} of ops with a GPU kernel; null: TensorFlow could not be queried"
    )
    libraries: dict[str, StoredLibrary]

    @property
    def minor_version(self) -> str | None:
        """The build's version as in version ranges, such as 2.4; None if it is unknown."""
        match = re.match(r"[^-]+-([0-9]+[.][0-9]+)", self.wheel.file) if self.wheel else None
        return match[1] if match else None

    @property
    def stale(self) -> bool:
        return _EARLIER.get(self.scanner, self.scanner) != SCANNER


def path_of(project: Project, environment: str) -> Path:
    return project.audits / f"{environment}.json"


def write(project: Project, stored: StoredAudit) -> Path:
    """Write an audit atomically; return its path."""
    path = path_of(project, stored.environment)
    text = to_json(stored.model_dump(mode="json", by_alias=True)) + "\n"
    write_atomic(path, text, unchanged="the old audit is still there")
    return path


def to_json(value: Any, indent: int = 0) -> str:
    """Return JSON with readable diffs: a kernel, and any value of up to _WIDTH characters, stays on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(line) <= _WIDTH or "findings" in value:
        return line
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        rows = [f"{pad}{json.dumps(key)}: {to_json(item, indent + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + to_json(item, indent + 1) for item in value) + "\n" + " " * indent + "]"


def load(path: Path) -> StoredAudit:
    """Read one audit; raise DataError with its faults."""
    try:
        return StoredAudit.model_validate_json(read_bytes(path, f"Make it: tfdet audit {path.stem} --write"))
    except ValidationError as error:
        faults = [f"{path}: {format_validation_error(fault, 'file')}" for fault in error.errors()]
        advice = f"An audit is never edited: git checkout {path}, or tfdet audit {path.stem} --write."
        raise DataError("\n".join(faults[:20]), advice) from error


def load_all(project: Project) -> dict[str, StoredAudit]:
    """Return {environment: audit} of all stored audits, also of stale ones."""
    by_environment = {path.stem: load(path) for path in list_entries(project.audits, "*.json")}
    misplaced = [key for key, audit in by_environment.items() if audit.environment != key]
    if misplaced:
        raise DataError(
            "\n".join(f"{path_of(project, key)}: of {by_environment[key].environment}" for key in misplaced)
        )
    return by_environment
