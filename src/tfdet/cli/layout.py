"""The layout of `--help`: commands in panels, and each option with a metavar instead of a name of a Python type."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

LOOK_UP, RUN, FIND, EVIDENCE = "Look up", "Run the suite", "Find a cause", "Evidence"


def _polish_params(params: list[Any]) -> list[Any]:
    """Set the metavars of options, and hide the types of arguments."""
    for param in params:
        if isinstance(param, TyperArgument):
            setattr(param, "display_type_rich", lambda ctx: None)  # noqa: B010 (the metavar is enough)
        elif isinstance(param, TyperOption) and param.metavar is None:
            param.metavar = _metavar(param)
    return params


def _metavar(param: TyperOption) -> str | None:
    """Return the metavar of an option; None for a choice, for which typer shows the values."""
    if param.is_flag:
        return ""
    annotation = param.type_descriptor.annotation
    annotation = next(iter(get_args(annotation)), annotation)  # list[Path]
    metavars = {int: "N", float: "SECONDS", Path: "PATH", str: str(param.name).upper().replace("_", "-")}
    return metavars.get(annotation)


class Command(TyperCommand):
    """A command with the layout of this module."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _polish_params(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands with the layout of this module."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _polish_params(super().get_params(ctx))
