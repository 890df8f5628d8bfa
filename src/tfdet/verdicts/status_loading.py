"""Load the status of a project: its matrix, its audits, and the verdicts of its records, read on all CPU cores.

The status has the verdict of each cell: one environment, device, source of nondeterminism and solution.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final

from tfdet.base.parallel import parallel_map, should_read_in_processes
from tfdet.base.paths import Project
from tfdet.matrix.devices import DeviceRegistry
from tfdet.matrix.keys import Keyring
from tfdet.matrix.load import load_matrix
from tfdet.store.audits import load_all
from tfdet.store.cases import current_cases
from tfdet.store.consistency import ConsistencyRules
from tfdet.store.evidence import EvidenceStore
from tfdet.store.fast_records import RecordLine, RecordSummary, read_record_lines
from tfdet.store.record_lookup import FindRecord, find_nothing
from tfdet.store.records import checksums
from tfdet.store.signatures import NO_SIGNER, Attestation, AttestationIndex, AttestationStore, bundle_path, read_bundle
from tfdet.verdicts.audit_findings import index_audit
from tfdet.verdicts.cell_cache import CellCache
from tfdet.verdicts.infer import CellKey, EvidenceIndex, InferredCell
from tfdet.verdicts.status import Status, StatusCell


def load_status(
    project: Project,
    extra: Iterable[Path] = (),
    read_store: bool = True,
    include_unsigned: bool = False,
    cached: bool = True,
) -> Status:
    """Load the matrix and the evidence of a project.

    Args:
        project: the checkout or installation.
        extra: files of records that count as well, but are not added to the store.  A record in both counts once.
        read_store: whether the project's own evidence is read.
        include_unsigned: whether unsigned records count also for devices that require signatures.  Those in `extra`
            always do.
        cached: whether to use cells that were inferred earlier from the same files; never if there are `extra` files.
    """
    extra = list(extra)
    matrix = load_matrix(project.matrix, project.user_keys)
    rules = ConsistencyRules.from_matrix(matrix, current_cases(project))
    extra_rows = {row.record.checksum: row for path in extra for row in read_record_lines(path, rules.faults_of_stored)}
    extra_lines = {checksum: row.line for checksum, row in extra_rows.items()}
    attestations = AttestationStore.open(
        project, matrix, [line for path in extra for _, line in read_bundle(bundle_path(path))], extra_lines.get
    )
    evidence = EvidenceStore.open(project, rules)
    files = evidence.files() if read_store else []
    partitions: dict[tuple[str, str], _Partition] = defaultdict(lambda: ([], []))
    for path in files:
        partitions[path.parent.name, path.stem][0].append(path)
    for row in extra_rows.values():
        partitions[row.record.model, row.record.environment][1].append(_signable(row))
    infer = partial(_infer_partition, evidence, matrix.devices, rules.cases.hashes(), frozenset(extra_rows),
                    signatures=attestations, include_unsigned=include_unsigned)  # fmt: skip
    cache = CellCache.open(project, include_unsigned) if cached and not extra else None
    cells = _cells_of(partitions, infer, cache, attestations)
    audits = {key: audit for key, audit in load_all(project).items() if key in matrix.environments}
    return Status(
        matrix,
        cells,
        {key: index_audit(audit) for key, audit in audits.items() if not audit.stale},
        tuple(key for key, audit in audits.items() if audit.stale),
    )


_Signable = tuple[RecordSummary, str, str]  # a record, its checksum, its start time
_Partition = tuple[list[Path], list[_Signable]]  # files, records outside the store: of one device and environment


def _cells_of(
    partitions: Mapping[tuple[str, str], _Partition],
    infer: Callable[[_Partition], dict[CellKey, InferredCell]],
    cache: CellCache | None,
    signatures: AttestationStore,
) -> dict[CellKey, InferredCell]:
    """Return the cells of all partitions, by {(device, environment): partition}; unsigned cells come from the cache."""
    cells: dict[CellKey, InferredCell] = {}
    missing: list[tuple[str | None, _Partition]] = []
    for place, partition in partitions.items():
        key = cache.key(partition[0]) if cache and not signatures.has_envelopes(*place) else None
        cached_cells = cache.get(key) if cache and key else None
        if cached_cells is None:
            missing.append((key, partition))
        else:
            cells |= cached_cells
    use_processes = should_read_in_processes(path for _, (paths, _) in missing for path in paths)
    inferred = parallel_map(infer, [partition for _, partition in missing], use_processes=use_processes)
    for (key, _), new_cells in zip(missing, inferred, strict=True):
        cells |= new_cells
        if cache and key:
            cache.put(key, new_cells)
    if cache and any(key for key, _ in missing):
        cache.trim()
    return cells


def _signable(row: RecordLine) -> _Signable:
    return row.record, row.record.checksum, row.record.started


_Countable = tuple[_Signable, bool]  # a record, and whether it counts if it is unsigned


def _infer_cells(
    hashes: Mapping[str, set[str]], attestations: AttestationIndex, records: Iterable[_Countable]
) -> dict[CellKey, InferredCell]:
    """Infer the cells of one device and environment.

    A cell with trusted signed records depends only on these; other cells depend on the unsigned records that count.

    hashes: {source: hashes of its current cases}.  records: sorted by source, so that only one source is in memory.
    """
    cells: dict[CellKey, InferredCell] = {}
    for _, source_records in groupby(records, key=_source_of_countable):
        signed, unsigned = EvidenceIndex(hashes), EvidenceIndex(hashes)
        for (record, checksum, started), counts in source_records:
            signer = attestations.trusted_signer(checksum, started)
            if signer:
                signed.add(record, signer)
            elif signer == NO_SIGNER and counts:
                unsigned.add(record)
        unsigned_cells = {key: unsigned.cell(key) for key in unsigned.cell_keys()}
        signed_cells = {key: signed.cell(key) for key in signed.cell_keys()}
        cells |= unsigned_cells | {
            key: cell for key, cell in signed_cells.items() if key not in unsigned_cells or cell.signed
        }
    return cells


@dataclass(frozen=True)
class CellChange:
    """A cell of the tables before and after."""

    before: StatusCell
    after: StatusCell


def preview_changes(
    project: Project,
    rules: ConsistencyRules,
    records: Iterable[RecordLine],
    attestations: Sequence[Attestation] = (),
    find_record: FindRecord = find_nothing,
) -> list[CellChange]:
    """Return the cells of the tables that would change if these records were added to the store; do not add them.

    find_record: finds the records that the envelopes name.
    """
    before, store, hashes = load_status(project), EvidenceStore.open(project, rules), rules.cases.hashes()
    attestation_store = AttestationStore.open(
        project, before.matrix, [attestation.line for attestation in attestations], find_record
    )
    new_verdicts: dict[CellKey, InferredCell] = {}
    with store.prepare_merge(records, attestations) as (merge, _):
        for model, environment in merge.partitions:
            counts = not before.matrix.devices.requires_signature(model)
            countable = ((_signable(row), counts) for row in merge.record_lines((model, environment)))
            new_verdicts |= _infer_cells(hashes, attestation_store.index_of(model, environment), countable)
    after = replace(before, verdicts={**before.verdicts, **new_verdicts})
    pairs = [CellChange(before.cell(key), after.cell(key)) for key in sorted(new_verdicts, key=before.sort_key)]
    return [pair for pair in pairs if pair.before.inferred != pair.after.inferred]


_UNSIGNED: Final = AttestationStore(Keyring(), {})


def _infer_partition(
    store: EvidenceStore,
    devices: DeviceRegistry,
    hashes: Mapping[str, set[str]],
    skip: frozenset[str],
    partition: _Partition,
    signatures: AttestationStore = _UNSIGNED,
    include_unsigned: bool = False,
) -> dict[CellKey, InferredCell]:
    """Infer the cells of one device and environment, which depend on no other records.

    skip: checksums of stored records that are also outside the store.
    """
    paths, outside_store = partition
    model, environment = (
        (paths[0].parent.name, paths[0].stem) if paths else (outside_store[0][0].model, outside_store[0][0].environment)
    )
    counts = include_unsigned or not devices.requires_signature(model)
    parts: list[Iterable[_Countable]] = [((record, True) for record in sorted(outside_store, key=_source))]
    for path in paths:
        parts.append(_countable_records(store.record_lines(path), skip, counts))
        if path != paths[-1]:  # a newer tfdet may ship records that its user had added
            skip |= checksums(path)
    by_source = heapq.merge(*parts, key=_source_of_countable)
    return _infer_cells(hashes, signatures.index_of(model, environment), by_source)


def _source(record: _Signable) -> str:
    return record[0].source


def _source_of_countable(record: _Countable) -> str:
    return _source(record[0])


def _countable_records(rows: Iterable[RecordLine], skip: frozenset[str], counts: bool) -> Iterator[_Countable]:
    return ((_signable(row), counts) for row in rows if row.record.checksum not in skip)
