"""The audit of one target: reads all its libraries and combines the results."""

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
    """The results of one target.  libraries: all that were read, with or without GPU code."""

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
        """Return the kernels with an atomic instruction, sorted by library, architecture and name."""
        return (kernel for library in self.libraries for kernel in library.kernels)

    @property
    def faults(self) -> list[str]:
        """Return messages about data that could not be read, and about named libraries without GPU code."""
        faults = list(self.target.faults)
        for library in self.libraries:
            name = self.target.display_name(library.library)
            faults += [f"{name}: at offset {fault.offset}: {fault.message}" for fault in library.faults]
            if self.target.was_named and not (library.sass or library.ptx or library.faults):
                faults.append(f"{name}: at offset 0: a library without GPU code")
        if not self.target.was_named and not self.gpu_libraries and not faults:
            faults.append(f"{self.target.name}: no GPU code in any of its {len(self.libraries)} libraries: a CPU build")
        return faults

    def as_json(self) -> dict[str, Any]:
        """Return the output of `tfdet audit --json`, which docs/reference/formats.md describes."""
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
            "kernels": [_kernel_as_json(kernel, name) for kernel, name in zip(kernels, names, strict=True)],
            "kernel_counts": {library.library: library.kernel_counts for library in self.gpu_libraries},
            "registrations": self.registrations,
            "faults": self.faults,
        }


def _kernel_as_json(kernel: Kernel, demangled: str) -> dict[str, Any]:
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
    """Raise UsageError if the value of an --arch is not a GPU architecture."""
    for arch in archs:
        if not _ARCH.match(arch):
            raise UsageError(
                f"--arch {arch}: not a GPU architecture", "Machine code is named like sm_70, PTX like compute_70."
            )


def audit(target: Target, archs: Container[str] | None, variables: Iterable[str]) -> Audit:
    """Read every library of a target.

    archs: the architectures whose code is read, all if None.  variables: further environment variables to search for.
    """
    libraries = [scan_library(path, name, archs) for name, path in sorted(target.libraries.items())]
    return Audit(target, tuple(libraries), search(target.libraries.values(), variables))
