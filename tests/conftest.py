"""Fixtures for all tests: real TensorFlow environments, and small projects to break."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import weekly
import xdist
from copies import ROOT, copy_project, few_environments
from filelock import FileLock
from platformdirs import user_config_path

from tfdet.base.errors import RunFailedError
from tfdet.base.paths import Project
from tfdet.engines.venv import VenvEngine, uv_environ_from_pip
from tfdet.matrix.load import load_matrix

# A shell that runs us in the background has Ctrl-C ignored, and what we start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# pytest-xdist sets it, and `tfdet` formats its output by it.
os.environ.pop("COLUMNS", None)

ENVIRONMENTS = {"tf_python", "torch_python"}  # fixtures that download a framework


def pytest_report_header() -> str:
    return (
        "TFDET_TESTS=all"
        if weekly.ALL
        else f"TFDET_DAY={weekly.DAY}: chooses the long tests of this day (tests/weekly.py)"
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long-tests-of-today", action="store_true", help="leave out those of other days (long_tests.txt)"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to nox what needs Docker or a framework, where `pytest` names no path; leave out tests of other days."""
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        _deselect(config, items, _needs_docker_or_framework)
    if config.getoption("--long-tests-of-today"):
        names = weekly.long_tests_of_other_days()
        _deselect(config, items, lambda item: item.nodeid in names and not item.get_closest_marker("every_day"))


def _deselect(config: pytest.Config, items: list[pytest.Item], is_left_out: Callable[[pytest.Item], bool]) -> None:
    run, left_out = [], []
    for item in items:
        (left_out if is_left_out(item) else run).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = run


def _needs_docker_or_framework(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    return any(item.get_closest_marker(name) for name in ("docker", "tensorflow")) or bool(fixtures & ENVIRONMENTS)


@pytest.fixture(scope="session", autouse=True)
def _no_key_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The key of whoever runs the tests signs nothing; their other configuration, such as pip's, is needed."""
    theirs, ours = user_config_path(), tmp_path_factory.mktemp("config")
    for path in theirs.iterdir() if theirs.is_dir() else ():
        if path.name != "tfdet":
            (ours / path.name).symlink_to(path)
    os.environ["XDG_CONFIG_HOME"] = str(ours)
    os.environ.pop("TFDET_KEY", None)


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
        except RunFailedError as error:
            if "no CPython" in error.cause and not os.environ.get("CI"):
                pytest.skip(f"{key}: {error.cause}")
            raise

    return interpreter


@pytest.fixture(scope="session")
def torch_python(checkout: Project) -> Path:
    """The interpreter of the PyTorch whose CPU build is small; skips where no index has that build."""
    environment = load_matrix(checkout.matrix).environment("torch2.13")
    try:
        return VenvEngine(checkout).interpreter("torch2.13", environment, "cpu")
    except RunFailedError as error:
        if {"UV_FIND_LINKS", "UV_EXTRA_INDEX_URL", "UV_INDEX"} & set(uv_environ_from_pip(os.environ)):
            raise
        pytest.skip(f"no index here has the build for processors: {error.cause}")


@pytest.fixture
def copy(few: Path, tmp_path: Path) -> Project:
    """A copy of the data of few environments, all TensorFlow's, to be changed by hand."""
    return copy_project(few, tmp_path / "project")


@pytest.fixture(scope="session")
def shared_folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, Callable[[Path], object]], Path]:
    """shared_folder(name, make): a read-only folder that `make` fills once for all processes of a session."""
    mine = tmp_path_factory.getbasetemp()
    # Asked of the session: a test that starts pytest hands its worker's environment on.
    shared = mine.parent if xdist.is_xdist_worker(request) else mine

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        path = shared / f"once-{name}"
        with FileLock(f"{path}.lock"):
            if not path.with_suffix(".made").exists():
                shutil.rmtree(path, ignore_errors=True)
                make(path)
                path.with_suffix(".made").touch()
        return path

    return folder


@pytest.fixture(scope="session")
def few(shared_folder: Callable[..., Path]) -> Path:
    """What `copy` copies: `tfdet status` takes a quarter of the time there."""
    return shared_folder("few", few_environments)


@pytest.fixture
def whole_copy(tmp_path: Path) -> Project:
    """A copy of all data of the checkout, for what other frameworks' environments have."""
    return copy_project(ROOT, tmp_path / "project")
