"""One target, audited: what its libraries hold, gathered."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tfdet.audit.capability import Capability, capabilities, sort_archs
from tfdet.audit.demangle import demangle
from tfdet.audit.model import Kernel, LibraryAudit
from tfdet.audit.registrations import Registrations
from tfdet.audit.scan import scan_library
from tfdet.audit.strings import Strings, search
from tfdet.audit.targets import Target
from tfdet.base.errors import UsageError

_ARCH = re.compile(r"(sm|compute)_\d+[af]?$")


@dataclass(frozen=True)
class Audit:
    """libraries: every one that was read, with or without GPU code."""

    target: Target
    libraries: tuple[LibraryAudit, ...]
    strings: Strings
    registrations: Registrations | None = None

    @cached_property
    def gpu_libraries(self) -> list[LibraryAudit]:
        return [library for library in self.libraries if library.sass or library.ptx]

    @property
    def sass(self) -> list[str]:
        return sort_archs(arch for library in self.libraries for arch in library.sass)

    @property
    def ptx(self) -> list[str]:
        return sort_archs(arch for library in self.libraries for arch in library.ptx)

    @property
    def capabilities(self) -> list[Capability]:
        return capabilities(self.sass, self.ptx)

    @property
    def kernels(self) -> Iterator[Kernel]:
        """Those with an atomic instruction, by library, architecture and name."""
        return (kernel for library in self.libraries for kernel in library.kernels)

    @property
    def faults(self) -> list[str]:
        """What could not be read, with file and offset; and what was named although it holds no GPU code."""
        found = list(self.target.faults)
        for library in self.libraries:
            where = self.target.display_name(library.library)
            found += [f"{where}: at offset {fault.offset}: {fault.message}" for fault in library.faults]
            if self.target.was_named and not (library.sass or library.ptx or library.faults):
                found.append(f"{where}: at offset 0: a library without GPU code")
        if not self.target.was_named and not self.gpu_libraries and not found:
            found.append(f"{self.target.name}: no GPU code in any of its {len(self.libraries)} libraries: a CPU build")
        return found

    def as_json(self) -> dict[str, Any]:
        """The shape of `tfdet audit --json`: see docs/reference/formats.md."""
        kernels = list(self.kernels)
        names = demangle(kernel.name for kernel in kernels)
        wheel = self.target.wheel
        return {
            "target": self.target.name,
            "environment": self.target.environment,
            "wheel": {"file": wheel.path.name, "sha256": wheel.sha256} if wheel else None,
            "libraries": [library.library for library in self.libraries],
            "architectures": {"sass": self.sass, "ptx": self.ptx},
            "capability": [capability.as_json() for capability in self.capabilities],
            "environment_variables": sorted(self.strings.variables),
            "messages": sorted(self.strings.messages),
            "kernels": [_kernel(kernel, name) for kernel, name in zip(kernels, names, strict=True)],
            "kernel_counts": {library.library: library.kernel_counts for library in self.gpu_libraries},
            "registrations": self.registrations,
            "faults": self.faults,
        }


def _kernel(kernel: Kernel, demangled: str) -> dict[str, Any]:
    return {
        "library": kernel.library,
        "arch": kernel.arch,
        "name": kernel.name,
        "demangled": demangled,
        "atomics": kernel.atomics,
        "order_dependent": kernel.order_dependent,
        "reason": kernel.reason,
    }


def check_archs(archs: Iterable[str]) -> None:
    for arch in archs:
        if not _ARCH.match(arch):
            raise UsageError(
                f"--arch {arch}: not a GPU architecture", "Machine code is named like sm_70, PTX like compute_70."
            )


def audit(target: Target, archs: Container[str] | None, variables: Iterable[str]) -> Audit:
    """Read every library of a target; `variables` are looked for beside the general patterns."""
    libraries = [scan_library(path, shown, archs) for shown, path in sorted(target.libraries.items())]
    return Audit(target, tuple(libraries), search(target.libraries.values(), variables))
