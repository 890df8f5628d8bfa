"""Collection of the records of a fleet's tasks, each exactly once, for the evidence store or a file.

A fleet is a run of the suite on many machines. A task is a part of it: sources of nondeterminism in one environment.
The names of its attempts begin with its number and a dash.
"""

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

PARALLEL_TASKS = 1000  # from this number of tasks on, several processes are faster

Attempts = Mapping[int, list[str]]  # {task: names of its attempts}


def records(folder: FleetFolder, attempts: Attempts | None = None) -> list[Record]:
    """Return each record of these attempts (by default of all) once; DataError names every invalid line."""
    by_checksum: dict[str, Record] = {}
    faults = []
    for attempt, number, line in _lines(folder, folder.started_attempts() if attempts is None else attempts):
        try:
            record = parse(line.encode("utf-8"))
        except ValueError as error:
            faults.append(f"{folder.journal(attempt)}:{number}: {error}")
            continue
        if mismatch := _mismatch_reason(folder.fleet.tasks[int(attempt.partition("-")[0])], record):
            faults.append(f"{folder.journal(attempt)}:{number}: {mismatch}")
            continue
        by_checksum.setdefault(record.checksum, record)
    if faults:
        raise DataError("\n".join(faults), "No records were added. Move the file away, then run with --resume.")
    return list(by_checksum.values())


def _lines(folder: FleetFolder, attempts: Attempts) -> Iterator[tuple[str, int, str]]:
    """Yield (attempt, line number, line)."""
    for _, names in sorted(attempts.items()):
        yield from folder.named_lines(names)


def _mismatch_reason(task: Task, record: Record) -> str:
    """Return why the record cannot be of this task; empty if it can."""
    is_of_task = record.environment == task.environment and record.source in task.sources
    return "" if is_of_task else f"{record.source} in {record.environment} is not of its task"


def ingest_into_store(folder: FleetFolder) -> IngestResult:
    """Add all records to the evidence store, signed by this machine's key if there is one.

    DataError if the records of an environment are invalid; those of other environments are added nevertheless.
    """
    attempts, tasks = folder.started_attempts(), folder.fleet.tasks
    by_environment: dict[str, dict[int, list[str]]] = defaultdict(dict)
    for task, names in attempts.items():
        by_environment[tasks[task].environment][task] = names
    total, faults = IngestResult(), []
    for result in parallel_map(
        partial(_ingest_environment, folder.path),
        by_environment.values(),
        use_processes=len(attempts) >= PARALLEL_TASKS,
    ):
        if isinstance(result, str):
            faults.append(result)
            continue
        total.ingested += result.ingested
        total.duplicates += result.duplicates
        total.replaced += result.replaced
        total.conflicts += result.conflicts
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
        environment_records = records(folder, attempts)
    except DataError as error:
        return error.cause
    rules = ConsistencyRules.from_matrix(matrix, current_cases(project))
    lines = [to_record_line(record) for record in environment_records]
    faults = dict.fromkeys(fault for line in lines for fault in rules.faults_of_new(line.record))
    if faults:
        return "\n".join(f"{folder.path}: {fault}" for fault in faults)
    return ingest_records(project, matrix, signing_key.load(), environment_records, rules)


def export_to_file(folder: FleetFolder, out: Path) -> int:
    """Write the records to a file, for `tfdet evidence add` elsewhere; return their number."""
    exported = sorted(records(folder), key=lambda record: (record.key, record.provenance_key, record.started))
    write_atomic(out, "".join(record.line() for record in exported))
    if exported and (key := signing_key.load()):
        project = folder.fleet.project
        sign_beside(project, load_matrix(project.matrix, project.user_keys), key, out, exported)
    return len(exported)
