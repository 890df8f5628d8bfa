"""Name the op that makes a training differ: the debug tool of the user's environment, shown by the host."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from tfdet.base.console import sanitize_text
from tfdet.base.errors import (
    DataError,
    DeviceUnavailableError,
    ExitCode,
    InterruptedRunError,
    RunFailedError,
    UsageError,
)
from tfdet.base.paths import Project
from tfdet.base.untrusted import read_bytes
from tfdet.engines import vgpu
from tfdet.matrix.devices import CPU
from tfdet.matrix.load import Matrix
from tfdet_common.parent_death import set_parent_death_signal

Words = Annotated[str, AfterValidator(sanitize_text)]  # a stranger's trace must not steer a terminal
Result = Literal["same", "diverged", "structure"]
_ENDS = (ExitCode.OK, ExitCode.CONTRADICTED, ExitCode.FIXED)  # of a search that came to its end
SCHEDULES = ("serial", "reverse", "random:1", "random:2", "adversary:1")  # of the virtual GPU, one a run


class _Model(BaseModel):
    """What the debug tool prints, and what a stranger's trace may have put into it: checked, the rest left out."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class NonFinite(_Model):
    """What of a whole tensor is not finite; first: its place."""

    nan: int
    inf: int
    first: int | None = None


class Tensor(_Model):
    """By how much an op's output differs: of what was compared, the largest of each."""

    op: Words
    name: Words
    file: Words | None
    line: int
    step: int
    role: Literal["culprit", "path", "loss"]
    dtype: Words
    shape: list[int]
    elements: int
    compared: int
    differing: int
    absolute: int | float | None
    relative: float | None
    ulps: int | None
    index: list[int] | None
    values_at_index: tuple[bool | int | float | Words, bool | int | float | Words] | None
    shapes: tuple[list[int], list[int]] | None
    nonfinite: tuple[NonFinite | None, NonFinite | None]


class Point(_Model):
    """A step of a series: over all losses, or all weights."""

    step: int
    absolute: int | float
    ulps: int
    name: Words
    differing: int
    compared: int
    elements: int


class Growth(_Model):
    loss: list[Point]
    weights: list[Point]


class FirstNonFinite(_Model):
    """Where a NaN or an infinity came first in a run."""

    what: Words
    name: Words
    step: int
    index: int
    nan: int
    inf: int
    elements: int


class Values(_Model):
    """By how much the runs differ, where they kept values."""

    tensors: list[Tensor]
    growth: Growth
    nonfinite: tuple[FirstNonFinite | None, FirstNonFinite | None]


class Outcomes(_Model):
    """Runs without probes, and how many of them end alike."""

    runs: int
    identical: int
    distinct: int
    seconds: list[float]


class Applied(_Model):
    solution: Words
    words: Words


class ManualFix(_Model):
    """A culprit that only a change of the program mends."""

    op_type: Words
    file: Words | None
    line: int
    lines: list[Words]


class Fix(_Model):
    """What came of the advice, applied from outside."""

    result: Literal["repeats", "differs", "fails", "by hand"]
    applied: list[Applied]
    manual_changes: list[ManualFix] = []
    ratio: float | None
    error: Words | None
    with_: Outcomes = Field(alias="with")
    without: Outcomes
    lines: list[Words]


class Culprit(_Model):
    op_type: Words
    op_name: Words
    device: Words
    step: int
    file: Words | None
    line: int
    stack: list[tuple[Words, int, Words]] = []
    forward_op: Words | None
    forward_name: Words | None = None
    function: Words = ""
    layer: Words | None = None
    class_: Words = Field(alias="class")
    why: Words = ""
    source: Words | None
    solution: Words | None = None
    advice: Words
    lines: list[Words] = []
    snippet: list[tuple[int, Words]] = []
    rank: Words = "0"


class FrontRecord(_Model):
    """One record of the first step that differs."""

    op: Words
    name: Words
    state: Literal["same", "differs", "missing", "written", "culprit"]
    file: Words | None
    line: int
    function: Words


class Replay(_Model):
    times: int
    distinct: int


class TraceHeader(_Model):
    argv: list[Words] | None
    framework: Words
    version: Words | None
    python: Words | None
    devices: list[Words] | None
    xla: Words | None = None


class CausePlace(_Model):
    """A line at which a pin alone makes the runs agree; path: of a file that is read there."""

    file: Words
    line: int
    what: Words
    text: Words
    path: Words | None


