"""What pages are made of: the status, the records, costs and case texts of a project, gathered once."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tfdet.base.folders import listed
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
        """What the envelopes of its device and environment say."""
        place = record.device.model, record.environment
        if place not in self._attestation_indexes:
            self._attestation_indexes[place] = AttestationStore.open(self.project, self.matrix).index_of(*place)
        return self._attestation_indexes[place]

    def signer_text(self, record: Record) -> str:
        """Who vouches for it, in words."""
        return self.attestations_of(record).describe(record.checksum, record.started)

    def is_counted(self, record: Record) -> bool:
        """Has it a say in any cell?  What has none is shown to nobody: it may be anybody's."""
        signer = self.attestations_of(record).trusted_signer(record.checksum, record.started)
        return bool(signer) or (signer == NO_SIGNER and not self.matrix.devices.requires_signature(record.device.model))

    @cached_property
    def cells(self) -> list[StatusCell]:
        return self.status.cells

    @cached_property
    def by_page(self) -> Mapping[tuple[str, str], list[StatusCell]]:
        """Cells by environment and source: those of one page."""
        found: dict[tuple[str, str], list[StatusCell]] = defaultdict(list)
        for cell in self.cells:
            found[cell.key.environment, cell.key.source].append(cell)
        return found

    @cached_property
    def by_source(self) -> Mapping[str, list[StatusCell]]:
        found: dict[str, list[StatusCell]] = defaultdict(list)
        for cell in self.cells:
            found[cell.key.source].append(cell)
        return found

    @cached_property
    def sources(self) -> list[str]:
        """In the order of the tables; of the many ops that come with a framework those of which anything is known."""
        told = {row.source for join in self.joins.values() for row in join.notable_rows}
        some = told | self.by_source.keys()
        known = [key for key, source in self.matrix.sources.items() if source.group != "op" or key in some]
        return sorted(known, key=lambda key: (self.matrix.sources[key].sort_key, key))

    @cached_property
    def joins(self) -> Mapping[str, OpComparison]:
        """{environment: what its framework's own lists say of each op}."""
        found = (join for key in self.matrix.frameworks for join in compare_ops(self.project.matrix, self.status, key))
        return {join.environment: join for join in found if join.environment in self.matrix.environments}

    @cached_property
    def rows_of(self) -> Mapping[str, list[tuple[str, OpRow]]]:
        """{source: (environment, its row)}."""
        found: dict[str, list[tuple[str, OpRow]]] = defaultdict(list)
        for environment, join in self.joins.items():
            for row in join.rows:
                found[row.source].append((environment, row))
        return found

    def names(self, environment: str) -> str:
        """What the framework of an environment is called."""
        return self.matrix.frameworks[self.matrix.environments[environment].framework].name

    def may_have_op(self, environment: str, source: str) -> bool:
        """Has it such an op?"""
        what, where = self.matrix.sources[source], self.matrix.environments[environment]
        return what.framework in ("", where.framework) and where.is_for(what.package)

    @cached_property
    def solutions(self) -> list[str]:
        return sorted(self.matrix.solutions, key=lambda key: self.matrix.solutions[key].order)

    @cached_property
    def cases(self) -> Mapping[str, list[CaseSource]]:
        """{source: the functions that provoke it}."""
        found: dict[str, list[CaseSource]] = defaultdict(list)
        for path in listed(self.project.suite(""), "*/test_*.py"):
            text = path.read_text("utf-8")
            functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
            for name, case in normalized_source.normalize_cases(text).items():
                if name in functions:
                    for source in self._cases_for(case.source, path.parent.name):
                        found[source].append(CaseSource(path.name, name, _text(text, functions[name])))
        return found

    def _cases_for(self, source: str, framework: str) -> list[str]:
        """A case that is named after a parameter provokes each of the ops that come with the framework."""
        if not source_parameters(source):
            return [source]
        some = {key: self.matrix.sources[key] for key in self.sources}
        return [key for key, one in some.items() if (one.group, one.framework) == ("op", framework)]

    @cached_property
    def costs(self) -> list[Cost]:
        return [cost for path in listed(self.project.costs, "*/*.jsonl") for cost in costs.load(path)]

    def costs_of(self, source: str) -> list[Cost]:
        """Of the patches that serve it."""
        serving = {key for key, patch in PATCHES.items() if source in patch.sources}
        return [cost for cost in self.costs if cost.patch in serving]

    def where(self, keys: Iterator[str] | list[str]) -> str:
        """TF 2.1 to 2.7, NGC 20.03 to 21.12."""
        environments = self.matrix.environments
        return version_ranges([environments[key] for key in keys], list(environments.values()), self.matrix.frameworks)


def _text(text: str, function: ast.FunctionDef) -> str:
    first = min([function.lineno, *(node.lineno for node in function.decorator_list)])
    return "\n".join(text.split("\n")[first - 1 : function.end_lineno])


def cell_data(cell: StatusCell) -> dict[str, Any]:
    """As `tfdet status --json` has it, and how pages colour it."""
    return {**cell.as_json(), "kind": kind(cell)}


def kind(cell: StatusCell) -> str:
    said = None
    if cell.audited and cell.finding and not cell.claimed_outcome:
        said = "bad" if cell.finding.is_conclusive else "quiet"
    return wording.kind_of(str(cell.cell.verdict), cell.claimed_outcome, said)


def says(cell: StatusCell) -> str:
    """Its verdict, or in a word what stands for one."""
    return str(cell.cell.verdict) or (f"claimed {cell.claimed_outcome}" if cell.claimed_outcome else "audited")
