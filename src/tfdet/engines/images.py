"""Build of Docker images from a small build context, and errors that name the cause in one line."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import shutil
import tarfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound

from tfdet.base.errors import RunFailedError, TfdetError, UsageError
from tfdet.base.paths import Project
from tfdet.engines import vgpu
from tfdet.engines.locks import NVML_LOCK, check_lock, framework_of
from tfdet.matrix.load import Matrix
from tfdet.matrix.models import UNKNOWN, Environment, PipRequirements
from tfdet.matrix.plan import make_plan

LABEL = "tfdet.environment"  # label of an image: the key of its environment
SUITE_LABEL = "tfdet.suite"  # label of an image: the suite_hash of what it contains
_NVML_LOCK = f"docker/locks/{NVML_LOCK}"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY")


def tag(key: str) -> str:
    return f"tfdet:{key}"


def connect() -> docker.DockerClient:
    """Return a client of the Docker daemon; TfdetError with the reason if the daemon does not respond."""
    try:
        client = docker.from_env()
        client.ping()
    except DockerException as error:
        raise _connection_error(error) from error
    return client


def _connection_error(error: BaseException) -> TfdetError:
    """Return an error for a daemon that does not respond, by the first OSError in the chain of causes."""
    number = next((e.errno for e in _error_chain(error) if isinstance(e, OSError) and e.errno), None)
    if number == errno.EACCES:
        return RunFailedError(
            "this user has no access to Docker", "Join the group docker (sudo usermod -aG docker $USER; log in again)."
        )
    if number in (errno.ENOENT, errno.ECONNREFUSED):
        if not (shutil.which("docker") or shutil.which("dockerd")):
            return RunFailedError("Docker is not installed", "Install Docker Engine, or use `--engine venv`.")
        return RunFailedError("the Docker daemon does not respond", "Start it: sudo systemctl start docker")
    return RunFailedError(f"Docker cannot be reached: {error}", "See `docker info`, and DOCKER_HOST if it is set.")


def _error_chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, its causes, and the exceptions that urllib3 passes as arguments."""
    chain: list[BaseException] = [error]
    for link in chain:  # grows meanwhile
        related = [link.__cause__, link.__context__, *link.args, getattr(link, "reason", None)]
        chain += [e for e in related if isinstance(e, BaseException) and e not in chain]
        yield link


def suite_hash(project: Project, framework: str) -> str:
    """Return the SHA-256 (16 hex digits) of the files in the image's last layers, except the plan."""
    digest = hashlib.sha256()
    for name, path in [*_suite_files(project, framework), *_files(project.vgpu, "vgpu")]:
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _suite_files(project: Project, framework: str) -> list[tuple[str, Path]]:
    """Return (name in a checkout, path) of the files for the probe and the suite."""
    files = [("docker/entrypoint", project.docker / "entrypoint")]
    for folder in (project.runtime, project.suite(framework)):
        files += _files(folder, folder.relative_to(project.root).as_posix())
    return files


def _files(folder: Path, name: str) -> list[tuple[str, Path]]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return [(f"{name}/{path.relative_to(folder).as_posix()}", path) for path in paths]


@dataclass(frozen=True)
class _Recipe:
    """The inputs for the build of one image.  dockerfile, lock: paths in the checkout.  arguments: for the build."""

    dockerfile: str
    lock: str
    arguments: dict[str, str]
    framework: str

    @property
    def base(self) -> str:
        return self.arguments["BASE_IMAGE"]


def _make_recipe(project: Project, key: str, environment: Environment, base_image: str | None) -> _Recipe:
    # Otherwise the base image contains the framework, and only pytest is installed.
    by_pip = environment.pip is not None and base_image is not None
    lock = project.lock(key, "gpu") if by_pip else project.docker / "locks" / "pytest.txt"
    if not lock.is_file():
        raise RunFailedError(f"{lock} not found", f"Create it: scripts/update-locks {key}")
    check_lock(lock, framework=framework_of(project, environment) if by_pip else None)
    relative = lock.relative_to(project.root).as_posix()
    arguments = {"BASE_IMAGE": base_image or published_image(environment), "ENVIRONMENT": key, "LOCK": relative}
    if environment.line == "stock":  # a build of the framework's own project; the other line, "ngc", is NVIDIA's
        arguments["INSTALL"] = "pip" if by_pip else "image"
        if environment.pip and by_pip:
            arguments["PYTHON"] = environment.pip.python
            arguments |= _compile_arguments(environment.pip)
    for name in _PROXIES:  # Docker leaves these out of the image's history
        arguments |= {n: os.environ[n] for n in (name, name.lower()) if n in os.environ}
    return _Recipe(f"docker/{environment.line}.Dockerfile", relative, arguments, environment.framework)


