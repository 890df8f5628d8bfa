"""What changed between two builds: kernels that were added or removed, and new deterministic variants."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tfdet.matrix.models import Source
from tfdet.verdicts.audit_findings import AuditIndex, count_by_family


@dataclass(frozen=True)
class BuildDiff:
    """The differences between the audits of two environments; kernels are counted by family, each copy only once.

    An audit reads a build's binaries.  A family has the kernels of one name with any template arguments.
    """

    old: str
    new: str
    added: dict[str, int]  # {order-dependent family that only the new build has: kernels}
    removed: dict[str, int]  # {order-dependent family that only the old build has: kernels}
    changed: dict[str, tuple[int, int]]  # {order-dependent family: (kernels before, kernels after)}
    deterministic_added: dict[str, list[str]]  # {new family without order-dependent atomics: sources that can use it}
    sources: dict[str, tuple[str, str]]  # {source: (old finding, new finding)}
    variables: tuple[list[str], list[str]]  # (added, removed) environment variables that the binaries name
    messages: tuple[list[str], list[str]]  # (added, removed) error messages about determinism

    def as_json(self) -> dict[str, Any]:
        return {
            "old": self.old,
            "new": self.new,
            "added": self.added,
            "removed": self.removed,
            "changed": {name: list(pair) for name, pair in self.changed.items()},
            "deterministic_added": self.deterministic_added,
            "sources": {name: list(pair) for name, pair in self.sources.items()},
            "environment_variables": {"added": self.variables[0], "removed": self.variables[1]},
            "messages": {"added": self.messages[0], "removed": self.messages[1]},
        }


def diff_builds(old: AuditIndex, new: AuditIndex, sources: Mapping[str, Source]) -> BuildDiff:
    before, after = _order_dependent(old), _order_dependent(new)
    common = before.keys() & after.keys()
    return BuildDiff(
        old.stored.environment,
        new.stored.environment,
        added={name: after[name] for name in sorted(after.keys() - before.keys())},
        removed={name: before[name] for name in sorted(before.keys() - after.keys())},
        changed={name: (before[name], after[name]) for name in sorted(common) if before[name] != after[name]},
        deterministic_added=_deterministic_added(old, new, sources),
        sources=_findings(old, new, sources),
        variables=_added_and_removed(old, new, lambda audited: audited.stored.environment_variables),
        messages=_added_and_removed(old, new, lambda audited: audited.stored.messages),
    )


def _order_dependent(audited: AuditIndex) -> dict[str, int]:
    return count_by_family(row for row in audited.rows if row.kernel.verdict == "yes")


def _added_and_removed(
    old: AuditIndex, new: AuditIndex, get_texts: Callable[[AuditIndex], list[str]]
) -> tuple[list[str], list[str]]:
    return sorted(set(get_texts(new)) - set(get_texts(old))), sorted(set(get_texts(old)) - set(get_texts(new)))


def _deterministic_added(old: AuditIndex, new: AuditIndex, sources: Mapping[str, Source]) -> dict[str, list[str]]:
    """Return the new deterministic families: those that a source names, or whose name has "Deterministic"."""
    new_families = sorted(
        (new.without_atomics | set(new.order_independent)) - (old.without_atomics | set(old.order_independent))
    )
    sources_by_family = {
        name: [key for key, source in sources.items() if _is_deterministic_variant(source, name)]
        for name in new_families
    }
    return {name: keys for name, keys in sources_by_family.items() if keys or "Deterministic" in name}


def _is_deterministic_variant(source: Source, name: str) -> bool:
    return source.audit is not None and any(re.fullmatch(pattern, name) for pattern in source.audit.deterministic)


def _findings(old: AuditIndex, new: AuditIndex, sources: Mapping[str, Source]) -> dict[str, tuple[str, str]]:
    changed: dict[str, tuple[str, str]] = {}
    for key, source in sources.items():
        if source.audit is None:
            continue
        before, after = old.finding(source.audit), new.finding(source.audit)
        if before and after and before.text != after.text:
            changed[key] = (before.text, after.text)
    return changed
