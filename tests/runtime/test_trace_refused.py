"""`trace diff` on interrupted runs, and on files that are no traces or are forged.

The fixture make(build, run) writes the trace of build(builder, run), with end=False as of a killed run; other arguments
are fields of its header. compare(build) compares those of run 0 and 1. The field `probe` names the digest function.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import TraceBuilder

from tfdeterminism.trace.causes import trace_diff
from tfdeterminism.trace.causes.trace_diff import TraceDiff
from tfdeterminism.trace.commands import diff
from tfdeterminism.trace.report import text
from tfdeterminism.trace.schema import format as trace_format


def _one_step(builder: TraceBuilder, run: int) -> None:
    builder.record(builder.op("MatMul"), 1)


def _two_steps(builder: TraceBuilder, run: int) -> None:
    key = builder.op("MatMul")
    for step in range(1 if run else 4):
        builder.record(key, step, step)


def test_traces_with_another_digest_function_are_not_compared(make: Callable[..., Path]) -> None:
    runs = [str(make(_one_step, 0, digest="SHA-1")), str(make(_one_step, 1))]
    with pytest.raises(trace_format.TraceFormatError, match="traces of different digests: SHA-1 and by hand"):
        trace_diff.compare(runs)


def test_a_killed_run_is_not_the_same(make: Callable[..., Path]) -> None:
    """Unreached ops are no culprits: the message says how far each run went, and that the common part agrees."""
    for runs in ((0, 1), (1, 0)):
        result = trace_diff.compare([str(make(_two_steps, run, end=not run)) for run in runs])
        assert (result.result, result.culprits, result.compared) == ("structure", [], 1)
        assert "to step 0, where it was killed" in (result.end_mismatch or "")
        assert "all agree" in text.diff_text(result)


def test_a_difference_before_the_kill_is_named(make: Callable[..., Path]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        key = builder.op("MatMul")
        for step in range(2 if run else 4):
            builder.record(key, run if step else 0, step)

    result = trace_diff.compare([str(make(build, 0)), str(make(build, 1, end=False))])
    assert (result.result, [culprit["op_type"] for culprit in result.culprits], result.first_step) == (
        "diverged",
        ["MatMul"],
        1,
    )


def test_a_run_of_more_steps_invents_no_culprit(make: Callable[..., Path]) -> None:
    """15 complete steps against 1,000, with different ops at the end."""

    def build(builder: TraceBuilder, run: int) -> None:
        key, write = builder.op("MatMul"), builder.op("AssignSub", "AssignSubVariableOp", kind="write", variable="w")
        read = builder.op("Read", "ReadVariableOp", kind="read", variable="w")
        steps = 1000 if run else 15
        for step in range(steps):
            builder.record(key, step, step)
            builder.write(write, step)
        builder.record(read, steps, steps)

    for runs in ((0, 1), (1, 0)):
        result = trace_diff.compare([str(make(build, run)) for run in runs])
        assert (result.result, result.culprits) == ("structure", [])
        assert all(words in (result.end_mismatch or "") for words in ("step 15,", "step 1,000,"))


def test_a_run_whose_recording_failed_is_not_the_same(tmp_path: Path) -> None:
    paths = []
    for run in range(2):
        builder = TraceBuilder(tmp_path / f"{run}.tfdt")
        _two_steps(builder, run)
        paths.append(str(builder.end(error="no space left" if run else None)))
    result = trace_diff.compare(paths)
    assert (result.result, result.culprits) == ("structure", [])
    assert "no space left" in (result.end_mismatch or "")


def test_final_weights_that_differ_are_never_the_same(tmp_path: Path) -> None:
    for level in ("ops", "none"):
        paths = []
        for run in range(2):
            builder = TraceBuilder(tmp_path / f"{level}{run}.tfdt", level=level)
            if level == "ops":
                builder.record(builder.op("MatMul"), 1)
            paths.append(str(builder.end(weights=f"{run:016x}")))
        result = trace_diff.compare(paths)
        assert (result.result, result.culprits) == ("diverged", [])
        assert "final weights" in text.diff_text(result)


def test_a_run_that_ended_early_differs_in_structure(make: Callable[..., Path]) -> None:
    assert trace_diff.compare([str(make(_two_steps, 0)), str(make(_two_steps, 1))]).result == "structure"


def test_a_cut_file_is_read_up_to_the_cut(make: Callable[..., Path]) -> None:
    complete = make(_two_steps, 0)
    cut = complete.with_name("cut.tfdt")
    cut.write_bytes(complete.read_bytes()[:-105])
    result = trace_diff.compare([str(complete), str(cut)])
    assert (result.result, result.culprits) == ("structure", [])
    assert any("cut off" in note for note in result.notes)


def test_the_earliest_difference_of_several_runs_is_reported(make: Callable[..., Path]) -> None:
    """The earliest difference is reported, the others are counted."""

    def build(builder: TraceBuilder, run: int) -> None:
        key = builder.op("MatMul")
        for step in range(3):
            builder.record(key, (step, run if step == run else 0), step)

    result = trace_diff.compare([str(make(build, run)) for run in (0, 2, 1)])
    assert result.first_step == 1
    assert "2 of 2 comparisons differ" in result.notes


def test_a_program_that_was_changed_between_its_runs_is_reported(make: Callable[..., Path]) -> None:
    """Ops at another line are missing in the other run, which is no fault of the program."""

    def build(builder: TraceBuilder, run: int) -> None:
        builder.record(builder.eager(f"train.py:{10 + run}#0", line=10 + run), 1)
        builder.source({9: "x = 2" if run else "def f(x):", 10: "def f(x):" if run else "    y = x @ w", 12: ""})

    alike, other = (str(make(build, run)) for run in (0, 1))
    result = trace_diff.compare([alike, other])
    assert result.result == "structure"
    assert result.notes == ["train.py is not the same in both runs (line 9): they ran two programs"]
    assert trace_diff.compare([alike, alike]).notes == []


HEADERS = {
    "different programs": {"argv": ["eval.py"]},
    "different TensorFlow versions": {"version": "2.20.0"},
    "different devices": {"devices": ["CPU:0", "GPU:0"]},
    "different levels": {"level": "layers"},
    "different steps": {"steps": [3, 4]},
}


@pytest.mark.parametrize("message", HEADERS)
def test_traces_that_cannot_be_compared(
    make: Callable[..., Path], capsys: pytest.CaptureFixture[str], message: str
) -> None:
    code = diff.main([str(make(_one_step, 0)), str(make(_one_step, 1, **HEADERS[message]))])
    _is_refused(code, capsys, message)


FILES = {
    "is not a trace": b"\x80\x04\x95pickle",
    "ends before its header": trace_format.MAGIC,
    "has schema version 99": trace_format.MAGIC + (99).to_bytes(4, "little") + bytes(4),
}


@pytest.mark.parametrize("message", FILES)
def test_files_that_are_no_traces_are_refused(
    make: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], message: str
) -> None:
    bad = tmp_path / "bad.tfdt"
    bad.write_bytes(FILES[message])
    _is_refused(diff.main([str(make(_one_step, 0)), str(bad)]), capsys, message)


def test_missing_and_equal_paths_are_refused(
    make: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, empty = str(make(_one_step, 0)), tmp_path / "empty"
    empty.mkdir()
    _is_refused(diff.main([good, str(tmp_path / "absent")]), capsys, "cannot be read")
    _is_refused(diff.main([good, str(empty)]), capsys, "holds no trace")
    _is_refused(diff.main([good, str(make(lambda builder, run: None, 0))]), capsys, "has no records")
    _is_refused(diff.main([good]), capsys, "one trace cannot be compared")
    with pytest.raises(SystemExit) as raised:
        diff.main([good, good, "--nonsense"])
    _is_refused(int(str(raised.value.code)), capsys, "unrecognized arguments")


def test_wrong_record_counts_are_refused(make: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        key = builder.op("MatMul")
        builder.record(key, 1)
        builder._seen[key] = 7 if run else 0  # the number of the next record
        builder.record(key, 2)

    good = str(make(_one_step, 0))
    _is_refused(diff.main([good, str(make(build, 0))]), capsys, "counts its records wrongly")
    _is_refused(diff.main([good, str(make(build, 1))]), capsys, "counts its records wrongly")


NUMBERS, LETTERS = st.integers(-2, 9), st.text(max_size=3)
PAIRS = st.lists(st.lists(st.one_of(LETTERS, NUMBERS), max_size=3), max_size=2)
ODD = st.one_of(st.none(), NUMBERS, LETTERS, st.lists(NUMBERS, max_size=3), PAIRS)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(field=st.sampled_from(sorted(trace_format.definition(0, "", ""))), value=ODD)
def test_any_definition_is_compared_or_refused(
    field: str, value: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any value in a definition is compared or rejected with a message."""
    paths = []
    for run in range(2):
        builder = TraceBuilder(tmp_path_factory.mktemp("t") / "x.tfdt")
        first = builder.op("a")
        odd = dict(trace_format.definition(1, "CropAndResizeGradImage", "b", inputs=[0], forward="a"), **{field: value})
        builder._writer.define([odd])
        for key, digest in ((first, 1), (1, run)):
            builder.record(key, digest)
        paths.append(str(builder.end()))
    try:
        assert text.diff_text(trace_diff.compare(paths))
    except trace_format.TraceFormatError as error:
        assert error.advice