def _compile_arguments(pip: PipRequirements) -> dict[str, str]:
    """Return the build arguments for packages without wheels, which docker/install compiles."""
    if pip.compiled is None:
        return {}
    variables = " ".join(f"{name}={value}" for name, value in pip.compiled.variables.items())
    return {"COMPILED": " ".join(pip.compiled.packages), "COMPILE_VARIABLES": variables}


def published_image(environment: Environment) -> str:
    """Return the name of the published image, with its digest if that is known."""
    if environment.digest == UNKNOWN:
        return environment.image
    return f"{environment.image.rsplit(':', 1)[0]}@{environment.digest}"


def _context(project: Project, recipe: _Recipe, plan: dict[str, Any], library: Path | None) -> io.BytesIO:
    """Return the build context as a tar archive: the same bytes for the same content, for Docker's cache.

    library: the virtual GPU's folder, if it could be built.
    """
    files = [(name, project.root / name) for name in (recipe.dockerfile, recipe.lock, _NVML_LOCK, "docker/install")]
    content = {name: path.read_bytes() for name, path in [*files, *_suite_files(project, recipe.framework)]}
    content["vgpu/README.md"] = (project.vgpu / "README.md").read_bytes()
    for path in library.iterdir() if library else ():
        content[f"vgpu/{path.name}"] = path.read_bytes()
    content["plan.json"] = (json.dumps(plan, indent=1, sort_keys=True) + "\n").encode()
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, data in sorted(content.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            entry.mode = 0o755 if name in ("docker/install", "docker/entrypoint", "vgpu/ptxas") else 0o644
            tar.addfile(entry, io.BytesIO(data))
    archive.seek(0)
    return archive


def build(
    project: Project,
    matrix: Matrix,
    key: str,
    base_image: str | None = None,
    on_line: Callable[[str], None] | None = None,
) -> str:
    """Build the image tfdet:KEY and return its ID.

    base_image: an image to use instead of the published one. TensorFlow is installed into it by pip, in its GPU build
    (line "stock"), or is already in it (NGC).  on_line: called with each line of the build's output.
    """
    environment = matrix.environment(key)
    if environment.skip_reason:
        raise UsageError(f"{key} cannot be built: {environment.skip_reason}", "`tfdet envs` lists the others.")
    recipe = _make_recipe(project, key, environment, base_image)
    client = connect()
    log = _Log(on_line or (lambda line: None))
    context = _context(project, recipe, make_plan(matrix, key), _library(project, log.on_line))
    try:
        stream = client.api.build(
            fileobj=context,
            custom_context=True,
            dockerfile=recipe.dockerfile,
            tag=tag(key),
            buildargs=recipe.arguments,
            labels={LABEL: key, SUITE_LABEL: suite_hash(project, recipe.framework)},
            network_mode="host",  # for this host's package mirrors, proxies and VPNs
            decode=True,
            rm=True,
            forcerm=True,
        )
        for event in stream:
            log.add(event)
    except APIError as error:
        raise _explain(str(error.explanation or error), log, key, recipe) from error
    except (DockerException, OSError) as error:
        raise _connection_error(error) from error
    if log.error:
        raise _explain(log.error, log, key, recipe)
    try:
        return str(client.images.get(tag(key)).id)
    except ImageNotFound as error:
        raise RunFailedError(
            f"Docker ended the build of {tag(key)} without an image", "See its messages above."
        ) from error


def _library(project: Project, on_line: Callable[[str], None]) -> Path | None:
    """Return the folder of the virtual GPU, built for any image; None, with a message, if it cannot be built."""
    try:
        return vgpu.library_folder(project, portable=True)
    except RunFailedError as error:
        on_line(f"without the virtual GPU: {error.cause}. {error.advice}")
        return None


@dataclass
class _Log:
    """A converter of the daemon's stream of events to lines; it keeps the last lines to explain a failure."""

    on_line: Callable[[str], None]
    error: str = ""
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=60))
    clock: Callable[[], float] = time.monotonic
    _layers: dict[str, tuple[int, int]] = field(default_factory=dict)  # {layer: bytes (pulled, in all)}
    _last_report: float | None = None  # time of the last line about a pull

    def add(self, event: dict[str, Any]) -> None:
        if "error" in event:
            self.error = str(event["error"]).strip()
            return
        text = str(event.get("stream") or "")
        if event.get("status") == "Downloading":
            self._report_pull(event)
        elif "status" in event and "progress" not in event:  # progress bars would be thousands of lines
            text = " ".join(str(event[part]) for part in ("id", "status") if part in event)
        for line in text.splitlines():
            if line.strip():
                self.tail.append(line.rstrip())
                self.on_line(line.rstrip())

    def _report_pull(self, event: dict[str, Any]) -> None:
        """Report the progress of all layers of a pull, every few seconds."""
        detail = event.get("progressDetail") or {}
        self._layers[str(event.get("id"))] = (int(detail.get("current") or 0), int(detail.get("total") or 0))
        now = self.clock()
        if self._last_report is None or now - self._last_report >= _REPORT_INTERVAL:
            self._last_report = now
            pulled, total = (sum(sizes) >> 20 for sizes in zip(*self._layers.values(), strict=True))
            self.on_line(f"pulled {pulled} of {total} MiB so far")


