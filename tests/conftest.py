"""Fixtures for all tests: real TensorFlow environments, and small projects to break."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tfdet.base.errors import RunFailed
from tfdet.base.paths import Project
from tfdet.engines.venv import VenvEngine, as_pip_is_told
from tfdet.matrix.load import load_matrix
from tfdet.publish.render import write
from tfdet.verdicts.read import load_status

# A shell that runs us in the background has Ctrl-C ignored, and what we start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def checkout() -> Project:
    """This checkout; tests read it and never write into it."""
    return Project(ROOT)


@pytest.fixture(scope="session")
def tf_python(checkout: Project) -> Callable[[str], Path]:
    """tf_python("tf2.0"): the interpreter of that environment on the CPU, made from its lock file."""
    matrix = load_matrix(checkout.matrix)
    engine = VenvEngine(checkout)

    def interpreter(key: str) -> Path:
        try:
            return engine.interpreter(key, matrix.environment(key), "cpu")
        except RunFailed as error:
            if "no CPython" in error.cause and not os.environ.get("CI"):
                pytest.skip(f"{key}: {error.cause}")
            raise

    return interpreter


@pytest.fixture(scope="session")
def torch_python(checkout: Project) -> Path:
    """The interpreter of the PyTorch whose build for processors is small; skips where no index has that build."""
    environment = load_matrix(checkout.matrix).environment("torch2.13")
    try:
        return VenvEngine(checkout).interpreter("torch2.13", environment, "cpu")
    except RunFailed as error:
        if {"UV_FIND_LINKS", "UV_EXTRA_INDEX_URL", "UV_INDEX"} & set(as_pip_is_told(os.environ)):
            raise
        pytest.skip(f"no index here has the build for processors: {error.cause}")


@pytest.fixture
def copy(checkout: Project, tmp_path: Path) -> Project:
    """A copy of the checkout's data, to be changed by hand."""
    return _copied(ROOT, tmp_path / "project")


@pytest.fixture
def lean(tensorflow_alone: Path, tmp_path: Path) -> Project:
    """The same of TensorFlow alone: `tfdet status` takes half as long there."""
    return _copied(tensorflow_alone, tmp_path / "project")


@pytest.fixture(scope="session")
def tensorflow_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout's data without those of other frameworks' environments, and with the tables that are right then."""
    project = _copied(ROOT, tmp_path_factory.mktemp("lean") / "project")
    for folder in project.matrix.glob("environments/*"):
        if folder.name != "tensorflow":
            for path in folder.glob("*.toml"):
                _remove_data_of(project, path.stem)
            shutil.rmtree(folder)
    for name in ("ops", "alerts", "batches"):
        shutil.rmtree(project.matrix / name)
    write(project, load_status(project))
    return project.root


def _remove_data_of(project: Project, environment: str) -> None:
    for kind in ("evidence/*", "audits", "signatures/*"):
        for path in project.matrix.glob(f"{kind}/{environment}.*json*"):
            path.unlink()


def _copied(of: Path, root: Path) -> Project:
    for folder in ("matrix", "tests/suite", "tests/runtime/upstream", "docs", "runtime", "docker", "vgpu"):
        shutil.copytree(of / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", "*.lock"))
    shutil.copy(of / "README.md", root / "README.md")
    return Project(root)
