"""Run many programs in one environment: forks of one process that has imported the framework."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RUNTIME = HERE.parent.parent / "runtime"
TRACE = ("-m", "tfdeterminism.trace")


@dataclass
class Job:
    """One run. arguments: what follows `python`; fresh: in a fresh process; alone: no other job runs beside it."""

    arguments: Sequence[str]
    folder: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    fresh: bool = False
    alone: bool = False
    seconds: float = 400


def environ(**changes: str) -> dict[str, str]:
    """Return this process's environment variables for a run, with these changes."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"}
    return {**os.environ, "PYTHONPATH": str(RUNTIME), **quiet, **changes}


class Forks:
    """A context manager. python: the environment's interpreter; framework: the module that its programs import."""

    def __init__(self, python: Path | str, framework: str = "tensorflow") -> None:
        self.python, self._framework = str(python), framework
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="tfdet-forks-")
        self._count = 0

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.communicate()  # the end of its input is its end
        self._folder.cleanup()

    def run(self, jobs: Sequence[Job]) -> list[subprocess.CompletedProcess[str]]:
        """Run the jobs, wait for all, and return their results in order."""
        outputs = [self._output() for _ in jobs]
        requests = [{**asdict(job), "output": str(output)} for job, output in zip(jobs, outputs, strict=True)]
        codes = self._ask(requests)
        return [_completed_process(job, code, output) for job, code, output in zip(jobs, codes, outputs, strict=True)]

    def _output(self) -> Path:
        self._count += 1
        folder = Path(self._folder.name, str(self._count))
        folder.mkdir()
        return folder

    def _ask(self, jobs: list[dict[str, Any]]) -> list[int]:
        if self._process is None:
            command = [self.python, str(HERE / "forking.py"), self._framework]
            self._process = subprocess.Popen(command, env=environ(), text=True, stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE)  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(jobs) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"{self.python} cannot run programs: exit code {self._process.wait()}"
        return json.loads(answer)


def _completed_process(job: Job, code: int, output: Path) -> subprocess.CompletedProcess[str]:
    texts = [(output / name).read_text("utf-8", "replace") for name in ("out.txt", "err.txt")]
    return subprocess.CompletedProcess(list(job.arguments), code, *texts)


def traced(
    out: Path | str, program: Path | str, *arguments: str, options: Sequence[str] = (), **job_options: Any
) -> Job:
    """Return a job that records the program's trace into the folder `out`."""
    return Job([*TRACE, "run", "--out", str(out), *options, "--", str(program), *arguments], **job_options)
