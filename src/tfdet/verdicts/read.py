"""The status of a project: its matrix, its records read on all cores, its audits."""

from __future__ import annotations

import gc
import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final

from tfdet.base.paths import Project
from tfdet.matrix.devices import DeviceRegistry
from tfdet.matrix.keys import Keyring
from tfdet.matrix.load import load_matrix
from tfdet.store.audits import load_all
from tfdet.store.cases import current_cases
from tfdet.store.evidence import Store
from tfdet.store.glance import Row, Seen, rows
from tfdet.store.lookup import Find, nothing
from tfdet.store.misfits import Rules
from tfdet.store.records import checksums
from tfdet.store.signatures import UNSIGNED, Signatures, Standing, Vouch, beside, lines
from tfdet.verdicts.findings import prepare
from tfdet.verdicts.infer import Cell, CellKey, Evidence
from tfdet.verdicts.status import Status, StatusCell

PARALLEL_BYTES = 64 << 20


def load_status(project: Project, extra: Iterable[Path] = (), store: bool = True, unsigned: bool = False) -> Status:
    """Matrix and evidence of a checkout; `extra` files of records are looked at, not taken in.

    store: whether the checkout's own evidence is looked at.  A record in both counts once.
    unsigned: whether records count that nobody signed, of devices whose records have to be.  In `extra` they do: who
    names a file knows whose it is.
    """
    extra = list(extra)
    matrix = load_matrix(project.matrix, project.own_keys)
    rules = Rules.of(matrix, current_cases(project))
    more = {row.glance.checksum: row for path in extra for row in rows(path, rules.read)}
    found = {checksum: row.line for checksum, row in more.items()}
    signatures = Signatures.of(project, matrix, [line for path in extra for line in lines(beside(path))], found.get)
    there = Store.of(project, rules)
    files = there.files() if store else []
    by_place: dict[tuple[str, str], _Place] = defaultdict(lambda: ([], []))
    for path in files:
        by_place[path.parent.name, path.stem][0].append(path)
    for row in more.values():
        by_place[row.glance.model, row.glance.environment][1].append(_signable(row))
    judge = partial(_judge, there, matrix.devices, rules.cases.hashes(), frozenset(more), signatures=signatures,
                    unsigned=unsigned)  # fmt: skip
    parts = _spread(judge, list(by_place.values()), sum(path.stat().st_size for path in files))
    audits = {key: audit for key, audit in load_all(project).items() if key in matrix.environments}
    return Status(
        matrix,
        {key: cell for part in parts for key, cell in part.items()},
        {key: prepare(audit) for key, audit in audits.items() if not audit.stale},
        tuple(key for key, audit in audits.items() if audit.stale),
    )


_Signable = tuple[Seen, str, str]  # and its checksum, and when it was started
_Place = tuple[list[Path], list[_Signable]]  # one device and environment: its files, and what comes beside the store


def _signable(row: Row) -> _Signable:
    return row.glance, row.glance.checksum, row.glance.started


_Weighed = tuple[_Signable, bool]  # and whether it counts where nobody signed it


def _weighed(hashes: Mapping[str, set[str]], standing: Standing, records: Iterable[_Weighed]) -> dict[CellKey, Cell]:
    """Records of one device and environment, by source, on two sides: what is signed by who is believed, and the rest.

    What is signed decides alone; where nothing is, the rest speaks, as what it is.  No more than a source is kept.
    """
    found: dict[CellKey, Cell] = {}
    for _, some in groupby(records, key=lambda one: one[0][0].source):
        signed, rest = Evidence(hashes), Evidence(hashes)
        for (record, checksum, started), counts in some:
            signer = standing.of(checksum, started)
            if signer:
                signed.add(record, signer)
            elif signer == UNSIGNED and counts:
                rest.add(record)
        ours = {key: rest.cell(key) for key in rest.cell_keys()}
        theirs = {key: signed.cell(key) for key in signed.cell_keys()}
        found |= ours | {key: cell for key, cell in theirs.items() if key not in ours or cell.signed}
    return found


@dataclass(frozen=True)
class Change:
    """A cell of the tables before and after."""

    before: StatusCell
    after: StatusCell


def changes(
    project: Project, rules: Rules, records: Iterable[Row], vouches: Sequence[Vouch] = (), found: Find = nothing
) -> list[Change]:
    """What these records, taken into the store, would change in the tables; they are not taken.

    found: the records that the envelopes are of.
    """
    before, store, hashes = load_status(project), Store.of(project, rules), rules.cases.hashes()
    signatures = Signatures.of(project, before.matrix, [vouch.line for vouch in vouches], found)
    now: dict[CellKey, Cell] = {}
    with store.merged(records, vouches) as (merge, _):
        for model, environment in merge.places:
            counts = not before.matrix.devices.requires_signature(model)
            kept = ((_signable(row), counts) for row in merge.rows((model, environment)))
            now |= _weighed(hashes, signatures.at(model, environment), kept)
    then = replace(before, verdicts={**before.verdicts, **now})
    pairs = [Change(before.cell(key), then.cell(key)) for key in sorted(now, key=before._order)]
    return [pair for pair in pairs if pair.before.cell != pair.after.cell]


_UNSIGNED: Final = Signatures(Keyring(), {})


def _judge(
    store: Store,
    devices: DeviceRegistry,
    hashes: Mapping[str, set[str]],
    skip: frozenset[str],
    place: _Place,
    signatures: Signatures = _UNSIGNED,
    unsigned: bool = False,
) -> dict[CellKey, Cell]:
    """The verdicts of one device and environment: no other has a say in them."""
    paths, beside = place
    model, environment = (
        (paths[0].parent.name, paths[0].stem) if paths else (beside[0][0].model, beside[0][0].environment)
    )
    counts = unsigned or not devices.requires_signature(model)
    parts: list[Iterable[_Weighed]] = [((one, True) for one in sorted(beside, key=_source))]
    for path in paths:
        parts.append(_kept(store.rows(path), skip, counts))
        if path != paths[-1]:  # a newer tfdet may bring what its user had added
            skip |= checksums(path)
    by_source = heapq.merge(*parts, key=lambda one: one[0][0].source)
    return _weighed(hashes, signatures.at(model, environment), by_source)


def _source(one: _Signable) -> str:
    return one[0].source


def _kept(rows: Iterable[Row], skip: frozenset[str], counts: bool) -> Iterator[_Weighed]:
    return ((_signable(row), counts) for row in rows if row.glance.checksum not in skip)


_mine: list[Callable[[_Place], dict[CellKey, Cell]]] = []  # of a process of the pool: given once, not with each place


def _begin(judge: Callable[[_Place], dict[CellKey, Cell]]) -> None:
    gc.disable()  # no record makes a cycle, and to look for one takes long
    _mine.append(judge)


def _in_process(place: _Place) -> dict[CellKey, Cell]:
    return _mine[0](place)


def _spread(
    judge: Callable[[_Place], dict[CellKey, Cell]], places: list[_Place], size: int
) -> Iterator[dict[CellKey, Cell]]:
    """judge(place) for each; on all cores where there is enough to read (bytes) to pay for starting them."""
    if size < PARALLEL_BYTES:
        yield from map(judge, places)
        return
    with ProcessPoolExecutor(initializer=_begin, initargs=(judge,)) as pool:
        yield from pool.map(_in_process, places)
