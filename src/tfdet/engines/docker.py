"""The docker engine, which runs the suite in the image tfdet:ENV, with as few privileges as Docker allows.

The probe in the image runs the cases of the sources of nondeterminism in a plan, and appends records to a journal.
"""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import os
import re
import shutil
import signal
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.types import DeviceRequest

from tfdet.base.errors import DeviceUnavailableError, ExitCode, RunFailedError, TfdetError
from tfdet.base.paths import Project
from tfdet.base.untrusted import resolve
from tfdet.engines import images
from tfdet.engines.base import Request, container_path, forwarded_environment, sigterm_as_keyboard_interrupt
from tfdet_common.machine import machine_name

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container
    from docker.models.images import Image

_HOSTNAME = "tfdet"
IMAGE_USER = 10001  # the container's user ID if tfdet runs as root
SUITE_MEBIBYTES = 2048  # memory of the suite itself, in addition to one case
STOP_SECONDS = 10

_NO_GPU = re.compile(
    r"could not select device driver|nvidia-container-cli|no known GPU vendor|unknown runtime.*nvidia", re.I
)


class DockerEngine:
    """The engine that runs the suite in a Docker container."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def run(self, request: Request) -> int:
        """Run the suite in tfdet:KEY. Ctrl-C stops the container; finished records are kept."""
        client = images.connect()
        image = self._image(client, request.key, request.environment.framework)
        name = _container_name(request)
        _remove_stale_container(client, name)
        with _output_folder(request.journal) as out:
            try:
                container = client.containers.create(image, **container_options(request, image, name, out))
            except DockerException as error:
                raise _explain(error) from error
            try:
                return _follow_container(container)
            except DockerException as error:
                raise _explain(error) from error
            finally:
                with contextlib.suppress(DockerException):
                    container.remove(force=True)

    def _image(self, client: DockerClient, key: str, framework: str) -> Image:
        tag = images.tag(key)
        try:
            image = client.images.get(tag)
        except ImageNotFound:
            raise RunFailedError(f"image {tag} not found", f"Build it: tfdet build {key}") from None
        if image.labels.get(images.SUITE_LABEL) != images.suite_hash(self._project, framework):
            raise RunFailedError(
                f"{tag} contains another version of the suite than this checkout",
                f"Rebuild it, which takes seconds: tfdet build {key} (with the same --base-image)",
            )
        return image


def container_options(request: Request, image: Image, name: str, out: Path) -> dict[str, Any]:
    """Return the options of the container: no network, root or capabilities, and only two mounts of the host.

    The mounts are the plan, and `out` for the records.
    """
    uid, gid = _user()
    gpus = [DeviceRequest(count=-1, capabilities=[["gpu"]])] if request.kind.needs_driver else []
    mebibytes = f"{request.selection.memory + SUITE_MEBIBYTES}m"
    return {
        "name": name,
        "command": [*request.selection.probe_arguments(), "--plan", "/plan.json", "--out", "/out/records.jsonl"],
        "labels": {images.LABEL: request.key},
        "user": f"{uid}:{gid}",
        "network_mode": "none",
        "hostname": _HOSTNAME,
        "extra_hosts": {_HOSTNAME: "127.0.0.1"},  # Gloo resolves its machine's name
        "read_only": True,
        "tmpfs": {"/tmp": "rw,nosuid,nodev,noexec,size=2g,mode=1777"},
        "shm_size": "1g",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "mem_limit": mebibytes,
        "memswap_limit": mebibytes,
        "pids_limit": 8192,  # TensorFlow starts several threads for each core
        "device_requests": gpus,
        "volumes": {
            str(resolve(request.plan)): {"bind": "/plan.json", "mode": "ro"},
            str(out): {"bind": "/out", "mode": "rw"},
        },
        "environment": {
            **forwarded_environment(),
            "TFDET_ENGINE": "docker",
            "TFDET_IMAGE": images.tag(request.key),
            "TFDET_IMAGE_DIGEST": image.id,
            "TFDET_MACHINE": machine_name(),
        },
        "tty": sys.stderr.isatty(),
    }


def _user() -> tuple[int, int]:
    """Return the user and group ID for the container: the caller's, but never root's."""
    return (os.getuid(), os.getgid()) if os.getuid() else (IMAGE_USER, IMAGE_USER)


def _container_name(request: Request) -> str:
    """Return a name that depends on the journal's path, so that the container of an interrupted run is found again."""
    digest = hashlib.sha256(str(resolve(request.journal)).encode()).hexdigest()[:12]
    return f"tfdet-{request.key}-{digest}"


