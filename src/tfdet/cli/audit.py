"""The command `tfdet audit`."""

from __future__ import annotations

from typing import Annotated

import typer

from tfdet.base import console
from tfdet.base.errors import UsageError
from tfdet.cli.app import load_project, print_json
from tfdet.cli.options import Json, environments


def audit(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ENV|NAME==VERSION|WHEEL|DIRECTORY|LIBRARY...", help="build to audit", autocompletion=environments
        ),
    ] = None,
    arch: Annotated[
        list[str] | None, typer.Option(metavar="sm_70", help="restrict to this architecture (repeatable); default: all")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="store the audit in matrix/audits (environments only)")
    ] = False,
    kernel_registrations: Annotated[
        bool,
        typer.Option(
            "--kernel-registrations", help="list the wheel's kernel registrations too (TensorFlow environments)"
        ),
    ] = False,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="OLD NEW", help="compare two builds (environments: their stored audits); default: none"),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="BUILD", help="also print what changed since BUILD; default: none", autocompletion=environments
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Report from a build's binaries which GPU kernels depend on execution order; needs no GPU, runs nothing."""
    from tfdet.cli import audit_command
    from tfdet.publish import audit_views

    project, matrix = load_project()
    if compare:
        if targets or arch or write or kernel_registrations or baseline:
            raise UsageError(
                "--compare cannot be combined with options other than --json",
                "For example: tfdet audit --compare tf2.4 tf2.8.",
            )
        difference = audit_command.compare(project, matrix, *compare)
        if as_json:
            print_json(difference.as_json())
        else:
            for part in audit_views.diff_tables(difference):
                console.out().print(part)
        return
    if not targets:
        advice = "Name an environment, a version, a wheel, a folder or libraries: tfdet audit tf2.0 torch==2.14.1."
        raise UsageError("nothing to audit", advice)
    options = audit_command.AuditOptions(targets, arch or (), as_json, write, kernel_registrations, baseline)
    raise typer.Exit(audit_command.run(project, matrix, options))
