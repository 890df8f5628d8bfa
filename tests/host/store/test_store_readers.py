"""The store accepts exactly the records that it can read: all entry points use one reader."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from records import STACK, make_record, with_checksum
from signers import H100

from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.store.cases import current_cases
from tfdet.store.consistency import ConsistencyRules
from tfdet.store.evidence import EvidenceStore
from tfdet.store.fast_records import read_line, read_record_lines
from tfdet.store.records import parse
from tfdet_common import journal

Line = Callable[..., bytes]
EXAMPLES = int(os.environ.get("STORE_MUTANTS", "150"))
SOURCE = "bias-add-backprop"


def written(content: dict[str, Any]) -> bytes:
    return (journal.dump({**content, "checksum": journal.checksum(content)}) + "\n").encode()


@pytest.fixture(scope="module")
def rules(checkout: Project) -> ConsistencyRules:
    return ConsistencyRules.from_matrix(load_matrix(checkout.matrix), current_cases(checkout))


@pytest.fixture(scope="module")
def known(rules: ConsistencyRules) -> dict[str, Any]:
    """Return the fields of a case of today's suite."""
    code, cases = next((code, cases) for (name, code), cases in rules.cases.by_hash.items() if name == SOURCE)
    case, mode = sorted(cases or ())[0]
    return {"case_hash": code, "case": case, "mode": mode}


def is_accepted(store: EvidenceStore, path: Path, rules: ConsistencyRules) -> bool:
    """Whether `evidence add` accepts the file; otherwise it must report an error."""
    try:
        store.ingest(list(read_record_lines(path, rules.faults_of_new)))
    except DataError:
        return False
    return True


@pytest.mark.parametrize("end", [b" \n", b"\t\n", b"\r\n", b"\n\n", b"\x0b\n", b"\xc2\xa0\n", b" "])
def test_a_line_that_would_be_stored_otherwise_is_refused(
    tmp_path: Path, rules: ConsistencyRules, record_line: Line, end: bytes
) -> None:
    """Regression: one such line stopped every command that read the store."""
    store, path = EvidenceStore(tmp_path / "evidence", find_faults=rules.faults_of_stored), tmp_path / "records.jsonl"
    for content in (with_checksum(record_line().removesuffix(b"\n") + end), with_checksum(b" " + record_line())):
        path.write_bytes(content)
        assert not is_accepted(store, path, rules)
        with pytest.raises(ValueError, match=r"\w"):
            parse(content)
    path.write_bytes(record_line().removesuffix(b"\n"))  # the last line of a file may have no end
    assert is_accepted(store, path, rules)
    assert [record.line().encode() for file in store.files() for record in store.read(file)] == [record_line()]


FORMS = [  # a pattern of what stands there, and the same in another form
    (rb'"threads":', b'"threads":0,"threads":'),
    (rb'"case":', b'"case":"other","case":'),
    (rb'"stack":{', b'"stack":{"cores":1,'),
    (rb'"threads":', b'"threads": '),
    (rb'"schema":2', b'"schema":2.0'),
    *((rb'"max_absolute":[^,]+', b'"max_absolute":' + form) for form in (b"1e2", b"1E2", b"1.00", b"-0")),
    *((rb'"max_absolute":[^,]+', b'"max_absolute":' + form) for form in (b"0e0", b"1e-400")),
    *((rb'"max_ulp":[^,]+', b'"max_ulp":' + form) for form in (b"-0", b"%d" % 2**64, b"1" + b"0" * 400)),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form[1].decode()[:40])
def test_both_readers_take_one_form_alone(
    tmp_path: Path, rules: ConsistencyRules, record_line: Line, form: tuple[bytes, bytes]
) -> None:
    """Regression: the fast reader accepted a record that the strict reader rejected."""
    body, count = re.subn(form[0], form[1], record_line("differs"), count=1)
    assert count and read_line(record_line("differs"))
    content = with_checksum(body)
    for read in (read_line, parse):
        with pytest.raises(ValueError, match=r"\w"):
            read(content)
    path = tmp_path / "records.jsonl"
    path.write_bytes(content)
    assert not is_accepted(EvidenceStore(tmp_path / "evidence", find_faults=rules.faults_of_stored), path, rules)


@cache
def seeds() -> list[bytes]:
    """Return lines of valid records, which `mutants` changes."""
    fault = {"kind": "crashed", "type": "SIGSEGV", "message": 'said "no"', "where": None}
    records = [make_record(), make_record("differs"), make_record("equal", **H100)]
    records.append({**make_record("crashed"), "error": fault})
    return [written(record) for record in records]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["cpu-fast", "a" * 12, "0" * 13, "a" * 700, "\x7f", "\ud800", "tf2.0 ", "x" * 130, "CPU:0"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=4,
)
PIECES = [b" ", b"\n", b"\t", b"\r\n", b"\\u0041", b'"', b",", b"{}", b"0", b"e0", b".0", b"\x00", b"\x7f", b"\xff",
          b"-", b'"runs":1,', b'"zz":1,', b"}", b"\\n", b"\xc3\xa9"]  # fmt: skip


