"""Kubernetes manifests of a fleet, a run of the suite on many machines: valid, complete, and with commands that run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from tfdet.base.paths import Project
from tfdet.fleet.kubernetes import VERSION, manifests
from tfdet.fleet.tasks import FleetOptions, Task

TASKS = [
    Task(environment="tf2.0", sources=["reduce-sum", "segment-sum"], seconds=100.0),
    Task(environment="tf2.0", sources=["bincount"], seconds=2000.0),
    Task(environment="tf2.21", sources=["bincount"], seconds=10.0),
]


def generated_manifests(device: str = "gpu", queue: str | None = "gpus", **how: Any) -> list[dict[str, Any]]:
    """Return the manifests for TASKS."""
    name, volume_claim = "tfdet", "records"
    documents = manifests(name, FleetOptions(device=device, **how), TASKS, "r.example/", volume_claim, queue)
    items: list[dict[str, Any]] = documents["items"]
    return items


@pytest.mark.parametrize("version", [VERSION, kubernetes_validate.latest_version()])
@pytest.mark.parametrize("device", ["gpu", "cpu"])
def test_manifests_are_valid_by_the_schemas_of_kubernetes(version: str, device: str) -> None:
    for item in generated_manifests(
        device, "gpus" if device == "gpu" else None, gpu="H100" if device == "gpu" else None
    ):
        kubernetes_validate.validate(item, version, strict=True)


def test_the_schemas_reject_invalid_manifests() -> None:
    job = generated_manifests()[1]
    job["spec"]["podFailurePolicy"]["rules"][0]["onPodConditions"][0].pop("status")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSION, strict=True)


def test_every_task_is_an_index_of_its_environments_job() -> None:
    maps, jobs = generated_manifests()[::2], generated_manifests()[1::2]
    assert [
        (job["spec"]["completions"], len(config_map["data"])) for job, config_map in zip(jobs, maps, strict=True)
    ] == [
        (2, 2),
        (1, 1),
    ]
    pods = [job["spec"]["template"]["spec"] for job in jobs]
    assert [pod["containers"][0]["image"] for pod in pods] == ["r.example/tfdet:tf2.0", "r.example/tfdet:tf2.21"]
    assert [pod["activeDeadlineSeconds"] for pod in pods] == [6000, 600], (
        "three times the longest of its tasks, at least 600 s"
    )
    assert all(job["spec"]["suspend"] for job in jobs) and not any(
        job["spec"]["suspend"] for job in generated_manifests(queue=None)[1::2]
    )


def test_the_command_calls_the_probe_and_a_contradiction_is_no_failure(tmp_path: Path) -> None:
    tasks, job = generated_manifests(solutions=["TDO"])[:2]  # TF_DETERMINISTIC_OPS
    (tmp_path / "1").write_text(tasks["data"]["1"])
    probe = tmp_path / "python"
    # The probe exits with 1 if a result contradicts a claim, with 3 if a run failed.
    for code, exit_code in ((0, 0), (1, 0), (3, 1)):
        probe.write_text(f'#!/bin/sh\nprintf "%s\\n" "$TFDET_MACHINE" "$@"\nexit {code}\n')
        probe.chmod(0o755)
        text = job["spec"]["template"]["spec"]["containers"][0]["command"][2]
        text = text.replace("/opt/tfdet/python", str(probe)).replace("/tasks/", f"{tmp_path}/")
        done = subprocess.run(
            ["sh", "-c", text], env={"PATH": "/usr/bin:/bin", "JOB_COMPLETION_INDEX": "1", "NODE": "n7"},
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == exit_code
    machine, *words = done.stdout.splitlines()
    assert len(machine) == 12 and int(machine, 16)
    assert words[:2] == ["-m", "tfdet_probe"] and words[-4:] == ["--solution", "TDO", "--out", "/out/tf2.0-1.jsonl"]
    assert words[words.index("--source") + 1] == "bincount"


def test_fleet_without_a_subcommand_means_run(checkout: Project) -> None:
    command = [sys.executable, "-m", "tfdet", "fleet", "--print-manifests", "kubernetes", "tf2.0", "--device", "cpu"]
    done = subprocess.run([*command, "--source", "reduce-sum"], capture_output=True, text=True, cwd=checkout.root)
    assert done.returncode == 0, done.stderr
    assert [item["kind"] for item in json.loads(done.stdout)["items"]] == ["ConfigMap", "Job"]
