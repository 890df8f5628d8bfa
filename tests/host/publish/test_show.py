"""`tfdet show` lists each kernel and reason of the binaries, and each explanation of a proof, once.

A reason is why the audit of a build's binaries finds a kernel order-dependent, or not.  A proof says that no order of
execution changes a result.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import pytest
from site_builder import ROOT

from tfdet.publish import proof_views, terminal_views
from tfdet.store.records import Record, read_records
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


def _names(text: str, record: Record) -> bool:
    """Return whether a line such as "proved under none, TEOD on vgpu-sm70: a-case, another" names this record."""
    is_of_device = f" on {proof_views._device_text(record)}: " in text
    return is_of_device and {record.case, record.solution} <= set(text.replace(",", "").split())


@pytest.mark.parametrize("source", ["bias-add-backprop", "scatter-nd-update"])
def test_each_explanation_of_a_proof_is_shown_once(source: str) -> None:
    """The text names each case of each solution on each device, under the explanation that its record has alone."""
    records = [
        record
        for record in read_records(ROOT / "matrix" / "evidence" / "vgpu-sm70" / "tf2.0.jsonl")
        if record.source == source and record.proof
    ]
    names: list[str] = []
    headers: dict[tuple[str, ...], list[str]] = {}  # by the explanation below them
    # Lines of an explanation are indented by six spaces, those of its cases by less.
    for is_explanation, lines in groupby(list(proof_views.explain(records))[1:], lambda line: line.startswith(" " * 6)):
        if is_explanation:
            explanation = tuple(line.strip() for line in lines)
            assert explanation not in headers
            headers[explanation] = names
        else:
            names = list(lines)
    for record in records:
        (found,) = [
            explanation for explanation, texts in headers.items() if any(_names(text, record) for text in texts)
        ]
        assert found == tuple(proof_views.explain_proof(record)[1:])
