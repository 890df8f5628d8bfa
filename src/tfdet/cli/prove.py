"""The command `tfdet prove`: proves that the kernels of a program give the same bytes in every order of execution.

The virtual GPU is an emulator, which executes the code of CUDA kernels on the CPU. A schedule is the order in which it
executes threads; under `adversary`, another warp goes first at each visible memory operation.
"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tfdet.base import console
from tfdet.base.errors import ExitCode
from tfdet.base.paths import find_project


def prove(
    words: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM ARGS...", help="for example: python my_kernel_test.py")
    ],
    schedule: Annotated[
        str, typer.Option(help="execution order to observe: serial, reverse, random:SEED or adversary:SEED")
    ] = "serial",
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object instead of text")] = False,
) -> None:
    """Prove that the kernels of a program give the same bytes in every order of execution.

    The program runs once on the virtual GPU. A proof holds for this input, and for these kernels as they are shipped.
    The exit code is the program's if it fails; else 0 if everything is proved, 1 if not, 4 if it never used the device.
    """
    from tfdet.engines import proof
    from tfdet.engines import vgpu as device
    from tfdet.publish import proof_views

    device.check_schedule(schedule)
    environ = device.environ(device.library_folder(find_project()), schedule)
    code, report = proof.prove(words, environ)
    if as_json:
        console.write(json.dumps(proof_views.as_json(report), indent=1) + "\n")
    else:
        for line in proof_views.lines(report):
            console.write(line + "\n")
    raise typer.Exit(code or (ExitCode.OK if report.is_proved else ExitCode.CONTRADICTED))
