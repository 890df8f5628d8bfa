"""`tfdet evidence`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tfdet.base import console
from tfdet.base.errors import DataError, Exit, UsageError
from tfdet.cli.app import load, report_added


def add(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="records, one a line")],
    yes: Annotated[bool, typer.Option("--yes", help="take them without being asked (for machines)")] = False,
) -> None:
    """Take records from another machine into matrix/evidence: validated, shown, asked for, nothing lost."""
    from tfdet.publish import views
    from tfdet.store.cases import current_cases
    from tfdet.store.evidence import Store
    from tfdet.store.misfits import misfits
    from tfdet.store.records import read_records
    from tfdet.verdicts.read import changes

    project, matrix = load()
    records = [record for path in files for record in read_records(path)]
    cases = current_cases(project)
    faults = dict.fromkeys(fault for record in records for fault in misfits(matrix, cases, record))
    if faults:
        raise DataError("\n".join(faults), "Nothing was taken. Run the suite of this checkout to measure again.")
    found = changes(project, records)
    if found:
        console.err().print(views.changes(found))
        _ask_for(len(found), yes)
    report_added(Store.of(project).add(records))


def _ask_for(count: int, yes: bool) -> None:
    """No signature vouches for a record: who takes it in does."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"{count} cells of the tables would change, and nobody is there to be asked",
            "Nothing was taken. If you trust where these records come from: tfdet evidence add --yes FILE...",
        )
    try:
        agreed = typer.confirm(f"{count} cells of the tables change. Take these records?", err=True)
    except typer.Abort:
        agreed = False
    if not agreed:
        console.note("nothing was taken")
        raise typer.Exit(Exit.INTERRUPTED)
