"""The command `tfdet reproduce`: runs cells that other machines measured, and reports whether the results agree.

A cell is one environment (a pinned software stack), device, source of nondeterminism and solution, which is what makes
the source deterministic. A Status holds the verdicts of all cells.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfdet.base import console
from tfdet.base.errors import ExitCode, InterruptedRunError, TfdetError, UsageError
from tfdet.base.files import require_writable
from tfdet.base.folders import is_there
from tfdet.base.paths import Project, find_project
from tfdet.cli.app import print_json
from tfdet.cli.options import Device, Engine, Json, Processes, Repeats, environments
from tfdet_common.defaults import RUN_DEFAULTS

if TYPE_CHECKING:
    from tfdet.engines.base import Selection
    from tfdet.matrix.load import Matrix
    from tfdet.verdicts.infer import CellKey
    from tfdet.verdicts.status import Status


def _parse_percentage(text: str) -> float:
    """Parse 5% as 0.05; UsageError if it is not a percentage."""
    match = re.fullmatch(r"(\d+(?:[.]\d+)?)%", text)
    if match is None or not 0 < float(match[1]) <= 100:
        raise UsageError(f"--sample {text}", "Give a percentage of the cells, such as 5%.")
    return float(match[1]) / 100


def reproduce(
    env: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ENV]...", help="environments; default: all", autocompletion=environments),
    ] = None,
    sample: Annotated[str, typer.Option(metavar="PERCENT", help="share of the cells to run, such as 5%")] = "5%",
    device: Annotated[Device, typer.Option(help="device that the ops run on")] = "cpu",
    seed: Annotated[int | None, typer.Option(help="seed of the choice of cells; default: random, and printed")] = None,
    engine: Engine = None,
    repeats: Repeats = RUN_DEFAULTS.repeats,
    processes: Processes = RUN_DEFAULTS.processes,
    out: Annotated[Path, typer.Option(metavar="FILE", help="write the records to FILE")] = Path("reproduced.jsonl"),
    as_json: Json = False,
) -> None:
    """Run a random sample of the cells that other machines measured, and report which agree."""
    from tfdet.engines.base import Selection
    from tfdet.publish import terminal_views
    from tfdet.verdicts.reproduction import compare
    from tfdet.verdicts.status_loading import load_status

    share, project = _parse_percentage(sample), find_project()
    require_writable(out, "--out")
    status = load_status(project, include_unsigned=True)
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    cells = _sample_cells(project, status, env or list(status.matrix.environments), device, share, seed)
    console.print_note(f"{len(cells)} cells, by --seed {seed}")
    _run_cells(
        project, status.matrix, cells, Selection(device=device, repeats=repeats, processes=processes), engine, out
    )
    new_status = load_status(project, [out] if is_there(out) else [], read_store=False)
    comparisons = compare(status, new_status, cells)
    if as_json:
        print_json({"seed": seed, "cells": [comparison.as_json() for comparison in comparisons]})
    else:
        console.out().print(terminal_views.reproduction_table(comparisons))
    counts = Counter(comparison.answer for comparison in comparisons)
    console.print_note(
        f"{counts['agrees']} agree, {counts['disagrees']} disagree, {counts['undecided']} undecided; records: {out}"
    )
    raise typer.Exit(ExitCode.CONTRADICTED if counts["disagrees"] else ExitCode.OK)


def _sample_cells(
    project: Project, status: Status, environments: list[str], device: str, share: float, seed: int
) -> list[CellKey]:
    """Draw a share of the cells of these environments that other machines measured; UsageError if there are none."""
    from tfdet.store.evidence import EvidenceStore
    from tfdet.store.records import read_records
    from tfdet.verdicts.reproduction import draw_sample, reproducible_cells
    from tfdet_common.machine import machine_name

    for key in environments:
        status.matrix.environment(key)
    files = [path for path in EvidenceStore.open(project).files() if path.stem in environments]
    records = (record for path in files for record in read_records(path))
    cells = reproducible_cells(status, records, machine_name(), device, environments)
    if not cells:
        raise UsageError(
            f"no other machine measured cells of these environments that run on the {device}",
            "Pass another ENV or --device.",
        )
    return draw_sample(cells, share, seed)


def _run_cells(
    project: Project, matrix: Matrix, cells: list[CellKey], selection: Selection, engine: str | None, out: Path
) -> None:
    """Run the cells. If an environment cannot be started, its cells remain undecided, and the others still run."""
    from tfdet.engines.run import run_environment
    from tfdet.verdicts.reproduction import group_by_run

    for (key, solution), sources in group_by_run(cells).items():
        console.print_note(f"{key} under {solution}: {' '.join(sources)}")
        try:
            run_environment(
                project, matrix, key, replace(selection, sources=tuple(sources), solutions=(solution,)), engine, out
            )
        except InterruptedRunError:
            raise
        except TfdetError as error:
            console.print_error(error)
