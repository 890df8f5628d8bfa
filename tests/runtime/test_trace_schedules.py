"""Runs that differ by a variable of their environment: the virtual GPU's schedules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tfdeterminism.trace.analyse.schedules import Schedules


def test_runs_are_told_apart_by_what_varies(tmp_path: Path) -> None:
    """The virtual GPU's schedules: each run that is compared has the next, and so has the op that runs alone."""
    schedules = Schedules("VGPU_SCHEDULE", ["serial", "reverse", "random:1"])
    assert [schedules.environment(turn, {"A": "b"}) for turn in (0, 4)] == [
        {"VGPU_SCHEDULE": "serial", "A": "b"}, {"VGPU_SCHEDULE": "reverse", "A": "b"}]  # fmt: skip
    launch = {"kernel": "_ZN10tensorflow27UnsortedSegmentCustomKernelIfiE", "order_dependent": [
        {"line": 4865, "shows": "rounding", "atomics": 16384, "addresses": 32}]}  # fmt: skip

    def replay(environment: dict[str, str]) -> dict[str, Any]:
        if "VGPU_REPORT" in environment:
            Path(environment["VGPU_REPORT"]).write_text(json.dumps(launch) + "\n")
        return {"digests": [["serial" if environment["VGPU_SCHEDULE"] == "serial" else "other"] * 2]}

    told, lines = schedules.replayed(replay, str(tmp_path))
    assert told == {"times": 3, "distinct": 2}
    (line,) = lines
    assert line.startswith("kernel UnsortedSegmentCustomKernel: 16,384 atomics of line 4865 of its PTX at 32 addresses")
    assert line.endswith("rounding (a sum of floats)")
    assert Schedules().environment(3) is None
