"""The docker engine: how tfdet run uses an image."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import docker as docker_sdk
import pytest
from e2e_project import KEY

from tfdet.base.errors import DeviceUnavailableError, ExitCode, RunFailedError
from tfdet.base.paths import Project
from tfdet.engines import images
from tfdet.engines.base import Request
from tfdet.engines.docker import DockerEngine, container_options
from tfdet.store.records import read_records
from tfdet_common.machine import machine_name

Make = Callable[..., Request]


@pytest.fixture(autouse=True, scope="module")
def remember_containers(docker: docker_sdk.DockerClient) -> None:
    """Note the containers that other runs left, which these tests must not count."""
    EARLIER.update(remaining_containers(docker))


EARLIER: set[str] = set()


def remaining_containers(docker: docker_sdk.DockerClient) -> list[str]:
    """Return the containers of the engine that these tests started and that still exist."""
    return [
        c.name
        for c in docker.containers.list(all=True, filters={"label": images.LABEL})
        if c.name.startswith(f"tfdet-{KEY}-") and c.name not in EARLIER
    ]


def wait_for_records(request: Request, count: int) -> None:
    """Wait until the container has written that many records."""
    inside = request.journal.with_name(request.journal.name + ".container") / "records.jsonl"
    deadline = time.monotonic() + 600  # a bound for what never comes, not for a slow machine
    while not inside.exists() or inside.read_bytes().count(b"\n") < count:
        assert time.monotonic() < deadline, "no records"
        time.sleep(0.05)


def test_the_engine_runs_the_suite(
    docker: docker_sdk.DockerClient, image: str, project: Project, request_for: Make, capfd
) -> None:
    request = request_for("cpu", "crop-and-resize-backprop")
    assert DockerEngine(project).run(request) == ExitCode.OK
    records = list(read_records(request.journal))
    assert {r.stack.engine for r in records} == {"docker"}
    assert {r.stack.image for r in records} == {image}
    assert {r.stack.image_digest for r in records} == {docker.images.get(image).id}
    assert {r.machine for r in records} == {machine_name()}
    assert request.journal.stat().st_uid == os.getuid()
    output = capfd.readouterr()
    assert output.out == ""
    assert "crop-and-resize-backprop" in output.err
    assert remaining_containers(docker) == []
    assert sorted(p.name for p in request.journal.parent.iterdir()) == ["plan.json", "records.jsonl"]


def test_no_gpu_for_containers_is_reported_with_advice(
    docker: docker_sdk.DockerClient, image: str, project: Project, request_for: Make
) -> None:
    if "nvidia" in docker.info()["Runtimes"]:
        pytest.skip("this host's Docker has the NVIDIA runtime")
    with pytest.raises(DeviceUnavailableError) as caught:
        DockerEngine(project).run(request_for("gpu", "bias-add-backprop"))
    assert "NVIDIA Container Toolkit" in caught.value.advice
    assert "--device cpu" in caught.value.advice
    assert remaining_containers(docker) == []


def test_a_missing_image_is_reported(docker: docker_sdk.DockerClient, project: Project, request_for: Make) -> None:
    with pytest.raises(RunFailedError, match="image tfdet:tf0 not found") as caught:
        DockerEngine(project).run(replace(request_for("cpu"), key="tf0"))
    assert caught.value.advice == "Build it: tfdet build tf0"


INSPECT_CONTAINER = """
import json, os, resource, socket
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
def denied(path):
    try:
        open(path, "w").close()
    except OSError as error:
        return error.errno
    return None
