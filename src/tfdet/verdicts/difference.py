"""What changed between two builds: kernels that appeared or went, and deterministic ones that came beside the old."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tfdet.matrix.models import Source
from tfdet.verdicts.findings import Audited, families


@dataclass(frozen=True)
class Difference:
    """old, new: environments.  Kernels are told by family, with their number; copies count once."""

    old: str
    new: str
    appeared: dict[str, int]  # with order-dependent atomics, not in the old build
    went: dict[str, int]  # with order-dependent atomics, in the old build only
    changed: dict[str, tuple[int, int]]
    beside: dict[str, list[str]]  # new and without such atomics: the sources that it offers another way
    sources: dict[str, tuple[str, str]]  # whose finding is another
    variables: tuple[list[str], list[str]]  # that appeared, that went
    messages: tuple[list[str], list[str]]

    def as_json(self) -> dict[str, Any]:
        return {
            "old": self.old,
            "new": self.new,
            "appeared": self.appeared,
            "went": self.went,
            "changed": {name: list(pair) for name, pair in self.changed.items()},
            "deterministic_beside": self.beside,
            "sources": {name: list(pair) for name, pair in self.sources.items()},
            "environment_variables": {"appeared": self.variables[0], "went": self.variables[1]},
            "messages": {"appeared": self.messages[0], "went": self.messages[1]},
        }


def difference(old: Audited, new: Audited, sources: Mapping[str, Source]) -> Difference:
    before, after = _order_dependent(old), _order_dependent(new)
    both = before.keys() & after.keys()
    return Difference(
        old.stored.environment,
        new.stored.environment,
        appeared={name: after[name] for name in sorted(after.keys() - before.keys())},
        went={name: before[name] for name in sorted(before.keys() - after.keys())},
        changed={name: (before[name], after[name]) for name in sorted(both) if before[name] != after[name]},
        beside=_beside(old, new, sources),
        sources=_findings(old, new, sources),
        variables=_news(old, new, lambda audited: audited.stored.environment_variables),
        messages=_news(old, new, lambda audited: audited.stored.messages),
    )


def _order_dependent(audited: Audited) -> dict[str, int]:
    return families(row for row in audited.rows if row.kernel.verdict == "yes")


def _news(old: Audited, new: Audited, of: Callable[[Audited], list[str]]) -> tuple[list[str], list[str]]:
    return sorted(set(of(new)) - set(of(old))), sorted(set(of(old)) - set(of(new)))


def _beside(old: Audited, new: Audited, sources: Mapping[str, Source]) -> dict[str, list[str]]:
    """Those that a source names, and those that call themselves deterministic."""
    fresh = sorted((new.plain | set(new.orderless)) - (old.plain | set(old.orderless)))
    offered = {name: [key for key, source in sources.items() if _offers(source, name)] for name in fresh}
    return {name: keys for name, keys in offered.items() if keys or "Deterministic" in name}


def _offers(source: Source, name: str) -> bool:
    return source.audit is not None and any(re.fullmatch(pattern, name) for pattern in source.audit.deterministic)


def _findings(old: Audited, new: Audited, sources: Mapping[str, Source]) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for key, source in sources.items():
        if source.audit is None:
            continue
        before, after = old.finding(source.audit), new.finding(source.audit)
        if before and after and before.text != after.text:
            found[key] = (before.text, after.text)
    return found
