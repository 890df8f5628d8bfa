"""The page of plots, and the numbers behind them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfdet.publish.audit_tables import AuditTables
from tfdet.site import plots
from tfdet.site.page import Page
from tfdet.site.site_facts import SiteFacts
from tfdet.store.records import Record

_Cell = tuple[str, str, str]  # environment, device, solution


@dataclass(frozen=True)
class UlpHistogram:
    """{source: {cell: {the power of two of its largest difference in ulp: records}}} of what differs."""

    ulp: Mapping[str, Mapping[_Cell, Counter[int]]]

    @classmethod
    def from_records(cls, records: Iterable[Record]) -> UlpHistogram:
        found: dict[str, dict[_Cell, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
        for record in records:
            if record.differed and record.max_ulp is not None:
                cell = record.environment, record.device.model, record.solution
                found[record.source][cell][max(record.max_ulp, 1).bit_length() - 1] += 1
        return cls({source: dict(cells) for source, cells in found.items()})

    @classmethod
    def merge(cls, parts: Sequence[UlpHistogram]) -> UlpHistogram:
        """Each cell stands in one of them: they are of different environments."""
        found: dict[str, dict[_Cell, Counter[int]]] = defaultdict(dict)
        for part in parts:
            for source, cells in part.ulp.items():
                found[source].update(cells)
        return cls(found)

    def data(self, source: str) -> list[dict[str, Any]]:
        return [
            {"environment": environment, "device": device, "solution": solution,
             "records_by_power_of_two": {str(power): count for power, count in sorted(counts.items())}}
            for (environment, device, solution), counts in self.ulp.get(source, {}).items()
        ]  # fmt: skip


def page(facts: SiteFacts, apart: UlpHistogram) -> Page:
    builds = AuditTables(facts.status).builds()
    costs = [cost for cost in facts.costs if cost.device == "cpu"]
    data: dict[str, Any] = {
        "atomics": [{"build": b.key, "order_dependent": b.order_dependent, "kernels": b.kernels} for b in builds],
        "costs": [{"environment": c.environment, "patch": c.patch, "size": c.size, "time_ratio": round(c.time_ratio, 3)}
                  for c in costs],
        "coverage": _coverage(facts),
        "ulp": {source: apart.data(source) for source in facts.sources if source in apart.ulp},
    }  # fmt: skip
    shown = {
        "plots": {
            "atomics": plots.atomics(data["atomics"]),
            "coverage": plots.coverage(data["coverage"]),
            "costs": plots.costs(data["costs"]),
            "apart": plots.ulp_dots_all({s: sum(cells.values(), Counter()) for s, cells in sorted(apart.ulp.items())}),
        }
    }
    return Page(
        "numbers",
        "numbers",
        "Plots",
        "Atomics per release, the cost of determinism, how far results are apart, and what of the matrix is covered.",
        data,
        shown,
    )


def _coverage(facts: SiteFacts) -> list[dict[str, Any]]:
    """By stock environment: how many sources have something to show, by the best kind of backing."""
    rows = []
    for key, environment in facts.matrix.environments.items():
        if environment.line == "stock":
            mine = [source for source in facts.sources if facts.may_have_op(key, source)]
            best: Counter[str] = Counter(_best(facts, key, source) for source in mine)
            rows.append({"environment": key, **{kind: best[kind] for kind in (*_KINDS, "blank")}})
    return rows


_KINDS = ("measured", "emulated", "audited", "documented")


def _best(facts: SiteFacts, environment: str, source: str) -> str:
    backings = {cell.backing for cell in facts.by_page.get((environment, source), [])}
    return next((kind for kind in _KINDS if kind in backings), "blank")