class CauseProof(_Model):
    """Runs with the cause taken away, which all ended alike; pinned_calls: values that the pin gave in one of them."""

    pinned: list[Words]
    runs: int
    equal: int
    pinned_calls: int
    runs_at_places: int


class SourceFix(_Model):
    """A change of the user's lines; runs: how many were made with it."""

    words: Words
    diff: list[Words]
    result: Literal["holds", "differs", "fails", "untried"]
    runs: int


class ProvenCause(_Model):
    """A kind of nondeterminism without which the runs agree, and with which they differ."""

    kind: Words
    words: Words
    places: list[CausePlace]
    first_run_only: bool
    details: list[Words] = []
    proof: CauseProof
    fix: SourceFix | None


class LatentKind(_Model):
    kind: Words
    places: list[Words]


class Interventions(_Model):
    """The runs without pins, and what was tried; why: no pin was tried."""

    verdict: Literal["same", "proven", "not proved", "not tried"]
    compared: Words | None
    runs: int
    distinct: int
    tried: list[Words]
    latent: list[LatentKind]
    varied: list[Words]
    noted: list[Words] = []
    also_differ: list[Words] = []
    why: Words | None
    total_runs: int


class LocateResult(_Model):
    """What `trace diff --json` and `trace locate --json` give."""

    result: Result
    first_step: int | None
    culprits: list[Culprit]
    compared: int = 0
    differing: int = 0
    missing: int = 0
    notes: list[Words] = []
    steps: list[tuple[int, int, int]] = []
    first_difference_window: list[FrontRecord] = []
    traces: list[TraceHeader] = []
    runs: int | None = None
    replay: Replay | None = None
    values: Values | None = None
    fix: Fix | None = None
    masked_by_tracing: bool = False
    end_mismatch: Words | None = None
    findings: list[Words] = []
    causes: list[ProvenCause] = []
    interventions: Interventions | None = None
    report: list[Words] = []
    verdict: Words = ""

    @property
    def headline(self) -> str:
        if self.verdict:
            return self.verdict
        if self.result == "same":
            return "The runs are the same."
        if self.end_mismatch and not self.culprits:
            return f"One run goes farther than the other: {self.end_mismatch}."
        if self.culprits:
            first = self.culprits[0]
            return f"{first.op_type} at step {first.step}: {first.class_}."
        return f"The runs {'differ' if self.result == 'diverged' else 'do not do the same things'}."


@dataclass(frozen=True)
class LocateRequest:
    """Which Python runs the program: of an environment of the matrix, or any other."""

    program: tuple[str, ...]
    environment: str | None = None
    python: str | None = None
    device: str = CPU
    runs: int = 5
    fix: bool = False
    cpu_fallbacks: bool = False
    trace_only: bool = False
    steps: int | None = None


def parse_request(
    matrix: Matrix,
    words: Sequence[str],
    python: str | None,
    device: str,
    runs: int,
    fix: bool = False,
    cpu_fallbacks: bool = False,
    trace_only: bool = False,
    steps: int | None = None,
) -> LocateRequest:
    """From the words of the command line: [ENV] PROGRAM ARGS."""
    environment = words[0] if words and words[0] in matrix.environments else None
    program = tuple(words[1:] if environment else words)
    if not program:
        raise UsageError("no program given", "For example: tfdet locate [ENV] -- train.py ARGS")
    if environment and python:
        raise UsageError("--python cannot be combined with an environment", "Pass one of them.")
    if Path(program[0]).suffix == ".py" and not Path(program[0]).is_file():
        raise UsageError(f"{program[0]} not found", "Pass the program as you would to Python.")
    if cpu_fallbacks and not matrix.devices.find_by_cli_name(device).virtual:
        raise UsageError("--cpu-fallbacks requires --device vgpu", "Add --device vgpu, or leave out --cpu-fallbacks.")
    return LocateRequest(program, environment, python, device, runs, fix, cpu_fallbacks, trace_only, steps)