HEADER_FIELDS = [
    "argv", "cwd", "devices", "environment", "framework", "level", "numpy", "python", "steps", "version", "xla"
]  # fmt: skip


@settings(max_examples=150, deadline=None, derandomize=True)
@given(field=st.sampled_from(HEADER_FIELDS), value=st.one_of(ODD, st.dictionaries(LETTERS, NUMBERS, max_size=2)))
def test_any_header_is_compared_or_refused(field: str, value: object, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Any header is compared or rejected in one line, such as an argv that is no list of strings."""
    paths = []
    for run in range(2):
        builder = TraceBuilder(tmp_path_factory.mktemp("header") / "trace-0.tfdt", **{field: value})
        builder.record(builder.op("MatMul"), run)
        paths.append(str(builder.end()))
    assert diff.main(paths, out=io.StringIO()) in (1, 2)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(field=st.sampled_from(["clean", "exit", "weights", "variables", "steps", "error", "records"]), value=ODD)
def test_any_end_block_is_compared_or_refused(
    field: str, value: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    paths = []
    for run in range(2):
        builder = TraceBuilder(tmp_path_factory.mktemp("end") / "trace-0.tfdt")
        builder.record(builder.op("MatMul"), run)
        builder._writer.records = 0
        builder._writer._block(b"DONE", json.dumps({"clean": True, "steps": 1, field: value}).encode())
        paths.append(str(builder.close_as_killed()))
    assert diff.main(paths, out=io.StringIO()) in (1, 2)


def test_no_file_of_this_machine_is_quoted(make: Callable[..., Path], tmp_path: Path) -> None:
    """Only lines that the trace contains are shown, since an untrusted trace may name any file."""
    secret = tmp_path / "secret.py"
    secret.write_text("PASSWORD = 'x'\n")
    carried = {"train.py": {9: "before", 10: "culprit", 11: "after"}}

    def build(builder: TraceBuilder, run: int) -> None:
        builder._writer.source(carried)
        for path, line in ((str(secret), 1), ("train.py", 10)):
            builder.record(builder.op(path, file=path, line=line), run)

    first, second = trace_diff.compare([str(make(build, run)) for run in range(2)]).culprits
    assert first["snippet"] == []
    assert second["snippet"] == [[9, "before"], [10, "culprit"], [11, "after"]]


def test_error_messages_escape_control_characters(
    make: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(make(_one_step, 0)), str(make(_one_step, 1, version="2.\u202e0\x1b[2J"))]
    _is_refused(diff.main(runs), capsys, "2.?0?[2J")


def test_large_steps_and_control_characters_in_names_are_shown(compare: Callable[..., TraceDiff]) -> None:
    def build(builder: TraceBuilder, run: int) -> None:
        builder.record(builder.op("bad\x1b[2Jname\r\n"), run, 4_000_000_000)

    result = compare(build)
    assert result.first_step == 4_000_000_000
    assert not set(text.diff_text(result)) & set("\x1b\r")


def test_runs_with_different_numbers_of_processes_are_refused(
    make: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, ranks in (("one", "0"), ("two", "01")):
        (tmp_path / name).mkdir()
        for rank in ranks:
            make(_one_step, 0).rename(tmp_path / name / f"trace-{rank}.tfdt")
    code = diff.main([str(tmp_path / "one"), str(tmp_path / "two")])
    _is_refused(code, capsys, "do not have the same processes: 1")


def _is_refused(code: int, capsys: pytest.CaptureFixture[str], cause: str) -> None:
    """Assert exit code 2, a line of cause, a line of advice, and nothing on standard output."""
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    first, advice = captured.err.splitlines()
    assert cause in first
    assert advice.startswith("  ")
