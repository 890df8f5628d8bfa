"""The image as a user starts it: `docker run`, without tfdet on the host."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import docker as docker_sdk

from tfdet.store.records import read_records

# Of the solutions that tests name, TDO is TF_DETERMINISTIC_OPS=1, and ED is tfdeterminism.enable_determinism().
SMALL = ["--repeats", "3", "--processes", "1"]


def docker_run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Call `docker run --rm`."""
    return subprocess.run(["docker", "run", "--rm", *arguments], cwd=cwd, capture_output=True, text=True, check=False)


def test_docker_run_writes_records_to_a_mounted_folder(image: str, tmp_path: Path) -> None:
    """Docker creates the folder, which belongs to root."""
    sources = ["--source", "crop-and-resize-backprop", "--source", "bias-add-backprop"]
    sources += ["--solution", "none", "--solution", "TDO"]
    process = docker_run("-v", f"{tmp_path}/out:/out", image, "--device", "cpu", *SMALL, *sources)
    assert process.returncode == 0, process.stderr
    assert [line.split()[0] for line in process.stdout.splitlines()] == [
        "source",
        "bias-add-backprop",
        "crop-and-resize-backprop",
    ]
    records = list(read_records(tmp_path / "out" / "records.jsonl"))
    differs = {r.solution for r in records if r.observation == "differs"}
    assert {r.framework.version for r in records} == {"2.0.0"}
    assert {"none", "TDO"} <= differs, "TDO does not help TensorFlow 2.0"


def test_records_in_a_users_folder_belong_to_the_user(image: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    out = tmp_path / "out"
    out.mkdir()
    if out.stat().st_uid == 0:
        subprocess.run(["chown", "1234:1234", out], check=True)
    arguments = ["-v", f"{out}:/out", image, "--device", "cpu", *SMALL, "--source", "bias-add-backprop"]
    assert docker_run(*arguments).returncode == 0
    assert (out / "records.jsonl").stat().st_uid == out.stat().st_uid


def test_an_unwritable_folder_is_reported_before_the_run(image: str, tmp_path: Path) -> None:
    process = docker_run("--user", "4321", "-v", f"{tmp_path}:/out", image, "--device", "cpu")
    assert process.returncode == 2
    assert "/out cannot be written" in process.stderr


def test_the_virtual_gpu_needs_no_nvidia_runtime(image: str, tmp_path: Path) -> None:
    chosen = ["--device", "vgpu", "--source", "unsorted-segment-sum", "--solution", "ED"]
    process = docker_run("-v", f"{tmp_path}/out:/out", image, *chosen, "--repeats", "5", "--processes", "1")
    assert process.returncode == 0, process.stderr
    records = list(read_records(tmp_path / "out" / "records.jsonl"))
    assert {(r.device.model, *r.ran_on) for r in records} == {("vgpu-sm70", "GPU:0")}
    assert {(r.solution, r.observation) for r in records} == {("none", "differs"), ("ED", "equal")}


def test_device_gpu_without_a_gpu_fails(image: str) -> None:
    process = docker_run(image)
    assert process.returncode == 4
    assert "--gpus all" in process.stderr
    assert "--device cpu" in process.stderr


def test_the_entry_point_drops_root(docker: docker_sdk.DockerClient, image: str) -> None:
    container = docker.containers.run(image, ["--device", "cpu"], detach=True)
    try:
        deadline = time.monotonic() + 300
        status = {"Uid": "0"}
        while status["Uid"].split()[0] == "0" and time.monotonic() < deadline:
            time.sleep(0.1)
            container.reload()
            lines = Path(f"/proc/{container.attrs['State']['Pid']}/status").read_text().splitlines()
            status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        assert set(status["Uid"].split()) == {"10001"}
        assert set(status["Gid"].split()) == {"10001"}
        assert int(status["CapEff"], 16) == 0
    finally:
        container.remove(force=True)


PLANTED = """
import numpy
from tfdet_probe import case


@case("greedy", modes=["host"])
def greedy(make):
    return make.host(lambda: [numpy.ones(8 << 30, numpy.uint8)])


@case("modest", modes=["host"])
def modest(make):
    return make.host(lambda: [numpy.ones(8, numpy.uint8)])
"""


def test_a_case_that_exhausts_memory_is_recorded_as_crashed(image: str, tmp_path: Path) -> None:
    """The kernel kills it at the container's limit, long before the probe does."""
    suite = tmp_path / "ops"
    suite.mkdir()
    (suite / "test_planted.py").write_text(PLANTED)
    cells = [{"device": "cpu", "source": source, "solution": "none"} for source in ("greedy", "modest")]
    plan = {
        "schema": 2,
        "environment": "tf2.0",
        "framework": "tensorflow",
        "determinism_variables": [],
        "solutions": [{"key": "none"}],
        "cells": cells,
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    for path in (tmp_path, suite):
        path.chmod(0o755)
    process = docker_run(
        *("--memory", "1g", "--memory-swap", "1g"),
        *("-v", f"{suite}:/opt/tfdet/tests/suite/tensorflow:ro", "-v", f"{tmp_path}/plan.json:/opt/tfdet/plan.json:ro"),
        *("-v", f"{tmp_path}/out:/out", image, "--device", "cpu", "--memory", "16384", *SMALL),
    )
    assert process.returncode == 3, process.stderr
    found = {r.source: r for r in read_records(tmp_path / "out" / "records.jsonl")}
    assert found["greedy"].observation == "crashed"
    assert found["greedy"].error is not None
    assert "out of memory?" in found["greedy"].error.message
    assert found["modest"].observation == "equal"
