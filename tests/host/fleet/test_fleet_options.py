"""Options of `tfdet fleet`: names that no cluster accepts, and options that would be ignored, are rejected."""

from __future__ import annotations

import json
from typing import Any

import kubernetes_validate
import pytest
from signers import run_tfdet

from tfdet.base.errors import ExitCode, UsageError
from tfdet.base.paths import Project
from tfdet.fleet.kubernetes import VERSION, manifests
from tfdet.fleet.tasks import FleetOptions, Task

TASKS = [Task(environment="tf2.0", sources=["bincount"], seconds=10.0)]
GIVEN: dict[str, Any] = {"registry": "r.example/", "volume_claim": "records", "queue": "gpus"}


def generated_manifests(gpu: str | None = "H100", **changes: Any) -> dict[str, Any]:
    """Return the Kubernetes manifests of one task on GPUs of that name; `changes` replaces fields of GIVEN."""
    return manifests("tfdet", FleetOptions(device="gpu", gpu=gpu), TASKS, **{**GIVEN, **changes})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("queue", value) for value in ("", "Bad Queue!", "-gpus", "gpus.", "a..b", "q" * 64, "gpus\n", "küche")),
        *(("volume_claim", value) for value in ("", "Bad_Claim", "a b", "c" * 254, "A")),
        *(("gpu", value) for value in ("a b", "-h100", "h100_", "h" * 64, "nvidia.com/h100", "h100\n")),
        *(("registry", value) for value in ("no slash", "no-slash", "a b/", "r.example//", "/", "https://r.example/",
                                            "r.example/Team/", "r.example:x/", "r.example/\n", "r" * 300 + "/")),
    ],
)  # fmt: skip
def test_names_that_kubernetes_rejects_are_refused(option: str, value: str) -> None:
    with pytest.raises(UsageError, match=f"^--{option.replace('_', '-')} .* is not a valid Kubernetes name") as caught:
        generated_manifests(**{option: value})
    assert caught.value.advice.startswith("Write ")


@pytest.mark.parametrize(
    "given",
    [
        {"queue": None, "gpu": None, "registry": ""},
        {"queue": "q" * 63, "volume_claim": "a.b-c.9", "gpu": "NVIDIA-A100-SXM4-40GB_x.2"},
        {"registry": "localhost:5000/"},
        {"registry": "Registry.Example:443/team/a__b/c-d/"},
        {"registry": "team/"},
    ],
)
def test_valid_names_are_written_to_the_manifests(given: dict[str, Any]) -> None:
    for item in generated_manifests(**given)["items"]:
        kubernetes_validate.validate(item, VERSION, strict=True)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--print-manifests", "kubernetes", "--sbatch-option", "partition=gpu"], "--sbatch-option"),
        (["--print-manifests", "kubernetes", "--container-runtime", "apptainer"], "--container-runtime"),
        (["--print-manifests", "kubernetes", "--engine", "venv"], "--engine"),
        (["--print-manifests", "kubernetes", "--max-parallel", "8"], "--max-parallel"),
        (["--print-manifests", "kubernetes", "--out", "records.jsonl"], "--out"),
        (["--print-manifests", "kubernetes", "--resume"], "--resume"),
        (["--queue", "gpus"], "--queue"),
        (["--volume-claim", "records"], "--volume-claim"),
        (["--resume", "--repeats", "3"], "--repeats"),
        (["--resume", "--prove"], "--prove"),
        (["--prove"], "--prove"),
        (["--code", "sass"], "--code"),
        (["--multiprocessors", "108"], "--multiprocessors"),
        (["--resume", "--placement", "1"], "--placement"),
        (["--gpu", ""], "--gpu"),
        (["--solution", ""], "--solution"),
    ],
)
def test_an_option_without_effect_is_refused(checkout: Project, words: list[str], option: str) -> None:
    given = [] if "--resume" in words else ["tf2.0", "--device", "cpu", "--source", "bincount"]
    nowhere = [] if "--print-manifests" in words else ["--folder", "/dev/null/fleet"]
    done = run_tfdet(checkout, "fleet", "run", *given, *nowhere, *words)
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert f"tfdet: {option}" in done.stderr, done.stderr


def test_prove_is_passed_to_each_task(checkout: Project) -> None:
    words = ["tf2.0", "--device", "vgpu", "--source", "bincount", "--prove", "--code", "ptx"]
    words += ["--multiprocessors", "108", "--placement", "7"]
    done = run_tfdet(checkout, "fleet", "run", *words, "--print-manifests", "kubernetes", "--repeats", "3")
    assert done.returncode == 0, done.stderr
    (tasks,) = (item["data"] for item in json.loads(done.stdout)["items"] if item["kind"] == "ConfigMap")
    requested = next(iter(tasks.values())).split()
    assert "--prove" in requested
    chosen = [requested[requested.index(name) + 1] for name in ("--code", "--multiprocessors", "--placement")]
    assert chosen == ["ptx", "108", "7"]
    assert [requested[requested.index(name) + 1] for name in ("--repeats", "--processes")] == ["3", "1"]
