"""The commands `tfdet doctor`, `envs` and `build`: check the host, list the environments, build their images."""

from __future__ import annotations

from typing import Annotated

import typer

from tfdet.base import console
from tfdet.base.errors import ExitCode, unknown_name_error
from tfdet.base.paths import find_project
from tfdet.cli.app import load_project, print_json
from tfdet.cli.options import Device, Environments, FrameworkFilter, Json, environments


def doctor(
    env: Annotated[
        str | None,
        typer.Argument(
            metavar="[ENV]", help="environment to check for; default: the host alone", autocompletion=environments
        ),
    ] = None,
    device: Annotated[Device, typer.Option(help="device that its ops shall run on")] = "gpu",
    as_json: Json = False,
) -> None:
    """Report what this host can run: Docker, NVIDIA runtime, GPUs, driver, disk, Pythons.

    With ENV: exits with 4 if that environment lacks something.
    """
    from tfdet.engines.doctor import run_checks
    from tfdet.publish import terminal_lists

    project, matrix = load_project()
    checks = run_checks(project, matrix, env, device)
    if as_json:
        print_json([check.as_json() for check in checks])
    else:
        console.out().print(terminal_lists.checks(checks))
    if env and any(check.state == "missing" for check in checks):
        raise typer.Exit(ExitCode.NO_DEVICE)


def envs(
    framework: FrameworkFilter = None,
    everything: Annotated[bool, typer.Option("--all", help="print the versions that each environment pins")] = False,
    as_json: Json = False,
) -> None:
    """List the reference environments."""
    from tfdet.matrix.load import load_environments
    from tfdet.publish import terminal_lists

    all_environments = load_environments(find_project().matrix)
    known = sorted({environment.framework for environment in all_environments.values()})
    for name in framework or []:
        if name not in known:
            raise unknown_name_error("framework", name, known)
    selected = {key: e for key, e in all_environments.items() if not framework or e.framework in framework}
    if as_json:
        print_json([{"id": key, **e.model_dump(mode="json")} for key, e in selected.items()])
    elif everything or framework:
        console.out().print(terminal_lists.environments(selected))
    else:
        console.out().print(terminal_lists.environment_names(selected))


def build(
    env: Environments,
    base_image: Annotated[
        str | None,
        typer.Option(metavar="IMAGE", help="install by pip on this image, which has the right CPython; default: none"),
    ] = None,
) -> None:
    """Build the Docker images tfdet:ENV."""
    from tfdet.engines.images import build as build_image

    project, matrix = load_project()
    for key in env:
        matrix.environment(key)
    for key in env:
        image = build_image(project, matrix, key, base_image=base_image, on_line=console.print_note)
        console.print_note(f"built tfdet:{key} ({image[:19]}). Run it: docker run --gpus all tfdet:{key}")
