"""The status of a project: its matrix, its records read on all cores, its audits."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.matrix.devices import Devices
from tfdet.matrix.load import load_matrix
from tfdet.store.audits import load_all
from tfdet.store.cases import current_hashes
from tfdet.store.evidence import Store
from tfdet.store.misfits import device_faults
from tfdet.store.records import Record, checksums, read_records
from tfdet.verdicts.findings import prepare
from tfdet.verdicts.glance import glance, seen
from tfdet.verdicts.infer import Cell, CellKey, Evidence, Seen
from tfdet.verdicts.status import Status, StatusCell

PARALLEL_BYTES = 64 << 20


def load_status(project: Project, extra: Iterable[Path] = (), store: bool = True) -> Status:
    """Matrix and evidence of a checkout; `extra` files of records are looked at, not taken in.

    store: whether the checkout's own evidence is looked at.  A record in both counts once.
    """
    matrix = load_matrix(project.matrix)
    more = {record.checksum: record for path in extra for record in read_records(path)}
    if faults := [fault for record in more.values() for fault in device_faults(matrix.devices, record)]:
        raise DataError("\n".join(dict.fromkeys(faults)), "Nothing was taken from these files.")
    files = Store.of(project).files() if store else []
    by_place: dict[tuple[str, str], tuple[list[Path], list[Seen]]] = defaultdict(lambda: ([], []))
    for path in files:
        by_place[path.parent.name, path.stem][0].append(path)
    for record in more.values():
        by_place[record.device.model, record.environment][1].append(seen(record))
    judge = partial(_judge, matrix.devices, current_hashes(project), frozenset(more))
    parts = _spread(judge, list(by_place.values()), sum(path.stat().st_size for path in files))
    audits = {key: audit for key, audit in load_all(project).items() if key in matrix.environments}
    return Status(
        matrix,
        {key: cell for part in parts for key, cell in part.items()},
        {key: prepare(audit) for key, audit in audits.items() if not audit.stale},
        tuple(key for key, audit in audits.items() if audit.stale),
    )


_Place = tuple[list[Path], list[Seen]]  # one device and environment: its file in the store, and what comes beside


@dataclass(frozen=True)
class Change:
    """A cell of the tables before and after."""

    before: StatusCell
    after: StatusCell


def changes(project: Project, records: Iterable[Record]) -> list[Change]:
    """What these records, taken into the store, would change in the tables; they are not taken."""
    found, store = load_status(project), Store.of(project)
    merged, _ = store.merged(records)
    evidence = Evidence(current_hashes(project))
    for kept in merged.values():
        evidence.extend(seen(record) for record in kept)
    then = replace(found, verdicts={**found.verdicts, **{key: evidence.cell(key) for key in evidence.cell_keys()}})
    touched = sorted(evidence.cell_keys(), key=found._order)
    pairs = [Change(found.cell(key), then.cell(key)) for key in touched]
    return [pair for pair in pairs if pair.before.cell != pair.after.cell]


def _judge(
    devices: Devices, hashes: Mapping[str, set[str]], skip: frozenset[str], place: _Place
) -> dict[CellKey, Cell]:
    """The verdicts of one device and environment: no other has a say in them."""
    evidence = Evidence(hashes)
    paths, beside = place
    evidence.extend(beside)
    for path in paths:
        evidence.extend(_in_its_place(path, glance(path, devices, skip)))
        if path != paths[-1]:  # a newer tfdet may bring what its user had added
            skip |= checksums(path)
    return {key: evidence.cell(key) for key in evidence.cell_keys()}


def _spread(
    judge: Callable[[_Place], dict[CellKey, Cell]], places: list[_Place], size: int
) -> Iterator[dict[CellKey, Cell]]:
    """judge(place) for each; on all cores where there is enough to read (bytes) to pay for starting them."""
    if size < PARALLEL_BYTES:
        yield from map(judge, places)
        return
    with ProcessPoolExecutor(initializer=gc.disable) as pool:  # no record makes a cycle, and to look for one takes long
        yield from pool.map(judge, places)


def _in_its_place(path: Path, records: Iterable[Seen]) -> Iterator[Seen]:
    place = path.parent.name, path.stem
    for record in records:
        if (record.model, record.environment) != place:
            raise DataError(f"{path}: holds a record of {record.model}/{record.environment}")
        yield record
