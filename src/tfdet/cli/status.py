"""The commands `tfdet status`, `show` and `recipe`: print verdicts, records and advice from the evidence.

A source is a known source of nondeterminism; a solution is what makes it deterministic. A cell is one environment,
device, source and solution. A claim is what a cited document says of a source. An audit reads shipped binaries.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfdet.base import console
from tfdet.base.errors import ExitCode, UsageError
from tfdet.base.paths import Project, find_project
from tfdet.cli.app import print_json
from tfdet.cli.options import (
    Csv,
    Environment,
    FrameworkFilter,
    Json,
    Junit,
    SourceFilter,
    devices,
    environments,
    sources,
    verdicts,
)

if TYPE_CHECKING:
    from tfdet.verdicts.status import Status


def status(
    write: Annotated[bool, typer.Option("--write", help="write the tables to README.md and docs")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="fail if the tables in README.md and docs are out of date")
    ] = False,
    records: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="count the records of FILE too (repeatable); default: none"),
    ] = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="with --records: leave out the evidence store")] = False,
    framework: FrameworkFilter = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="restrict to this device: gpu, vgpu, cpu or a model (repeatable); default: all",
            autocompletion=devices,
        ),
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ENV", help="restrict to this environment (repeatable); default: all", autocompletion=environments
        ),
    ] = None,
    source: SourceFilter = None,
    verdict: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VERDICT", help="restrict to this verdict (repeatable); default: all", autocompletion=verdicts
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="print every cell that ran, not one screen")] = False,
    include_unsigned: Annotated[
        bool, typer.Option("--include-unsigned", help="count unsigned GPU records too (docs/how-to/sign-records.md)")
    ] = False,
    as_json: Json = False,
    as_csv: Csv = False,
    as_junit: Junit = False,
) -> None:
    """Print which ops are deterministic where, by the evidence, and which claims it contradicts."""
    from tfdet.publish import exports, overview, terminal_views
    from tfdet.verdicts.selection import Selection
    from tfdet.verdicts.status_loading import load_status

    _require_one_format(as_json, as_csv, as_junit)
    selection = Selection(framework or (), device or (), environment or (), source or (), verdict or ())
    if write and check:
        raise UsageError("--write and --check cannot be combined", "Pass one of them.")
    if write or check:
        _require_complete_tables(records, include_unsigned, bool(selection or everything))
    if no_store and not records:
        raise UsageError("--no-store requires --records", "Add --records FILE, or leave out --no-store.")
    project = find_project()
    if write or check:
        project.require_checkout("--write" if write else "--check")
    loaded = load_status(
        project, records or [], read_store=not no_store, include_unsigned=include_unsigned, cached=not (write or check)
    )
    cells = selection.cells(loaded)
    contradictions = loaded.contradictions()
    for key in loaded.stale_audits:
        console.print_note(
            f"stale: matrix/audits/{key}.json was made by another version of the scanner; run tfdet audit {key} --write"
        )
    if write:
        from tfdet.publish import render

        for path in render.write(project, loaded):
            console.print_note(f"wrote {path}")
    elif check:
        _check_tables(project, loaded, contradictions)
    elif as_json or as_csv or as_junit:
        if as_json:
            print_json({"cells": [cell.as_json() for cell in cells]})
        elif as_csv:
            console.write(exports.as_csv([exports.cell_row(cell) for cell in cells]))
        else:
            console.write(exports.as_junit(cells))
    elif selection or everything or records:
        console.out().print(terminal_views.status(loaded, selection, console.out().width))
    else:
        console.out().print(overview.render(loaded, console.page_width()))
    _report_contradictions(contradictions)
    if check:
        console.print_note("the tables are up to date")


def _require_one_format(*formats: bool) -> None:
    if sum(formats) > 1:
        raise UsageError("--json, --csv and --junit cannot be combined", "Pass one of them.")


def _require_complete_tables(records: list[Path] | None, unsigned: bool, selected: bool) -> None:
    """Raise UsageError for options that change the tables: --write and --check apply to those of the store alone."""
    if records:
        raise UsageError(
            "--records cannot be combined with --write or --check", "Add the records first: tfdet evidence add."
        )
    if unsigned:
        raise UsageError(
            "--include-unsigned cannot be combined with --write or --check", "No table counts unsigned GPU records."
        )
    if selected:
        raise UsageError(
            "--write and --check cannot be combined with a selection", "The tables always hold every cell."
        )


def _check_tables(project: Project, loaded: Status, contradictions: list[str]) -> None:
    from tfdet.publish import render

    try:
        render.check(project, loaded)
    except render.OutOfDateError:
        _print_contradictions(contradictions)
        raise


def _report_contradictions(contradictions: list[str]) -> None:
    _print_contradictions(contradictions)
    if contradictions:
        raise typer.Exit(ExitCode.CONTRADICTED)


def _print_contradictions(contradictions: list[str]) -> None:
    for text in contradictions:
        console.print_note(f"contradiction: {text}")


def show(
    env: Environment,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="source, for example bias-add-backprop", autocompletion=sources)
    ],
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Print every record of a source in an environment, the claims about it, and how to re-run it."""
    from tfdet.publish import exports, terminal_views
    from tfdet.site.site_facts import SiteFacts
    from tfdet.store import costs
    from tfdet.store.evidence import EvidenceStore
    from tfdet.store.records import read_records
    from tfdet.verdicts.status_loading import load_status

    _require_one_format(as_json, as_csv)
    project = find_project()
    loaded = load_status(project)
    loaded.matrix.environment(env), loaded.matrix.source(source)  # UsageError if there is none of that name
    records = [
        record
        for path in EvidenceStore.open(project).files()
        if path.stem == env
        for record in read_records(path)
        if record.source == source
    ]
    facts = SiteFacts(project, loaded)
    if as_json:
        from tfdet.site import cells

        print_json(cells.content(facts, env, source, records))
        return
    if as_csv:
        console.write(exports.as_csv([exports.record_row(record) for record in records]))
        return
    for part in terminal_views.show(
        loaded, env, source, records, costs.costs_of_source(project, env, source), facts.signer_text
    ):
        console.out().print(part)


def recipe(
    env: Environment,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Print the lines that make an environment's framework as deterministic as possible, and the ops to avoid."""
    from tfdet.publish import exports
    from tfdet.publish.recipe import recipe_text, remaining_rows
    from tfdet.verdicts.status_loading import load_status

    _require_one_format(as_json, as_csv)
    project = find_project()
    loaded = load_status(project)
    loaded.matrix.environment(env)  # UsageError if there is none of that name
    text = recipe_text(loaded, env, installed=project.is_installed)
    if as_json:
        print_json({"environment": env, "recipe": text, "remaining": remaining_rows(loaded, env)})
    elif as_csv:
        console.write(exports.as_csv(remaining_rows(loaded, env)))
    else:
        console.write(text + "\n")