def locate(project: Project, matrix: Matrix, ask: LocateRequest) -> LocateResult:
    """Run the debug tool; its progress goes to standard error."""
    command = [_interpreter(project, matrix, ask), "-m", "tfdeterminism.trace", "locate", "--json"]
    command += ["--max-runs", str(ask.runs), *["--fix"] * ask.fix, *["--trace-only"] * ask.trace_only]
    command += [] if ask.steps is None else ["--steps", str(ask.steps)]
    environ = dict(os.environ)
    if matrix.devices.find_by_cli_name(ask.device).virtual:
        environ = vgpu.environ(vgpu.library_folder(project), SCHEDULES[0], cpu_fallbacks=ask.cpu_fallbacks)
        command += ["--vary-env", f"VGPU_SCHEDULE={','.join(SCHEDULES)}"]
    command += ["--", *ask.program]
    path = os.pathsep.join(filter(None, [str(project.runtime), os.environ.get("PYTHONPATH", "")]))
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**environ, "PYTHONPATH": path},
        preexec_fn=partial(set_parent_death_signal, os.getpid(), signal.SIGTERM),
    )  # fmt: skip
    try:
        said, _ = child.communicate()
    except KeyboardInterrupt:
        child.send_signal(signal.SIGTERM)  # it sees to its own program
        child.wait()
        raise InterruptedRunError from None
    if child.returncode == ExitCode.INTERRUPTED:
        raise InterruptedRunError
    if child.returncode == ExitCode.NO_DEVICE:
        raise DeviceUnavailableError("the program did not use the virtual GPU", "See the lines above.")
    if child.returncode not in _ENDS or not said.strip():  # a Python that fails ends with 1, too
        raise RunFailedError("the search did not finish", "See the lines above.")
    return parse_result(said)


def parse_result(text: bytes) -> LocateResult:
    """What the debug tool printed."""
    try:
        return LocateResult.model_validate_json(text)
    except ValidationError as error:
        raise DataError(f"not the output of `trace locate --json`: {error.errors()[0]['msg']}") from None


def compare(traces: Sequence[str]) -> LocateResult:
    """Traces that were recorded before, on whatever machine."""
    from tfdeterminism.trace.causes import trace_diff
    from tfdeterminism.trace.schema.format import TraceFormatError

    if len(traces) < 2:
        raise UsageError("fewer than two traces given", "Pass two or more: tfdet locate --traces A B")
    try:
        return LocateResult.model_validate(trace_diff.compare(list(traces)).as_json(), strict=False)
    except TraceFormatError as error:
        raise DataError(error.cause, error.advice) from None
    except MemoryError:
        raise RunFailedError("not enough memory for these traces", "Record fewer steps: run --steps 0:20") from None


def _interpreter(project: Project, matrix: Matrix, ask: LocateRequest) -> str:
    kind = matrix.devices.find_by_cli_name(ask.device)
    if ask.environment:
        from tfdet.engines.venv import VenvEngine, require_gpu

        environment = matrix.environment(ask.environment)
        if kind.needs_driver:
            require_gpu(environment)
        return str(
            VenvEngine(project).interpreter(
                ask.environment, environment, kind.claim_device, without_vendor_libraries=kind.virtual
            )
        )
    if kind.needs_driver:
        raise DeviceUnavailableError(
            "--device needs an ENV argument", "Your own Python uses the devices that it finds."
        )
    name, example = _framework(matrix, ask.program[0])
    found = shutil.which(ask.python or "python")
    if found is None:
        raise UsageError(
            f"{ask.python or 'python'} not found on PATH", f"Pass the Python that has {name}: --python PATH"
        )
    if ask.python is None and os.path.realpath(found) == os.path.realpath(sys.executable):
        raise UsageError(
            f"this Python is tfdet's own, not one that has {name}",
            f"Pass an environment (tfdet locate {example} -- {ask.program[0]}), or your Python: --python PATH",
        )
    return found


def _framework(matrix: Matrix, program: str) -> tuple[str, str]:
    """(what the program's text imports, the newest environment of that); of a program that does not tell, no name."""
    newest = {one.framework: key for key, one in matrix.environments.items()}
    try:
        text = read_bytes(Path(program), limit=1 << 26).decode("utf-8", "replace")
    except DataError:
        text = ""
    for key, one in matrix.frameworks.items():
        tops = "|".join(re.escape(top) for top in (one.naming.imports if one.naming else {one.package: ""}))
        if key in newest and re.search(rf"^\s*(?:import|from)\s[\w., ]*?\b(?:{tops})\b", text, re.MULTILINE):
            return one.name, newest[key]
    return "your framework", "ENV"
