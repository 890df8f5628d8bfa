"""Images: stage a small build context, build it, say in one line what went wrong."""

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

LABEL = "tfdet.environment"
SUITE_LABEL = "tfdet.suite"
_NVML_LOCK = f"docker/locks/{NVML_LOCK}"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY")


def tag(key: str) -> str:
    return f"tfdet:{key}"


def connect() -> docker.DockerClient:
    """Docker's daemon, answering; TfdetError says which of the usual reasons it is not."""
    try:
        client = docker.from_env()
        client.ping()
    except DockerException as error:
        raise _unreachable(error) from error
    return client


def _unreachable(error: BaseException) -> TfdetError:
    """What stands between us and the daemon: the first operating system's error in the chain."""
    number = next((e.errno for e in _chain(error) if isinstance(e, OSError) and e.errno), None)
    if number == errno.EACCES:
        return RunFailedError(
            "this user has no access to Docker", "Join the group docker (sudo usermod -aG docker $USER; log in again)."
        )
    if number in (errno.ENOENT, errno.ECONNREFUSED):
        if not (shutil.which("docker") or shutil.which("dockerd")):
            return RunFailedError("Docker is not installed", "Install Docker Engine, or use `--engine venv`.")
        return RunFailedError("the Docker daemon does not respond", "Start it: sudo systemctl start docker")
    return RunFailedError(f"Docker cannot be reached: {error}", "See `docker info`, and DOCKER_HOST if it is set.")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, its causes, and the exceptions that urllib3 hides among arguments."""
    seen: list[BaseException] = [error]
    for one in seen:
        near = [one.__cause__, one.__context__, *one.args, getattr(one, "reason", None)]
        seen += [e for e in near if isinstance(e, BaseException) and e not in seen]
        yield one


def suite_hash(project: Project, framework: str) -> str:
    """What the image's last layers are made from, but for the plan: SHA-256 (16 hex digits)."""
    digest = hashlib.sha256()
    for name, path in [*_suite_files(project, framework), *_files(project.vgpu, "vgpu")]:
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _suite_files(project: Project, framework: str) -> list[tuple[str, Path]]:
    """Each with its name in a checkout."""
    files = [("docker/entrypoint", project.docker / "entrypoint")]
    for folder in (project.runtime, project.suite(framework)):
        files += _files(folder, folder.relative_to(project.root).as_posix())
    return files


def _files(folder: Path, name: str) -> list[tuple[str, Path]]:
    found = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return [(f"{name}/{path.relative_to(folder).as_posix()}", path) for path in found]


@dataclass(frozen=True)
class _Recipe:
    """How one image is built."""

    dockerfile: str
    lock: str
    arguments: dict[str, str]
    framework: str

    @property
    def base(self) -> str:
        return self.arguments["BASE_IMAGE"]


def _recipe(project: Project, key: str, environment: Environment, base_image: str | None) -> _Recipe:
    by_pip = environment.pip is not None and base_image is not None
    lock = project.lock(key, "gpu") if by_pip else project.docker / "locks" / "pytest.txt"
    if not lock.is_file():
        raise RunFailedError(f"{lock} not found", f"Create it: scripts/update-locks {key}")
    check_lock(lock, framework=framework_of(project, environment) if by_pip else None)
    relative = lock.relative_to(project.root).as_posix()
    arguments = {"BASE_IMAGE": base_image or published_image(environment), "ENVIRONMENT": key, "LOCK": relative}
    if environment.line == "stock":
        arguments["INSTALL"] = "pip" if by_pip else "image"
        if environment.pip and by_pip:
            arguments["PYTHON"] = environment.pip.python
            arguments |= _compile_arguments(environment.pip)
    for name in _PROXIES:  # Docker leaves these out of the image's history
        arguments |= {n: os.environ[n] for n in (name, name.lower()) if n in os.environ}
    return _Recipe(f"docker/{environment.line}.Dockerfile", relative, arguments, environment.framework)


def _compile_arguments(pip: PipRequirements) -> dict[str, str]:
    """Of an image whose base brings a compiler; see docker/install."""
    if pip.compiled is None:
        return {}
    variables = " ".join(f"{name}={value}" for name, value in pip.compiled.variables.items())
    return {"COMPILED": " ".join(pip.compiled.packages), "COMPILE_VARIABLES": variables}


def published_image(environment: Environment) -> str:
    """The published image: by digest where one is known."""
    if environment.digest == UNKNOWN:
        return environment.image
    return f"{environment.image.rsplit(':', 1)[0]}@{environment.digest}"


