"""The page of plots, with the numbers behind them."""

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
    """The largest differences of records that differ, in units in the last place.

    ulp: {source: {cell: {exponent of the power of two: number of records}}}.
    """

    ulp: Mapping[str, Mapping[_Cell, Counter[int]]]

    @classmethod
    def from_records(cls, records: Iterable[Record]) -> UlpHistogram:
        counts: dict[str, dict[_Cell, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
        for record in records:
            if record.differed and record.max_ulp is not None:
                cell = record.environment, record.device.model, record.solution
                counts[record.source][cell][max(record.max_ulp, 1).bit_length() - 1] += 1
        return cls({source: dict(cells) for source, cells in counts.items()})

    @classmethod
    def merge(cls, parts: Sequence[UlpHistogram]) -> UlpHistogram:
        """Merge histograms of different environments, which have no cell in common."""
        cells_by_source: dict[str, dict[_Cell, Counter[int]]] = defaultdict(dict)
        for part in parts:
            for source, cells in part.ulp.items():
                cells_by_source[source].update(cells)
        return cls(cells_by_source)

    def data(self, source: str) -> list[dict[str, Any]]:
        return [
            {"environment": environment, "device": device, "solution": solution,
             "records_by_power_of_two": {str(power): count for power, count in sorted(counts.items())}}
            for (environment, device, solution), counts in self.ulp.get(source, {}).items()
        ]  # fmt: skip


def page(facts: SiteFacts, ulps: UlpHistogram) -> Page:
    builds = AuditTables(facts.status).builds()
    costs = [cost for cost in facts.costs if cost.device == "cpu"]
    data: dict[str, Any] = {
        "atomics": [{"build": build.key, "order_dependent": build.order_dependent, "kernels": build.kernels}
                    for build in builds],
        "costs": [{"environment": cost.environment, "patch": cost.patch, "size": cost.size,
                   "time_ratio": round(cost.time_ratio, 3)} for cost in costs],
        "coverage": _coverage(facts),
        "ulp": {source: ulps.data(source) for source in facts.sources if source in ulps.ulp},
    }  # fmt: skip
    template_data = {
        "plots": {
            "atomics": plots.atomics(data["atomics"]),
            "coverage": plots.coverage(data["coverage"]),
            "costs": plots.costs(data["costs"]),
            "apart": plots.ulp_dots_all(
                {source: sum(cells.values(), Counter()) for source, cells in sorted(ulps.ulp.items())}
            ),
        }
    }
    return Page(
        path="numbers",
        kind="numbers",
        title="Plots",
        description=(
            "Atomics per release, the cost of determinism, how far results are apart, and "
            "what of the matrix is covered."
        ),
        data=data,
        template_data=template_data,
    )


def _coverage(facts: SiteFacts) -> list[dict[str, Any]]:
    """Return for each stock environment the number of sources by their best backing."""
    rows = []
    for key, environment in facts.matrix.environments.items():
        if environment.line == "stock":
            sources = [source for source in facts.sources if facts.may_have_op(key, source)]
            counts: Counter[str] = Counter(_best_backing(facts, key, source) for source in sources)
            rows.append({"environment": key, **{backing: counts[backing] for backing in (*_BACKINGS, "blank")}})
    return rows


_BACKINGS = ("measured", "emulated", "audited", "documented")


def _best_backing(facts: SiteFacts, environment: str, source: str) -> str:
    backings = {cell.backing for cell in facts.cells_by_page.get((environment, source), [])}
    return next((backing for backing in _BACKINGS if backing in backings), "blank")
