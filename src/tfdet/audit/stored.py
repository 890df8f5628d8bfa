"""matrix/audits/<environment>.json: what the audit of a wheel found, written by the tool, sorted, a kernel a line.

Kernels that can depend on order, or may, are kept one by one; the others by the name of their family.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field, ValidationError

from tfdet.audit.model import Kernel, LibraryAudit, Verdict
from tfdet.audit.names import family, signatures
from tfdet.errors import DataError
from tfdet.files import write_whole
from tfdet.matrix.models import Model, Text
from tfdet.paths import Project

if TYPE_CHECKING:  # reading what is stored needs no scanner
    from tfdet.audit.registrations import Registrations
    from tfdet.audit.report import Audit
    from tfdet.audit.wheels import Wheel

SCHEMA: Final = 1
_WIDTH = 160  # characters up to which a value stays on one line
SCANNER: Final = "1"
"""The scanner's version: who changes what it says raises it, and every audit has to be made again.

tests/host/test_audit_golden.py notices by real kernels whether what it says has changed.
"""
_EARLIER = {"5b804b2bd5817baf": "1"}  # audits made when it was a hash of the scanner's files


class StoredWheel(Model):
    file: Text
    sha256: Text


class Found(Model):
    """What some architectures hold of one kernel."""

    archs: Text = Field(description="separated by spaces; sm_70 read from machine code, compute_70 from PTX")
    order_dependent: Verdict
    reason: Text
    atomics: dict[str, int] = Field(description="kind: instructions")


class StoredKernel(Model):
    name: Text = Field(description="mangled")
    found: list[Found] = Field(min_length=1)

    @property
    def verdict(self) -> Verdict:
        """The strongest of its architectures: they are built from one source.

        Machine code that could not be followed is settled by the PTX: it is that source, one step before.
        """
        said = {found.order_dependent for found in self.found}
        ptx = {found.order_dependent for found in self.found if "compute_" in found.archs}
        if "yes" in said or "unresolved" not in said or ptx == {"no"}:
            return "yes" if "yes" in said else "no"
        return "unresolved"


class StoredLibrary(Model):
    kernel_counts: dict[str, int] = Field(description="architecture: kernels in all")
    kernels: list[StoredKernel] = Field(description="those whose order-dependence is yes or unresolved somewhere")
    orderless: dict[str, int] = Field(description="family: kernels whose atomics do not depend on order")
    plain: list[Text] = Field(description="families without any atomic instruction")


class StoredAudit(Model):
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


def to_stored(audit: Audit) -> StoredAudit:
    wheel = audit.target.wheel
    return StoredAudit(
        schema=SCHEMA,
        environment=audit.target.environment or audit.target.name,
        wheel=StoredWheel(file=wheel.path.name, sha256=wheel.sha256) if wheel else None,
        scanner=SCANNER,
        architectures={"sass": audit.sass, "ptx": audit.ptx},
        environment_variables=sorted(audit.strings.variables),
        messages=sorted(audit.strings.messages),
        faults=audit.faults,
        registrations=_folded(audit),
        libraries={library.library: _library(library) for library in audit.gpu_libraries},
    )


def _folded(audit: Audit) -> dict[str, dict[str, str]] | None:
    """Devices with the same dtypes share an entry: {"CPU GPU": "float16 float32"}."""
    if audit.registrations is None:
        return None
    folded: dict[str, dict[str, str]] = {}
    for op, devices in sorted(audit.registrations.items()):
        by_dtypes: dict[str, list[str]] = defaultdict(list)
        for device, dtypes in sorted(devices.items()):
            by_dtypes[" ".join(dtypes)].append(device)
        folded[op] = {" ".join(names): dtypes for dtypes, names in by_dtypes.items()}
    return folded


def registrations_of(project: Project, environment: str, wheel: Wheel) -> Registrations | None:
    """What this very wheel registered when it was audited last; None if nobody asked it."""
    path = path_of(project, environment)
    old = load(path) if path.exists() else None
    if old is None or old.registrations is None or old.wheel is None or old.wheel.sha256 != wheel.sha256:
        return None
    return {
        op: {device: dtypes.split() for names, dtypes in folded.items() for device in names.split()}
        for op, folded in old.registrations.items()
    }


def _library(library: LibraryAudit) -> StoredLibrary:
    by_name: dict[str, list[Kernel]] = defaultdict(list)
    for kernel in library.kernels:
        by_name[kernel.name].append(kernel)
    short = signatures(sorted({*library.names, *by_name}))
    telling = {name for name, kernels in by_name.items() if any(k.order_dependent != "no" for k in kernels)}
    orderless = Counter(family(short[name]) for name in by_name.keys() - telling)
    return StoredLibrary(
        kernel_counts=library.kernel_counts,
        kernels=[StoredKernel(name=name, found=_found(by_name[name])) for name in sorted(telling)],
        orderless=dict(sorted(orderless.items())),
        plain=sorted({family(text) for name, text in short.items() if name not in by_name}),
    )


def _found(kernels: Iterable[Kernel]) -> list[Found]:
    """Architectures that hold the same are told together."""
    by_content: dict[tuple[Verdict, str, tuple[tuple[str, int], ...]], list[str]] = defaultdict(list)
    for kernel in kernels:
        content = (kernel.order_dependent, kernel.reason, tuple(sorted(kernel.atomics.items())))
        by_content[content].append(kernel.arch)
    return [
        Found(archs=" ".join(archs), order_dependent=verdict, reason=reason, atomics=dict(atomics))
        for (verdict, reason, atomics), archs in by_content.items()
    ]


def path_of(project: Project, environment: str) -> Path:
    return project.audits / f"{environment}.json"


def write(project: Project, stored: StoredAudit) -> Path:
    """All or nothing."""
    path = path_of(project, stored.environment)
    text = dump(stored.model_dump(mode="json", by_alias=True)) + "\n"
    write_whole(path, text, kept="the old audit is still there")
    return path


def dump(value: Any, indent: int = 0) -> str:
    """JSON in which a diff can be read: whatever fits stays on one line, and so does a kernel."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(line) <= _WIDTH or "found" in value:
        return line
    pad = " " * (indent + 1)
    if isinstance(value, dict):
        rows = [f"{pad}{json.dumps(key)}: {dump(item, indent + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + dump(item, indent + 1) for item in value) + "\n" + " " * indent + "]"


def load(path: Path) -> StoredAudit:
    """DataError names every fault."""
    try:
        return StoredAudit.model_validate_json(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}", f"Make it: tfdet audit {path.stem} --write") from error
    except ValidationError as error:
        faults = [f"{path}: {'.'.join(map(str, fault['loc'])) or 'file'}: {fault['msg']}" for fault in error.errors()]
        advice = f"An audit is never edited: git checkout {path}, or tfdet audit {path.stem} --write."
        raise DataError("\n".join(faults[:20]), advice) from error


def load_all(project: Project) -> dict[str, StoredAudit]:
    """{environment: audit}, the stale ones too."""
    found = {path.stem: load(path) for path in sorted(project.audits.glob("*.json"))}
    strays = [key for key, audit in found.items() if audit.environment != key]
    if strays:
        raise DataError("\n".join(f"{path_of(project, key)}: of {found[key].environment}" for key in strays))
    return found
