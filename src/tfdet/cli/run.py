"""The command `tfdet run`: runs the shared suite in environments.

An environment is one pinned software stack. A source is a known source of nondeterminism; a solution is what makes it
deterministic; the control is the same case without a solution. A cell is one environment, device, source and solution.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfdet.base import console
from tfdet.base.errors import InterruptedRunError, RunFailedError, TfdetError, UsageError, from_os_error
from tfdet.base.paths import Project
from tfdet.cli.app import load_project, report_added
from tfdet.cli.options import (
    Code,
    Device,
    Engine,
    Environments,
    Json,
    MemoryLimit,
    Multiprocessors,
    Placement,
    Processes,
    Prove,
    RecordsFile,
    Repeats,
    SourceFilter,
    choose_counts,
    require_virtual_gpu,
    solutions,
)
from tfdet_common.defaults import RUN_DEFAULTS

if TYPE_CHECKING:
    from tfdet.store.records import Record


MAX_TIMEOUT = 86400.0  # seconds that one process of a case may take


def run(
    context: typer.Context,
    env: Environments,
    engine: Engine = None,
    device: Annotated[
        Device | None,
        typer.Option(help="device that the ops run on; default: gpu, or cpu if the choice runs on that alone"),
    ] = None,
    source: SourceFilter = None,
    solution: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="restrict to this solution and its control (repeatable); default: all",
            autocompletion=solutions,
        ),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN", help="restrict to matching cases, such as '*-compiled' (repeatable); default: all"
        ),
    ] = None,
    repeats: Repeats = RUN_DEFAULTS.repeats,
    processes: Processes = RUN_DEFAULTS.processes,
    timeout: Annotated[
        float, typer.Option(min=1, max=MAX_TIMEOUT, help="time limit per child process, seconds")
    ] = RUN_DEFAULTS.seconds,
    memory: MemoryLimit = RUN_DEFAULTS.mebibytes,
    out: RecordsFile = None,
    prove: Prove = False,
    code: Code = None,
    multiprocessors: Multiprocessors = None,
    placement: Placement = None,
    table: Annotated[
        bool | None,
        typer.Option(
            "--table/--headline",
            help="print a row for each cell, or one for each source that differs; default: what fits on a screen",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the shared suite and store its records as evidence."""
    from tfdet.engines.base import Selection
    from tfdet.engines.run import on_default_device, run_environment, worst_exit_code

    if math.isnan(timeout):  # passes the check of typer's range
        raise UsageError("--timeout nan: not a number of seconds", f"Pass seconds, at most {MAX_TIMEOUT:.0f}.")
    require_virtual_gpu(device or "gpu", prove, code=code, multiprocessors=multiprocessors, placement=placement)
    project, matrix = load_project()
    for key in env:
        matrix.environment(key)  # UsageError if there is none of that name
    repeats, processes = choose_counts(context, prove, repeats, processes)
    selection = Selection(
        device=device or "gpu", sources=tuple(source or ()), solutions=tuple(solution or ()), cases=tuple(case or ()),
        repeats=repeats, processes=processes, timeout=timeout, memory=memory, proves=prove, code=code,
        multiprocessors=multiprocessors, placement=placement,
    )  # fmt: skip
    codes = []
    for key in env:
        final_selection = selection if device else on_default_device(matrix, key, selection)
        console.print_note(f"{key} on the {final_selection.device}")
        try:
            result = run_environment(project, matrix, key, final_selection, engine, out)
        except InterruptedRunError:
            raise
        except (TfdetError, OSError) as error:  # the other environments are still run
            run_error = error if isinstance(error, TfdetError) else _to_run_error(error)
            console.print_error(run_error)
            codes.append(run_error.code)
            continue
        codes.append(result.code)
        records = [record for record in result.records if record.environment == key]  # --out may contain others
        if as_json:
            console.write("".join(record.line() for record in records))
        else:
            _show_run(project, records, out, table)
        if result.added:
            report_added(result.added)
    raise typer.Exit(worst_exit_code(codes))


def _show_run(project: Project, records: list[Record], out: Path | None, whole_table: bool | None) -> None:
    """Print the verdicts of the cells that were run, by the store or, with --out, by that file alone."""
    from tfdet.publish import terminal_views
    from tfdet.verdicts.infer import CellKey
    from tfdet.verdicts.status_loading import load_status

    keys = {CellKey(r.environment, r.device.model, r.source, r.solution) for r in records}
    status = load_status(project, [out], read_store=False) if out else load_status(project, include_unsigned=True)
    cells = [cell for cell in status.cells if cell.key in keys]
    console.out().print(terminal_views.run_result(cells, whole_table))


def _to_run_error(error: OSError) -> RunFailedError:
    """Convert an OSError of an environment's run; advice about another path, as in a UsageError, does not apply."""
    advice = "Finished records are kept."
    converted = from_os_error(error, advice)
    return RunFailedError(converted.cause, converted.advice if isinstance(converted, RunFailedError) else advice)
