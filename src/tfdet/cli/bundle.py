"""The command `tfdet bundle`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tfdet.base import console
from tfdet.cli.app import load_project
from tfdet.cli.options import BuildDevice, environments


def bundle(
    env: Annotated[
        str,
        typer.Argument(
            metavar="ENV", help="environment, for example tf2.21; see `tfdet envs`", autocompletion=environments
        ),
    ],
    out: Annotated[Path, typer.Option(help="folder to write the parts to")],
    device: Annotated[BuildDevice, typer.Option(help="build to pack; the gpu build runs on a CPU too")] = "gpu",
    compute_capability: Annotated[
        str | None, typer.Option(metavar="X.Y", help="keep only GPU code for it, such as 9.0 for an H100; default: all")
    ] = None,
    python: Annotated[
        str | None, typer.Option(metavar="X.Y", help="CPython of the target host; default: the environment's")
    ] = None,
    part_size: Annotated[str, typer.Option(metavar="SIZE", help="maximum size of one part")] = "60MiB",
    compression_level: Annotated[
        int, typer.Option(metavar="LEVEL", min=0, max=9, help="xz preset: 0 is fast, 9 is small")
    ] = 6,
    use_host_libraries: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="take these CUDA libraries from the host, such as cublas,cudnn; default: none"
        ),
    ] = "",
    host_packages: Annotated[
        bool, typer.Option("--host-packages", help="take the framework and its packages from the host")
    ] = False,
    stub_libraries: Annotated[
        str, typer.Option(metavar="NAMES", help="replace these CUDA libraries by stubs, such as cufft; default: none")
    ] = "",
) -> None:
    """Pack an environment into small parts for a host without a network."""
    from tfdet.bundle.build import BundleSpec, make_bundle, parse_capability, parse_size
    from tfdet.bundle.contents import TrimOptions

    project, matrix = load_project()
    trim_options = TrimOptions(
        parse_capability(compute_capability) if compute_capability else None,
        _split_names(stub_libraries),
        _split_names(use_host_libraries),
        host_packages,
    )
    spec = BundleSpec(env, device, python, parse_size(part_size), compression_level, trim_options)
    built = make_bundle(project, matrix, spec, out, console.print_note)
    console.print_note(
        f"{len(built.parts)} parts, {sum(built.parts) / 2**20:.1f} MiB. "
        f"Copy all of {built.folder} to the host, then run there:"
    )
    console.write(f"python{built.manifest['python']} {built.folder.name}/unbundle.py run --device {device}\n")


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
