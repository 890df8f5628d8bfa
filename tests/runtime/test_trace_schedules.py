"""Runs that differ by an environment variable: the virtual GPU's schedules.

The virtual GPU is an emulator on the CPU; a schedule is the order in which it runs threads and atomics. It writes its
kernel launches to the file that VGPU_REPORT names.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_trace_locate import ScriptedRuns
from traces import TraceBuilder

from tfdeterminism.trace.search.program_runner import DeviceUnusedError, ProgramFailedError, ProgramRunner
from tfdeterminism.trace.search.progress import Progress
from tfdeterminism.trace.search.schedules import Schedules
from tfdeterminism.trace.search.search import Search


def test_runs_are_distinguished_by_what_varies(tmp_path: Path) -> None:
    """Each compared run, and each replay of an op, uses the next schedule, after the last one the first."""
    schedules = Schedules("VGPU_SCHEDULE", ["serial", "reverse", "random:1"])
    assert [schedules.run_environment(turn, {"A": "b"}) for turn in (0, 4)] == [
        {"VGPU_SCHEDULE": "serial", "A": "b"}, {"VGPU_SCHEDULE": "reverse", "A": "b"}]  # fmt: skip
    launch = {"kernel": "_ZN10tensorflow27UnsortedSegmentCustomKernelIfiE", "order_dependent": [
        {"line": 4865, "order_sensitivity": "rounding", "atomics": 16384, "addresses": 32}]}  # fmt: skip

    def replay(environment: dict[str, str]) -> dict[str, Any]:
        if "VGPU_REPORT" in environment:
            Path(environment["VGPU_REPORT"]).write_text(json.dumps(launch) + "\n")
        return {"digests": [["serial" if environment["VGPU_SCHEDULE"] == "serial" else "other"] * 2]}

    summary, lines = schedules.replay_summary(replay, str(tmp_path))
    assert summary == {"times": 3, "distinct": 2}
    (line,) = lines
    assert line.startswith("kernel UnsortedSegmentCustomKernel: 16,384 atomics at PTX line 4865 on 32 addresses")
    assert line.endswith("rounding (a sum of floats)")
    launch["code"] = "sm_80"
    assert (
        " atomics at byte 4865 of its machine code (sm_80) on 32 "
        in schedules.replay_summary(replay, str(tmp_path))[1][0]
    )
    assert Schedules().run_environment(3) is None


def test_a_difference_that_never_reaches_the_weights_is_found(tmp_path: Path) -> None:
    """The order of atomics changes the gradient's last bit, which the update rounds away."""

    def script(builder: TraceBuilder, level: str, run: int, environment: dict[str, str]) -> None:
        builder.weights = "abcd"  # type: ignore[attr-defined]  # the digest of the final weights
        if level == "none":
            return
        keys = [builder.op("weight", "weight", function="", kind=level.rstrip("s"))]
        if level == "ops":
            keys = [builder.op("MatMul"), builder.op("atomics", "CropAndResizeGradImage")]
            keys.append(builder.op("rounded", "AssignSubVariableOp", tuple(keys)))
        for key in keys:
            builder.record(key, (key, run if [key] == keys[1:-1] else 0), 0)

    def searched(name: str, **options: Any) -> ScriptedRuns:
        (tmp_path / name).mkdir()
        search = ScriptedRuns(tmp_path / name, script, runs=3, **options)
        search.search()
        return search

    result = searched("schedules", schedules=Schedules("VGPU_SCHEDULE", ["serial", "reverse", "random:1"])).result
    assert (result.code, [culprit["op_type"] for culprit in result.culprits]) == (1, ["CropAndResizeGradImage"])
    assert result.findings[0].startswith("weights and losses agree")
    assert result.findings[-1] == "final weights: bit-identical to those of an untraced run"
    without = searched("without")
    assert (without.result.code, "ops" in dict(without.asked)) == (0, False)


@pytest.mark.parametrize(("launches", "is_reported"), [(None, False), ("", False), ('{"kernel": "k"}\n', True)])
def test_a_program_without_the_virtual_gpu_has_no_report_of_it(
    tmp_path: Path, launches: str | None, is_reported: bool
) -> None:
    """The first run shows that, so the others write no report."""
    environments: list[dict[str, str]] = []

    def record(number: int, options: Any, environment: dict[str, str]) -> None:
        environments.append(environment)
        if "VGPU_REPORT" in environment and launches is not None:
            Path(environment["VGPU_REPORT"]).write_text(launches)
        if number > 1:
            raise ProgramFailedError("the second run", "")
        folder = Path(options[options.index("--out") + 1])
        folder.mkdir()
        TraceBuilder(folder / "trace-0.tfdt", level="none").end()

    runner: Any = SimpleNamespace(fallback_calls=(), record=record)
    search = Search(["train.py"], str(tmp_path), schedules=Schedules("VGPU_SCHEDULE", ["serial", "reverse"]),
                    runner=runner, progress=Progress(8, out=io.StringIO()))  # fmt: skip
    with pytest.raises(ProgramFailedError) as error:
        search.search()
    assert isinstance(error.value, DeviceUnusedError) is not is_reported
    # Without a launch in the first run there is no second one.
    assert ["VGPU_REPORT" in variables for variables in environments] == [True, False][: 1 + is_reported]


def test_calls_computed_by_cpu_fallbacks_are_named(tmp_path: Path) -> None:
    """They are read from the virtual GPU's messages, with the kind of a graph's operation."""
    calls = ["cublasSgemm_v2", "cudnnBackendExecute(CONVOLUTION_FORWARD)"]
    program = tmp_path / "program.py"
    message = "print('vgpu:', call, 'is computed by a CPU fallback: its last bits', file=sys.stderr)"
    program.write_text(f"import sys\nfor call in {calls}: {message}\n")
    runner = ProgramRunner([str(program)], str(tmp_path))
    with pytest.raises(ProgramFailedError):  # it uses no framework
        runner.record(1, ["--out", str(tmp_path / "trace")])
    assert runner.fallback_calls == set(calls)
