"""The host's side of `tfdet locate`: runs the debug tool in the user's environment, and parses its result.

The pydantic models are the JSON that `python -m tfdeterminism.trace` prints.  Their docstrings are part of
matrix/schema/trace-report.json.
"""

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

Text = Annotated[str, AfterValidator(sanitize_text)]  # traces are untrusted: no control characters for a terminal
Result = Literal["same", "diverged", "structure"]  # diverged: a value differs; structure: other ops are executed
_STOPPED = "Nothing is kept of a search; running again begins anew."
_COMPLETED = (ExitCode.OK, ExitCode.CONTRADICTED, ExitCode.FIXED)  # exit codes of a complete search
# Schedules of the virtual GPU, one for each run.
SCHEDULES = ("serial", "reverse", "random:1", "random:2", "adversary:1")


class _Model(BaseModel):
    """A part of the debug tool's output. It is validated as untrusted input; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class NonFinite(_Model):
    """The numbers of non-finite elements in a whole tensor.  first: index of the first one."""

    nan: int
    inf: int
    first: int | None = None


class Tensor(_Model):
    """The difference of an op's output between two runs.

    `absolute`, `relative` and `ulps` are the maxima over the compared elements.
    """

    op: Text
    name: Text
    file: Text | None
    line: int
    step: int
    role: Literal["culprit", "path", "loss"]  # path: between the culprit, which differs first, and the loss
    dtype: Text
    shape: list[int]
    elements: int
    compared: int
    differing: int
    absolute: int | float | None
    relative: float | None
    ulps: int | None
    index: list[int] | None
    values_at_index: tuple[bool | int | float | Text, bool | int | float | Text] | None
    shapes: tuple[list[int], list[int]] | None
    nonfinite: tuple[NonFinite | None, NonFinite | None]


class Point(_Model):
    """The difference at one step, over all losses or over all weights."""

    step: int
    absolute: int | float
    ulps: int
    name: Text
    differing: int
    compared: int
    elements: int


class Growth(_Model):
    loss: list[Point]
    weights: list[Point]


class FirstNonFinite(_Model):
    """The first NaN or infinity in a run."""

    what: Text
    name: Text
    step: int
    index: int
    nan: int
    inf: int
    elements: int


class Values(_Model):
    """The differences of the values that both runs recorded."""

    tensors: list[Tensor]
    growth: Growth
    nonfinite: tuple[FirstNonFinite | None, FirstNonFinite | None]


class Outcomes(_Model):
    """Runs without probes, with the number of identical and of distinct results."""

    runs: int
    identical: int
    distinct: int
    seconds: list[float]


class Applied(_Model):
    solution: Text
    words: Text


class ManualFix(_Model):
    """A culprit that only a change of the program can fix."""

    op_type: Text
    file: Text | None
    line: int
    lines: list[Text]


class Fix(_Model):
    """The result of runs in which the tool applied its advice without a change of the program."""

    # by hand: no fix could be applied to the unchanged program.  not shown: the runs without fixes ended alike, too.
    result: Literal["repeats", "differs", "fails", "by hand", "not shown"]
    applied: list[Applied]
    manual_changes: list[ManualFix] = []
    ratio: float | None  # duration with the fixes divided by that without them
    error: Text | None
    with_: Outcomes = Field(alias="with")
    without: Outcomes
    lines: list[Text]


class Culprit(_Model):
    op_type: Text
    op_name: Text
    device: Text
    step: int
    file: Text | None
    line: int
    stack: list[tuple[Text, int, Text]] = []  # (file, line, function), the innermost first
    forward_op: Text | None
    forward_name: Text | None = None
    function: Text = ""
    layer: Text | None = None
    class_: Text = Field(alias="class")
    why: Text = ""
    source: Text | None
    solution: Text | None = None
    advice: Text
    lines: list[Text] = []
    snippet: list[tuple[int, Text]] = []  # (line number, text)
    rank: Text = "0"


class FrontRecord(_Model):
    """One record of the first step that differs."""

    op: Text
    name: Text
    state: Literal["same", "differs", "missing", "written", "culprit"]  # written: an equal write to a variable
    file: Text | None
    line: int
    function: Text


class Replay(_Model):
    times: int
    distinct: int


class TraceHeader(_Model):
    argv: list[Text] | None
    framework: Text
    version: Text | None
    python: Text | None
    devices: list[Text] | None
    xla: Text | None = None


# A pin gives a program the same value in every run, for one kind of nondeterminism, everywhere or at some lines.
class CausePlace(_Model):
    """A line at which a pin alone makes the runs agree.  path: the file that is read there, if any."""

    file: Text
    line: int
    what: Text
    text: Text
    path: Text | None


class CauseProof(_Model):
    """Runs without the cause, all with equal results.  pinned_calls: number of values that the pin gave in one run."""

    pinned: list[Text]
    runs: int
    equal: int  # how many of the runs ended alike: fewer than all if the cause is partly proven
    pinned_calls: int
    runs_at_places: int  # with the pin at the places of the cause alone
    equal_at_places: int


class SourceFix(_Model):
    """A change of lines of the user's program.

    runs: with the change; pinned: kinds that were pinned in these runs; does_less: what a program did less with a
    change that was rejected, although the runs agreed.
    """

    words: Text
    diff: list[Text]
    result: Literal["holds", "does less", "differs", "fails", "untried"]
    runs: int
    pinned: list[Text] = []
    does_less: list[Text] = []


class ProvenCause(_Model):
    """A kind of nondeterminism without which the runs agree, and with which they differ."""

    kind: Text
    words: Text
    places: list[CausePlace]
    first_run_only: bool
    details: list[Text] = []
    proof: CauseProof
    fix: SourceFix | None


class LatentKind(_Model):
    kind: Text
    places: list[Text]


class Interventions(_Model):
    """The runs without pins, and the pins that were tried.  why: reason if no pin was tried."""

    # compared: the result that is compared: weights, files or printed text; also_differ: other results that differ.
    # needed: number of runs that must agree.  varied: kinds varied in runs that agree; latent: those with an effect.
    # noted: calls without a pin, or not varied.  unseen_share: of runs that another cause may change unseen.
    verdict: Literal["same", "proven", "partly proven", "not proved", "not tried"]
    compared: Text | None
    runs: int
    distinct: int
    tried: list[Text]
    latent: list[LatentKind]
    varied: list[Text]
    noted: list[Text] = []
    also_differ: list[Text] = []
    needed: int = 0
    reason: Text | None = None
    unseen_share: float | None = None
    why: Text | None
    total_runs: int


class LocateResult(_Model):
    """The output of `trace diff --json` and `trace locate --json`."""

    result: Result
    first_step: int | None
    culprits: list[Culprit]
    compared: int = 0
    differing: int = 0
    missing: int = 0
    notes: list[Text] = []
    steps: list[tuple[int, int, int]] = []  # (first step of a group, records of the group, how many of them differ)
    first_difference_window: list[FrontRecord] = []
    traces: list[TraceHeader] = []
    runs: int | None = None
    replay: Replay | None = None
    values: Values | None = None
    fix: Fix | None = None
    masked_by_tracing: bool = False
    end_mismatch: Text | None = None
    findings: list[Text] = []
    causes: list[ProvenCause] = []
    interventions: Interventions | None = None
    report: list[Text] = []
    verdict: Text = ""

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
    """The program to search, and its Python: of `environment`, else `python`, else the one on PATH.

    runs: maximum per level of detail.  steps: training steps of a run.  trace_only: do not prove the cause by pins.
    agree_runs: minimum of runs with a pin that must agree.
    """

    program: tuple[str, ...]
    environment: str | None = None
    python: str | None = None
    device: str = CPU
    runs: int = 5
    fix: bool = False
    cpu_fallbacks: bool = False
    trace_only: bool = False
    steps: int | None = None
    agree_runs: int | None = None


def parse_request(
    matrix: Matrix,
    arguments: Sequence[str],
    python: str | None,
    device: str,
    runs: int,
    fix: bool = False,
    cpu_fallbacks: bool = False,
    trace_only: bool = False,
    steps: int | None = None,
    agree_runs: int | None = None,
) -> LocateRequest:
    """Parse the arguments of the command line, [ENV] PROGRAM ARGS; UsageError if they cannot be combined."""
    environment = arguments[0] if arguments and arguments[0] in matrix.environments else None
    program = tuple(arguments[1:] if environment else arguments)
    if not program:
        raise UsageError("no program given", "For example: tfdet locate [ENV] -- train.py ARGS")
    if environment and python:
        raise UsageError("--python cannot be combined with an environment", "Pass one of them.")
    if Path(program[0]).suffix == ".py" and not Path(program[0]).is_file():
        raise UsageError(f"{program[0]} not found", "Pass the program as you would to Python.")
    if cpu_fallbacks and not matrix.devices.find_by_cli_name(device).virtual:
        raise UsageError("--cpu-fallbacks requires --device vgpu", "Add --device vgpu, or leave out --cpu-fallbacks.")
    return LocateRequest(program, environment, python, device, runs, fix, cpu_fallbacks, trace_only, steps, agree_runs)


def locate(project: Project, matrix: Matrix, request: LocateRequest) -> LocateResult:
    """Run the debug tool; its progress goes to standard error."""
    command = [_interpreter(project, matrix, request), "-m", "tfdeterminism.trace", "locate", "--json"]
    command += ["--max-runs", str(request.runs), *["--fix"] * request.fix, *["--trace-only"] * request.trace_only]
    command += [] if request.steps is None else ["--steps", str(request.steps)]
    command += [] if request.agree_runs is None else ["--agree-runs", str(request.agree_runs)]
    environ = dict(os.environ)
    if matrix.devices.find_by_cli_name(request.device).virtual:
        environ = vgpu.environ(vgpu.library_folder(project), SCHEDULES[0], cpu_fallbacks=request.cpu_fallbacks)
        command += ["--vary-env", f"VGPU_SCHEDULE={','.join(SCHEDULES)}"]
    command += ["--", *request.program]
    path = os.pathsep.join(filter(None, [str(project.runtime), os.environ.get("PYTHONPATH", "")]))
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**environ, "PYTHONPATH": path},
        preexec_fn=partial(set_parent_death_signal, os.getpid(), signal.SIGTERM),
    )  # fmt: skip
    try:
        output, _ = child.communicate()
    except KeyboardInterrupt:
        child.send_signal(signal.SIGTERM)  # the debug tool ends the user's program
        child.wait()
        raise InterruptedRunError(_STOPPED) from None
    if child.returncode == ExitCode.INTERRUPTED:
        raise InterruptedRunError(_STOPPED)
    if child.returncode == ExitCode.NO_DEVICE:
        raise DeviceUnavailableError("the program did not use the virtual GPU", "See the lines above.")
    if child.returncode not in _COMPLETED or not output.strip():  # a failing Python also exits with 1
        raise RunFailedError("the search did not finish", "See the lines above.")
    return parse_result(output)


def parse_result(text: bytes) -> LocateResult:
    """Parse the output of the debug tool; DataError if it is not that."""
    try:
        return LocateResult.model_validate_json(text)
    except ValidationError as error:
        raise DataError(f"not the output of `trace locate --json`: {error.errors()[0]['msg']}") from None


def compare(traces: Sequence[str]) -> LocateResult:
    """Compare recorded traces, of this or of other machines."""
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


def _interpreter(project: Project, matrix: Matrix, request: LocateRequest) -> str:
    """Return the path of the Python that runs the program; build the environment if necessary."""
    kind = matrix.devices.find_by_cli_name(request.device)
    if request.environment:
        from tfdet.engines.venv import VenvEngine, require_gpu

        environment = matrix.environment(request.environment)
        if kind.needs_driver:
            require_gpu(environment)
        return str(
            VenvEngine(project).interpreter(
                request.environment, environment, kind.claim_device, without_vendor_libraries=kind.virtual
            )
        )
    if kind.needs_driver:
        raise DeviceUnavailableError(
            "--device needs an ENV argument", "Your own Python uses the devices that it finds."
        )
    framework_name, example = _find_framework(matrix, request.program[0])
    interpreter = shutil.which(request.python or "python")
    if interpreter is None:
        raise UsageError(
            f"{request.python or 'python'} not found on PATH",
            f"Pass the Python that has {framework_name}: --python PATH",
        )
    if request.python is None and os.path.realpath(interpreter) == os.path.realpath(sys.executable):
        raise UsageError(
            f"this Python is tfdet's own, not one that has {framework_name}",
            f"Pass an environment (tfdet locate {example} -- {request.program[0]}), or your Python: --python PATH",
        )
    return interpreter


def _find_framework(matrix: Matrix, program: str) -> tuple[str, str]:
    """Return (framework that the program's text imports, its newest environment); placeholders if it is unknown."""
    newest = {environment.framework: key for key, environment in matrix.environments.items()}
    try:
        text = read_bytes(Path(program), limit=1 << 26).decode("utf-8", "replace")
    except DataError:
        text = ""
    for key, framework in matrix.frameworks.items():
        packages = framework.naming.imports if framework.naming else {framework.package: ""}
        pattern = "|".join(re.escape(package) for package in packages)
        if key in newest and re.search(rf"^\s*(?:import|from)\s[\w., ]*?\b(?:{pattern})\b", text, re.MULTILINE):
            return framework.name, newest[key]
    return "your framework", "ENV"
