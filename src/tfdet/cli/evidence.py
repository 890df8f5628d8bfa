"""`tfdet evidence`."""

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
from tfdet.cli.app import load, report_added

if TYPE_CHECKING:
    from tfdet.matrix.load import Matrix
    from tfdet.store.glance import Row
    from tfdet.store.lookup import Spool
    from tfdet.store.signatures import Vouch


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
    from tfdet.publish import views
    from tfdet.store.cases import current_cases
    from tfdet.store.evidence import Store
    from tfdet.store.glance import rows
    from tfdet.store.lookup import Spool
    from tfdet.store.misfits import Rules
    from tfdet.verdicts.read import changes

    project, matrix = load()
    rules = Rules.of(matrix, current_cases(project))
    by_file = {path: Spool(rows(path, rules.taken)) for path in files}
    vouches = [] if unsigned else _vouches(project, matrix, by_file)
    _tell_idle(matrix, chain.from_iterable(by_file.values()), vouches)
    _tell_other_locks(vouches)

    def found(checksum: str) -> bytes | None:
        return next(filter(None, (spool(checksum) for spool in by_file.values())), None)

    changed = changes(project, rules, chain.from_iterable(by_file.values()), vouches, found)
    if changed:
        console.err().print(views.changes(changed))
        _ask_for(len(changed), yes)
    report_added(Store.of(project, rules).add(chain.from_iterable(by_file.values()), vouches))


def _vouches(project: Project, matrix: Matrix, by_file: Mapping[Path, Spool]) -> list[Vouch]:
    """The envelopes that lie beside the files; DataError where one of them does not fit."""
    from tfdet.store.signatures import Signatures, beside, lines, verified

    signatures = Signatures.of(project, matrix)
    found, faults = [], []
    for path, records in by_file.items():
        for number, line in enumerate(lines(beside(path)), 1):
            try:
                found.append(verified(signatures, records, line))
            except ValueError as error:
                faults.append(f"{beside(path)}:{number}: {error}")
    if faults:
        advice = (
            "No records were added. Add a key that you trust to matrix/keys (docs/how-to/sign-records.md),"
            " or pass --unsigned."
        )
        raise DataError("\n".join(faults), advice)
    return found


def _tell_idle(matrix: Matrix, records: Iterable[Row], vouches: Iterable[Vouch]) -> None:
    """Say which records will be kept and count for nothing."""
    from tfdet.store.signatures import Standing

    needed = matrix.devices.requires_signature
    standing = Standing([vouch for vouch in vouches if needed(vouch.batch.device)])
    idle = Counter(g.model for g, _ in records if needed(g.model) and not standing.names(g.checksum))
    for model, number in idle.items():
        console.print_note(f"{number} unsigned records of {model} stored but not counted (docs/how-to/sign-records.md)")


def _tell_other_locks(vouches: Iterable[Vouch]) -> None:
    """A lock may be renewed after the records were made: whoever takes them looks whether it once was so."""
    from tfdet.store.signatures import OTHER_LOCK

    for vouch in vouches:
        if vouch.other_lock:
            whose = f"{vouch.name} signed {vouch.batch.environment} on {vouch.batch.device}"
            console.print_note(f"{whose} as {OTHER_LOCK} (docs/how-to/sign-records.md)")


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
    from tfdet.store import keyless, own_key, signing
    from tfdet.store.evidence import Store
    from tfdet.store.records import read_records
    from tfdet.store.signatures import Signatures, verified

    seal = keyless.seal if without_key else signing.by(own_key.need())
    project, matrix = load()
    signatures = Signatures.of(project, matrix)
    stored = {resolve(path) for path in Store.of(project).files()}
    for path in files:
        records = list(read_records(path))
        if not records:
            raise DataError(f"{path}: contains no records", "Pass a file of records, one JSON object per line.")
        if resolve(path) not in stored:
            console.print_note(f"{len(records)} records signed: {signing.sign_beside(project, path, records, seal)}")
            continue
        try:
            vouches = [verified(signatures, records, line) for line in signing.sealed(project, records, seal)]
        except ValueError as error:
            raise DataError(
                f"{path}: {error}", "Add the key to matrix/keys first: tfdet key show --signer NAME."
            ) from error
        report_added(Store.of(project).add(records, vouches))


def _ask_for(count: int, yes: bool) -> None:
    """A signature says whose records they are, not that they are right: who takes them in answers for them."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"{count} table cells would change; pass --yes to confirm (no terminal)",
            "No records were added. If you trust their origin, run tfdet evidence add --yes FILE...",
        )
    try:
        agreed = typer.confirm(f"{count} table cells change. Add these records?", err=True)
    except typer.Abort:
        agreed = False
    if not agreed:
        console.print_note("no records were added")
        raise typer.Exit(ExitCode.INTERRUPTED)
