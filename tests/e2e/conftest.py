"""Fixtures of the end-to-end tests: a real Docker daemon, a base image, and tfdet:tf2.0 built from real wheels."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import docker as docker_sdk
import pytest
from docker.errors import ImageNotFound
from e2e_project import BASE, KEY, ROOT, copy_project

from tfdet.base.errors import TfdetError
from tfdet.base.paths import Project
from tfdet.engines import images
from tfdet.engines.base import Request, Selection
from tfdet.matrix.field_types import Device
from tfdet.matrix.load import Matrix, load_matrix
from tfdet.matrix.plan import write_plan

# Solutions of a small run: none, TF_DETERMINISTIC_OPS=1, and one CPU thread.
QUICK = ("none", "TDO", "CPU1")  # the ops that ED, tfdeterminism.enable_determinism(), replaces are slow on a CPU
# The process id of a daemon that scripts/e2e-base-image started.
MARKER = Path(os.environ.get("TMPDIR", "/tmp")) / "tfdet-dockerd.pid"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test that uses the fixture `docker` with `docker`."""
    for item in items:
        if "docker" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.docker)


def e2e_base_image(*arguments: str) -> None:
    """Run scripts/e2e-base-image; if it fails, fail the tests if Docker is required, or else skip them."""
    process = subprocess.run(
        [ROOT / "scripts" / "e2e-base-image", *arguments], capture_output=True, text=True, check=False
    )
    if process.returncode == 0:
        return
    reason = f"end-to-end Docker tests: {process.stderr.strip() or process.stdout.strip()}"
    if os.environ.get("CI") or os.environ.get("TFDET_REQUIRE_DOCKER"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def docker() -> Iterator[docker_sdk.DockerClient]:
    """Yield a client of the running daemon, or of one that is started for these tests."""
    was_running = MARKER.exists()
    e2e_base_image("--daemon")
    client = images.connect()
    yield client
    client.close()
    if not was_running and MARKER.exists():
        e2e_base_image("--stop")


@pytest.fixture(scope="session")
def base(docker: docker_sdk.DockerClient) -> str:
    """Build the base image, and return its name."""
    e2e_base_image()
    return BASE


@pytest.fixture(scope="session")
def project() -> Iterator[Project]:
    """Yield a copy of the files of the images, so that edits during the tests do not matter."""
    with tempfile.TemporaryDirectory(prefix="tfdet-e2e-") as folder:
        yield copy_project(ROOT, Path(folder))


@pytest.fixture(scope="session")
def matrix(project: Project) -> Matrix:
    """Return the matrix of the project."""
    return load_matrix(project.matrix)


@pytest.fixture(scope="session")
def image(docker: docker_sdk.DockerClient, base: str, project: Project, matrix: Matrix) -> Iterator[str]:
    """Build tfdet:tf2.0 with pip on the base image, and yield its name; an older image gets the name back."""
    tag = images.tag(KEY)
    try:
        old_image = docker.images.get(tag)
    except ImageNotFound:
        old_image = None
    try:
        images.build(project, matrix, KEY, base, on_line=print)
    except TfdetError as error:
        pytest.fail(f"{error.cause}\n{error.advice}", pytrace=False)
    yield tag
    if old_image is not None:
        old_image.tag("tfdet", KEY)


@pytest.fixture
def request_for(matrix: Matrix, tmp_path: Path) -> Callable[..., Request]:
    """Return request_for("cpu", source, ...), which makes a request of a small run with its files in tmp_path."""

    def make(device: Device, *sources: str, repeats: int = 3, memory: int = 4096) -> Request:
        return Request(
            key=KEY,
            environment=matrix.environment(KEY),
            plan=write_plan(matrix, KEY, tmp_path / "plan.json"),
            journal=tmp_path / "records.jsonl",
            selection=Selection(
                device=device, sources=sources, solutions=QUICK, repeats=repeats, processes=1, memory=memory
            ),
            kind=matrix.devices.find_by_cli_name(device),
        )

    return make
