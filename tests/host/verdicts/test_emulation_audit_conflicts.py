"""Conflicts between records of the virtual GPU and the audit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tfdet.matrix.models import NONE
from tfdet.verdicts.emulation_audit_conflicts import find_conflicts
from tfdet.verdicts.infer import CellKey, InferredCell, Verdict
from tfdet.verdicts.status import Status


def test_every_conflict_of_emulation_and_audit_is_explained(status: Status) -> None:
    conflicts = list(find_conflicts(status))
    assert [(conflict.source, conflict.environment) for conflict in conflicts if not conflict.why] == []
    assert "scatter-nd-update" in {
        conflict.source for conflict in conflicts
    }  # plain stores: no audit of atomics can see them


def test_emulation_decides_where_reachability_is_unknown(status: Status) -> None:
    """Reachability was determined from 1.14 on; 1.13.1 ships the same atomics in segment sums."""
    cells = {
        verdict: _conflicts_of_segment_sum(status, verdict) for verdict in (Verdict.NONDETERMINISTIC, Verdict.NOT_SHOWN)
    }
    assert cells == {Verdict.NONDETERMINISTIC: [], Verdict.NOT_SHOWN: []}


def _conflicts_of_segment_sum(status: Status, verdict: Verdict) -> list[str]:
    """Return the sources that conflict if the virtual GPU had this verdict of segment-sum."""
    key = CellKey("tf1.13.1", "vgpu-sm70", "segment-sum", NONE)
    return [
        conflict.source for conflict in find_conflicts(replace(status, verdicts={key: InferredCell(verdict, runs=20)}))
    ]


@pytest.mark.parametrize(
    ("verdict", "is_reachable", "expected"),
    [
        (Verdict.NONDETERMINISTIC, False, ["bincount"]),
        (Verdict.NONDETERMINISTIC, True, []),
        (Verdict.NOT_SHOWN, True, ["bincount"]),
        (Verdict.NOT_SHOWN, False, []),
        (Verdict.UNSUPPORTED, True, []),
    ],
)
def test_emulation_and_audit_conflict_if_exactly_one_finds_it(
    status: Status, verdict: Verdict, is_reachable: bool, expected: list[str]
) -> None:
    """Versions 2.0 and 2.4: bincount reaches its kernels' atomics from 2.3 on."""
    key = CellKey("tf2.4" if is_reachable else "tf2.0", "vgpu-sm70", "bincount", NONE)
    conflicts = list(find_conflicts(replace(status, verdicts={key: InferredCell(verdict, runs=20)})))
    assert [conflict.source for conflict in conflicts] == expected
