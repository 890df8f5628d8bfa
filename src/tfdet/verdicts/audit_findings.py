"""Stored audits to findings: which kernels of a source a build holds, and which kernels no source claims.

A pattern is matched against the full names of kernels that depend on order, or may; those that do not, and those
without atomics, are stored by family, and for them only the pattern's family, up to its first `<`, counts.
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

FindingKind = Literal["order-dependent", "partial", "unresolved", "orderless", "no atomics", "not shipped"]
ReachabilityKind = Literal["reached", "not reached", "no GPU kernel", "not established"]


class Reachability(NamedTuple):
    """Can the source's op run the kernels in that build, with the arguments of its title?  `why` in words."""

    how: ReachabilityKind
    why: str


UNCHECKED: Final = Reachability("not established", "not checked")


class KernelRow(NamedTuple):
    """A kernel that depends on order, or may."""

    library: str
    signature: str
    kernel: StoredKernel


@dataclass(frozen=True)
class AuditFinding:
    """What one build holds of one source."""

    rows: tuple[KernelRow, ...]  # those that match
    own: tuple[KernelRow, ...]  # of them, what the op itself runs
    order_independent: int  # kernels of its families whose atomics do not depend on order
    without_atomics: tuple[str, ...]  # its families without atomics
    reach: Reachability = UNCHECKED

    @property
    def is_conclusive(self) -> bool:
        """Does it speak for the op?  Shipped is not reached."""
        return self.kind == "order-dependent" and self.reach.how == "reached"

    @property
    def is_unchecked(self) -> bool:
        """Are order-dependent atomics shipped, and nobody knows whether the op reaches them?"""
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
    def names(self) -> int:
        """Kernels with order-dependent atomics, each once however many architectures hold it."""
        return len({row.kernel.name for row in self.order_dependent_kernels})

    @property
    def archs(self) -> list[str]:
        """Where they were read."""
        found = {
            a
            for row in self.order_dependent_kernels
            for f in row.kernel.findings
            if f.order_dependent == "yes"
            for a in f.archs.split()
        }
        return sort_archs(a for a in found if a.startswith("sm")) + sort_archs(a for a in found if a.startswith("co"))

    def as_json(self) -> dict[str, Any]:
        return {
            "finding": self.kind,
            "kernels": self.names,
            "archs": self.archs,
            "text": self.text,
            "reach": self.reach.how,
            "why": self.reach.why,
        }

    @property
    def text(self) -> str:
        some = {
            "order-dependent": f"order-dependent float atomics in {_kernels(self.names)}",
            "partial": f"none in the op's own kernels; {_kernels(self.names)} of the same code, for other ops, "
            "add floats atomically",
            "unresolved": f"{_kernels(len({row.kernel.name for row in self.unresolved_kernels}))} with atomics whose "
            "effect could not be resolved",
            "orderless": f"none found: the atomics of its {_kernels(self.order_independent)} do not depend on order",
            "no atomics": "none found: its kernels hold no atomics",
            "not shipped": "no such kernel is shipped",
        }
        return some[self.kind] + (self._shipped_only if self.order_dependent_kernels else "")

    @property
    def _shipped_only(self) -> str:
        """What is to be said beside kernels that are there and do not count."""
        if self.reach.how == "not established":
            return ": shipped, reach not established"
        return "" if self.reach.how == "reached" else f": shipped, {self.reach.how}: {self.reach.why}"


def _kernels(number: int) -> str:
    return f"{number} kernel{'s' if number != 1 else ''}"