@st.composite
def mutants(draw: st.DrawFn) -> bytes:
    """A record with one field's value replaced or other bytes inserted, and a matching checksum."""
    line = draw(st.sampled_from(seeds()))
    if draw(st.booleans()):
        content = json.loads(line)
        into = content
        while (
            isinstance(inner := into[key := draw(st.sampled_from(sorted(into)))], dict)
            and inner
            and draw(st.booleans())
        ):
            into = inner
        into[key] = draw(VALUES)
        return with_checksum(journal.dump(content).encode() + b"\n")
    body = bytearray(line)
    for _ in range(draw(st.integers(1, 3))):
        position = draw(st.integers(0, len(body)))
        body[position : position + draw(st.integers(0, 3))] = draw(st.sampled_from(PIECES) | st.binary(max_size=2))
    return with_checksum(bytes(body))


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(line=mutants())
def test_every_accepted_file_is_read(
    tmp_path_factory: pytest.TempPathFactory, rules: ConsistencyRules, line: bytes
) -> None:
    """Both readers return the same content of the record."""
    folder = tmp_path_factory.mktemp("store")
    store, path = EvidenceStore(folder / "evidence", find_faults=rules.faults_of_stored), folder / "records.jsonl"
    path.write_bytes(line)
    if is_accepted(store, path, rules):
        stored_records = [record for file in store.files() for record in store.read(file)]
        assert [record.line().encode().rstrip(b"\n") for record in stored_records] == [line.rstrip(b"\n")]
    for single in line.splitlines(keepends=True):
        assert is_record(parse, single) == is_record(read_line, single)


def is_record(read: Callable[[bytes], object], line: bytes) -> bool:
    try:
        read(line)
    except ValueError:
        return False
    return True


def case_hash_of_another_source(rules: ConsistencyRules) -> str:
    return next(code for (name, code) in rules.cases.by_hash if name == "crop-and-resize-backprop")


# (what is false, changed fields); TDO is the solution that sets TF_DETERMINISTIC_OPS=1, MSEED is one of PyTorch.
FALSE: list[tuple[str, dict[str, Any]]] = [
    ("a device that there is not", {"device": {"kind": "cpu", "model": "cpu-fast"}}),
    ("a processor with a driver", {"stack": {**STACK, "driver": "550.54"}}),
    ("a card's name where there is none", {"device": {"kind": "vgpu", "model": "vgpu-sm90"}, "ran_on": ["GPU:0"],
                                           "stack": H100["stack"]}),
    ("a card's name as a detail", {"ran_on": ["GPU:0"], "device": {
        "kind": "vgpu", "model": "vgpu-sm90", "details": {"reference": "NVIDIA H100 80GB HBM3"}}}),
    ("a machine with a zero more", {"machine": "0" * 13}),
    ("a machine with a long name", {"machine": "a" * 3_000_000}),
    ("an environment with a long name", {"environment": "t" * 200}),
    ("more places than there are", {"ran_on": ["CPU:0"] * 100}),
    ("what it does not set", {"determinism_environment": {"TF_DETERMINISTIC_OPS": "1"}}),
    ("what sets more", {"solution": "TDO", "determinism_environment": {}}),
    ("threads of its own", {"threads": 1}),
    ("another framework's solution", {"solution": "MSEED"}),
    ("ops that were seen nowhere", {"ran_on": []}),
    ("ranks of one process", {"ranks": {"number": 2, "launcher": "horovodrun", "transport": "gloo", "library": None,
                                        "variables": {}, "differed": [0, 0], "outputs": {}, "agreed": 0}}),
]  # fmt: skip


@pytest.mark.parametrize("row", [*FALSE, ("another source's case", {})], ids=lambda row: row[0])
def test_a_false_record_is_neither_accepted_nor_read(
    tmp_path: Path, rules: ConsistencyRules, known: dict[str, Any], row: tuple[str, dict[str, Any]]
) -> None:
    changes = row[1] or {"case_hash": case_hash_of_another_source(rules)}
    content = make_record("equal", **{**known, **{k: v for k, v in changes.items() if k != "solution"}})
    content["solution"] = changes.get("solution", content["solution"])
    store, path = EvidenceStore(tmp_path / "evidence", find_faults=rules.faults_of_stored), tmp_path / "records.jsonl"
    path.write_bytes(written(make_record("equal", **known)))
    assert is_accepted(store, path, rules), "what is changed here is a record"
    path.write_bytes(written(content))
    assert not is_accepted(store, path, rules)
    lying = store.path(content["device"]["model"], content["environment"][:100])
    lying.parent.mkdir(parents=True, exist_ok=True)
    lying.write_bytes(written(content))
    with pytest.raises(DataError):
        list(store.record_lines(lying))
