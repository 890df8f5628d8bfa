"""`tfdet show` lists each kernel and reason of the binaries once."""

from __future__ import annotations

from collections import Counter

import pytest

from tfdet.publish import terminal_views
from tfdet.verdicts.status import Status


@pytest.mark.parametrize(("env", "source"), [("tf2.0", "gather-backprop"), ("tf2.4", "crop-and-resize-backprop")])
def test_each_kernel_is_shown_once_for_each_reason(status: Status, env: str, source: str) -> None:
    finding = status.finding(env, source)
    assert finding is not None and finding.rows
    rows = list(terminal_views._kernels(finding.rows))
    assert Counter((name, answer, reason) for name, _, answer, reason, _ in rows).most_common(1)[0][1] == 1
    pairs = [(row, kernel_finding) for row in finding.rows for kernel_finding in row.kernel.findings]
    assert {arch for *_, archs in rows for arch in archs.split()} == {
        a for _, kernel_finding in pairs for a in kernel_finding.archs.split()
    }
    assert {reason for *_, reason, _ in rows} == {kernel_finding.reason for _, kernel_finding in pairs}


def test_kernels_with_equal_printed_names_are_counted(status: Status) -> None:
    (row,) = status.finding("tf2.0", "gather-backprop").rows[:1]  # type: ignore[union-attr]
    renamed = [row._replace(kernel=row.kernel.model_copy(update={"name": f"{row.kernel.name}{n}"})) for n in range(9)]
    before, after = list(terminal_views._kernels([row])), list(terminal_views._kernels([row, *renamed]))
    assert len(before) == len(after) and all("(10 kernels)" in name for name, *_ in after)
