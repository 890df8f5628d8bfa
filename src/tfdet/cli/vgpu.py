"""The command `tfdet vgpu`: runs any program on the virtual GPU.

The virtual GPU is an emulator, which executes the code of CUDA kernels on the CPU. A schedule is the order in which it
executes threads; under `adversary`, another warp goes first at each visible memory operation.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tfdet.base.paths import find_project


def vgpu(
    words: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM ARGS...", help="for example: python train.py --lr 0.1")
    ],
    schedule: Annotated[
        str, typer.Option(help="execution order of a kernel's threads: serial, reverse, random:SEED or adversary:SEED")
    ] = "serial",
    cpu_fallbacks: Annotated[
        bool,
        typer.Option(
            "--cpu-fallbacks", help="compute cuBLAS and cuDNN calls on the CPU (not evidence about NVIDIA's libraries)"
        ),
    ] = False,
) -> None:
    """Run a program on the virtual GPU.

    The exit code is the program's, or 4 if it ends well and never used the device.
    """
    from tfdet.engines import vgpu as device

    device.check_schedule(schedule)
    environ = device.environ(device.library_folder(find_project()), schedule, cpu_fallbacks=cpu_fallbacks)
    raise typer.Exit(device.run(words, environ))
