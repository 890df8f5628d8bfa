"""A real Docker daemon, a base image of our own, and tfdet:tf2.0 built on it from real wheels."""

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

QUICK = ("none", "TDO", "CPU1")  # the replaced ops of ED are slow on a CPU
MARKER = Path(os.environ.get("TMPDIR", "/tmp")) / "tfdet-dockerd.pid"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "docker" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.docker)


def e2e_base_image(*arguments: str) -> None:
    """scripts/e2e-base-image; where it fails, tests fail if Docker is required and are skipped by name if not."""
    done = subprocess.run(
        [ROOT / "scripts" / "e2e-base-image", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return
    why = f"end-to-end Docker tests: {done.stderr.strip() or done.stdout.strip()}"
    if os.environ.get("CI") or os.environ.get("TFDET_REQUIRE_DOCKER"):
        pytest.fail(why, pytrace=False)
    pytest.skip(why)


@pytest.fixture(scope="session")
def docker() -> Iterator[docker_sdk.DockerClient]:
    """A daemon that answers: the one that runs, or one started for these tests."""
    before = MARKER.exists()
    e2e_base_image("--daemon")
    client = images.connect()
    yield client
    client.close()
    if not before and MARKER.exists():
        e2e_base_image("--stop")


@pytest.fixture(scope="session")
def base(docker: docker_sdk.DockerClient) -> str:
    e2e_base_image()
    return BASE


@pytest.fixture(scope="session")
def project() -> Iterator[Project]:
    """A copy of what images are made of: nobody's edit changes it while the tests run."""
    with tempfile.TemporaryDirectory(prefix="tfdet-e2e-") as folder:
        yield copy_project(ROOT, Path(folder))


@pytest.fixture(scope="session")
def matrix(project: Project) -> Matrix:
    return load_matrix(project.matrix)


@pytest.fixture(scope="session")
def image(docker: docker_sdk.DockerClient, base: str, project: Project, matrix: Matrix) -> Iterator[str]:
    """The name tfdet:tf2.0, built by pip on the base; an image of that name from before gets it back."""
    tag = images.tag(KEY)
    try:
        before = docker.images.get(tag)
    except ImageNotFound:
        before = None
    try:
        images.build(project, matrix, KEY, base, on_line=print)
    except TfdetError as error:
        pytest.fail(f"{error.cause}\n{error.advice}", pytrace=False)
    yield tag
    if before is not None:
        before.tag("tfdet", KEY)


@pytest.fixture
def request_for(matrix: Matrix, tmp_path: Path) -> Callable[..., Request]:
    """request_for("cpu", source, ...): a small run with its plan and journal in tmp_path."""

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
