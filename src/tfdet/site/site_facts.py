"""The data of all pages: the status, signatures, costs, op comparisons and cases of a project, each loaded once.

The status is the verdict of each cell; costs are the measured time and memory of tfdeterminism's patches of ops; an op
comparison compares what a framework says of its ops with measurements.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tfdet.base.folders import list_entries
from tfdet.base.paths import Project
from tfdet.matrix.load import Matrix
from tfdet.publish.op_comparison import OpComparison, OpRow, compare_ops
from tfdet.publish.tables import version_ranges
from tfdet.site import wording
from tfdet.store import costs
from tfdet.store.costs import Cost
from tfdet.store.records import Record
from tfdet.store.signatures import NO_SIGNER, AttestationIndex, AttestationStore
from tfdet.verdicts.status import Status, StatusCell
from tfdet.verdicts.status_loading import load_status
from tfdet_probe.core import normalized_source
from tfdet_probe.core.registry import source_parameters
from tfdeterminism.patches import PATCHES


@dataclass(frozen=True)
class CaseSource:
    """One function of the shared suite."""

    file: str
    name: str
    text: str


@dataclass(frozen=True)
class SiteFacts:
    """The data from which the pages are generated."""

    project: Project
    status: Status

    @classmethod
    def from_project(cls, project: Project) -> SiteFacts:
        return cls(project, load_status(project))

    @property
    def matrix(self) -> Matrix:
        return self.status.matrix

    @cached_property
    def _attestation_indexes(self) -> dict[tuple[str, str], AttestationIndex]:
        return {}

    def attestations_of(self, record: Record) -> AttestationIndex:
        """Return the attestations of the record's device and environment."""
        place = record.device.model, record.environment
        if place not in self._attestation_indexes:
            self._attestation_indexes[place] = AttestationStore.open(self.project, self.matrix).index_of(*place)
        return self._attestation_indexes[place]

    def signer_text(self, record: Record) -> str:
        """Return the record's signature status in one phrase."""
        return self.attestations_of(record).describe(record.checksum, record.started)

    def is_counted(self, record: Record) -> bool:
        """Return whether a record counts for a cell; others may come from anybody and are not shown."""
        signer = self.attestations_of(record).trusted_signer(record.checksum, record.started)
        return bool(signer) or (signer == NO_SIGNER and not self.matrix.devices.requires_signature(record.device.model))

    @cached_property
    def cells(self) -> list[StatusCell]:
        return self.status.cells

    @cached_property
    def cells_by_page(self) -> Mapping[tuple[str, str], list[StatusCell]]:
        """{(environment, source): the cells of that page}."""
        cells: dict[tuple[str, str], list[StatusCell]] = defaultdict(list)
        for cell in self.cells:
            cells[cell.key.environment, cell.key.source].append(cell)
        return cells

    @cached_property
    def cells_by_source(self) -> Mapping[str, list[StatusCell]]:
        cells: dict[str, list[StatusCell]] = defaultdict(list)
        for cell in self.cells:
            cells[cell.key.source].append(cell)
        return cells

    @cached_property
    def sources(self) -> list[str]:
        """The keys of the sources in the order of the tables, without frameworks' ops about which nothing is known."""
        notable = {row.source for comparison in self.op_comparisons.values() for row in comparison.notable_rows}
        known_ops = notable | self.cells_by_source.keys()
        keys = [key for key, source in self.matrix.sources.items() if source.group != "op" or key in known_ops]
        return sorted(keys, key=lambda key: (self.matrix.sources[key].sort_key, key))

    @cached_property
    def op_comparisons(self) -> Mapping[str, OpComparison]:
        """{environment: the comparison of its framework's own lists with measurements}."""
        comparisons = (
            comparison
            for framework in self.matrix.frameworks
            for comparison in compare_ops(self.project.matrix, self.status, framework)
        )
        return {
            comparison.environment: comparison
            for comparison in comparisons
            if comparison.environment in self.matrix.environments
        }

    @cached_property
    def op_rows(self) -> Mapping[str, list[tuple[str, OpRow]]]:
        """{source: (environment, its row in the op comparison)}."""
        rows: dict[str, list[tuple[str, OpRow]]] = defaultdict(list)
        for environment, comparison in self.op_comparisons.items():
            for row in comparison.rows:
                rows[row.source].append((environment, row))
        return rows

    def framework_name(self, environment: str) -> str:
        """Return the name of an environment's framework."""
        return self.matrix.frameworks[self.matrix.environments[environment].framework].name

    def may_have_op(self, environment: str, source: str) -> bool:
        """Return whether a source can exist in an environment, by its framework and package."""
        source_model, environment_model = self.matrix.sources[source], self.matrix.environments[environment]
        is_framework = source_model.framework in ("", environment_model.framework)
        return is_framework and environment_model.is_for(source_model.package)

    @cached_property
    def solutions(self) -> list[str]:
        return sorted(self.matrix.solutions, key=lambda key: self.matrix.solutions[key].order)

    @cached_property
    def cases(self) -> Mapping[str, list[CaseSource]]:
        """{source: the functions of the suite that test it}."""
        by_source: dict[str, list[CaseSource]] = defaultdict(list)
        for path in list_entries(self.project.suite(""), "*/test_*.py"):
            text = path.read_text("utf-8")
            functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
            for name, case in normalized_source.normalize_cases(text).items():
                if name in functions:
                    for source in self._cases_for(case.source, path.parent.name):
                        by_source[source].append(CaseSource(path.name, name, _function_text(text, functions[name])))
        return by_source

    def _cases_for(self, source: str, framework: str) -> list[str]:
        """Return the sources that a case tests: its own; for a name with `{op}`, all ops of the framework."""
        if not source_parameters(source):
            return [source]
        models = {key: self.matrix.sources[key] for key in self.sources}
        return [key for key, model in models.items() if (model.group, model.framework) == ("op", framework)]

    @cached_property
    def costs(self) -> list[Cost]:
        return [cost for path in list_entries(self.project.costs, "*/*.jsonl") for cost in costs.load(path)]

    def costs_of(self, source: str) -> list[Cost]:
        """Return the costs of the patches that serve a source."""
        serving = {key for key, patch in PATCHES.items() if source in patch.sources}
        return [cost for cost in self.costs if cost.patch in serving]

    def where(self, keys: Iterator[str] | list[str]) -> str:
        """Return environments as version ranges: TF 2.1 to 2.7, NGC 20.03 to 21.12."""
        environments = self.matrix.environments
        return version_ranges([environments[key] for key in keys], list(environments.values()), self.matrix.frameworks)


def _function_text(text: str, function: ast.FunctionDef) -> str:
    first = min([function.lineno, *(node.lineno for node in function.decorator_list)])
    return "\n".join(text.split("\n")[first - 1 : function.end_lineno])


def cell_data(cell: StatusCell) -> dict[str, Any]:
    """Return a cell as `tfdet status --json` does, with the CSS class of its color."""
    return {**cell.as_json(), "kind": css_class(cell)}


def css_class(cell: StatusCell) -> str:
    """Return the CSS class of a cell."""
    audit_kind = None
    if cell.audited and cell.finding and not cell.claimed_outcome:
        audit_kind = "bad" if cell.finding.shows_order_dependence else "quiet"
    return wording.css_class(str(cell.inferred.verdict), cell.claimed_outcome, audit_kind)


def cell_text(cell: StatusCell) -> str:
    """Return a cell's verdict or, if it was not run, its claim, or `audited`."""
    return str(cell.inferred.verdict) or (f"claimed {cell.claimed_outcome}" if cell.claimed_outcome else "audited")