print(json.dumps({
    "uid": os.getuid(), "capabilities": int(status["CapBnd"], 16), "no_new_privileges": int(status["NoNewPrivs"]),
    "root": denied("/x"), "suite": denied("/opt/tfdet/x"), "plan": denied("/plan.json"),
    "out": denied("/out/x"), "tmp": denied("/tmp/x"), "networks": sorted(os.listdir("/sys/class/net")),
    "out_holds": sorted(os.listdir("/out")), "address": socket.gethostbyname(socket.gethostname()),
}))
"""


def test_the_container_is_isolated(
    docker: docker_sdk.DockerClient, image: str, request_for: Make, tmp_path: Path
) -> None:
    """A program in a container with the engine's own options inspects the container."""
    request = request_for("cpu", memory=1000)
    out = tmp_path / "given"
    out.mkdir()
    if os.getuid() == 0:
        os.chown(out, 10001, 10001)
    options = container_options(request, docker.images.get(image), "tfdet-e2e-look", out)
    options |= {"entrypoint": ["/opt/tfdet/python", "-c", INSPECT_CONTAINER], "command": [], "tty": False}
    container = docker.containers.create(image, **options)
    try:
        container.start()
        assert container.wait()["StatusCode"] == 0, container.logs()
        inspection = json.loads(container.logs(stderr=False))
        limits = container.attrs["HostConfig"]
    finally:
        container.remove(force=True)
    assert inspection["uid"] != 0
    assert inspection["capabilities"] == 0
    assert inspection["no_new_privileges"] == 1
    assert None not in (inspection["root"], inspection["suite"], inspection["plan"])
    assert (inspection["out"], inspection["tmp"]) == (None, None)
    assert (inspection["networks"], inspection["address"]) == (["lo"], "127.0.0.1")  # Gloo asks for the address
    assert limits["Memory"] == limits["MemorySwap"] == (1000 + 2048) << 20  # a case's and the suite's own


def test_records_of_a_killed_container_are_kept_and_a_rerun_resumes(
    docker: docker_sdk.DockerClient, image: str, project: Project, request_for: Make
) -> None:
    request = request_for("cpu", "crop-and-resize-backprop", repeats=100)
    raised: list[BaseException] = []

    def run() -> None:
        try:
            DockerEngine(project).run(request)
        except RunFailedError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_for_records(request, 2)
    docker.containers.get(remaining_containers(docker)[0]).kill("SIGKILL")
    thread.join(timeout=300)
    assert "SIGKILL" in str(raised[0])
    finished = list(read_records(request.journal))
    assert len(finished) >= 2
    assert remaining_containers(docker) == []
    assert DockerEngine(project).run(request) == ExitCode.OK
    records = list(read_records(request.journal))
    assert [r.checksum for r in records[: len(finished)]] == [r.checksum for r in finished]
    assert len(records) > len(finished)
    assert len({(r.source, r.case, r.solution) for r in records}) == len(records)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_removes_the_container_and_keeps_records(
    docker: docker_sdk.DockerClient, image: str, project: Project, request_for: Make, number: int
) -> None:
    request = request_for("cpu", "crop-and-resize-backprop")
    command = [str(Path(sys.executable).with_name("tfdet")), "run", KEY, "--engine", "docker", "--device", "cpu"]
    command += ["--source", "crop-and-resize-backprop", "--repeats", "200", "--out", str(request.journal)]
    process = subprocess.Popen(command, env={**os.environ, "TFDET_ROOT": str(project.root)}, stderr=subprocess.PIPE)
    try:
        wait_for_records(request, 1)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == ExitCode.INTERRUPTED, stderr
    assert b"Traceback" not in stderr
    assert remaining_containers(docker) == []
    assert len(list(read_records(request.journal))) >= 1


def test_a_journal_of_a_running_container_is_not_used(
    docker: docker_sdk.DockerClient, image: str, project: Project, request_for: Make
) -> None:
    """A killed host process leaves its container, so the next run must not use its journal."""
    request = request_for("cpu", "crop-and-resize-backprop", repeats=200)  # ended below, long before its time
    raised: list[BaseException] = []

    def run() -> None:
        try:
            DockerEngine(project).run(request)
        except RunFailedError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        wait_for_records(request, 1)
        with pytest.raises(RunFailedError, match="still writes to these records"):
            DockerEngine(project).run(request)
    finally:
        for name in remaining_containers(docker):
            docker.containers.get(name).kill("SIGKILL")
        thread.join(timeout=300)
    assert "SIGKILL" in str(raised[0])
    assert len(list(read_records(request.journal))) >= 1
