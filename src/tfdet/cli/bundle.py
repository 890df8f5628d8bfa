"""`tfdet bundle`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tfdet.base import console
from tfdet.cli.app import load
from tfdet.cli.options import Build, environments


def bundle(
    env: Annotated[
        str, typer.Argument(metavar="ENV", help="for example tf2.21; see `tfdet envs`", autocompletion=environments)
    ],
    out: Annotated[Path, typer.Option(help="folder for the parts")],
    device: Annotated[Build, typer.Option(help="whose build: a GPU's runs on the CPU, too")] = "gpu",
    compute_capability: Annotated[
        str | None, typer.Option(metavar="X.Y", help="leave out GPU code for others, such as 9.0 for an H100")
    ] = None,
    python: Annotated[
        str | None, typer.Option(metavar="X.Y", help="the host's CPython; default: the environment's")
    ] = None,
    part_size: Annotated[str, typer.Option(metavar="SIZE", help="the most that one part may have")] = "60MiB",
    preset: Annotated[int, typer.Option(min=0, max=9, help="of xz: 0 is fast, 9 is small")] = 6,
    use_host_libs: Annotated[
        str, typer.Option(metavar="NAMES", help="CUDA libraries that the host has, such as cublas,cudnn")
    ] = "",
    host_packages: Annotated[
        bool, typer.Option("--host-packages", help="the host has the framework and its packages itself")
    ] = False,
    stub: Annotated[str, typer.Option(metavar="NAMES", help="CUDA libraries to leave out, such as cufft")] = "",
) -> None:
    """Pack an environment into small parts for a host without network."""
    from tfdet.bundle.build import Order, make_bundle, parse_capability, parse_size
    from tfdet.bundle.contents import Choice

    project, matrix = load()
    choice = Choice(
        parse_capability(compute_capability) if compute_capability else None,
        _names(stub),
        _names(use_host_libs),
        host_packages,
    )
    order = Order(env, device, python, parse_size(part_size), preset, choice)
    made = make_bundle(project, matrix, order, out, console.note)
    console.note(f"{len(made.parts)} parts, {sum(made.parts) / 2**20:.1f} MiB. Carry all of {made.folder} there, and:")
    console.write(f"python{made.manifest['python']} {made.folder.name}/unbundle.py run --device {device}\n")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
