"""The engine for Apptainer and enroot, which run images as an ordinary user, where Docker is not allowed.

In the container the probe runs the cells of a plan by the suite, and writes their records into a journal.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from tfdet.base.errors import RunFailedError
from tfdet.base.paths import Project, cache_dir
from tfdet.base.untrusted import resolve
from tfdet.engines.base import Request, forwarded_environment
from tfdet.engines.venv import wait
from tfdet_common.machine import machine_name
from tfdet_common.parent_death import set_parent_death_signal

SUFFIXES = {"apptainer": "sif", "enroot": "sqsh"}
_BUILD_COMMANDS = {
    "apptainer": "apptainer build {image} docker-daemon://tfdet:{key}",
    "enroot": "enroot import --output {image} dockerd://tfdet:{key}",
}


class RootlessContainerEngine:
    """The engine that runs the suite by Apptainer or enroot.  name: that of the command."""

    def __init__(self, project: Project, name: str) -> None:
        self._project = project
        self._name = name

    def run(self, request: Request) -> int:
        """Run the suite in the image of the environment and return the probe's exit code."""
        image = self._image(request.key)
        request.journal.touch()  # a file must exist to be mounted
        command = [*self._start_command(request, image), "/opt/tfdet/python", "-m", "tfdet_probe"]
        command += ["--plan", "/plan.json", "--out", "/out/records.jsonl", *request.selection.probe_arguments()]
        # The probe's table goes to standard error, as its progress does: standard output is for that of the host.
        preexec = partial(set_parent_death_signal, os.getpid())
        return wait(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, preexec_fn=preexec))

    def _image(self, key: str) -> Path:
        if shutil.which(self._name) is None:
            raise RunFailedError(
                f"{self._name} is not installed on this machine", "Install it, or leave out --container-runtime."
            )
        image = image_folder() / f"{key}.{SUFFIXES[self._name]}"
        if not image.exists():
            raise RunFailedError(
                f"{image} not found", f"Build it: {_BUILD_COMMANDS[self._name].format(image=image, key=key)}"
            )
        return image

    def _start_command(self, request: Request, image: Path) -> list[str]:
        """Return the command that starts a container, with a few mounts of the host.

        These are the plan, the journal, and this checkout's runtime and suite, in place of the image's own.
        """
        suite = self._project.suite(request.environment.framework)
        mounts = {
            resolve(request.plan): "/plan.json",
            resolve(request.journal): "/out/records.jsonl",
            self._project.runtime: "/opt/tfdet/runtime",
            suite: f"/opt/tfdet/tests/suite/{request.environment.framework}",
        }
        environ = {**forwarded_environment(), "TFDET_ENGINE": self._name, "TFDET_IMAGE": image.name,
                   "TFDET_MACHINE": machine_name()}  # fmt: skip
        needs_gpu = request.kind.needs_driver
        if self._name == "apptainer":
            command = ["apptainer", "exec", "--containall", "--cleanenv", "--no-home", *["--nv"] * needs_gpu]
            mount_option = "--bind"
        else:  # enroot's hook for GPUs reads an environment variable
            command, mount_option = ["enroot", "start"], "--mount"
            visible = os.environ.get("NVIDIA_VISIBLE_DEVICES", "all")
            environ["NVIDIA_VISIBLE_DEVICES"] = visible if needs_gpu else "void"
        for source, target in mounts.items():
            command += [mount_option, f"{source}:{target}"]
        for name, value in environ.items():
            command += ["--env", f"{name}={value}"]
        return [*command, str(image)]


def image_folder() -> Path:
    """Return the folder with an image file for each environment."""
    folder = os.environ.get("TFDET_IMAGES")
    return Path(folder) if folder else cache_dir() / "images"
