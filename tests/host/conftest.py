"""Fixtures of the tests of tfdet, the package on the host; tests/conftest.py has the fixtures of all tests."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import CHROMIUM
from bundle_builders import write_script
from records import make_record
from site_builder import small_project

from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.matrix.models import Source
from tfdet.publish.audit_tables import AuditTables
from tfdet.site.build import build
from tfdet.store import audits as stored
from tfdet.verdicts import audit_findings
from tfdet.verdicts.audit_findings import AuditIndex
from tfdet.verdicts.status import Status
from tfdet.verdicts.status_loading import load_status
from tfdet_common import journal

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Turn tracing (of coverage) off in a test marked `no_cover`, which it would slow two to three times.

    pytest-cov 7.1 pauses the second of two measurements that a worker of pytest-xdist runs, and the first goes on.
    """
    tracer = sys.gettrace()
    if item.get_closest_marker("no_cover"):
        sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def record_line() -> Callable[..., bytes]:
    """Return a function record_line(observation, **changes): the line of a record in a journal, as bytes."""
    return lambda observation="equal", **changes: (journal.dump(make_record(observation, **changes)) + "\n").encode()


@pytest.fixture
def script(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Import unbundle.py, as a bundle (an archive for a host without network) contains it, as a module."""
    spec = importlib.util.spec_from_file_location("unbundle", write_script(tmp_path_factory.mktemp("script")))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def gpu_host(script: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return unbundle.py as a module, on a simulated host that has everything that a GPU bundle needs."""
    h200 = script.Gpu("NVIDIA H200", (9, 0), 143771)
    monkeypatch.setattr(script, "query_gpus", lambda: script.Nvidia("580.95.05", [h200]))
    monkeypatch.setattr(script.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(script, "cpu_flags", lambda: ["avx"])
    monkeypatch.setattr(script.os, "confstr", lambda name: "glibc 2.36")
    monkeypatch.setattr(script, "read_text", lambda path: "MemAvailable:   67108864 kB\n")
    return script


@pytest.fixture(scope="session")
def audits(checkout: Project) -> dict[str, AuditIndex]:
    """Return {key of an environment: its committed audit (what its binaries contain), indexed by kernel}."""
    return {key: audit_findings.index_audit(audit) for key, audit in stored.load_all(checkout).items()}


@pytest.fixture(scope="session")
def status(checkout: Project) -> Status:
    """The matrix and evidence of this checkout: read once, and read-only."""
    return load_status(checkout)


@pytest.fixture(scope="session")
def sources(checkout: Project) -> Mapping[str, Source]:
    """Return {name: source} of the checkout's matrix."""
    return load_matrix(checkout.matrix).sources


@pytest.fixture(scope="session")
def tables(checkout: Project, audits: dict[str, AuditIndex]) -> AuditTables:
    """Return the audit tables of the checkout, computed without any record."""
    return AuditTables(Status(load_matrix(checkout.matrix), {}, audits))


@pytest.fixture(scope="session")
def small(shared_folder: Callable[..., Path]) -> Project:
    """Return a project with six TensorFlow environments, one of PyTorch, and a part of their evidence; read-only."""
    return Project(shared_folder("small", small_project))


@pytest.fixture(scope="session")
def site(small: Project, shared_folder: Callable[..., Path]) -> Path:
    """The folder of the small project's site."""
    return shared_folder("site", partial(build, small))
