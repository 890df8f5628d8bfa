"""Run the suite in environments and take the records in."""

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
from tfdet.base.folders import is_there, listed
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

# The worst of several runs is the exit code of all.
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
    code: ExitCode
    records: list[Record]
    added: IngestResult | None


def worst_exit_code(codes: list[ExitCode]) -> ExitCode:
    return max(codes, key=_EXIT_SEVERITY.index, default=ExitCode.OK)


def engine_for(project: Project, environment: Environment, name: str | None) -> Engine:
    """The engine asked for; without a wish, a venv where pip can build the environment."""
    chosen = name or ("venv" if environment.pip else "docker")
    # Imported on use: Docker's library alone takes a quarter of a second.
    if chosen == "venv":
        from tfdet.engines.venv import VenvEngine

        return VenvEngine(project)
    if chosen == "docker":
        from tfdet.engines.docker import DockerEngine

        return DockerEngine(project)
    if chosen in ("apptainer", "enroot"):
        from tfdet.engines.rootless_containers import RootlessContainerEngine

        return RootlessContainerEngine(project, chosen)
    raise UsageError(f"engine {chosen!r} not found", "Engines: docker, venv, apptainer, enroot.")


def run_environment(
    project: Project,
    matrix: Matrix,
    key: str,
    selection: Selection,
    engine_name: str | None = None,
    out: Path | None = None,
) -> RunResult:
    """Run one environment; finished records are kept whatever happens.

    Records go into the evidence store, or into the file `out`.
    """
    environment = matrix.environment(key)
    _check_selection(matrix, key, selection)
    signer = signing_key.load()  # before anything is run: a key that is no good is told here
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
        here = [record for record in records if record.environment == key]  # --out may hold others
        if out is None:
            added = ingest_records(project, matrix, signer, records)
            journal.unlink(missing_ok=True)
        elif signer and here:
            sign_beside(project, matrix, signer, out, here)
    return RunResult(ExitCode(code), records, added)


def ingest_records(
    project: Project,
    matrix: Matrix,
    signer: Ed25519PrivateKey | None,
    records: list[Record],
    rules: ConsistencyRules | None = None,
) -> IngestResult:
    """Into the store, signed if this machine has a key, and the key is believed."""
    attestations = _trusted(project, matrix, signer, records) if signer else []
    return EvidenceStore.open(project, rules).ingest(records, attestations)


def _trusted(project: Project, matrix: Matrix, signer: Ed25519PrivateKey, records: list[Record]) -> list[Attestation]:
    """What this machine's key says of the records, as far as this repository trusts it; a note says why not."""
    found = []
    for line in attest(project, records, key_signer(signer)):
        try:
            found.append(verify_for_records(AttestationStore.open(project, matrix), records, line))
        except ValueError as error:
            console.print_note(f"kept as unsigned: {error} (docs/how-to/sign-records.md)")
    return found


def sign_beside(project: Project, matrix: Matrix, signer: Ed25519PrivateKey, path: Path, records: list[Record]) -> None:
    """Sign records in a file of their own.  A key that is not in matrix/keys signs for another repository."""
    if matrix.keys.find_by_hint(key_id(signer.public_key().public_bytes_raw())):
        envelopes = [attestation.line for attestation in _trusted(project, matrix, signer, records)]
    else:
        envelopes = attest(project, records, key_signer(signer))
    if envelopes:
        add_to_bundle(path, envelopes)


def _check_selection(matrix: Matrix, key: str, selection: Selection) -> None:
    """Unknown names, and a choice of which nothing is left, are told before anything is built."""
    for source in selection.sources:
        matrix.source(source)
    for solution in selection.solutions:
        matrix.solution(solution)
    chosen = [cell for cell in _chosen(matrix, key, selection) if cell.device == selection.device]
    if not any(cell.reason is None for cell in chosen):
        reasons = sorted({cell.reason for cell in chosen if cell.reason})
        raise UsageError(
            f"nothing to run in {key} on the {selection.device}: {'; '.join(reasons[:3]) or 'no such cell'}",
            "Choose another --source, --solution or --device.",
        )


def _chosen(matrix: Matrix, key: str, selection: Selection) -> list[PlannedCell]:
    """Of all devices."""
    return [
        cell
        for cell in plan_cells(matrix, key)
        if (not selection.sources or cell.source in selection.sources)
        and (not selection.solutions or cell.solution in selection.solutions)
    ]


def on_default_device(matrix: Matrix, key: str, selection: Selection) -> Selection:
    """The selection on the GPU; on the CPU if that alone runs any of it."""
    runnable = {cell.device for cell in _chosen(matrix, key, selection) if cell.reason is None}
    return replace(selection, device="gpu" if "gpu" in runnable or "cpu" not in runnable else "cpu")


@contextlib.contextmanager
def _journal(project: Project, name: str, out: Path | None) -> Iterator[Path]:
    """A journal of our own: two runs at once never write into one."""
    if out is not None:
        require_writable(out, "--out")
        with _try_lock(out.with_name(out.name + ".lock")) as held:
            if not held or not _is_abandoned(out):
                raise UsageError(f"another run is writing {out}", "Pass another --out file.")
            _check_records(out)
            yield resolve(out)
        return
    for number in range(100):
        folder = project.journals / f"{name}-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        journal = folder / "records.jsonl"
        with _try_lock(folder / "lock") as held:
            if held and _is_abandoned(journal):
                yield journal
                return
    raise RunFailedError("100 runs of this environment are already active", "Wait for one to end.")


def _is_abandoned(journal: Path, patience: float = GRACE_SECONDS + 5) -> bool:
    """Does nobody write these records any more?  The probe of a tfdet that was killed needs seconds to end; a container
    does not end with it.
    """
    end = time.monotonic() + patience
    while is_locked_by_writer(str(journal)):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return not is_locked_by_writer(str(container_path(journal)))


def _check_records(path: Path) -> None:
    """DataError where the run could not go on with what is in that file, before anything is brought up for it."""
    if path.exists():
        with path.open("rb") as source:
            try:
                parse(source, str(path))
            except JournalUnusableError as error:
                raise DataError(str(error), "Nothing was run.") from error


def _recover_orphaned_journals(
    project: Project, name: str, take: Callable[[list[Record]], IngestResult] | None = None
) -> None:
    """Records of runs that were interrupted beside another one: nobody would come back to their journals."""
    for path in listed(project.journals, f"{name}-*/records.jsonl"):
        if not path.parent.name.removeprefix(f"{name}-").isdigit():
            continue
        with _try_lock(path.parent / "lock") as held:
            if not held or not is_there(path) or not _is_abandoned(path, patience=0):
                continue
            try:
                Journal(str(path))  # cuts off a line that a kill has torn
            except JournalUnusableError as error:
                raise DataError(str(error).partition(";")[0], "Move the file away; nothing was run.") from error
            added = (take or EvidenceStore.open(project).ingest)(list(read_records(path)))
            path.unlink()
            console.print_note(f"{added.ingested} records recovered from an interrupted run")


@contextlib.contextmanager
def _try_lock(path: Path) -> Iterator[bool]:
    """Hold the lock file `path` if nobody does; it is gone afterwards."""
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
