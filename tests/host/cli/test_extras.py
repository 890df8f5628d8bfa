"""Commands run without the extras that they do not need, and name the extra that they need."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tfdet.base.errors import ExitCode
from tfdet.base.extras import EXTRAS
from tfdet.base.paths import Project

WITHOUT = """
import sys
packages, sys.argv = sys.argv[1].split(), ["tfdet", *sys.argv[2:]]
sys.modules.update(dict.fromkeys(packages))
from tfdet.cli.main import main
main()
"""


def run_tfdet_without(
    root: Path, *arguments: str, packages: str = " ".join(EXTRAS)
) -> subprocess.CompletedProcess[str]:
    """Run `tfdet` in a Python where `packages` (names with blanks between them) cannot be imported."""
    command = [sys.executable, "-c", WITHOUT, packages, *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("arguments", [["envs"], ["show", "tf2.0", "gather-backprop"], ["recipe", "tf2.0"]])
def test_looking_up_needs_no_extra(checkout: Project, arguments: list[str]) -> None:
    done = run_tfdet_without(checkout.root, *arguments)
    assert (done.returncode, done.stderr) == (ExitCode.OK, "")


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["audit", "libcudart.so"], "audit"),
        (["build", "tf2.0"], "docker"),
        (["run", "tf2.0", "--engine", "docker", "--device", "cpu", "--source", "gather-backprop"], "docker"),
        (["fleet", "run", "tf2.0", "--device", "cpu", "--source", "gather-backprop", "--folder", "{folder}"], "fleet"),
    ],
)
def test_a_command_names_the_extra_that_it_needs(
    checkout: Project, tmp_path: Path, arguments: list[str], extra: str
) -> None:
    folder = tmp_path / "fleet"
    done = run_tfdet_without(checkout.root, *(word.format(folder=folder) for word in arguments))
    assert done.returncode == ExitCode.USAGE
    assert f"pip install 'tfdet[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not folder.exists()


def test_doctor_reports_the_missing_extra_as_a_check(checkout: Project) -> None:
    done = run_tfdet_without(checkout.root, "doctor", "--json")
    (docker,) = (check for check in json.loads(done.stdout) if check["name"] == "Docker")
    assert docker["state"] == "missing"
    assert "tfdet[docker]" in docker["advice"]


def test_any_other_missing_package_is_a_defect(checkout: Project) -> None:
    done = run_tfdet_without(checkout.root, "envs", packages="tomli")
    assert done.returncode == ExitCode.RUN_FAILED
    assert "Traceback" in done.stderr


def test_each_package_is_in_its_extra(checkout: Project) -> None:
    declared = tomllib.loads((checkout.root / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert package in [Requirement(text).name for text in declared[extra]]
