"""`tfdet reproduce`: run cells that other machines measured, and report whether the results agree."""

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
    """5% is 0.05."""
    found = re.fullmatch(r"(\d+(?:[.]\d+)?)%", text)
    if found is None or not 0 < float(found[1]) <= 100:
        raise UsageError(f"--sample {text}", "Give a percentage of the cells, such as 5%.")
    return float(found[1]) / 100


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
    from tfdet.verdicts.rebuild import compare
    from tfdet.verdicts.status_loading import load_status

    share, project = _parse_percentage(sample), find_project()
    require_writable(out, "--out")
    status = load_status(project, unsigned=True)
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    chosen = _sample_cells(project, status, env or list(status.matrix.environments), device, share, seed)
    console.print_note(f"{len(chosen)} cells, by --seed {seed}")
    _run_cells(
        project, status.matrix, chosen, Selection(device=device, repeats=repeats, processes=processes), engine, out
    )
    again = load_status(project, [out] if is_there(out) else [], store=False)
    found = compare(status, again, chosen)
    if as_json:
        print_json({"seed": seed, "cells": [one.as_json() for one in found]})
    else:
        console.out().print(terminal_views.rebuild_table(found))
    told = Counter(one.answer for one in found)
    console.print_note(
        f"{told['agrees']} agree, {told['disagrees']} disagree, {told['undecided']} undecided; records: {out}"
    )
    raise typer.Exit(ExitCode.CONTRADICTED if told["disagrees"] else ExitCode.OK)


def _sample_cells(
    project: Project, status: Status, among: list[str], device: str, share: float, seed: int
) -> list[CellKey]:
    from tfdet.store.evidence import EvidenceStore
    from tfdet.store.records import read_records
    from tfdet.verdicts.rebuild import draw_sample, rebuild_candidates
    from tfdet_common.machine import machine_name

    for key in among:
        status.matrix.environment(key)
    records = (r for path in EvidenceStore.open(project).files() if path.stem in among for r in read_records(path))
    cells = rebuild_candidates(status, records, machine_name(), device, among)
    if not cells:
        raise UsageError(
            f"no other machine measured cells of these environments that run on the {device}",
            "Pass another ENV or --device.",
        )
    return draw_sample(cells, share, seed)


def _run_cells(
    project: Project, matrix: Matrix, chosen: list[CellKey], how: Selection, engine: str | None, out: Path
) -> None:
    """Run the chosen cells. An environment that cannot be started leaves its cells undecided; the others still run."""
    from tfdet.engines.run import run_environment
    from tfdet.verdicts.rebuild import by_run

    for (key, solution), sources in by_run(chosen).items():
        console.print_note(f"{key} under {solution}: {' '.join(sources)}")
        try:
            run_environment(
                project, matrix, key, replace(how, sources=tuple(sources), solutions=(solution,)), engine, out
            )
        except InterruptedRunError:
            raise
        except TfdetError as error:
            console.print_error(error)
