"""The rows of the generated tables about stored audits.

An audit reads the kernels of a build's binaries. A finding is what it says of one source of nondeterminism, whose
kernels the op reaches or not; it may conflict with emulation, that is with runs on the virtual GPU.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tfdet.audit.capability import Capability, capabilities, native_capabilities
from tfdet.matrix.models import Environment
from tfdet.publish.tables import version_ranges
from tfdet.store.audits import StoredLibrary
from tfdet.verdicts.audit_findings import AuditFinding, FindingKind, count_by_family
from tfdet.verdicts.emulation_audit_conflicts import EmulationAuditConflict, find_conflicts
from tfdet.verdicts.status import Status

_FileStatus = FindingKind | Literal["shipped", "out of reach"]
_STATUS_TEXTS: dict[_FileStatus, str] = {
    "order-dependent": "confirmed",
    "shipped": "shipped, reach not established",
    "out of reach": "shipped, not reached",
    "partial": "partial",  # the order-dependent kernels are those of other ops with the same code
    "unresolved": "unresolved",
    "orderless": "false alarm",
    "no atomics": "no atomics",
    "not shipped": "not shipped",
}
_BY_STRENGTH = list(_STATUS_TEXTS)  # the strongest finding first
_SHOWN_GPUS = ((7, 0), (8, 0), (9, 0), (10, 0))  # V100, A100, H100 and H200, B200


@dataclass(frozen=True)
class UpstreamFile:
    """A TensorFlow file that calls CUDA's atomicAdd, from a list of 2019, and what the audits found in it.

    result: e.g. `confirmed`.  builds: those with this result.  kernels: the number, or range, of order-dependent ones.
    """

    name: str
    result: str
    builds: str
    kernels: str


@dataclass(frozen=True)
class AuditedBuild:
    """One audited environment, with the texts and numbers of its table row.

    sass, ptx: architectures of its machine code and PTX.  native: compute capabilities that run its machine code.
    gpus: how each of _SHOWN_GPUS runs it.  kernels: the number for the architecture that has most.
    """

    key: str
    sass: str
    ptx: str
    native: str
    gpus: str
    kernels: int
    order_dependent: int
    unresolved: int
    variables: str


@dataclass(frozen=True)
class AuditTables:
    """The tables about the audits of a status; its public methods return their rows."""

    status: Status

    @cached_property
    def keys(self) -> list[str]:
        """The audited environments, in the order of the matrix."""
        return [key for key in self.status.matrix.environments if key in self.status.audits]

    def where(self, keys: Iterable[str]) -> str:
        """Return environments as ranges among the audited builds: TF 1.13 to 2.1, 2.4."""
        environments = self.status.matrix.environments
        among: list[Environment] = [environments[key] for key in self.keys]
        return version_ranges([environments[key] for key in keys], among, self.status.matrix.frameworks)

    def builds(self) -> list[AuditedBuild]:
        return [self._build(key) for key in self.keys]

    def _build(self, key: str) -> AuditedBuild:
        audited = self.status.audits[key]
        stored = audited.stored
        sass, ptx = stored.architectures["sass"], stored.architectures["ptx"]
        capability_list = capabilities(sass, ptx)
        verdicts = {row.kernel.name: row.kernel.verdict for row in audited.rows}
        return AuditedBuild(
            key,
            " ".join(arch.removeprefix("sm_") for arch in sass),
            " ".join(arch.removeprefix("compute_") for arch in ptx),
            native_capabilities(capability_list),
            " ".join(_support_text(capability) for capability in capability_list if capability.compute in _SHOWN_GPUS),
            max((sum(counts) for counts in _by_arch(stored.libraries.values())), default=0),
            sum(verdict == "yes" for verdict in verdicts.values()),
            sum(verdict == "unresolved" for verdict in verdicts.values()),
            ", ".join(f"`{name}`" for name in stored.environment_variables if "DETERMINI" in name),
        )

    def files(self) -> list[UpstreamFile]:
        """Return the 15 files of the list of 2019, in its order."""
        sources = self.status.matrix.sources
        group = sorted(
            (source.order, source.upstream_row, key)
            for key, source in sources.items()
            if source.group == "gpu-possible"
        )
        names = dict.fromkeys(row for _, row, _ in group if row)
        return [self._file(name, [key for _, row, key in group if row == name]) for name in names]

    def _file(self, name: str, sources: list[str]) -> UpstreamFile:
        by_build = {key: self._findings(key, sources) for key in self.keys}
        status_by_build = {
            key: min((_file_status(finding) for finding in findings), key=_BY_STRENGTH.index)
            for key, findings in by_build.items()
            if findings
        }
        if not status_by_build:
            return UpstreamFile(name, "not audited", "", "")
        best = min(status_by_build.values(), key=_BY_STRENGTH.index)
        builds = {
            status: self.where(key for key, other in status_by_build.items() if other == status)
            for status in _BY_STRENGTH
            if status in status_by_build.values()
        }
        where = [text if status == best else f"{_STATUS_TEXTS[status]}: {text}" for status, text in builds.items()]
        counts = [
            len({row.kernel.name for finding in by_build[key] for row in finding.order_dependent_kernels})
            for key, status in status_by_build.items()
            if status == best
        ]
        return UpstreamFile(name, _STATUS_TEXTS[best], "; ".join(where), _range(counts))

    def _findings(self, key: str, sources: list[str]) -> list[AuditFinding]:
        return [finding for source in sources if (finding := self.status.finding(key, source)) is not None]

    def candidates(self) -> list[tuple[str, str, str, str]]:
        """Return (title, builds, order-dependent kernels, condition) of each source that no document names."""
        sources = self.status.matrix.sources
        candidates = sorted((source.order, key) for key, source in sources.items() if source.group == "gpu-candidate")
        rows = []
        for _, source in candidates:
            findings = {key: finding for key in self.keys if (finding := self.status.finding(key, source))}
            order_dependent = {key: finding for key, finding in findings.items() if finding.kind == "order-dependent"}
            builds_by_status: dict[_FileStatus, list[str]] = {}
            for key, finding in order_dependent.items():
                builds_by_status.setdefault(_file_status(finding), []).append(key)
            where = "; ".join(
                self.where(keys) if status == "order-dependent" else f"{_STATUS_TEXTS[status]}: {self.where(keys)}"
                for status, keys in builds_by_status.items()
            )
            kernels = _range([finding.kernel_count for finding in order_dependent.values()])
            rows.append((sources[source].title, where or "none", kernels, sources[source].condition))
        return rows

    def source_findings(self) -> list[tuple[str, list[str]]]:
        """Return (source, a text for each audited build) of every source that names kernels."""
        rows = []
        for key, source in self.status.matrix.sources.items():
            if source.audit and source.audit.kernels:
                rows.append((key, [kernel_count_text(self.status.finding(build, key)) for build in self.keys]))
        return rows

    def conflicts(self) -> list[tuple[EmulationAuditConflict, str]]:
        """Return the conflicts between emulation and audit, each with its builds."""
        builds: dict[EmulationAuditConflict, list[str]] = {}
        for conflict in find_conflicts(self.status):
            builds.setdefault(conflict._replace(environment=""), []).append(conflict.environment)
        return [(conflict, self.where(keys)) for conflict, keys in builds.items()]

    def kernels_without_source(self) -> list[tuple[str, str, str]]:
        """Return (family, variants, builds) of order-dependent and unresolved kernels that no source claims."""
        sources = self.status.matrix.sources.values()
        by_build = {key: count_by_family(self.status.audits[key].kernels_without_source(sources)) for key in self.keys}
        names = sorted({name for families in by_build.values() for name in families})
        return [
            (
                name,
                _range([families[name] for families in by_build.values() if name in families]),
                self.where(key for key in self.keys if name in by_build[key]),
            )
            for name in names
        ]

    def variables(self) -> list[tuple[str, str]]:
        """Return (environment variable, builds that read it)."""
        return self._builds_by_text({key: self.status.audits[key].stored.environment_variables for key in self.keys})

    def messages(self) -> list[tuple[str, str]]:
        """Return (error message about determinism, builds that contain it)."""
        return self._builds_by_text({key: self.status.audits[key].stored.messages for key in self.keys})

    def _builds_by_text(self, texts: dict[str, list[str]]) -> list[tuple[str, str]]:
        distinct = sorted({text for build_texts in texts.values() for text in build_texts})
        return [(text, self.where(key for key in self.keys if text in texts[key])) for text in distinct]

    def builds_reading(self, variable: str) -> list[str]:
        """Return the audited builds whose binaries read an environment variable."""
        return [key for key in self.keys if variable in self.status.audits[key].stored.environment_variables]


def _by_arch(libraries: Iterable[StoredLibrary]) -> list[list[int]]:
    """Return for each architecture the numbers of kernels in the libraries."""
    counts: dict[str, list[int]] = {}
    for library in libraries:
        for arch, number in library.kernel_counts.items():
            counts.setdefault(arch, []).append(number)
    return list(counts.values())


def _file_status(finding: AuditFinding) -> _FileStatus:
    """Return the kind of a finding or, if the op is not known to reach its kernels, that status."""
    if finding.kind != "order-dependent" or finding.shows_order_dependence:
        return finding.kind
    return "shipped" if finding.has_unknown_reach else "out of reach"


def _support_text(capability: Capability) -> str:
    return {"native": "native", "jit": "JIT", "no": "–"}[capability.run_mode]


def _range(counts: list[int]) -> str:
    if not counts:
        return "0"
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def kernel_count_text(finding: AuditFinding | None) -> str:
    """Return the number of order-dependent kernels, or a mark for another finding; empty if there is none.

    After the number, ° says that it is unknown whether the op reaches them, × that it does not; (N): see `partial`.
    """
    if finding is None:
        return ""
    if finding.kind == "order-dependent":
        mark = "" if finding.shows_order_dependence else "°" if finding.has_unknown_reach else "×"
        return f"{finding.kernel_count}{mark}"
    return {
        "partial": f"({finding.kernel_count})",
        "unresolved": "?",
        "orderless": "0",
        "no atomics": "0",
        "not shipped": "–",
    }[finding.kind]
