"""`tfdet vgpu`: any program on the virtual GPU."""

from __future__ import annotations

from typing import Annotated

import typer

from tfdet.base.paths import find_project


def vgpu(
    words: Annotated[list[str], typer.Argument(metavar="-- PROGRAM ARGS...", help="python train.py --lr 0.1")],
    schedule: Annotated[
        str, typer.Option(help="serial, reverse, random:SEED or adversary:SEED: in which order its kernels run")
    ] = "serial",
    stand_ins: Annotated[
        bool,
        typer.Option("--stand-ins", help="compute on the CPU what closed libraries would: cuBLAS, cuDNN as of old"),
    ] = False,
) -> None:
    """Run a program that finds the virtual GPU where it looks for CUDA; its exit code is the program's, or 4."""
    from tfdet.engines import vgpu as device

    device.check_schedule(schedule)
    environ = device.environ(device.library(find_project()), schedule, stand_ins=stand_ins)
    raise typer.Exit(device.run(words, environ))
