"""How `--help` shows commands: in groups, each option with a metavar, no names of Python's types."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

LOOK_UP, RUN, FIND, EVIDENCE = "Look up", "Run the suite", "Find a cause", "Evidence"


def _polish_params(params: list[Any]) -> list[Any]:
    for param in params:
        if isinstance(param, TyperArgument):
            setattr(param, "display_type_rich", lambda ctx: None)  # noqa: B010 (its metavar says it all)
        elif isinstance(param, TyperOption) and param.metavar is None:
            param.metavar = _metavar(param)
    return params


def _metavar(param: TyperOption) -> str | None:
    """None: the choices, which typer shows."""
    if param.is_flag:
        return ""
    annotation = param.type_descriptor.annotation
    annotation = next(iter(get_args(annotation)), annotation)  # list[Path]
    named = {int: "N", float: "SECONDS", Path: "PATH", str: str(param.name).upper().replace("_", "-")}
    return named.get(annotation)


class Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _polish_params(super().get_params(ctx))


class Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _polish_params(super().get_params(ctx))
