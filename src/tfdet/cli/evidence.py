"""The commands `tfdet evidence add` and `sign`.

An attestation is a signed statement about a batch of records; an envelope is the line of JSON that carries it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfdet.base import console
from tfdet.base.errors import DataError, ExitCode, UsageError
from tfdet.base.paths import Project
from tfdet.base.untrusted import resolve
from tfdet.cli.app import load_project, report_added

if TYPE_CHECKING:
    from tfdet.matrix.load import Matrix
    from tfdet.store.fast_records import RecordLine
    from tfdet.store.record_lookup import RecordSpool
    from tfdet.store.signatures import Attestation
    from tfdet.store.signing import SignCallback


def add(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="files of records, one JSON object per line")],
    yes: Annotated[bool, typer.Option("--yes", help="add the records without asking for confirmation")] = False,
    unsigned: Annotated[
        bool, typer.Option("--unsigned", help="ignore the envelopes beside the files: add the records as unsigned")
    ] = False,
) -> None:
    """Add records from another machine to the evidence store: validate them, show what changes, ask.

    Signatures are read from FILE.intoto.jsonl; their keys must be in matrix/keys.
    """
    from tfdet.publish import terminal_views
    from tfdet.store.cases import current_cases
    from tfdet.store.consistency import ConsistencyRules
    from tfdet.store.evidence import EvidenceStore
    from tfdet.store.fast_records import read_record_lines
    from tfdet.store.record_lookup import RecordSpool
    from tfdet.verdicts.status_loading import preview_changes

    project, matrix = load_project()
    rules = ConsistencyRules.from_matrix(matrix, current_cases(project))
    # A spool holds the records of a file; a call of it returns the line of the record with a checksum.
    by_file = {path: RecordSpool(read_record_lines(path, rules.faults_of_new)) for path in files}
    attestations = [] if unsigned else _read_attestations(project, matrix, by_file)
    _warn_uncounted(matrix, chain.from_iterable(by_file.values()), attestations)
    _warn_other_locks(attestations)

    def find_record(checksum: str) -> bytes | None:
        return next(filter(None, (spool(checksum) for spool in by_file.values())), None)

    changes = preview_changes(project, rules, chain.from_iterable(by_file.values()), attestations, find_record)
    if changes:
        console.err().print(terminal_views.change_table(changes))
        _confirm(len(changes), yes)
    report_added(EvidenceStore.open(project, rules).ingest(chain.from_iterable(by_file.values()), attestations))


def _read_attestations(project: Project, matrix: Matrix, by_file: Mapping[Path, RecordSpool]) -> list[Attestation]:
    """Read and verify the envelopes beside the files; DataError if one of them is invalid."""
    from tfdet.store.signatures import AttestationStore, bundle_path, read_bundle, verify_for_records

    signatures = AttestationStore.open(project, matrix)
    attestations, faults = [], []
    for path, records in by_file.items():
        for number, line in read_bundle(bundle_path(path)):
            try:
                attestations.append(verify_for_records(signatures, records, line))
            except ValueError as error:
                faults.append(f"{bundle_path(path)}:{number}: {error}")
    if faults:
        advice = (
            "No records were added. Add a key that you trust to matrix/keys (docs/how-to/sign-records.md),"
            " or pass --unsigned."
        )
        raise DataError("\n".join(faults), advice)
    return attestations


def _warn_uncounted(matrix: Matrix, records: Iterable[RecordLine], attestations: Iterable[Attestation]) -> None:
    """Print how many records will be stored but not counted, because they lack a required signature."""
    from tfdet.store.signatures import AttestationIndex

    requires_signature = matrix.devices.requires_signature
    index = AttestationIndex([a for a in attestations if requires_signature(a.batch.device)])
    uncounted = Counter(
        summary.model
        for summary, _ in records
        if requires_signature(summary.model) and not index.is_signed(summary.checksum)
    )
    for model, number in uncounted.items():
        console.print_note(f"{number} unsigned records of {model} stored but not counted (docs/how-to/sign-records.md)")


def _warn_other_locks(attestations: Iterable[Attestation]) -> None:
    """Warn of attestations that name another lock file of the environment than the current one."""
    from tfdet.store.signatures import OTHER_LOCK_TEXT

    for attestation in attestations:
        if attestation.other_lock:
            statement = f"{attestation.name} signed {attestation.batch.environment} on {attestation.batch.device}"
            console.print_note(f"{statement} as {OTHER_LOCK_TEXT} (docs/how-to/sign-records.md)")


def sign(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="files of records, one JSON object per line")],
    without_key: Annotated[
        bool,
        typer.Option("--keyless", help="sign as the CI workflow that runs this, through sigstore (requires a network)"),
    ] = False,
) -> None:
    """Sign records with this machine's key.

    Writes FILE.intoto.jsonl, or the store's own signatures if FILE is in the evidence store.
    """
    from tfdet.store import keyless, signing, signing_key
    from tfdet.store.evidence import EvidenceStore
    from tfdet.store.records import read_records

    sign = keyless.sign_bundle if without_key else signing.key_signer(signing_key.require())
    project, matrix = load_project()
    counts = {path: _count_records(path) for path in files}  # all are read before one is signed
    stored = {resolve(path) for path in EvidenceStore.open(project).files()}
    if in_store := [path for path in counts if resolve(path) in stored]:
        _sign_stored(project, matrix, in_store, sign)
    for path in [path for path in counts if path not in in_store]:
        bundle = signing.add_to_bundle(path, signing.attest(project, read_records(path), sign))
        console.print_note(f"{counts[path]} records signed: {bundle}")


def _count_records(path: Path) -> int:
    """Return the number of records of a file; DataError if it has none, or one of them is invalid."""
    from tfdet.store.records import read_records

    count = sum(1 for _ in read_records(path))
    if not count:
        raise DataError(f"{path}: contains no records", "Pass a file of records, one JSON object per line.")
    return count


def _sign_stored(project: Project, matrix: Matrix, paths: list[Path], sign: SignCallback) -> None:
    """Sign files of the store, and add the signatures to it, all or none; DataError if it does not trust the key."""
    from tfdet.store.evidence import EvidenceStore

    spools, attestations = [], []
    for path in paths:
        spool, signed = _attest_stored(project, matrix, path, sign)
        spools.append(spool)
        attestations += signed
    report_added(EvidenceStore.open(project).ingest(chain.from_iterable(spools), attestations))


def _attest_stored(
    project: Project, matrix: Matrix, path: Path, sign: SignCallback
) -> tuple[RecordSpool, list[Attestation]]:
    """Return the records of a file of the store, and their verified attestations; nothing is written."""
    from tfdet.store.fast_records import read_record_lines
    from tfdet.store.record_lookup import RecordSpool
    from tfdet.store.records import read_records
    from tfdet.store.signatures import AttestationStore, verify_for_records
    from tfdet.store.signing import attest

    signatures, records = AttestationStore.open(project, matrix), RecordSpool(read_record_lines(path))
    try:
        envelopes = attest(project, read_records(path), sign)
        return records, [verify_for_records(signatures, records, line) for line in envelopes]
    except ValueError as error:
        raise DataError(
            f"{path}: {error}", "Add the key to matrix/keys first: tfdet key show --signer NAME."
        ) from error


def _confirm(count: int, yes: bool) -> None:
    """Ask before the table changes; UsageError without a terminal.

    The user is asked even for signed records: a signature shows their origin, not that they are correct.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"{count} table cells would change; pass --yes to confirm (no terminal)",
            "No records were added. If you trust their origin, run tfdet evidence add --yes FILE...",
        )
    try:
        is_confirmed = typer.confirm(f"{count} table cells change. Add these records?", err=True)
    except typer.Abort:
        is_confirmed = False
    if not is_confirmed:
        console.print_note("no records were added")
        raise typer.Exit(ExitCode.INTERRUPTED)
