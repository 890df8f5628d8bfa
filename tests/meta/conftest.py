"""Fixtures that run the probe on planted suites, as a user does: a process, a plan, a file of records.

A planted suite has cases whose fault, or lack of one, is known.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tfdet_probe.core import normalized_source

HERE = Path(__file__).parent
RUNTIME = HERE.parents[1] / "runtime"
sys.path.insert(0, str(RUNTIME))
VARIABLES = ["TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC"]
SOLUTIONS = [
    {"key": "none"},
    {"key": "TDO", "env": {"TF_DETERMINISTIC_OPS": "1"}},
    {"key": "TEOD", "call": "enable_op_determinism"},
]


class Run:
    """The exit code, the output and the records of one run of the probe."""

    def __init__(self, code, out, err, path):
        self.code, self.out, self.err, self.path = code, out, err, path

    @property
    def records(self):
        """Return all records of the run."""
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def record_of(self, source, solution="none"):
        """Return the only record of this source and solution."""
        (record,) = [r for r in self.records if (r["source"], r["solution"]) == (source, solution)]
        return record


class Probe:
    """A folder with a plan, a planted suite and the probe's records."""

    def __init__(self, folder, python=sys.executable, framework="bare"):
        self.folder, self.python, self.framework = Path(folder), str(python), framework
        self.out = self.folder / "records.jsonl"

    def plan(self, *cells, **changes):
        """Write the plan; each cell is a source, or (source, solution, expect); expect: the claimed result, or None."""
        cells = [cell if isinstance(cell, tuple) else (cell, "none", None) for cell in cells]
        content = {
            "schema": 2,
            "environment": "planted",
            "framework": self.framework,
            "determinism_variables": VARIABLES,
            "solutions": SOLUTIONS,
            "cells": [{"device": "cpu", "source": s, "solution": k, "expect": e} for s, k, e in cells],
        }
        content.update(changes)
        (self.folder / "plan.json").write_text(json.dumps(content))

    def suite(self, text, name="test_planted.py"):
        """Write a suite of one module, and return its folder."""
        folder = self.folder / "suite"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        return folder

    def start(self, suite, *arguments, device="cpu", **environment):
        """Start the probe in a process of its own process group."""
        command = [
            self.python,
            "-m",
            "tfdet_probe",
            "--plan",
            str(self.folder / "plan.json"),
            "--suite",
            str(suite),
            "--device",
            device,
            "--out",
            str(self.out),
            *map(str, arguments),
        ]
        variables = {k: v for k, v in os.environ.items() if not k.startswith(("TF_", "TFDET_", "PYTEST_", "CUDA_"))}
        variables.update(
            environment,
            PYTHONPATH=str(RUNTIME),
            TFDET_FRAMEWORKS=str(HERE / "frameworks"),
            PYTHONDONTWRITEBYTECODE="1",
            CUDA_VISIBLE_DEVICES="",
            PLANTED=str(self.folder),  # where planted cases write what they report
        )
        return subprocess.Popen(
            command,
            env=variables,
            cwd=str(self.folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __call__(self, suite, *arguments, **options):
        return self.finish(self.start(suite, *arguments, **options))

    def finish(self, process):
        """Wait for the probe, and return its run."""
        try:
            out, err = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return Run(process.returncode, out, err, self.out)


@pytest.fixture
def probe(tmp_path):
    """Return a Probe in tmp_path, which runs the fake framework `bare`."""
    return Probe(tmp_path)


@pytest.fixture(scope="session")
def probe_in():
    """Return the class Probe: probe_in(folder, python, framework)."""
    return Probe


@pytest.fixture(scope="session")
def planted(tmp_path_factory):
    """Return planted(name, *arguments), which runs planted/<name>.py with a cell for each of its sources."""

    def run(name, *arguments, python=None, cells=(), **options):
        folder = tmp_path_factory.mktemp(name)
        probe = Probe(folder, python or sys.executable, "tensorflow" if python else "bare")
        path = HERE / "planted" / (name + ".py")
        sources = [case.source for case in normalized_source.normalize_cases(path.read_text()).values()]
        probe.plan(*(cells or dict.fromkeys(sources)))
        return probe(path, *arguments, **options)

    return run
