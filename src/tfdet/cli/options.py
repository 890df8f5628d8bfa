"""Arguments and options that several commands have, with their completion in a shell.

An environment is one pinned software stack. A source is a known source of nondeterminism, such as an op; a solution is
what makes it deterministic.
"""

from __future__ import annotations

import glob
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from tfdet.base.errors import UsageError
from tfdet.base.paths import find_project
from tfdet_common import virtual_gpu
from tfdet_common.defaults import MAX_COUNT


def _completion_of(kind: str) -> Callable[[str], list[str]]:
    """Return a function that completes the names of files in a folder of matrix/, without reading them."""

    def complete(incomplete: str) -> list[str]:
        try:
            # Subfolders are frameworks.
            paths = (find_project().matrix / kind).rglob(f"{glob.escape(incomplete)}*.toml")
        except UsageError:  # TFDET_ROOT is not a checkout
            return []
        return sorted(path.stem for path in paths)

    return complete


def verdicts(incomplete: str) -> list[str]:
    """Complete a verdict."""
    from tfdet.verdicts.selection import VERDICTS

    return [name for name in VERDICTS if name.startswith(incomplete)]


def devices(incomplete: str) -> list[str]:
    """Complete a device: a value of `--device`, or a model in the evidence."""
    try:
        evidence = find_project().matrix / "evidence"
    except UsageError:
        return []
    models = [path.name for path in evidence.iterdir() if path.is_dir()] if evidence.is_dir() else []
    return sorted({name for name in (*get_args(Device), *models) if name.startswith(incomplete)})


environments, sources, solutions = (
    _completion_of("environments"),
    _completion_of("sources"),
    _completion_of("solutions"),
)
frameworks = _completion_of("frameworks")
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Csv = Annotated[bool, typer.Option("--csv", help="print CSV")]
Junit = Annotated[bool, typer.Option("--junit", help="print JUnit XML, for CI systems")]
Environments = Annotated[
    list[str],
    typer.Argument(
        metavar="ENV...", help="environments, for example tf2.0; see `tfdet envs`", autocompletion=environments
    ),
]
Environment = Annotated[
    str, typer.Argument(metavar="ENV", help="environment, for example tf2.0", autocompletion=environments)
]
FrameworkFilter = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="restrict to this framework (repeatable); default: all", autocompletion=frameworks
    ),
]
SourceFilter = Annotated[
    list[str] | None,
    typer.Option(metavar="SOURCE", help="restrict to this source (repeatable); default: all", autocompletion=sources),
]
Engine = Annotated[
    Literal["docker", "venv"] | None,
    typer.Option(help="default: venv if pip can install the environment, else docker"),
]
Repeats = Annotated[int, typer.Option(min=1, max=MAX_COUNT, help="repeats of a case in one process")]
Processes = Annotated[int, typer.Option(min=1, max=MAX_COUNT, help="fresh processes per case")]
MemoryLimit = Annotated[int, typer.Option(metavar="MIB", min=64, help="memory limit per child process, MiB")]
RecordsFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="write the records to FILE; default: the evidence store")
]
Prove = Annotated[
    bool,
    typer.Option(
        "--prove",
        help="prove on the virtual GPU that no order of execution gives other bytes; default then: one repeat, one "
        "process",
    ),
]
Code = Annotated[
    Literal["ptx", "sass"] | None,
    typer.Option(
        help="with --device vgpu: the code that runs where a build has both PTX and machine code; default: ptx"
    ),
]
Multiprocessors = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, max=virtual_gpu.MAX_MULTIPROCESSORS,
        help="with --device vgpu: its number of multiprocessors, such as 108 of an A100; default: "
        f"{virtual_gpu.DEFAULT_MULTIPROCESSORS}",
    ),
]  # fmt: skip
Placement = Annotated[
    int | None,
    typer.Option(
        metavar="SEED", min=0, max=virtual_gpu.MAX_PLACEMENT,
        help="with --device vgpu: let SEED choose the addresses of allocations, as CUDA may; default: consecutive ones",
    ),
]  # fmt: skip
Device = Literal["gpu", "cpu", "vgpu"]
BuildDevice = Literal["gpu", "cpu"]  # the build of a framework; the virtual GPU runs the gpu build


def require_virtual_gpu(device: str, prove: bool, **choices: object) -> None:
    """Raise UsageError if --prove or a choice of the virtual GPU was given for another device.

    choices: {name of the option, without its dashes: its value, None if it was not given}.
    """
    if device == "vgpu":
        return
    if prove:
        raise UsageError(f"--prove: the device {device} cannot prove anything", "Add --device vgpu.")
    if chosen := next((name for name, value in choices.items() if value is not None), None):
        raise UsageError(f"--{chosen}: the device {device} has no choice of {chosen}", "Add --device vgpu.")


def choose_counts(context: typer.Context, prove: bool, repeats: int, processes: int) -> tuple[int, int]:
    """Return (repeats, processes): the given numbers, but 1 by default for a proof, which needs no more."""

    def choose(name: str, value: int) -> int:
        source = context.get_parameter_source(name)
        return 1 if prove and source is not None and source.name == "DEFAULT" else value

    return choose("repeats", repeats), choose("processes", processes)