def _context(project: Project, recipe: _Recipe, plan: dict[str, Any], library: Path | None) -> io.BytesIO:
    """The build context as a tar: the same bytes for the same content, so that Docker's cache holds.

    library: the virtual GPU's folder.
    """
    files = [(name, project.root / name) for name in (recipe.dockerfile, recipe.lock, _NVML_LOCK, "docker/install")]
    content = {name: path.read_bytes() for name, path in [*files, *_suite_files(project, recipe.framework)]}
    content["vgpu/README.md"] = (project.vgpu / "README.md").read_bytes()
    for path in library.iterdir() if library else ():
        content[f"vgpu/{path.name}"] = path.read_bytes()
    content["plan.json"] = (json.dumps(plan, indent=1, sort_keys=True) + "\n").encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data in sorted(content.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            entry.mode = 0o755 if name in ("docker/install", "docker/entrypoint", "vgpu/ptxas") else 0o644
            tar.addfile(entry, io.BytesIO(data))
    packed.seek(0)
    return packed


def build(
    project: Project,
    matrix: Matrix,
    key: str,
    base_image: str | None = None,
    on_line: Callable[[str], None] | None = None,
) -> str:
    """Build tfdet:KEY; the image's id.

    base_image: an image to start from instead of the published one; TensorFlow is then installed
    into it by pip, for its GPU (stock), or is in it (NGC).
    """
    environment = matrix.environment(key)
    if environment.skip_reason:
        raise UsageError(f"{key} cannot be built: {environment.skip_reason}", "`tfdet envs` lists the others.")
    recipe = _recipe(project, key, environment, base_image)
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
            network_mode="host",  # pip finds what this host finds: mirrors, proxies, VPNs
            decode=True,
            rm=True,
            forcerm=True,
        )
        for event in stream:
            log.add(event)
    except APIError as error:
        raise _explain(str(error.explanation or error), log, key, recipe) from error
    except (DockerException, OSError) as error:
        raise _unreachable(error) from error
    if log.error:
        raise _explain(log.error, log, key, recipe)
    try:
        return str(client.images.get(tag(key)).id)
    except ImageNotFound as error:
        raise RunFailedError(
            f"Docker ended the build of {tag(key)} without an image", "See its messages above."
        ) from error


def _library(project: Project, on_line: Callable[[str], None]) -> Path | None:
    """The virtual GPU for any image; without a compiler for it the image is whole but for that."""
    try:
        return vgpu.library_folder(project, portable=True)
    except RunFailedError as error:
        on_line(f"without the virtual GPU: {error.cause}. {error.advice}")
        return None


@dataclass
class _Log:
    """The daemon's stream of events as lines; the last ones are kept to explain a failure."""

    on_line: Callable[[str], None]
    error: str = ""
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=60))
    clock: Callable[[], float] = time.monotonic
    _layers: dict[str, tuple[int, int]] = field(default_factory=dict)
    _told: float | None = None

    def add(self, event: dict[str, Any]) -> None:
        if "error" in event:
            self.error = str(event["error"]).strip()
            return
        text = str(event.get("stream") or "")
        if event.get("status") == "Downloading":
            self._pull(event)
        elif "status" in event and "progress" not in event:  # a pull's bars would be thousands of lines
            text = " ".join(str(event[part]) for part in ("id", "status") if part in event)
        for line in text.splitlines():
            if line.strip():
                self.tail.append(line.rstrip())
                self.on_line(line.rstrip())

    def _pull(self, event: dict[str, Any]) -> None:
        """A pull takes minutes: every few seconds, how far all its layers are."""
        detail = event.get("progressDetail") or {}
        self._layers[str(event.get("id"))] = (int(detail.get("current") or 0), int(detail.get("total") or 0))
        now = self.clock()
        if self._told is None or now - self._told >= _EVERY:
            self._told = now
            have, whole = (sum(sizes) >> 20 for sizes in zip(*self._layers.values(), strict=True))
            self.on_line(f"pulled {have} of {whole} MiB so far")


_EVERY = 5.0  # seconds
_NOT_THERE = re.compile(
    r"pull access denied|repository does not exist|manifest (for .* )?(unknown|not found)|not found: manifest|"
    r"no such host|dial tcp|i/o timeout|Client\.Timeout|TLS handshake|server misbehaving|unauthorized|"
    r"error parsing reference|invalid reference format|toomanyrequests|failed to resolve",
    re.I,
)


def _explain(error: str, log: _Log, key: str, recipe: _Recipe) -> TfdetError:
    """One line of cause and one of advice for a failed build."""
    text = "\n".join([*log.tail, error])
    own = next((line[len("tfdet: ") :] for line in log.tail if line.startswith("tfdet: ")), None)
    if own:
        return RunFailedError(f"{own} ({recipe.base})", "Pass another one: tfdet build ... --base-image IMAGE")
    if re.search(r"no space left on device|Errno 28", text, re.I):
        return RunFailedError("the disk is full", "Free space for Docker (docker system df; docker image prune).")
    if "DO NOT MATCH THE HASHES" in text:
        return RunFailedError(
            f"downloaded file does not match the hash in {recipe.lock}: {_mismatch(log)}",
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
    if _NOT_THERE.search(error):
        return RunFailedError(
            f"the base image {recipe.base} is missing and cannot be pulled: {error.splitlines()[-1]}",
            f"Pass another image: tfdet build {key} --base-image IMAGE",
        )
    last = next((line for line in reversed(log.tail) if line.startswith(("ERROR", "error"))), error)
    return RunFailedError(f"the build of {tag(key)} failed: {last}", "See its messages above.")


def _mismatch(log: _Log) -> str:
    """The requirement that pip names in its complaint."""
    named = [line.strip() for line in log.tail if "--hash" in line or re.match(r"\s+\S+==\S+ from ", line)]
    return named[0].split(" from ")[0] if named else "see above"
