"""`tfdet audit`."""

from __future__ import annotations

from typing import Annotated

import typer

from tfdet.base import console
from tfdet.base.errors import UsageError
from tfdet.cli.app import load, print_json
from tfdet.cli.options import Json, environments


def audit(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ENV|NAME==VERSION|WHEEL|DIRECTORY|LIBRARY...", help="what to read", autocompletion=environments
        ),
    ] = None,
    arch: Annotated[
        list[str] | None, typer.Option(metavar="sm_70", help="only this architecture (again: several)")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="keep it in matrix/audits (environments only)")] = False,
    registrations: Annotated[
        bool, typer.Option("--registrations", help="ask that TensorFlow for its kernels too (environments only)")
    ] = False,
    diff: Annotated[
        tuple[str, str] | None, typer.Option(metavar="OLD NEW", help="compare two; of environments the stored audits")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="OLD", help="say of each what changed since OLD, too", autocompletion=environments),
    ] = None,
    as_json: Json = False,
) -> None:
    """Read a build's determinism from its binaries: no GPU, nothing is run."""
    from tfdet.cli import auditing
    from tfdet.publish import audit_views

    project, matrix = load()
    if diff:
        if targets or arch or write or registrations or against:
            raise UsageError("--diff goes with --json alone", "tfdet audit --diff tf2.4 tf2.8")
        found = auditing.compare(project, matrix, *diff)
        if as_json:
            print_json(found.as_json())
        else:
            for part in audit_views.difference(found):
                console.out().print(part)
        return
    if not targets:
        advice = "Name an environment, a version, a wheel, a folder or libraries: tfdet audit tf2.0 torch==2.14.1."
        raise UsageError("nothing to audit", advice)
    asked = auditing.Asked(targets, arch or (), as_json, write, registrations, against)
    raise typer.Exit(auditing.run(project, matrix, asked))
