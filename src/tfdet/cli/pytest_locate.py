"""Where a case differs on the virtual GPU: a trace under the reference's schedule, and one under one that differed."""

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
_SLOWER = 5  # a traced run, than one process of the case
_MAX_LINE = 200  # characters of a message that are shown


@dataclass(frozen=True)
class CaseRun:
    """What runs one case of a test module once.

    name: the module's, as pytest imported it; seconds: the limit of a process of a case.
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
    """What a user calls to see the difference again."""

    nodeid: str
    solution: str
    cpu_fallbacks: bool

    def command(self, schedule: str) -> str:
        words = ["pytest", "--tfdet", "--tfdet-device", "vgpu"]
        words += ["--tfdet-cpu-fallbacks"] * self.cpu_fallbacks
        words += [] if self.solution == "none" else ["--tfdet-solution", self.solution]
        return shlex.join([*words, "--tfdet-schedule", schedule, self.nodeid])


def explain(records: Sequence[Record], run: CaseRun, replay: Replay) -> list[str]:
    """Lines for a failure: which schedules gave other bytes, at which op that begins, and how to see it again."""
    record = next((one for one in records if _schedules(one)), None)
    if record is None:  # a rerun under one schedule differed by something else: nothing is there to be replayed
        return []
    schedules = _schedules(record)
    lines = [f"schedules that gave other bytes than {_REFERENCE}: {', '.join(schedules)}"]
    try:
        lines += _describe(_first_culprit(run, record.case, schedules[0], replay.cpu_fallbacks), run.cwd)
    except (TfdetError, OSError, subprocess.TimeoutExpired) as error:
        lines.append(f"the op was not located: {error.cause if isinstance(error, TfdetError) else error}")
    return [*lines, f"replay: {replay.command(schedules[0])}"]


def _schedules(record: Record) -> list[str]:
    found = (record.device.details or {}).get("schedules")
    return found if isinstance(found, list) else []


def _describe(culprit: Culprit | None, root: Path) -> list[str]:
    if culprit is None:
        return ["the op was not located: no recorded op differed in one run under that schedule"]
    where = f" at {_inside(culprit.file, root)}:{culprit.line}" if culprit.file else ""
    gradient = f", the gradient of {culprit.forward_op}" if culprit.forward_op else ""
    lines = [f"first op that differs: {culprit.op_type}{gradient}{where}"]
    lines += [f"    {text.strip()}" for number, text in culprit.snippet if number == culprit.line]
    return lines + [f"advice: {culprit.advice}"] * bool(culprit.advice)


def _inside(path: str, root: Path) -> str:
    return str(Path(path).relative_to(root)) if Path(path).is_relative_to(root) else path


def _first_culprit(run: CaseRun, case: str, schedule: str, cpu_fallbacks: bool) -> Culprit | None:
    from tfdet.engines.locate import compare

    with TemporaryDirectory(prefix="tfdet-locate-") as folder:
        plan = Path(folder, "plan.json")
        plan.write_text(json.dumps(run.plan), "utf-8")
        traces = [str(Path(folder, name)) for name in ("a", "b")]
        for trace, one in zip(traces, (_REFERENCE, schedule), strict=True):
            _record(run, [f"--plan={plan}", f"--case={case}"], trace, _environ(run, one, cpu_fallbacks))
        found = compare(traces)
    return found.culprits[0] if found.culprits else None


def _environ(run: CaseRun, schedule: str, cpu_fallbacks: bool) -> dict[str, str]:
    from tfdet.engines import vgpu

    folder = Path(run.environ[virtual_gpu.FOLDER])
    return vgpu.environ(folder, schedule, run.environ, cpu_fallbacks=cpu_fallbacks)


def _record(run: CaseRun, arguments: Sequence[str], trace: str, environ: Mapping[str, str]) -> None:
    command = [sys.executable, "-m", "tfdeterminism.trace", "run", "--out", trace, "--level", "ops", "--"]
    command += ["-m", "tfdet_probe.single_run", "--device=vgpu", f"--module={run.name}", f"--path={run.path}"]
    command += [f"--solution={run.solution}", *arguments]
    done = subprocess.run(
        command, env=environ, cwd=run.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", timeout=run.seconds * _SLOWER,
    )  # fmt: skip
    if done.returncode:
        said = [line for line in done.stdout.splitlines() if line.strip()]
        raise RunFailedError(f"the traced run ended with {done.returncode}: {(said or [''])[-1][:_MAX_LINE]}")
