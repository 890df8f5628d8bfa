"""Runs of the suite in an environment, from the choice of the engine to the records in the evidence store.

A cell is a source of nondeterminism under one solution, which shall make it deterministic, on one device. An
attestation is a signed statement about a batch of records; its envelope carries the signatures.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from tfdet.base import console
from tfdet.base.errors import DataError, ExitCode, InterruptedRunError, RunFailedError, UsageError
from tfdet.base.files import require_writable
from tfdet.base.folders import is_there, list_entries
from tfdet.base.paths import Project
from tfdet.base.untrusted import resolve
from tfdet.engines.base import Engine, Request, Selection, container_path
from tfdet.matrix.keys import key_id
from tfdet.matrix.load import Matrix
from tfdet.matrix.models import Environment
from tfdet.matrix.plan import PlannedCell, plan_cells, write_plan
from tfdet.store import signing_key
from tfdet.store.consistency import ConsistencyRules, device_faults
from tfdet.store.evidence import EvidenceStore
from tfdet.store.merge import IngestResult
from tfdet.store.records import Record, read_records
from tfdet.store.signatures import Attestation, AttestationStore, verify_for_records
from tfdet.store.signing import add_to_bundle, attest, key_signer
from tfdet_common.journal import Journal, JournalUnusableError, is_locked_by_writer, parse
from tfdet_common.parent_death import GRACE_SECONDS

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# In ascending order of severity: the worst exit code of several runs is that of the command.
_EXIT_SEVERITY = [
    ExitCode.OK,
    ExitCode.CONTRADICTED,
    ExitCode.NO_DEVICE,
    ExitCode.RUN_FAILED,
    ExitCode.USAGE,
    ExitCode.INTERRUPTED,
]


@dataclass(frozen=True)
class RunResult:
    """The result of a run.  added: what changed in the store; None if the records went to a file."""

    code: ExitCode
    records: list[Record]
    added: IngestResult | None


def worst_exit_code(codes: list[ExitCode]) -> ExitCode:
    return max(codes, key=_EXIT_SEVERITY.index, default=ExitCode.OK)


def engine_for(project: Project, environment: Environment, name: str | None) -> Engine:
    """Return the engine of this name, by default venv if pip can install the environment, else docker."""
    engine_name = name or ("venv" if environment.pip else "docker")
    # Imported on use: importing Docker's library takes a quarter of a second.
    if engine_name == "venv":
        from tfdet.engines.venv import VenvEngine

        return VenvEngine(project)
    if engine_name == "docker":
        from tfdet.engines.docker import DockerEngine

        return DockerEngine(project)
    if engine_name in ("apptainer", "enroot"):
        from tfdet.engines.rootless_containers import RootlessContainerEngine

        return RootlessContainerEngine(project, engine_name)
    raise UsageError(f"engine {engine_name!r} not found", "Engines: docker, venv, apptainer, enroot.")


def run_environment(
    project: Project,
    matrix: Matrix,
    key: str,
    selection: Selection,
    engine_name: str | None = None,
    out: Path | None = None,
) -> RunResult:
    """Run the suite in one environment, and put the records into the evidence store or the file `out`.

    After an error or interrupt, the finished records stay in the journal, for the next run.
    """
    environment = matrix.environment(key)
    _check_selection(matrix, key, selection)
    signer = signing_key.load()  # before the run, so that an invalid key is reported now
    plan = write_plan(matrix, key, project.work_dir / "plans" / f"{key}.json")
    name = f"{key}-{selection.device}"
    with _journal(project, name, out) as journal:
        if out is None:
            _recover_orphaned_journals(project, name, partial(ingest_records, project, matrix, signer))
        engine = engine_for(project, environment, engine_name)
        kind = matrix.devices.find_by_cli_name(selection.device)
        request = Request(key=key, environment=environment, plan=plan, journal=journal, selection=selection, kind=kind)
        try:
            code = engine.run(request)
        except KeyboardInterrupt:
            raise InterruptedRunError from None
        if code == ExitCode.INTERRUPTED:
            raise InterruptedRunError
        if code not in list(ExitCode):
            raise RunFailedError(f"the suite in {key} ended with status {code}", "Run again: it resumes from there.")
        records = list(read_records(journal)) if is_there(journal) else []
        if faults := [fault for record in records for fault in device_faults(matrix.devices, record)]:
            raise DataError("\n".join(dict.fromkeys(faults)), f"No records were added from {journal}.")
        added = None
        own_records = [record for record in records if record.environment == key]  # --out may contain others
        if out is None:
            added = ingest_records(project, matrix, signer, records)
            journal.unlink(missing_ok=True)
        elif signer and own_records:
            sign_beside(project, matrix, signer, out, own_records)
    return RunResult(ExitCode(code), records, added)


def ingest_records(
    project: Project,
    matrix: Matrix,
    signer: Ed25519PrivateKey | None,
    records: list[Record],
    rules: ConsistencyRules | None = None,
) -> IngestResult:
    """Add records to the evidence store, signed if this machine has a key that the store trusts."""
    attestations = _trusted_attestations(project, matrix, signer, records) if signer else []
    return EvidenceStore.open(project, rules).ingest(records, attestations)


def _trusted_attestations(
    project: Project, matrix: Matrix, signer: Ed25519PrivateKey, records: list[Record]
) -> list[Attestation]:
    """Sign the records; return the attestations that the store trusts, and print a note for each other one."""
    attestations = []
    for line in attest(project, records, key_signer(signer)):
        try:
            attestations.append(verify_for_records(AttestationStore.open(project, matrix), records, line))
        except ValueError as error:
            console.print_note(f"kept as unsigned: {error} (docs/how-to/sign-records.md)")
    return attestations


def sign_beside(project: Project, matrix: Matrix, signer: Ed25519PrivateKey, path: Path, records: list[Record]) -> None:
    """Sign the records of the file `path`, in a file beside it.

    A key of matrix/keys signs what this store trusts; any other key signs everything, for another store.
    """
    if matrix.keys.find_by_hint(key_id(signer.public_key().public_bytes_raw())):
        envelopes = [attestation.line for attestation in _trusted_attestations(project, matrix, signer, records)]
    else:
        envelopes = attest(project, records, key_signer(signer))
    if envelopes:
        add_to_bundle(path, envelopes)


def _check_selection(matrix: Matrix, key: str, selection: Selection) -> None:
    """Raise UsageError for an unknown name, or if the selection has no cell to run, before anything is built."""
    for source in selection.sources:
        matrix.source(source)
    for solution in selection.solutions:
        matrix.solution(solution)
    cells = [cell for cell in _selected_cells(matrix, key, selection) if cell.device == selection.device]
    if not any(cell.reason is None for cell in cells):
        reasons = sorted({cell.reason for cell in cells if cell.reason})
        raise UsageError(
            f"nothing to run in {key} on the {selection.device}: {'; '.join(reasons[:3]) or 'no such cell'}",
            "Choose another --source, --solution or --device.",
        )


def _selected_cells(matrix: Matrix, key: str, selection: Selection) -> list[PlannedCell]:
    """Return the cells of the selected sources and solutions, on all devices."""
    return [
        cell
        for cell in plan_cells(matrix, key)
        if (not selection.sources or cell.source in selection.sources)
        and (not selection.solutions or cell.solution in selection.solutions)
    ]


def on_default_device(matrix: Matrix, key: str, selection: Selection) -> Selection:
    """Return the selection for the GPU, or for the CPU if only that can run any of its cells."""
    runnable = {cell.device for cell in _selected_cells(matrix, key, selection) if cell.reason is None}
    return replace(selection, device="gpu" if "gpu" in runnable or "cpu" not in runnable else "cpu")


@contextlib.contextmanager
def _journal(project: Project, name: str, out: Path | None) -> Iterator[Path]:
    """Yield the path of a journal that no other run uses; with `out`, that is this file."""
    if out is not None:
        require_writable(out, "--out")
        with _try_lock(out.with_name(out.name + ".lock")) as is_locked:
            if not is_locked or not _is_abandoned(out):
                raise UsageError(f"another run is writing {out}", "Pass another --out file.")
            _check_records(out)
            yield resolve(out)
        return
    for number in range(100):
        folder = project.journals / f"{name}-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        journal = folder / "records.jsonl"
        with _try_lock(folder / "lock") as is_locked:
            if is_locked and _is_abandoned(journal):
                yield journal
                return
    raise RunFailedError("100 runs of this environment are already active", "Wait for one to end.")


def _is_abandoned(journal: Path, timeout: float = GRACE_SECONDS + 5) -> bool:
    """Return whether no process writes to the journal any more.

    The probe of a killed tfdet needs some seconds to end, which this waits for; a container does not end with tfdet.
    """
    deadline = time.monotonic() + timeout
    while is_locked_by_writer(str(journal)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return not is_locked_by_writer(str(container_path(journal)))


def _check_records(path: Path) -> None:
    """Raise DataError if the run cannot append to the records in this file, before an environment is built."""
    if path.exists():
        with path.open("rb") as source:
            try:
                parse(source, str(path))
            except JournalUnusableError as error:
                raise DataError(str(error), "Nothing was run.") from error


def _recover_orphaned_journals(
    project: Project, name: str, ingest: Callable[[list[Record]], IngestResult] | None = None
) -> None:
    """Ingest the records of interrupted runs from journals that no later run would resume."""
    for path in list_entries(project.journals, f"{name}-*/records.jsonl"):
        if not path.parent.name.removeprefix(f"{name}-").isdigit():
            continue
        with _try_lock(path.parent / "lock") as is_locked:
            if not is_locked or not is_there(path) or not _is_abandoned(path, timeout=0):
                continue
            try:
                Journal(str(path))  # removes an incomplete last line
            except JournalUnusableError as error:
                raise DataError(str(error).partition(";")[0], "Move the file away; nothing was run.") from error
            result = (ingest or EvidenceStore.open(project).ingest)(list(read_records(path)))
            path.unlink()
            console.print_note(f"{result.ingested} records recovered from an interrupted run")


@contextlib.contextmanager
def _try_lock(path: Path) -> Iterator[bool]:
    """Yield whether the lock `path` was free; hold it meanwhile, and remove its file afterwards."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)
        lock.release()
