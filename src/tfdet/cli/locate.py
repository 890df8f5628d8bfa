"""The command `tfdet locate`.

To pin a cause is to give the program the same value of it in every run: it is proven if the runs then agree.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tfdet.base import console
from tfdet.base.errors import ExitCode
from tfdet.base.files import require_writable
from tfdet.cli.app import load_project, print_json
from tfdet.cli.options import Device, Json, environments


def locate(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[ENV] -- PROGRAM ARGS...",
            help="for example: tf2.21 -- train.py --lr 0.1",
            autocompletion=environments,
        ),
    ],
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="Python with your framework; default: ENV's, or `python` on PATH")
    ] = None,
    device: Annotated[Device, typer.Option(help="device that the program uses; vgpu is the virtual GPU")] = "cpu",
    max_runs: Annotated[int, typer.Option(min=2, max=1000, help="maximum runs per level of detail")] = 5,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix", help="also run the program with the advice applied, and report whether it becomes reproducible"
        ),
    ] = False,
    cpu_fallbacks: Annotated[
        bool, typer.Option("--cpu-fallbacks", help="with --device vgpu: compute cuBLAS and cuDNN calls on the CPU")
    ] = False,
    trace_only: Annotated[
        bool,
        typer.Option("--trace-only", help="compare traces only: do not prove the cause by runs in which it is pinned"),
    ] = False,
    steps: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="end each run after N training steps; default: run it whole")
    ] = None,
    agree_runs: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=100,
            metavar="N",
            help="minimum of runs with a pin that must agree; default: by how often they differ",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write the report as one HTML page; default: none")
    ] = None,
    traces: Annotated[
        bool, typer.Option("--traces", help="compare recorded traces: the arguments are trace files")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run a training program until two runs differ, prove the cause, and name the line."""
    from tfdet.engines import locate as engine
    from tfdet.publish import locate_page, terminal_views

    if html:
        require_writable(html, "--html")
    if traces:
        result = engine.compare(words)
    else:
        project, matrix = load_project()
        request = engine.parse_request(
            matrix, words, python, device, max_runs, fix, cpu_fallbacks, trace_only, steps, agree_runs
        )
        result = engine.locate(project, matrix, request)
    if html:
        locate_page.write_html(result, html)
        console.print_note(f"wrote {html}")
    if as_json:
        print_json(result.model_dump(mode="json", by_alias=True))
    else:
        for part in terminal_views.cause_report(result):
            console.out().print(part)
    # "holds": the runs with a change of the program agree.  "repeats": the runs with the advice of --fix agree.
    all_fixes_hold = bool(result.causes) and all(cause.fix and cause.fix.result == "holds" for cause in result.causes)
    is_fixed = all_fixes_hold or (result.fix is not None and result.fix.result == "repeats")
    raise typer.Exit(ExitCode.FIXED if is_fixed else ExitCode.OK if result.result == "same" else ExitCode.CONTRADICTED)