@dataclass(frozen=True)
class AuditIndex:
    """One environment's audit, ready to be asked."""

    stored: StoredAudit
    rows: tuple[KernelRow, ...] = field(repr=False)
    order_independent: Mapping[str, int] = field(repr=False)
    without_atomics: frozenset[str] = field(repr=False)

    def reach(self, audit: SourceAudit) -> Reachability:
        """By the checked notes that cover the version, and by what this build registers for GPUs."""
        version = self.stored.minor
        for entry in audit.unreachable_notes:
            if ranges.contains(entry.stock, version):
                return Reachability("not reached", entry.note)
        checked = next((entry for entry in audit.reachable_notes if ranges.contains(entry.stock, version)), None)
        wanted = checked or next(iter(audit.reachable_notes), None)
        if wanted is None:
            return UNCHECKED
        if self.stored.registrations is None:
            return Reachability("not established", "what this build registers for GPUs is not known")
        ops = " or ".join(wanted.ops)
        if not any(self._on_gpu(op, dtypes) for op, dtypes in wanted.ops.items()):
            return Reachability("no GPU kernel", f"this build registers no GPU kernel of {ops} for such dtypes")
        if checked is None:
            return Reachability("not established", "not checked for this version")
        return Reachability("reached", checked.note)

    def _on_gpu(self, op: str, dtypes: list[str]) -> bool:
        """A kernel that names no dtype, registered as an empty list, takes what its op takes."""
        held = (self.stored.registrations or {}).get(op, {})
        texts = [text.split() for devices, text in held.items() if "GPU" in devices.split()]
        return any(not some or set(some) & set(dtypes) for some in texts)

    def finding(self, audit: SourceAudit) -> AuditFinding | None:
        """None where the source has no kernel to look for."""
        if not audit.kernels:
            return None
        rows = self._rows_of(_names(_any_of(audit.kernels)).among(self._rows_by_signature.keys()))
        own = rows
        if audit.kernels_of_this_op is not None:
            own_names = _names(audit.kernels_of_this_op).among({row.signature for row in rows})
            own = tuple(row for row in rows if row.signature in own_names)
        heads = [head for pattern in audit.kernels if (head := _family_of(pattern))]
        named, kept = _any_of(heads), _any_of([*heads, *([audit.family] if audit.family else [])])
        return AuditFinding(
            rows,
            own,
            order_independent=sum(
                self.order_independent[name] for name in _families(named).among(self.order_independent.keys())
            ),
            without_atomics=tuple(sorted(_families(kept).among(self.without_atomics))),
            reach=self.reach(audit),
        )

    @cached_property
    def _rows_by_signature(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, row in enumerate(self.rows):
            found.setdefault(row.signature, []).append(number)
        return found

    def _rows_of(self, signatures: Iterable[str]) -> tuple[KernelRow, ...]:
        """In the order of the audit."""
        numbers = sorted(number for one in signatures for number in self._rows_by_signature[one])
        return tuple(self.rows[number] for number in numbers)

    def refusal_messages(self, audit: SourceAudit) -> list[str]:
        """The messages by which this source's ops refuse."""
        if audit.messages is None:
            return []
        return [text for text in self.stored.messages if re.search(audit.messages, text)]

    def unclaimed(self, sources: Iterable[Source]) -> list[KernelRow]:
        """Kernels that depend on order, or may, and that no source's pattern matches."""
        claimed = _any_of([pattern for source in sources if source.audit for pattern in source.audit.kernels])
        known = _names(claimed).among(self._rows_by_signature.keys())
        return [row for row in self.rows if row.kernel.verdict != "no" and row.signature not in known]


def index_audit(stored: StoredAudit) -> AuditIndex:
    rows: list[KernelRow] = []
    order_independent: dict[str, int] = {}
    without_atomics: set[str] = set()
    for library, content in stored.libraries.items():
        short = signatures([kernel.name for kernel in content.kernels])
        rows += [KernelRow(library, short[kernel.name], kernel) for kernel in content.kernels]
        for name, count in content.order_independent.items():
            order_independent[name] = order_independent.get(name, 0) + count
        without_atomics.update(content.without_atomics)
    return AuditIndex(stored, tuple(rows), order_independent, frozenset(without_atomics))


def count_by_family(rows: Iterable[KernelRow]) -> dict[str, int]:
    """{family: kernels}, each kernel once."""
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(family(row.signature), set()).add(row.kernel.name)
    return {name: len(kernels) for name, kernels in sorted(found.items())}


class _MatchedNames:
    """The names that satisfy a predicate.  Environments share most of their kernels: each name is matched once."""

    def __init__(self, matches: Callable[[str], object]) -> None:
        self._matches = matches
        self._asked: set[str] = set()
        self._matched: set[str] = set()

    def among(self, names: Set[str]) -> Set[str]:
        new = names - self._asked
        self._asked |= new
        self._matched.update(name for name in new if self._matches(name))
        return self._matched & names


@cache
def _names(pattern: str) -> _MatchedNames:
    """Those that begin as a pattern says."""
    return _MatchedNames(re.compile(pattern).match)


@cache
def _families(pattern: str) -> _MatchedNames:
    """Those that are, as a whole, what a pattern says."""
    return _MatchedNames(re.compile(pattern).fullmatch)


def _any_of(patterns: list[str]) -> str:
    """One pattern that matches what one of these does; none of them: nothing."""
    return "|".join(f"(?:{pattern})" for pattern in patterns) or r"(?!)"


def _family_of(pattern: str) -> str | None:
    """The family that a pattern names; None where it names some of its variants."""
    head, _, rest = pattern.partition("<")
    return head if rest in ("", "?") else None
