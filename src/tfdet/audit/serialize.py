"""Conversion of an audit to the form in which matrix/audits stores it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from tfdet.audit.kernel_names import family, signatures
from tfdet.audit.model import Kernel, LibraryAudit
from tfdet.audit.registrations import Registrations
from tfdet.audit.report import Audit
from tfdet.audit.wheels import Wheel
from tfdet.base.paths import Project
from tfdet.base.sanitize import escape_hidden
from tfdet.store.audits import (
    SCANNER,
    SCHEMA,
    StoredAudit,
    StoredFinding,
    StoredKernel,
    StoredLibrary,
    StoredWheel,
    Verdict,
    load,
    path_of,
)


def to_stored(audit: Audit) -> StoredAudit:
    wheel = audit.target.wheel
    return StoredAudit(
        schema=SCHEMA,
        environment=audit.target.environment or audit.target.name,
        wheel=StoredWheel(file=escape_hidden(wheel.path.name), sha256=wheel.sha256) if wheel else None,
        scanner=SCANNER,
        architectures={"sass": audit.sass, "ptx": audit.ptx},
        environment_variables=sorted(audit.strings.variables),
        messages=sorted(audit.strings.messages),
        faults=audit.faults,
        registrations=_merge_equal_devices(audit),
        libraries={library.library: _to_stored_library(library) for library in audit.gpu_libraries},
    )


def _merge_equal_devices(audit: Audit) -> dict[str, dict[str, str]] | None:
    """Return {op: {devices: dtypes}}; devices with the same dtypes share an entry: {"CPU GPU": "float16 float32"}."""
    if audit.registrations is None:
        return None
    folded: dict[str, dict[str, str]] = {}
    for op, devices in sorted(audit.registrations.items()):
        by_dtypes: dict[str, list[str]] = defaultdict(list)
        for device, dtypes in sorted(devices.items()):
            by_dtypes[" ".join(dtypes)].append(device)
        folded[op] = {" ".join(names): dtypes for dtypes, names in by_dtypes.items()}
    return folded


def load_registrations(project: Project, environment: str, wheel: Wheel) -> Registrations | None:
    """Return the registrations of the stored audit; None if it has none, or is of another wheel."""
    path = path_of(project, environment)
    stored = load(path) if path.exists() else None
    if stored is None or stored.registrations is None or stored.wheel is None or stored.wheel.sha256 != wheel.sha256:
        return None
    return {
        op: {device: dtypes.split() for names, dtypes in folded.items() for device in names.split()}
        for op, folded in stored.registrations.items()
    }


def _to_stored_library(library: LibraryAudit) -> StoredLibrary:
    """Return each kernel that may depend on the order, and of the others the names without template arguments."""
    by_name: dict[str, list[Kernel]] = defaultdict(list)
    for kernel in library.kernels:
        by_name[kernel.name].append(kernel)
    names_by_mangled = signatures(sorted({*library.names, *by_name}))
    order_dependent = {name for name, kernels in by_name.items() if any(k.order_dependent != "no" for k in kernels)}
    order_independent = Counter(family(names_by_mangled[name]) for name in by_name.keys() - order_dependent)
    return StoredLibrary(
        kernel_counts=library.kernel_counts,
        kernels=[StoredKernel(name=name, findings=_merge_kernels(by_name[name])) for name in sorted(order_dependent)],
        order_independent=dict(sorted(order_independent.items())),
        without_atomics=sorted({family(text) for name, text in names_by_mangled.items() if name not in by_name}),
    )


def _merge_kernels(kernels: Iterable[Kernel]) -> list[StoredFinding]:
    """Return the findings of one kernel; architectures with equal findings share one."""
    by_content: dict[tuple[Verdict, str, tuple[tuple[str, int], ...]], list[str]] = defaultdict(list)
    for kernel in kernels:
        content = (kernel.order_dependent, kernel.reason, tuple(sorted(kernel.atomics.items())))
        by_content[content].append(kernel.arch)
    return [
        StoredFinding(archs=" ".join(archs), order_dependent=verdict, reason=reason, atomics=dict(atomics))
        for (verdict, reason, atomics), archs in by_content.items()
    ]
