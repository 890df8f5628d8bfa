"""Ctrl-C while modules are imported ends a command with exit code 130, without a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tfdet.base.errors import ExitCode
from tfdet.base.paths import Project

# A finder that has SIGINT come at the import of one module.
CUSTOM = """
import os, signal, sys
class Finder(object):
    def find_spec(self, name, path=None, target=None):
        if name == os.environ.get("INTERRUPT_AT"):
            print("interrupted at", name, flush=True)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""
TFDET = ["-c", "import importlib, sys; sys.argv[0] = 'tfdet'; entry = sys.argv.pop(1).split(':');"
         "getattr(importlib.import_module(entry[0]), entry[1])()"]  # fmt: skip


def run_interrupted(tmp_path: Path, stage: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with a sitecustomize.py that sends SIGINT when the module `stage` is imported."""
    (tmp_path / "sitecustomize.py").write_text(CUSTOM)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "INTERRUPT_AT": stage}
    return subprocess.run([sys.executable, *words], env=environ, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("how", "stage"),
    [("installed", "tfdet.cli.main"), ("module", "typer"), ("installed", "tfdet.matrix.load"), ("installed", "none")],
)
def test_ctrl_c_during_an_import_of_tfdet_exits_130(checkout: Project, tmp_path: Path, how: str, stage: str) -> None:
    entry = tomllib.loads((checkout.root / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]["tfdet"]
    start = [*TFDET, entry] if how == "installed" else ["-m", "tfdet"]
    done = run_interrupted(tmp_path, stage, *start, "envs", "--json")
    assert (done.returncode, done.stderr) == (ExitCode.OK if stage == "none" else ExitCode.INTERRUPTED, "")
    assert ("interrupted at" in done.stdout) == (stage != "none")


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ("argparse", ["tfdeterminism.trace", "diff", "A", "B"]),
        ("numpy", ["tfdeterminism.trace", "locate", "A"]),
        ("tfdeterminism.trace.commands.diff", ["tfdeterminism.trace", "diff", "A", "B"]),
        ("argparse", ["tfdet_probe"]),
        ("tfdet_probe.devices", ["tfdet_probe"]),
        ("tfdet_common.journal", ["tfdet_probe", "--device", "cpu"]),
    ],
)
def test_ctrl_c_during_an_import_of_the_runtime_exits_130(tmp_path: Path, stage: str, words: list[str]) -> None:
    done = run_interrupted(tmp_path, stage, "-m", *words)
    assert "interrupted at" in done.stdout
    assert (done.returncode, done.stderr) == (130, "")


LOCK = """
import fcntl, os, signal
fcntl.flock = lambda *arguments: os.kill(os.getpid(), signal.SIGINT)
"""


def test_ctrl_c_in_the_builder_of_the_virtual_gpu_exits_130(checkout: Project, tmp_path: Path) -> None:
    """Ctrl-C reaches it, too, while it waits for another build or compiles."""
    (tmp_path / "sitecustomize.py").write_text(LOCK)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "CXX": sys.executable}
    done = subprocess.run([sys.executable, checkout.vgpu / "build.py", tmp_path / "builds"], env=environ,
                          capture_output=True, text=True, timeout=120)  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.INTERRUPTED, "", "")


def test_an_ignored_sigint_stays_ignored(tmp_path: Path) -> None:
    ignored = 'trap "" INT; exec "$0" "$@"'
    (tmp_path / "sitecustomize.py").write_text(CUSTOM)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "INTERRUPT_AT": "typer"}
    done = subprocess.run(["bash", "-c", ignored, sys.executable, "-m", "tfdet", "envs"], env=environ,
                          capture_output=True, text=True, timeout=120)  # fmt: skip
    assert done.returncode == ExitCode.OK and "interrupted at typer" in done.stdout