def _remove_stale_container(client: DockerClient, name: str) -> None:
    try:
        container = client.containers.get(name)
    except NotFound:
        return
    if container.status == "running":
        raise RunFailedError(
            f"the container {name} still writes to these records", f"Wait, or remove it: docker rm -f {name}"
        )
    container.remove(force=True)


@contextlib.contextmanager
def _output_folder(journal: Path) -> Iterator[Path]:
    """Yield a folder for the container's /out; at the end its records become the journal.

    At first the folder contains the records of the journal and those that a killed run left in the folder.
    The folder is untrusted input, because the container can write anything to it: no link in it is followed.
    """
    records = container_path(journal)
    folder = records.parent
    folder.mkdir(parents=True, exist_ok=True)
    try:
        has_records = _is_record_file(records)
        if journal.exists():
            leftover = records.read_bytes() if has_records else b""
            merged = folder.with_name(folder.name + ".joined")  # outside of the folder that the container can write to
            merged.unlink(missing_ok=True)
            _write_new_file(merged, _merge_journals(leftover, journal.read_bytes()))
            merged.replace(records)
            has_records = True
        if os.getuid() == 0:
            for path in [folder, records] if has_records else [folder]:
                os.chown(path, *_user(), follow_symlinks=False)
    except RunFailedError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    try:
        yield folder
    finally:
        try:
            if _is_record_file(records):
                os.chown(records, os.getuid(), os.getgid(), follow_symlinks=False)
                os.replace(records, journal)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _is_record_file(path: Path) -> bool:
    """Return whether the file exists. RunFailedError if it is not a regular file with a single name."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        raise RunFailedError(
            f"{path} is not a regular file: the container created it",
            "No records were added, and its folder is removed. Check what this image runs before you run it again.",
        )
    return True


def _merge_journals(leftover: bytes, journal: bytes) -> bytes:
    """Return the lines of both without duplicates, and without an incomplete last line of `leftover`."""
    complete = leftover[: leftover.rfind(b"\n") + 1]
    known = set(complete.splitlines())
    return complete + b"".join(line for line in journal.splitlines(keepends=True) if line.rstrip(b"\n") not in known)


def _write_new_file(path: Path, content: bytes) -> None:
    """Write a new file; FileExistsError if the name exists, even as a link."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with open(descriptor, "wb") as out:
        out.write(content)


def _follow_container(container: Container) -> int:
    """Start the container, stream its output, and return the suite's exit code."""
    output = container.attach(stdout=True, stderr=True, stream=True, logs=True)
    with sigterm_as_keyboard_interrupt():
        try:
            container.start()
            _stream_output(output)
            code = int(container.wait(timeout=None)["StatusCode"])
        except KeyboardInterrupt:
            with contextlib.suppress(DockerException):
                container.stop(timeout=STOP_SECONDS)
            return ExitCode.INTERRUPTED
    container.reload()
    if code in list(ExitCode):
        return code
    if container.attrs["State"].get("OOMKilled") or code == 128 + signal.SIGKILL:
        raise RunFailedError(
            "the container was killed (SIGKILL): out of memory?",
            "Finished records are kept; run again to resume, with a larger --memory if memory ran out.",
        )
    raise RunFailedError(f"the container ended with status {code}", "Finished records are kept; run again to resume.")


def _stream_output(output: Iterable[bytes]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for chunk in output:
        sys.stderr.write(decoder.decode(chunk))
        sys.stderr.flush()


def _explain(error: DockerException) -> TfdetError:
    """Convert Docker's error about a container."""
    message = str(error.explanation if isinstance(error, APIError) and error.explanation else error).strip()
    if _NO_GPU.search(message):
        return DeviceUnavailableError(
            f"Docker gives no GPU to containers here: {message.splitlines()[0][:200]}",
            "Install the NVIDIA Container Toolkit (nvidia-ctk runtime configure; restart Docker) and the driver, "
            "or ask for `--device cpu`.",
        )
    if "no space left on device" in message:
        return RunFailedError("the disk is full", "Free space for Docker (docker system df).")
    return RunFailedError(f"Docker could not create the container: {message}", "See `docker info` and `tfdet doctor`.")
