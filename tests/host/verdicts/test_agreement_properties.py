"""Agreement over generated records of several signers and machines, compared with a brute-force reference."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tfdet.store.fast_records import DeviceSummary, RecordSummary
from tfdet.store.records import Observation
from tfdet.verdicts.infer import CellKey, EvidenceIndex, InferredCell

STRONGEST_FIRST: tuple[Observation, ...] = ("differs", "raises", "equal", "unsupported")


class Row(NamedTuple):
    signer: str  # empty: unsigned
    machine: str
    case: str
    seen: Observation
    digest: str


OBSERVATIONS: st.SearchStrategy[Observation] = st.sampled_from(STRONGEST_FIRST)
ROWS = st.lists(
    st.builds(
        Row, st.sampled_from(["", "lab", "yard", "den"]), st.sampled_from("1234"), st.sampled_from("ab"),
        OBSERVATIONS, st.sampled_from("xyz"),
    ),
    min_size=1,
    max_size=8,
)  # fmt: skip
PROPERTY = settings(max_examples=500, deadline=None, derandomize=True, database=None)


def cell(rows: list[Row]) -> InferredCell:
    evidence = EvidenceIndex({"source": {"now"}})  # "now": the current hash of every case
    for row in rows:
        runs = 0 if row.seen in ("raises", "unsupported") else 30
        differed = 30 if row.seen == "differs" else 0
        digests = [row.digest * 64] if runs else []
        summary = RecordSummary("tf2.0", DeviceSummary("cpu", "cpu"), "source", row.case, row.machine, "none", "now",
                                row.seen, runs, differed, 0.1, digests)  # fmt: skip
        evidence.add(summary, row.signer)
    return evidence.cell(CellKey("tf2.0", "cpu", "source", "none"))


def agreement(rows: list[Row]) -> tuple[object, ...]:
    inferred = cell(rows)
    pairs = {(found.signers, found.on, found.cases) for found in inferred.agreements}
    return pairs, inferred.agreeing_signers, inferred.agreeing_machines, inferred.verified


def strongest(rows: list[Row]) -> Observation:
    return min((row.seen for row in rows), key=STRONGEST_FIRST.index)


def reference(rows: list[Row]) -> tuple[object, ...]:
    """Compare each pair of signers and each pair of machines, case by case; return what `agreement` does."""
    seen = strongest(rows)
    signers = {row.signer: [r for r in rows if r.signer == row.signer] for row in rows if row.signer}
    machines = {row.machine: [r for r in rows if r.machine == row.machine] for row in rows}

    def cases(own: list[Row]) -> set[str]:
        return {row.case for row in own if row.seen == seen == strongest(own)}

    def digests(own: list[Row], case: str) -> set[str]:
        places = {row.machine for row in own if row.case == case and row.seen == seen}
        return {r.digest for r in own if r.case == case and r.machine in places and r.seen in ("equal", "differs")}

    pairs = set()
    for first, second in combinations(sorted(signers), 2):
        one, other = signers[first], signers[second]
        shared = sorted(cases(one) & cases(other))
        if seen == "unsupported" or not shared or {r.machine for r in one} & {r.machine for r in other}:
            continue
        equal = [case for case in shared if digests(one, case) & digests(other, case)]
        pairs.add(((first, second), "digest" if equal else "observation", tuple(equal or shared)))
    agreed = {name for a, b in combinations(machines, 2) if cases(machines[a]) & cases(machines[b]) for name in (a, b)}
    alone = any(cases(own) for own in machines.values())
    conflict = len({strongest(own) for own in signers.values()} - {"unsupported"}) > 1
    names = sorted({name for pair in pairs for name in pair[0]})
    return pairs, names, len(agreed) or int(alone), bool(pairs) and not conflict


@PROPERTY
@given(rows=ROWS)
def test_agreement_is_that_of_the_reference(rows: list[Row]) -> None:
    assert agreement(rows) == reference(rows)


@PROPERTY
@given(rows=ROWS, data=st.data())
def test_order_and_duplicates_change_no_agreement(rows: list[Row], data: st.DataObject) -> None:
    more = data.draw(st.lists(st.sampled_from(rows), max_size=4))
    assert agreement(data.draw(st.permutations([*rows, *more]))) == agreement(rows)


@PROPERTY
@given(rows=ROWS, machine=st.sampled_from("12345"), case=st.sampled_from("abc"), seen=OBSERVATIONS)
def test_a_disagreeing_signer_raises_no_count(rows: list[Row], machine: str, case: str, seen: Observation) -> None:
    if seen == strongest(rows):
        return
    before, after = cell(rows), cell([*rows, Row("newcomer", machine, case, seen, "x")])
    assert set(after.agreeing_signers) <= set(before.agreeing_signers)
    assert after.agreeing_machines <= before.agreeing_machines
    assert after.verified <= before.verified
