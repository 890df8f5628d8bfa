"""The workflow files of GitHub Actions are valid, and their lists come from the matrix of environments."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix

FOLDER = Path(__file__).parents[3] / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
STEP_KEYS = {"name", "id", "if", "uses", "run", "with", "env", "shell", "working-directory", "continue-on-error",
             "timeout-minutes"}  # fmt: skip


def load(path: Path) -> dict[str, Any]:
    """Return the content of a workflow; YAML 1.1 reads the key `on` as True."""
    content = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(content, dict)
    # YAML 1.1 reads the key `on` as true.
    content["on"] = content.pop(True)
    return content


def test_all_expected_workflows_exist() -> None:
    assert [path.stem for path in FILES] == ["checks", "matrix", "publish", "site"]


def test_publishing_requires_the_tests() -> None:
    jobs = load(FOLDER / "publish.yml")["jobs"]
    assert load(FOLDER.parents[1] / jobs["test"]["uses"])["jobs"]["test"]["steps"][-1]["run"] == "bash .ci/run"
    assert jobs["build"]["needs"] == "test" and jobs["publish"]["needs"] == "build"


def test_the_site_is_published_from_main_alone() -> None:
    content = load(FOLDER / "site.yml")
    assert content["on"]["push"] == {"branches": ["main"]} and "pull_request" not in content["on"]
    rights = {name: job.get("permissions") for name, job in content["jobs"].items()}
    assert rights == {"build": None, "publish": {"pages": "write", "id-token": "write"}}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_workflow_has_only_known_keys(path: Path) -> None:
    content = load(path)
    assert set(content) <= {"name", "on", "permissions", "jobs", "concurrency", "env"}
    assert content["permissions"] == {"contents": "read"}
    for name, job in content["jobs"].items():
        if "uses" in job:  # another workflow of this folder, whole
            assert (FOLDER.parents[1] / job["uses"]).is_file() and set(job) == {"uses"}
            assert "workflow_call" in load(FOLDER.parents[1] / job["uses"])["on"]
            continue
        assert job["runs-on"], name
        assert {*([job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", []))} <= set(
            content["jobs"]
        )
        for step in job["steps"]:
            assert set(step) <= STEP_KEYS, step
            assert ("uses" in step) != ("run" in step), step
            if "uses" in step:
                # A tag can be moved to other code; a commit cannot.
                assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", step["uses"]), step


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_each_pinned_commit_has_its_version_as_comment(path: Path) -> None:
    for line in path.read_text("utf-8").splitlines():
        is_local = "uses: ./.github/" in line
        assert is_local or "uses:" not in line or re.search(r"@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line), line


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_script_that_is_called_exists(path: Path) -> None:
    for called in re.findall(r"(?:\./)?(scripts/[\w-]+)", path.read_text("utf-8")):
        assert (FOLDER.parents[1] / called).is_file(), called


def test_no_untrusted_text_is_pasted_into_a_shell() -> None:
    for path in FILES:
        for job in load(path)["jobs"].values():
            for step in job.get("steps", []):
                assert "${{" not in step.get("run", ""), f"{path.name}: pass it through env: {step['run']}"


def test_the_matrix_is_taken_from_the_environments() -> None:
    jobs = load(FOLDER / "matrix.yml")["jobs"]
    assert jobs["run"]["strategy"]["matrix"]["environment"] == "${{ fromJSON(needs.list.outputs.environments) }}"
    listing = "\n".join(step.get("run", "") for step in jobs["list"]["steps"])
    assert "tfdet envs --json" in listing
    assert not re.search(r"\b(tf|ngc)\d+\.\d+", (FOLDER / "matrix.yml").read_text("utf-8"))


@pytest.mark.parametrize("line", ["stock", "ngc", ""])  # who built the framework: its project or NVIDIA
def test_the_environment_list_of_the_workflow_is_that_of_the_matrix(
    checkout: Project, tmp_path: Path, line: str
) -> None:
    """Run the step's own script; a scheduled run has no LINE, which means the first choice."""
    if shutil.which("jq") is None:
        pytest.skip("no jq on this machine")
    content = load(FOLDER / "matrix.yml")
    choice = content["on"]["workflow_dispatch"]["inputs"]["line"]
    matrix = load_matrix(checkout.matrix).for_published_framework  # TensorFlow, whose tables README.md has
    assert set(choice["options"]) == {e.line for e in matrix.environments.values()}
    (step,) = (step for step in content["jobs"]["list"]["steps"] if step.get("id") == "list")
    assert step["env"] == {"LINE": f"${{{{ inputs.line || '{choice['default']}' }}}}"}
    output = tmp_path / "output"
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
    environ = {**os.environ, "LINE": line or choice["default"], "GITHUB_OUTPUT": str(output)}
    environ["TFDET_ROOT"] = str(checkout.root)
    subprocess.run(["bash", "-ec", step["run"]], cwd=tmp_path, env=environ, check=True)
    name, _, listed = output.read_text("utf-8").partition("=")
    of_line = {key: e for key, e in matrix.environments.items() if e.line == environ["LINE"] and not e.skip_reason}
    expected = [key for key, e in of_line.items() if e.image != "unknown"]  # the workflow starts containers
    assert (name, sorted(json.loads(listed))) == ("environments", sorted(expected))


def test_the_checks_workflow_runs_the_ci_script() -> None:
    job = load(FOLDER / "checks.yml")["jobs"]["test"]
    assert job["steps"][-1]["run"] == "bash .ci/run"
    assert (FOLDER.parents[1] / ".ci" / "run").is_file()
    weekly = "${{ github.event_name == 'schedule' && "
    assert job["timeout-minutes"] == weekly + "120 || 60 }}"
    assert job["env"]["TFDET_TESTS"] == weekly + "'all' || '' }}"


def test_an_already_published_version_is_reported() -> None:
    jobs = load(FOLDER / "publish.yml")["jobs"]
    assert "skip" not in (FOLDER / "publish.yml").read_text("utf-8")
    assert not any(step.get("continue-on-error") for job in jobs.values() for step in job.get("steps", []))


LINUX = "py3-none-manylinux_2_17_x86_64"


@pytest.mark.parametrize(("tag", "code"), [("v0.4.0", 0), ("v0.4.1", 2), ("0.4", 2)])
def test_a_tag_of_another_version_publishes_nothing(tmp_path: Path, tag: str, code: int) -> None:
    (step,) = (s for s in load(FOLDER / "publish.yml")["jobs"]["build"]["steps"] if s.get("name"))
    (tmp_path / "dist").mkdir()
    for name in ("tfdet-0.4.0-py3-none-any", "tfdeterminism-0.4.0-py3-none-any", f"tfdet_vgpu-0.4.0-{LINUX}"):
        (tmp_path / "dist" / f"{name}.whl").touch()
    environ = {"PATH": "/usr/bin:/bin", "GITHUB_REF_NAME": tag}
    done = subprocess.run(["bash", "-c", step["run"]], cwd=tmp_path, env=environ, capture_output=True)
    assert done.returncode == code
