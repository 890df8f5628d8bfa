"""Functions that the commands share: the option `--version`, loading the project, printing results."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tfdet.base import console
from tfdet.base.paths import Project, find_project
from tfdet.base.sanitize import dump_json

if TYPE_CHECKING:
    from tfdet.matrix.load import Matrix
    from tfdet.store.merge import IngestResult


_READ_ONLY_COMMANDS = ("doctor", "envs", "status", "show", "recipe", "check")


def _print_version(requested: bool) -> None:
    if requested:
        from tfdeterminism.version import __version__

        console.write(f"tfdet {__version__}\n")
        raise typer.Exit


def global_options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="print the version and exit", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Report which op of which framework is nondeterministic on which stack, with reproducible evidence."""
    if context.invoked_subcommand not in _READ_ONLY_COMMANDS:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a closed pipe must not end a run


def load_project() -> tuple[Project, Matrix]:
    """Return the project of the working directory and its matrix."""
    from tfdet.matrix.load import load_matrix

    project = find_project()
    return project, load_matrix(project.matrix, project.user_keys)


def print_json(value: object) -> None:
    """Print JSON to standard output, in ASCII if its encoding is not Unicode."""
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    console.write(dump_json(value, ascii_only=not is_unicode) + "\n")


def report_added(result: IngestResult) -> None:
    """Print how many records were added to the evidence store, and their conflicts."""
    console.print_note(f"{result.ingested} records added, {result.replaced} replaced, {result.duplicates} duplicates")
    for conflict in result.conflicts:
        console.print_note(f"  conflict: {conflict}")
