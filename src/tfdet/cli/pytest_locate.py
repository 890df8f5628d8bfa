"""Location of the first op that differs in a case on the virtual GPU, for the failure report of `pytest --tfdet`.

It compares a trace under the reference schedule with a trace under a schedule that gave other bytes.  A schedule is the
order in which the virtual GPU, an emulator, executes threads; a trace has digests of the outputs of every op.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tfdet.base.errors import RunFailedError, TfdetError
from tfdet_common import virtual_gpu

if TYPE_CHECKING:
    from tfdet.engines.locate import Culprit
    from tfdet.store.records import Record

_REFERENCE = "serial"
_TRACE_SLOWDOWN = 5  # of a traced run, compared with one process of the case
_MAX_MESSAGE = 200  # characters of a message that are shown


@dataclass(frozen=True)
class CaseRun:
    """The settings for one run of a case of a test module.

    name: the module's name, as pytest imported it.  path: the module's file.  seconds: time limit of one process.
    plan: what the probe reads: the solutions, and the sources of nondeterminism whose cases it runs under each.
    solution: key of what shall make the case deterministic; "none" is no solution.
    """

    name: str
    path: Path
    plan: dict[str, Any]
    solution: str
    environ: Mapping[str, str]
    cwd: Path
    seconds: float


@dataclass(frozen=True)
class Replay:
    """The arguments of a pytest command that reproduces the difference."""

    nodeid: str
    solution: str
    cpu_fallbacks: bool

    def command(self, schedule: str) -> str:
        arguments = ["pytest", "--tfdet", "--tfdet-device", "vgpu"]
        arguments += ["--tfdet-cpu-fallbacks"] * self.cpu_fallbacks
        arguments += [] if self.solution == "none" else ["--tfdet-solution", self.solution]
        return shlex.join([*arguments, "--tfdet-schedule", schedule, self.nodeid])


def explain(records: Sequence[Record], run: CaseRun, replay: Replay) -> list[str]:
    """Return lines for a failure: the schedules that gave other bytes, the first op that differs, and a command."""
    record = next((record for record in records if _schedules(record)), None)
    if record is None:  # runs under one schedule differ, so not by the schedule: no command reproduces that
        return []
    schedules = _schedules(record)
    lines = [f"schedules that gave other bytes than {_REFERENCE}: {', '.join(schedules)}"]
    try:
        lines += _describe(_first_culprit(run, record.case, schedules[0], replay.cpu_fallbacks), run.cwd)
    except (TfdetError, OSError, subprocess.TimeoutExpired) as error:
        lines.append(f"the op was not located: {error.cause if isinstance(error, TfdetError) else error}")
    return [*lines, f"replay: {replay.command(schedules[0])}"]


def _schedules(record: Record) -> list[str]:
    """Return the schedules that gave other bytes than the reference schedule."""
    schedules = (record.device.details or {}).get("schedules")
    return schedules if isinstance(schedules, list) else []


def _describe(culprit: Culprit | None, root: Path) -> list[str]:
    if culprit is None:
        return ["the op was not located: no recorded op differed in one run under that schedule"]
    location = f" at {_relative_path(culprit.file, root)}:{culprit.line}" if culprit.file else ""
    gradient = f", the gradient of {culprit.forward_op}" if culprit.forward_op else ""
    lines = [f"first op that differs: {culprit.op_type}{gradient}{location}"]
    lines += [f"    {text.strip()}" for number, text in culprit.snippet if number == culprit.line]
    return lines + [f"advice: {culprit.advice}"] * bool(culprit.advice)


def _relative_path(path: str, root: Path) -> str:
    return str(Path(path).relative_to(root)) if Path(path).is_relative_to(root) else path


def _first_culprit(run: CaseRun, case: str, schedule: str, cpu_fallbacks: bool) -> Culprit | None:
    """Trace the case under both schedules, and return the first op that differs, if any."""
    from tfdet.engines.locate import compare

    with TemporaryDirectory(prefix="tfdet-locate-") as folder:
        plan = Path(folder, "plan.json")
        plan.write_text(json.dumps(run.plan), "utf-8")
        traces = [str(Path(folder, name)) for name in ("a", "b")]
        for trace, trace_schedule in zip(traces, (_REFERENCE, schedule), strict=True):
            environ = _environ(run, trace_schedule, cpu_fallbacks)
            _record_trace(run, [f"--plan={plan}", f"--case={case}"], trace, environ)
        result = compare(traces)
    return result.culprits[0] if result.culprits else None


def _environ(run: CaseRun, schedule: str, cpu_fallbacks: bool) -> dict[str, str]:
    from tfdet.engines import vgpu

    folder = Path(run.environ[virtual_gpu.FOLDER])
    return vgpu.environ(folder, schedule, run.environ, cpu_fallbacks=cpu_fallbacks)


def _record_trace(run: CaseRun, arguments: Sequence[str], trace: str, environ: Mapping[str, str]) -> None:
    command = [sys.executable, "-m", "tfdeterminism.trace", "run", "--out", trace, "--level", "ops", "--"]
    command += ["-m", "tfdet_probe.single_run", "--device=vgpu", f"--module={run.name}", f"--path={run.path}"]
    command += [f"--solution={run.solution}", *arguments]
    process = subprocess.run(
        command, env=environ, cwd=run.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", timeout=run.seconds * _TRACE_SLOWDOWN,
    )  # fmt: skip
    if process.returncode:
        lines = [line for line in process.stdout.splitlines() if line.strip()]
        raise RunFailedError(f"the traced run ended with {process.returncode}: {(lines or [''])[-1][:_MAX_MESSAGE]}")
