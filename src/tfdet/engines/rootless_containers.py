"""The suite in an image where Docker is not allowed: Apptainer or enroot, which run it as their caller."""

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
    """name: the command, which is found on PATH."""

    def __init__(self, project: Project, name: str) -> None:
        self._project = project
        self._name = name

    def run(self, request: Request) -> int:
        image = self._image(request.key)
        request.journal.touch()  # what is bound has to be there
        command = [*self._start(request, image), "/opt/tfdet/python", "-m", "tfdet_probe", "--plan", "/plan.json"]
        command += ["--out", "/out/records.jsonl", *request.selection.probe_arguments()]
        # The probe's table goes where its progress goes: standard output is for the host's.
        ended_with_us = partial(set_parent_death_signal, os.getpid())
        return wait(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, preexec_fn=ended_with_us))

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

    def _start(self, request: Request, image: Path) -> list[str]:
        """Nothing of the host but the plan, this journal, and the suite of this checkout, over the image's own."""
        suite = self._project.suite(request.environment.framework)
        binds = {
            resolve(request.plan): "/plan.json",
            resolve(request.journal): "/out/records.jsonl",
            self._project.runtime: "/opt/tfdet/runtime",
            suite: f"/opt/tfdet/tests/suite/{request.environment.framework}",
        }
        environ = {**forwarded_environment(), "TFDET_ENGINE": self._name, "TFDET_IMAGE": image.name,
                   "TFDET_MACHINE": machine_name()}  # fmt: skip
        gpu = request.kind.needs_driver
        if self._name == "apptainer":
            start = ["apptainer", "exec", "--containall", "--cleanenv", "--no-home", *["--nv"] * gpu]
            bind = "--bind"
        else:  # its hook for GPUs is told by the environment
            start, bind = ["enroot", "start"], "--mount"
            environ["NVIDIA_VISIBLE_DEVICES"] = os.environ.get("NVIDIA_VISIBLE_DEVICES", "all") if gpu else "void"
        start += [word for source, place in binds.items() for word in (bind, f"{source}:{place}")]
        start += [word for name, value in environ.items() for word in ("--env", f"{name}={value}")]
        return [*start, str(image)]


def image_folder() -> Path:
    """Where they lie, a file an environment."""
    told = os.environ.get("TFDET_IMAGES")
    return Path(told) if told else cache_dir() / "images"
