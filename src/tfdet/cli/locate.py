"""`tfdet locate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tfdet.base import console
from tfdet.base.files import require_writable
from tfdet.cli.app import load, print_json
from tfdet.cli.options import Device, Json, environments


def locate(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[ENV] -- PROGRAM ARGS...", help="tf2.21 -- train.py --lr 0.1", autocompletion=environments
        ),
    ],
    python: Annotated[
        str | None, typer.Option(help="the Python that has your framework; default: an ENV, or `python`")
    ] = None,
    device: Annotated[Device, typer.Option(help="vgpu: a GPU that need not be there")] = "cpu",
    runs: Annotated[int, typer.Option(min=2, max=1000, help="runs at most at each level")] = 5,
    fix: Annotated[
        bool, typer.Option("--fix", help="run it with the advice applied, too: does it repeat itself then?")
    ] = False,
    stand_ins: Annotated[
        bool, typer.Option("--stand-ins", help="on vgpu: compute on the CPU what cuBLAS and cuDNN would, and say so")
    ] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="write the report, a page by itself")] = None,
    traces: Annotated[bool, typer.Option("--traces", help="the words are traces to compare, not a program")] = False,
    as_json: Json = False,
) -> None:
    """Run a training program until two runs differ, and name the op that began it."""
    from tfdet.engines import locate as search
    from tfdet.publish import locate_page, views

    if html:
        require_writable(html, "--html")
    if traces:
        found = search.compare(words)
    else:
        project, matrix = load()
        found = search.locate(project, matrix, search.wanted(matrix, words, python, device, runs, fix, stand_ins))
    if html:
        locate_page.write_html(found, html)
        console.note(f"wrote {html}")
    if as_json:
        print_json(found.model_dump(mode="json", by_alias=True))
    else:
        for part in views.located(found):
            console.out().print(part)
    repaired = found.fix is not None and found.fix.result == "repeats"
    raise typer.Exit(search.FIXED if repaired else {"same": 0, "diverged": 1, "structure": 1}[found.result])
