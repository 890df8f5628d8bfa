"""Docker images without Docker: build contexts, references, and the messages of failures."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tfdet.base.errors import TfdetError
from tfdet.base.paths import Project
from tfdet.engines import images
from tfdet.engines.locks import parse_pins
from tfdet.matrix.load import Matrix, load_matrix


@pytest.fixture(scope="module")
def matrix(checkout: Project) -> Matrix:
    return load_matrix(checkout.matrix)


def image_recipe(project: Project, matrix: Matrix, base: str | None = None) -> images._Recipe:
    """Return how the image of tf2.0 is built, on another base image if one is named."""
    return images._make_recipe(project, "tf2.0", matrix.environment("tf2.0"), base)


def test_the_build_context_contains_only_what_the_dockerfile_copies(checkout: Project, matrix: Matrix) -> None:
    packed = images._context(checkout, image_recipe(checkout, matrix, "base"), {}, None)
    with tarfile.open(fileobj=packed) as tar:
        names = set(tar.getnames())
    assert {"docker/stock.Dockerfile", "docker/install", "docker/entrypoint", "plan.json"} < names
    assert "docker/locks/tf2.0-gpu.txt" in names
    rest = {n for n in names if not n.startswith(("docker/", "runtime/", "tests/suite/tensorflow/"))}
    assert rest == {"plan.json", "vgpu/README.md"}
    assert not [n for n in names if "__pycache__" in n]


def test_packages_without_wheels_are_compiled_in_the_image(checkout: Project, matrix: Matrix) -> None:
    key = "tf2.0-horovod"
    arguments = images._make_recipe(checkout, key, matrix.environment(key), "python:3.7").arguments
    assert (arguments["INSTALL"], arguments["PYTHON"], arguments["COMPILED"]) == ("pip", "3.7", "horovod")
    assert "HOROVOD_WITH_GLOO=1" in arguments["COMPILE_VARIABLES"].split()
    assert "COMPILED" not in image_recipe(checkout, matrix, "base").arguments


@pytest.mark.parametrize(("compiled", "groups"), [("horovod", 1), ("horovod cmake", 2), ("", 0)])
def test_compiled_pins_are_installed_last(checkout: Project, tmp_path: Path, compiled: str, groups: int) -> None:
    lock = checkout.lock("tf2.0-horovod", "gpu").read_text("utf-8")
    (tmp_path / "lock.txt").write_text(lock, "utf-8")
    script = (checkout.docker / "install").read_text("utf-8")
    rest = script[script.index("select_pins() {") :]
    function = rest[: rest.index("\n}\n") + 3]
    # select_pins 1 prints the pins of the packages in COMPILED, select_pins 0 those of all others.
    parts = [
        subprocess.run(
            ["sh", "-c", f"{function}\nselect_pins {selected}"],
            env={"folder": str(tmp_path), "COMPILED": compiled, "PATH": os.environ["PATH"]},
            capture_output=True, text=True, check=True,
        ).stdout
        for selected in (0, 1)
    ]  # fmt: skip
    assert sorted("".join(parts).splitlines()) == sorted(lock.splitlines())
    assert len(parse_pins(parts[1])) == groups


def test_the_same_content_gives_the_same_bytes(checkout: Project, matrix: Matrix) -> None:
    first, two = (images._context(checkout, image_recipe(checkout, matrix), {"a": 1}, None) for _ in range(2))
    assert isinstance(first, io.BytesIO)
    assert first.getvalue() == two.getvalue()


def test_the_suites_hash_follows_the_suite(copy: Project) -> None:
    before = images.suite_hash(copy, "tensorflow")
    (copy.suite("tensorflow") / "test_bias.py").write_text("")
    assert images.suite_hash(copy, "tensorflow") != before


def test_a_known_digest_wins_over_the_tag(matrix: Matrix) -> None:
    environment = matrix.environment("tf2.0").model_copy(update={"image": "host:5000/a/b:1.0", "digest": "sha256:12"})
    assert images.published_image(environment) == "host:5000/a/b@sha256:12"
    assert images.published_image(environment.model_copy(update={"digest": "unknown"})) == "host:5000/a/b:1.0"


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("pull access denied for x, repository does not exist or may require 'docker login'", "cannot be pulled"),
        ("Get https://x/v2/: dial tcp: lookup x: no such host", "cannot be pulled"),
        ("write /var/x: no space left on device", "the disk is full"),
        ("SSLCertVerificationError: CERTIFICATE_VERIFY_FAILED", "does not trust"),
        ("Temporary failure in name resolution", "cannot reach its package index"),
        ("something else", "something else"),
    ],
)
def test_failures_have_a_cause_and_an_advice(checkout: Project, matrix: Matrix, message: str, cause: str) -> None:
    log = images._Log(lambda line: None)
    log.add({"error": message})
    error = images._explain(log.error, log, "tf2.0", image_recipe(checkout, matrix))
    assert cause in error.cause
    assert error.advice
    assert "\n" not in error.cause + error.advice


@pytest.mark.parametrize(
    ("error", "cause"),
    [(PermissionError(13, "denied"), "has no access to Docker"), (ConnectionRefusedError(111, "refused"), "Docker")],
)
def test_an_unreachable_daemon_is_reported(error: OSError, cause: str) -> None:
    assert cause in images._connection_error(Exception("Error while fetching server API version", error)).cause


def test_an_address_without_a_daemon_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(TfdetError, match=r"does not respond|not installed"):
        images.connect()


@pytest.mark.parametrize("minor", range(5, 15))
def test_the_lock_of_pytest_is_complete_for_every_python(checkout: Project, minor: int) -> None:
    lines = (checkout.docker / "locks" / "pytest.txt").read_text().replace("\\\n", " ").splitlines()
    marker_environment = {
        "python_version": f"3.{minor}",
        "python_full_version": f"3.{minor}.1",
        "sys_platform": "linux",
    }
    chosen = []
    for line in lines:
        if line and not line.startswith("#"):
            requirement = Requirement(line.split("--hash")[0])
            assert "--hash=sha256:" in line
            if requirement.marker is None or requirement.marker.evaluate(marker_environment):
                chosen.append(requirement.name)
    assert len(chosen) == len(set(chosen))
    assert {"pytest", "pluggy", "packaging", "iniconfig"} <= set(chosen)
