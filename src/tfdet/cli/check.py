"""The command `tfdet check`: known nondeterminism of installed packages, or of the ops that a program calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from tfdet.base import console
from tfdet.base.errors import ExitCode, UsageError
from tfdet.base.paths import find_project
from tfdet.cli.app import print_json
from tfdet.cli.options import BuildDevice, Json, Junit, solutions


def check(
    program: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PROGRAM.py|NOTEBOOK.ipynb]...", help="program to check; default: the installed packages"
        ),
    ] = None,
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="Python whose packages are checked; default: the active one")
    ] = None,
    device: Annotated[BuildDevice, typer.Option(help="device that the program runs on")] = "gpu",
    assume_solution: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="assume that this solution is enabled (repeatable); default: none",
            autocompletion=solutions,
        ),
    ] = None,
    as_json: Json = False,
    sarif: Annotated[bool, typer.Option("--sarif", help="print SARIF 2.1.0, for code hosts")] = False,
    junit: Junit = False,
) -> None:
    """Report which installed kernels, or which ops called by a program, depend on execution order.

    Exits with 1 if one of them is known to differ and no enabled solution makes it deterministic.
    """
    from tfdet.engines.packages import active_python, installed_versions
    from tfdet.publish.check_reports import as_junit, as_sarif, finding_text
    from tfdet.verdicts import program_check
    from tfdet.verdicts.enabled_solutions import find_enabled_solutions
    from tfdet.verdicts.programs import parse_programs
    from tfdet.verdicts.status_loading import load_status

    if as_json + sarif + junit > 1:
        raise UsageError("--json, --sarif and --junit cannot be combined", "Pass one of them.")
    interpreter = python or active_python()
    status = load_status(find_project())
    for key in assume_solution or []:
        status.matrix.solution(key)
    calls = parse_programs(program) if program else None
    # The installed frameworks, each with an environment of its version, or else of its minor version.
    builds = program_check.match_builds(status.matrix, installed_versions(interpreter))
    if not builds:
        raise UsageError(
            f"{interpreter}: no supported framework found (TensorFlow or PyTorch)",
            "Pass another Python: --python PATH.",
        )
    enabled = find_enabled_solutions(status.matrix, calls, assume_solution or [])
    findings_by_build = {build: program_check.check_program(status, build, device, calls, enabled) for build in builds}
    if as_json:
        print_json([{"package": b.package, "version": b.version, "environment": b.environment,
                     "same_version": b.exact_version, "in_effect": sorted(enabled),
                     "findings": [finding.as_json() for finding in findings]}
                    for b, findings in findings_by_build.items()])  # fmt: skip
    elif sarif:
        print_json(as_sarif(findings_by_build))
    elif junit:
        console.write(as_junit(findings_by_build))
    else:
        for build, findings in findings_by_build.items():
            match = build.environment if build.exact_version else f"{build.environment}, which is another version"
            console.out().print(f"{build.package} {build.version}, as {match}", markup=False)
            for finding in findings:
                text = f"{finding_text(finding)} [{finding.rule_id}]"
                console.write(_format_finding(finding.level, text, [call.where for call in finding.calls]))
    has_error = any(finding.level == "error" for findings in findings_by_build.values() for finding in findings)
    raise typer.Exit(ExitCode.CONTRADICTED if has_error else ExitCode.OK)


def _format_finding(level: Literal["error", "warning", "note"], text: str, locations: list[str]) -> str:
    return f"  {level:8}{console.sanitize_text(text)}\n" + "".join(
        f"          {console.sanitize_text(location)}\n" for location in locations
    )
