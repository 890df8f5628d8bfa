"""The status of a project: its matrix, its records read on all cores, its audits."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final

from tfdet.base.parallel import parallel_map, pays_to_read
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
    store: bool = True,
    unsigned: bool = False,
    cached: bool = True,
) -> Status:
    """Matrix and evidence of a checkout; `extra` files of records are looked at, not taken in.

    store: whether the checkout's own evidence is looked at.  A record in both counts once.
    unsigned: whether records count that nobody signed, of devices whose records have to be.  In `extra` they do: who
    names a file knows whose it is.
    cached: whether cells that were inferred earlier, of the same bytes, are taken; not beside `extra` records.
    """
    extra = list(extra)
    matrix = load_matrix(project.matrix, project.user_keys)
    rules = ConsistencyRules.from_matrix(matrix, current_cases(project))
    more = {row.record.checksum: row for path in extra for row in read_record_lines(path, rules.faults_of_stored)}
    found = {checksum: row.line for checksum, row in more.items()}
    signatures = AttestationStore.open(
        project, matrix, [line for path in extra for _, line in read_bundle(bundle_path(path))], found.get
    )
    there = EvidenceStore.open(project, rules)
    files = there.files() if store else []
    by_place: dict[tuple[str, str], _Partition] = defaultdict(lambda: ([], []))
    for path in files:
        by_place[path.parent.name, path.stem][0].append(path)
    for row in more.values():
        by_place[row.record.model, row.record.environment][1].append(_signable(row))
    judge = partial(_infer_partition, there, matrix.devices, rules.cases.hashes(), frozenset(more),
                    signatures=signatures, unsigned=unsigned)  # fmt: skip
    cache = CellCache.open(project, unsigned) if cached and not extra else None
    cells = _cells_of(by_place, judge, cache, signatures)
    audits = {key: audit for key, audit in load_all(project).items() if key in matrix.environments}
    return Status(
        matrix,
        cells,
        {key: index_audit(audit) for key, audit in audits.items() if not audit.stale},
        tuple(key for key, audit in audits.items() if audit.stale),
    )


_Signable = tuple[RecordSummary, str, str]  # and its checksum, and when it was started
_Partition = tuple[
    list[Path], list[_Signable]
]  # one device and environment: its files, and what comes beside the store


def _cells_of(
    by_place: Mapping[tuple[str, str], _Partition],
    judge: Callable[[_Partition], dict[CellKey, InferredCell]],
    cache: CellCache | None,
    signatures: AttestationStore,
) -> dict[CellKey, InferredCell]:
    """The cells of all places; those that nobody signed by the cache, if it has them."""
    cells: dict[CellKey, InferredCell] = {}
    missing: list[tuple[str | None, _Partition]] = []
    for place, partition in by_place.items():
        key = cache.key(partition[0]) if cache and not signatures.has_envelopes(*place) else None
        known = cache.get(key) if cache and key else None
        if known is None:
            missing.append((key, partition))
        else:
            cells |= known
    enough = pays_to_read(path for _, (paths, _) in missing for path in paths)
    found = parallel_map(judge, [partition for _, partition in missing], enough=enough)
    for (key, _), part in zip(missing, found, strict=True):
        cells |= part
        if cache and key:
            cache.put(key, part)
    if cache and any(key for key, _ in missing):
        cache.trim()
    return cells


def _signable(row: RecordLine) -> _Signable:
    return row.record, row.record.checksum, row.record.started


_Weighed = tuple[_Signable, bool]  # and whether it counts where nobody signed it


def _infer_cells(
    hashes: Mapping[str, set[str]], standing: AttestationIndex, records: Iterable[_Weighed]
) -> dict[CellKey, InferredCell]:
    """Records of one device and environment, by source, on two sides: what is signed by who is believed, and the rest.

    What is signed decides alone; where nothing is, the rest speaks, as what it is.  No more than a source is kept.
    """
    found: dict[CellKey, InferredCell] = {}
    for _, some in groupby(records, key=lambda one: one[0][0].source):
        signed, rest = EvidenceIndex(hashes), EvidenceIndex(hashes)
        for (record, checksum, started), counts in some:
            signer = standing.trusted_signer(checksum, started)
            if signer:
                signed.add(record, signer)
            elif signer == NO_SIGNER and counts:
                rest.add(record)
        ours = {key: rest.cell(key) for key in rest.cell_keys()}
        theirs = {key: signed.cell(key) for key in signed.cell_keys()}
        found |= ours | {key: cell for key, cell in theirs.items() if key not in ours or cell.signed}
    return found


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
    found: FindRecord = find_nothing,
) -> list[CellChange]:
    """What these records, taken into the store, would change in the tables; they are not taken.

    found: the records that the envelopes are of.
    """
    before, store, hashes = load_status(project), EvidenceStore.open(project, rules), rules.cases.hashes()
    signatures = AttestationStore.open(
        project, before.matrix, [attestation.line for attestation in attestations], found
    )
    now: dict[CellKey, InferredCell] = {}
    with store.prepare_merge(records, attestations) as (merge, _):
        for model, environment in merge.partitions:
            counts = not before.matrix.devices.requires_signature(model)
            kept = ((_signable(row), counts) for row in merge.record_lines((model, environment)))
            now |= _infer_cells(hashes, signatures.index_of(model, environment), kept)
    then = replace(before, verdicts={**before.verdicts, **now})
    pairs = [CellChange(before.cell(key), then.cell(key)) for key in sorted(now, key=before._order)]
    return [pair for pair in pairs if pair.before.cell != pair.after.cell]


_UNSIGNED: Final = AttestationStore(Keyring(), {})


def _infer_partition(
    store: EvidenceStore,
    devices: DeviceRegistry,
    hashes: Mapping[str, set[str]],
    skip: frozenset[str],
    place: _Partition,
    signatures: AttestationStore = _UNSIGNED,
    unsigned: bool = False,
) -> dict[CellKey, InferredCell]:
    """The verdicts of one device and environment: no other has a say in them."""
    paths, beside = place
    model, environment = (
        (paths[0].parent.name, paths[0].stem) if paths else (beside[0][0].model, beside[0][0].environment)
    )
    counts = unsigned or not devices.requires_signature(model)
    parts: list[Iterable[_Weighed]] = [((one, True) for one in sorted(beside, key=_source))]
    for path in paths:
        parts.append(_kept(store.record_lines(path), skip, counts))
        if path != paths[-1]:  # a newer tfdet may bring what its user had added
            skip |= checksums(path)
    by_source = heapq.merge(*parts, key=lambda one: one[0][0].source)
    return _infer_cells(hashes, signatures.index_of(model, environment), by_source)


def _source(one: _Signable) -> str:
    return one[0].source


def _kept(rows: Iterable[RecordLine], skip: frozenset[str], counts: bool) -> Iterator[_Weighed]:
    return ((_signable(row), counts) for row in rows if row.record.checksum not in skip)