_REPORT_INTERVAL = 5.0  # seconds
_IMAGE_UNAVAILABLE = re.compile(
    r"pull access denied|repository does not exist|manifest (for .* )?(unknown|not found)|not found: manifest|"
    r"no such host|dial tcp|i/o timeout|Client\.Timeout|TLS handshake|server misbehaving|unauthorized|"
    r"error parsing reference|invalid reference format|toomanyrequests|failed to resolve",
    re.I,
)


def _explain(error: str, log: _Log, key: str, recipe: _Recipe) -> TfdetError:
    """Return the error of a failed build."""
    text = "\n".join([*log.tail, error])
    # docker/install begins its own errors so.
    tfdet_message = next((line[len("tfdet: ") :] for line in log.tail if line.startswith("tfdet: ")), None)
    if tfdet_message:
        return RunFailedError(
            f"{tfdet_message} ({recipe.base})", "Pass another one: tfdet build ... --base-image IMAGE"
        )
    if re.search(r"no space left on device|Errno 28", text, re.I):
        return RunFailedError("the disk is full", "Free space for Docker (docker system df; docker image prune).")
    if "DO NOT MATCH THE HASHES" in text:
        return RunFailedError(
            f"downloaded file does not match the hash in {recipe.lock}: {_mismatched_requirement(log)}",
            "Do not use it. Find out why the file changed, or which proxy replaced it.",
        )
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return RunFailedError(
            f"{recipe.base} does not trust this network's certificates",
            "Put your CA certificates into the base image and set ENV PIP_CERT there.",
        )
    if re.search(r"Temporary failure in name resolution|Failed to establish a new connection", text):
        return RunFailedError(
            "pip cannot reach its package index from the build", "Check this host's network or proxy."
        )
    if _IMAGE_UNAVAILABLE.search(error):
        return RunFailedError(
            f"the base image {recipe.base} is missing and cannot be pulled: {error.splitlines()[-1]}",
            f"Pass another image: tfdet build {key} --base-image IMAGE",
        )
    last = next((line for line in reversed(log.tail) if line.startswith(("ERROR", "error"))), error)
    return RunFailedError(f"the build of {tag(key)} failed: {last}", "See its messages above.")


def _mismatched_requirement(log: _Log) -> str:
    """Return the requirement in pip's error message about a hash."""
    lines = [line.strip() for line in log.tail if "--hash" in line or re.match(r"\s+\S+==\S+ from ", line)]
    return lines[0].split(" from ")[0] if lines else "see above"
