"""What the stored audits say, as rows of the generated tables."""

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
    "partial": "partial",
    "unresolved": "unresolved",
    "orderless": "false alarm",
    "no atomics": "no atomics",
    "not shipped": "not shipped",
}
_BY_STRENGTH = list(_STATUS_TEXTS)  # the strongest first
_SHOWN_GPUS = ((7, 0), (8, 0), (9, 0), (10, 0))  # V100, A100, H100 and H200, B200


@dataclass(frozen=True)
class UpstreamFile:
    """A file of TensorFlow that calls CUDA's atomicAdd, of the list of 2019, and what the audits found in it.

    result: e.g. `confirmed`; builds: for which this holds; kernels: the number of order-dependent ones.
    """

    name: str
    result: str
    builds: str
    kernels: str


@dataclass(frozen=True)
class AuditedBuild:
    """One audited environment."""

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
    status: Status

    @cached_property
    def keys(self) -> list[str]:
        """The audited environments, in the order of the matrix."""
        return [key for key in self.status.matrix.environments if key in self.status.audits]

    def where(self, keys: Iterable[str]) -> str:
        """TF 1.13 to 2.1, 2.4: ranges among the audited builds."""
        environments = self.status.matrix.environments
        among: list[Environment] = [environments[key] for key in self.keys]
        return version_ranges([environments[key] for key in keys], among, self.status.matrix.frameworks)

    def builds(self) -> list[AuditedBuild]:
        return [self._build(key) for key in self.keys]

    def _build(self, key: str) -> AuditedBuild:
        audited = self.status.audits[key]
        stored = audited.stored
        sass, ptx = stored.architectures["sass"], stored.architectures["ptx"]
        found = capabilities(sass, ptx)
        verdicts = {row.kernel.name: row.kernel.verdict for row in audited.rows}
        return AuditedBuild(
            key,
            " ".join(arch.removeprefix("sm_") for arch in sass),
            " ".join(arch.removeprefix("compute_") for arch in ptx),
            native_capabilities(found),
            " ".join(_short(one) for one in found if one.compute in _SHOWN_GPUS),
            max((sum(counts) for counts in _by_arch(stored.libraries.values())), default=0),
            sum(verdict == "yes" for verdict in verdicts.values()),
            sum(verdict == "unresolved" for verdict in verdicts.values()),
            ", ".join(f"`{name}`" for name in stored.environment_variables if "DETERMINI" in name),
        )

    def files(self) -> list[UpstreamFile]:
        """The 15 files of the list of 2019, in its order."""
        sources = self.status.matrix.sources
        group = sorted((s.order, s.upstream_row, key) for key, s in sources.items() if s.group == "gpu-possible")
        names = dict.fromkeys(row for _, row, _ in group if row)
        return [self._file(name, [key for _, row, key in group if row == name]) for name in names]

    def _file(self, name: str, sources: list[str]) -> UpstreamFile:
        by_build = {key: self._findings(key, sources) for key in self.keys}
        status_by_build = {
            key: min((_file_status(f) for f in found), key=_BY_STRENGTH.index)
            for key, found in by_build.items()
            if found
        }
        if not status_by_build:
            return UpstreamFile(name, "not audited", "", "")
        best = min(status_by_build.values(), key=_BY_STRENGTH.index)
        builds = {
            w: self.where(k for k, status in status_by_build.items() if status == w)
            for w in _BY_STRENGTH
            if w in status_by_build.values()
        }
        where = [text if w == best else f"{_STATUS_TEXTS[w]}: {text}" for w, text in builds.items()]
        counts = [
            len({r.kernel.name for f in by_build[key] for r in f.order_dependent_kernels})
            for key, status in status_by_build.items()
            if status == best
        ]
        return UpstreamFile(name, _STATUS_TEXTS[best], "; ".join(where), _range(counts))

    def _findings(self, key: str, sources: list[str]) -> list[AuditFinding]:
        return [finding for source in sources if (finding := self.status.finding(key, source)) is not None]

    def candidates(self) -> list[tuple[str, str, str, str]]:
        """(title, builds, order-dependent kernels, condition) of the sources that no document names."""
        sources = self.status.matrix.sources
        mine = sorted((s.order, key) for key, s in sources.items() if s.group == "gpu-candidate")
        rows = []
        for _, source in mine:
            found = {k: f for k in self.keys if (f := self.status.finding(k, source))}
            order_dependent = {k: f for k, f in found.items() if f.kind == "order-dependent"}
            words = {
                _file_status(f): self.where(
                    k for k, other in order_dependent.items() if _file_status(other) == _file_status(f)
                )
                for f in order_dependent.values()
            }
            where = "; ".join(
                text if w == "order-dependent" else f"{_STATUS_TEXTS[w]}: {text}" for w, text in words.items()
            )
            kernels = _range([f.names for f in order_dependent.values()])
            rows.append((sources[source].title, where or "none", kernels, sources[source].condition))
        return rows

    def source_findings(self) -> list[tuple[str, list[str]]]:
        """(source, a cell for each audited build) of every source that has kernels to look for."""
        rows = []
        for key, source in self.status.matrix.sources.items():
            if source.audit and source.audit.kernels:
                rows.append((key, [kernel_count_text(self.status.finding(build, key)) for build in self.keys]))
        return rows

    def conflicts(self) -> list[tuple[EmulationAuditConflict, str]]:
        """Where emulation and audit contradict each other, with the builds."""
        builds: dict[EmulationAuditConflict, list[str]] = {}
        for one in find_conflicts(self.status):
            builds.setdefault(one._replace(environment=""), []).append(one.environment)
        return [(one, self.where(keys)) for one, keys in builds.items()]

    def unclaimed(self) -> list[tuple[str, str, str]]:
        """(family, variants, builds) of kernels that depend on order, or may, and that no source claims."""
        sources = self.status.matrix.sources.values()
        by_build = {key: count_by_family(self.status.audits[key].unclaimed(sources)) for key in self.keys}
        names = sorted({name for found in by_build.values() for name in found})
        return [
            (
                name,
                _range([f[name] for f in by_build.values() if name in f]),
                self.where(k for k in self.keys if name in by_build[k]),
            )
            for name in names
        ]

    def variables(self) -> list[tuple[str, str]]:
        """(environment variable, builds that read it)."""
        return self._builds_by_text({key: self.status.audits[key].stored.environment_variables for key in self.keys})

    def messages(self) -> list[tuple[str, str]]:
        return self._builds_by_text({key: self.status.audits[key].stored.messages for key in self.keys})

    def _builds_by_text(self, texts: dict[str, list[str]]) -> list[tuple[str, str]]:
        every = sorted({text for some in texts.values() for text in some})
        return [(text, self.where(key for key in self.keys if text in texts[key])) for text in every]

    def builds_reading(self, variable: str) -> list[str]:
        """The audited builds whose binaries read it."""
        return [key for key in self.keys if variable in self.status.audits[key].stored.environment_variables]


def _by_arch(libraries: Iterable[StoredLibrary]) -> list[list[int]]:
    counts: dict[str, list[int]] = {}
    for library in libraries:
        for arch, number in library.kernel_counts.items():
            counts.setdefault(arch, []).append(number)
    return list(counts.values())


def _file_status(finding: AuditFinding) -> _FileStatus:
    """The kind of a finding, and whether the op can execute its kernels."""
    if finding.kind != "order-dependent" or finding.is_conclusive:
        return finding.kind
    return "shipped" if finding.is_unchecked else "out of reach"


def _short(one: Capability) -> str:
    return {"native": "native", "jit": "JIT", "no": "–"}[one.how]


def _range(counts: list[int]) -> str:
    if not counts:
        return "0"
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def kernel_count_text(finding: AuditFinding | None) -> str:
    """The number of order-dependent kernels, or what else was found."""
    if finding is None:
        return ""
    if finding.kind == "order-dependent":
        return f"{finding.names}{'' if finding.is_conclusive else '°' if finding.is_unchecked else '×'}"
    return {
        "partial": f"({finding.names})",
        "unresolved": "?",
        "orderless": "0",
        "no atomics": "0",
        "not shipped": "–",
    }[finding.kind]
