"""Collect the records of a fleet's tasks, environment by environment: each exactly once, in any order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from tfdet.base.errors import DataError
from tfdet.base.files import write_atomic
from tfdet.base.parallel import parallel_map
from tfdet.engines.run import ingest_records, sign_beside
from tfdet.fleet.folder import FleetFolder
from tfdet.fleet.tasks import Task
from tfdet.matrix.load import load_matrix
from tfdet.store import signing_key
from tfdet.store.cases import current_cases
from tfdet.store.consistency import ConsistencyRules
from tfdet.store.fast_records import to_record_line
from tfdet.store.merge import IngestResult
from tfdet.store.records import Record, parse

PARALLEL_TASKS = 1000  # from this number on processes are worth their start

Attempts = Mapping[int, list[str]]  # of tasks


def records(folder: FleetFolder, attempts: Attempts | None = None) -> list[Record]:
    """Return each record once; DataError names every invalid line."""
    found: dict[str, Record] = {}
    faults = []
    for where, number, line in _lines(folder, folder.started_attempts() if attempts is None else attempts):
        try:
            record = parse(line.encode("utf-8"))
        except ValueError as error:
            faults.append(f"{folder.journal(where)}:{number}: {error}")
            continue
        if wrong := _mismatch_reason(folder.fleet.tasks[int(where.partition("-")[0])], record):
            faults.append(f"{folder.journal(where)}:{number}: {wrong}")
            continue
        found.setdefault(record.checksum, record)
    if faults:
        raise DataError("\n".join(faults), "No records were added. Move the file away, then run with --resume.")
    return list(found.values())


def _lines(folder: FleetFolder, attempts: Attempts) -> Iterator[tuple[str, int, str]]:
    """(attempt, number, line)."""
    for _, names in sorted(attempts.items()):
        yield from folder.named_lines(names)


def _mismatch_reason(task: Task, record: Record) -> str:
    """Return why the record cannot be of this task; empty if it can."""
    asked = record.environment == task.environment and record.source in task.sources
    return "" if asked else f"{record.source} in {record.environment} is not of its task"


def ingest_into_store(folder: FleetFolder) -> IngestResult:
    """Signed by the key of who takes them, if there is one: it is their cluster.

    DataError where an environment's records fit nothing; what was taken of others stays taken.
    """
    begun, tasks = folder.started_attempts(), folder.fleet.tasks
    places: dict[str, dict[int, list[str]]] = defaultdict(dict)
    for task, names in begun.items():
        places[tasks[task].environment][task] = names
    total, faults = IngestResult(), []
    for added in parallel_map(
        partial(_ingest_environment, folder.path), places.values(), enough=len(begun) >= PARALLEL_TASKS
    ):
        if isinstance(added, str):
            faults.append(added)
            continue
        total.ingested += added.ingested
        total.duplicates += added.duplicates
        total.replaced += added.replaced
        total.conflicts += added.conflicts
    if faults:
        rest = f"{total.ingested + total.duplicates} records of other environments were added."
        raise DataError("\n".join(faults), f"Move these files away, then run with --resume. {rest}")
    return total


def _ingest_environment(path: Path, attempts: Attempts) -> IngestResult | str:
    """Ingest the records of one environment; return the faults, as text, if none were added."""
    folder = FleetFolder(path)
    project = folder.fleet.project
    matrix = load_matrix(project.matrix, project.user_keys)
    try:
        some = records(folder, attempts)
    except DataError as error:
        return error.cause
    rules = ConsistencyRules.from_matrix(matrix, current_cases(project))
    faults = dict.fromkeys(fault for record in some for fault in rules.faults_of_new(to_record_line(record).record))
    if faults:
        return "\n".join(f"{folder.path}: {fault}" for fault in faults)
    return ingest_records(project, matrix, signing_key.load(), some, rules)


def export_to_file(folder: FleetFolder, out: Path) -> int:
    """Write the records to a file, for `tfdet evidence add` elsewhere; return their number."""
    some = sorted(records(folder), key=lambda record: (record.key, record.provenance_key, record.started))
    write_atomic(out, "".join(record.line() for record in some))
    if some and (key := signing_key.load()):
        project = folder.fleet.project
        sign_beside(project, load_matrix(project.matrix, project.user_keys), key, out, some)
    return len(some)
