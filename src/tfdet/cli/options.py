"""What several commands take: the words of the command line that mean the same everywhere."""

from __future__ import annotations

import glob
from collections.abc import Callable
from typing import Annotated, Literal

import typer

from tfdet.base.errors import UsageError
from tfdet.base.paths import find_project


def _named(kind: str) -> Callable[[str], list[str]]:
    """For a shell's completion: the names of a folder of matrix/, nothing of which is read."""

    def beginning_with(incomplete: str) -> list[str]:
        try:
            found = (find_project().matrix / kind).rglob(f"{glob.escape(incomplete)}*.toml")  # by framework
        except UsageError:  # TFDET_ROOT names no checkout
            return []
        return sorted(path.stem for path in found)

    return beginning_with


environments, sources, solutions = _named("environments"), _named("sources"), _named("solutions")
Json = Annotated[bool, typer.Option("--json", help="for machines")]
Csv = Annotated[bool, typer.Option("--csv", help="for spreadsheets")]
Junit = Annotated[bool, typer.Option("--junit", help="for CI systems: JUnit's XML")]
Environments = Annotated[
    list[str],
    typer.Argument(metavar="ENV...", help="for example tf2.0; see `tfdet envs`", autocompletion=environments),
]
Device = Literal["gpu", "cpu", "vgpu"]
Build = Literal["gpu", "cpu"]
