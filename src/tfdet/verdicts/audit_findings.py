"""Derive findings from stored audits: which kernels of a source a build contains, and which kernels no pattern matches.

An audit reads a build's binaries, without running them.  A source is a known source of nondeterminism.  A kernel's
signature is its name with template arguments, its family the name without them.

A pattern is matched against the full names of order-dependent and unresolved kernels.  The other kernels are stored by
family only, so for them the pattern is matched up to its first `<`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Final, Literal, NamedTuple

from tfdet.audit.capability import sort_archs
from tfdet.audit.kernel_names import family, signatures
from tfdet.matrix import ranges
from tfdet.matrix.models import Source, SourceAudit
from tfdet.store.audits import StoredAudit, StoredKernel

# order-dependent: the op's own kernels add floats atomically; partial: only kernels of its code for other ops do;
# unresolved: what their atomics do is not known; orderless: their atomics do not depend on order.
FindingKind = Literal["order-dependent", "partial", "unresolved", "orderless", "no atomics", "not shipped"]
ReachabilityKind = Literal["reached", "not reached", "no GPU kernel", "not established"]


class Reachability(NamedTuple):
    """Whether a source's op, with the arguments in its title, can execute the kernels in a build, and why."""

    how: ReachabilityKind
    why: str


UNCHECKED: Final = Reachability("not established", "not checked")


class KernelRow(NamedTuple):
    """A kernel that is order-dependent (verdict `yes`) or unresolved for some architecture."""

    library: str
    signature: str
    kernel: StoredKernel


@dataclass(frozen=True)
class AuditFinding:
    """The kernels of one source in one build."""

    rows: tuple[KernelRow, ...]  # the kernels that match the source's patterns
    own: tuple[KernelRow, ...]  # those of them that the op itself executes
    order_independent: int  # number of kernels of its families whose atomics do not depend on order
    without_atomics: tuple[str, ...]  # its families without atomics
    reach: Reachability = UNCHECKED

    @property
    def shows_order_dependence(self) -> bool:
        """Whether it shows that the op is order-dependent: such a kernel is present, and the op reaches it."""
        return self.kind == "order-dependent" and self.reach.how == "reached"

    @property
    def has_unknown_reach(self) -> bool:
        """Whether order-dependent kernels are present, but it is unknown whether the op reaches them."""
        return self.kind == "order-dependent" and self.reach.how == "not established"

    @cached_property
    def order_dependent_kernels(self) -> list[KernelRow]:
        return [row for row in self.rows if row.kernel.verdict == "yes"]

    @cached_property
    def unresolved_kernels(self) -> list[KernelRow]:
        return [row for row in self.rows if row.kernel.verdict == "unresolved"]

    @property
    def kind(self) -> FindingKind:
        if self.order_dependent_kernels:
            return "order-dependent" if any(row.kernel.verdict == "yes" for row in self.own) else "partial"
        if self.unresolved_kernels:
            return "unresolved"
        if self.order_independent:
            return "orderless"
        return "no atomics" if self.without_atomics else "not shipped"

    @property
    def kernel_count(self) -> int:
        """Number of order-dependent kernels, each counted once for all architectures."""
        return len({row.kernel.name for row in self.order_dependent_kernels})

    @property
    def archs(self) -> list[str]:
        """The architectures of the order-dependent kernels: machine code (sm_*), then PTX (compute_*)."""
        archs = {
            arch
            for row in self.order_dependent_kernels
            for finding in row.kernel.findings
            if finding.order_dependent == "yes"
            for arch in finding.archs.split()
        }
        machine_code, ptx = [[arch for arch in archs if arch.startswith(prefix)] for prefix in ("sm", "co")]
        return sort_archs(machine_code) + sort_archs(ptx)

    def as_json(self) -> dict[str, Any]:
        return {
            "finding": self.kind,
            "kernels": self.kernel_count,
            "archs": self.archs,
            "text": self.text,
            "reach": self.reach.how,
            "why": self.reach.why,
        }

    @property
    def text(self) -> str:
        kernels, unresolved = _kernels_text(self.kernel_count), {row.kernel.name for row in self.unresolved_kernels}
        independent = _kernels_text(self.order_independent)
        texts = {
            "order-dependent": f"order-dependent float atomics in {kernels}",
            "partial": f"none in the op's own kernels; {kernels} of the same code, for other ops, add floats "
            "atomically",
            "unresolved": f"{_kernels_text(len(unresolved))} with atomics whose effect could not be resolved",
            "orderless": f"none found: the atomics of its {independent} do not depend on order",
            "no atomics": "none found: its kernels hold no atomics",
            "not shipped": "no such kernel is shipped",
        }
        return texts[self.kind] + (self._reach_text if self.order_dependent_kernels else "")

    @property
    def _reach_text(self) -> str:
        """The text about kernels that the op is not known to reach; empty if it reaches them."""
        if self.reach.how == "not established":
            return ": shipped, reach not established"
        return "" if self.reach.how == "reached" else f": shipped, {self.reach.how}: {self.reach.why}"


def _kernels_text(number: int) -> str:
    return f"{number} kernel{'s' if number != 1 else ''}"


