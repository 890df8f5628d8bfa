"""Configuration of development tools: one place for each command line, and generated files marked as such."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from tfdet.base.paths import Project

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent
TOOLS = "ruff|mypy|vermin|lint-imports|pytest|shellcheck|coverage"


@pytest.fixture(scope="module")
def sessions() -> dict[str, dict[str, Any]]:
    """Return {name: session} of `nox --list`."""
    command = [BIN / "nox", "--list", "--json", "--noxfile", ROOT / "noxfile.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {session["name"]: session for session in json.loads(done.stdout)}


def hooks() -> dict[str, dict[str, Any]]:
    """Return {id: hook} of the pre-commit configuration."""
    content = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    return {hook["id"]: hook for repository in content["repos"] for hook in repository["hooks"]}


def test_the_readmes_command_runs_every_session_that_nox_runs(sessions: dict[str, dict[str, Any]]) -> None:
    text = (ROOT / "scripts" / "test").read_text("utf-8")
    tags = set(re.findall(r"nox --tags (\w+)", text))
    assert all(tags & set(session["tags"]) or name in BY_HAND for name, session in sessions.items())
    assert not re.search(rf"^\s*({TOOLS}) ", text, re.M), "a command line stands in noxfile.py"


# They need a network, hours, or are part of others.
BY_HAND = {"workflows", "docs", "benchmarks"}


def test_every_test_file_is_in_a_session() -> None:
    text = (ROOT / "noxfile.py").read_text("utf-8")
    folders = {path.parent.name for path in ROOT.glob("tests/*/test_*.py")}
    assert all(f'"tests/{folder}' in text for folder in folders)


def test_pytest_without_arguments_collects_every_test_file() -> None:
    """Two modules of one name, in folders that test files import from, are found only where all are imported."""
    options = "--collect-only --quiet -p no:cacheprovider -p no:syrupy"  # syrupy: unused snapshots are no error here
    command = [BIN / "pytest", *options.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


def test_pre_commit_hooks_call_nox_sessions(sessions: dict[str, dict[str, Any]]) -> None:
    assert set(hooks()) >= {"ruff", "mypy", "vermin", "shellcheck", "actionlint"}
    for hook in hooks().values():
        if "entry" in hook:
            program, option, session = shlex.split(hook["entry"])
            assert (program, option) == (".venv/bin/nox", "--session") and session in sessions, hook
    subprocess.run([BIN / "pre-commit", "validate-config", ROOT / ".pre-commit-config.yaml"], check=True)


def test_generated_files_are_marked_in_gitattributes(checkout: Project) -> None:
    written = [
        *(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md") if "tfdet:begin" in path.read_text()),
        *(path.relative_to(ROOT).as_posix() for path in (checkout.known_file, checkout.advice_file)),
        *(path.relative_to(ROOT).as_posix() for path in (checkout.lock("tf2.0", "cpu"), ROOT / "requirements.txt")),
        *("matrix/evidence/cpu/tf2.0.jsonl", "matrix/audits/tf2.0.json", "matrix/schema/record.json"),
    ]
    assert [path for path in written if not (ROOT / path).is_file()] == []
    attributes = subprocess.run(
        ["git", "check-attr", "linguist-generated", *written], cwd=ROOT, capture_output=True, text=True
    )
    if attributes.returncode:
        pytest.skip("no git here")
    assert [line for line in attributes.stdout.splitlines() if not line.endswith(": set")] == []


def test_the_developers_tools_are_pinned() -> None:
    """scripts/update-host-lock must run after each change of the dependency groups."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    runs = content["tool"]["hatch"]["metadata"]["hooks"]["custom"]["dependencies"]
    required = [Requirement(text) for text in [*runs, *content["dependency-groups"]["dev"]]]
    pins = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements.txt").read_text("utf-8"), re.M))
    for requirement in required:
        assert requirement.specifier.contains(pins[requirement.name.lower()], prereleases=True), requirement


@pytest.mark.no_cover
def test_no_cover_turns_tracing_off() -> None:
    """In a pytest-xdist worker, pytest-cov alone leaves one of two measurements on."""
    assert sys.gettrace() is None
