"""The suite on the virtual GPU, in a real old TensorFlow: the experiment of the matrix without a card."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SUM = ["--source", "unsorted-segment-sum", "--solution", "ED"]


def run(out: Path, *arguments: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tfdet", "run", "tf2.0", "--device", "vgpu", "--out", str(out), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def test_an_op_differs_by_itself_and_not_under_its_solution(tmp_path: Path) -> None:
    """Of the kernels that TensorFlow 2.0 ships; a second run shows the same two results."""
    often = ["--repeats", "5", "--relaunches", "1"]
    first = run(tmp_path / "first.jsonl", *SUM, *often)
    assert {record["device"]["model"] for record in first} == {"vgpu-sm70"}
    assert {place for record in first for place in record["ran_on"]} == {"GPU:0"}
    shown = {(record["solution"], record["observation"]) for record in first}
    assert shown == {("none", "differs"), ("ED", "equal")}
    schedules = [record["device"]["details"]["schedules"] for record in first if record["solution"] == "none"]
    assert all(set(seen) <= {"reverse", "random:2", "adversary:3", "random:4", "adversary:5"} for seen in schedules)
    again = run(tmp_path / "again.jsonl", *SUM, *often)
    assert [record["digests"] for record in again] == [record["digests"] for record in first]


def test_what_a_closed_library_would_compute_is_unsupported_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where the caller's shell has its stand-ins on: they are for whole programs, never for evidence."""
    monkeypatch.setenv("VGPU_STAND_INS", "all")
    chosen = ["--source", "cudnn-max-pool-backprop", "--solution", "none", "--repeats", "1", "--relaunches", "1"]
    records = run(tmp_path / "records.jsonl", *chosen)
    assert {record["observation"] for record in records} == {"unsupported"}
    assert all("cudnnPoolingForward" in record["error"]["message"] for record in records)