@dataclass(frozen=True)
class AuditIndex:
    """The audit of one environment, indexed to find the kernels of a source."""

    stored: StoredAudit
    rows: tuple[KernelRow, ...] = field(repr=False)
    order_independent: Mapping[str, int] = field(repr=False)
    without_atomics: frozenset[str] = field(repr=False)

    def reach(self, audit: SourceAudit) -> Reachability:
        """Return whether the op reaches its kernels, by the notes for this version and the registered GPU kernels."""
        version = self.stored.minor_version  # `stock` of a note is a range of such versions
        for unreachable in audit.unreachable_notes:
            if ranges.contains(unreachable.stock, version):
                return Reachability("not reached", unreachable.note)
        note_of_version = next(
            (entry for entry in audit.reachable_notes if ranges.contains(entry.stock, version)), None
        )
        note = note_of_version or next(iter(audit.reachable_notes), None)
        if note is None:
            return UNCHECKED
        if self.stored.registrations is None:
            return Reachability("not established", "what this build registers for GPUs is not known")
        ops = " or ".join(note.ops)
        if not any(self._has_gpu_kernel(op, dtypes) for op, dtypes in note.ops.items()):
            return Reachability("no GPU kernel", f"this build registers no GPU kernel of {ops} for such dtypes")
        if note_of_version is None:
            return Reachability("not established", "not checked for this version")
        return Reachability("reached", note_of_version.note)

    def _has_gpu_kernel(self, op: str, dtypes: list[str]) -> bool:
        """Return whether a GPU kernel is registered for an op and one of the dtypes; without dtypes it takes all."""
        registered = (self.stored.registrations or {}).get(op, {})
        dtypes_by_kernel = [text.split() for devices, text in registered.items() if "GPU" in devices.split()]
        return any(not kernel_dtypes or set(kernel_dtypes) & set(dtypes) for kernel_dtypes in dtypes_by_kernel)

    def finding(self, audit: SourceAudit) -> AuditFinding | None:
        """Return the kernels of a source; None if the source names none."""
        if not audit.kernels:
            return None
        rows = self._rows_of(_prefix_matches(_any_of(audit.kernels)).among(self._rows_by_signature.keys()))
        own = rows
        if audit.kernels_of_this_op is not None:
            own_names = _prefix_matches(audit.kernels_of_this_op).among({row.signature for row in rows})
            own = tuple(row for row in rows if row.signature in own_names)
        families = [family_name for pattern in audit.kernels if (family_name := _family_of(pattern))]
        family_pattern = _any_of(families)
        atomic_free_pattern = _any_of([*families, *([audit.family] if audit.family else [])])
        return AuditFinding(
            rows,
            own,
            order_independent=sum(
                self.order_independent[name]
                for name in _full_matches(family_pattern).among(self.order_independent.keys())
            ),
            without_atomics=tuple(sorted(_full_matches(atomic_free_pattern).among(self.without_atomics))),
            reach=self.reach(audit),
        )

    @cached_property
    def _rows_by_signature(self) -> dict[str, list[int]]:
        numbers: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows):
            numbers.setdefault(row.signature, []).append(number)
        return numbers

    def _rows_of(self, signatures: Iterable[str]) -> tuple[KernelRow, ...]:
        """Return the kernels with these signatures, in the order of the audit."""
        numbers = sorted(number for signature in signatures for number in self._rows_by_signature[signature])
        return tuple(self.rows[number] for number in numbers)

    def refusal_messages(self, audit: SourceAudit) -> list[str]:
        """Return the messages in the binaries with which this source's ops raise an error."""
        if audit.messages is None:
            return []
        return [text for text in self.stored.messages if re.search(audit.messages, text)]

    def kernels_without_source(self, sources: Iterable[Source]) -> list[KernelRow]:
        """Return the order-dependent and unresolved kernels that no source's pattern matches."""
        matched = _any_of([pattern for source in sources if source.audit for pattern in source.audit.kernels])
        matched_signatures = _prefix_matches(matched).among(self._rows_by_signature.keys())
        return [row for row in self.rows if row.kernel.verdict != "no" and row.signature not in matched_signatures]


def index_audit(stored: StoredAudit) -> AuditIndex:
    rows: list[KernelRow] = []
    order_independent: dict[str, int] = {}
    without_atomics: set[str] = set()
    for library, content in stored.libraries.items():
        signature_by_name = signatures([kernel.name for kernel in content.kernels])
        rows += [KernelRow(library, signature_by_name[kernel.name], kernel) for kernel in content.kernels]
        for name, count in content.order_independent.items():
            order_independent[name] = order_independent.get(name, 0) + count
        without_atomics.update(content.without_atomics)
    return AuditIndex(stored, tuple(rows), order_independent, frozenset(without_atomics))


def count_by_family(rows: Iterable[KernelRow]) -> dict[str, int]:
    """Return {family: number of kernels}, each kernel counted once."""
    kernels_by_family: dict[str, set[str]] = {}
    for row in rows:
        kernels_by_family.setdefault(family(row.signature), set()).add(row.kernel.name)
    return {name: len(kernels) for name, kernels in sorted(kernels_by_family.items())}


class _MatchedNames:
    """The names that satisfy a predicate, cached because environments share most of their kernels."""

    def __init__(self, matches: Callable[[str], object]) -> None:
        self._matches = matches
        self._tested: set[str] = set()
        self._matched: set[str] = set()

    def among(self, names: Set[str]) -> Set[str]:
        new = names - self._tested
        self._tested |= new
        self._matched.update(name for name in new if self._matches(name))
        return self._matched & names


@cache
def _prefix_matches(pattern: str) -> _MatchedNames:
    """Return the names whose beginning matches a pattern."""
    return _MatchedNames(re.compile(pattern).match)


@cache
def _full_matches(pattern: str) -> _MatchedNames:
    """Return the names that a pattern matches completely."""
    return _MatchedNames(re.compile(pattern).fullmatch)


def _any_of(patterns: list[str]) -> str:
    """Return one pattern for all of these; without patterns, it matches nothing."""
    return "|".join(f"(?:{pattern})" for pattern in patterns) or r"(?!)"


def _family_of(pattern: str) -> str | None:
    """Return the family that a pattern matches; None if it matches only some of its variants."""
    head, _, rest = pattern.partition("<")
    return head if rest in ("", "?") else None
