"""Records that no run can produce are rejected by `evidence add`, `status --write` and `--check`."""

from __future__ import annotations

import json
import os
import pty
import random
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import weekly
from msgspec.structs import replace
from record_mutants import HUGE, mutate
from records import STACK, device_of, make_record, proof_of
from test_status import run_tfdet

from tfdet.base.errors import DataError, ExitCode
from tfdet.base.paths import Project
from tfdet.matrix.devices import DeviceRegistry
from tfdet.matrix.load import load_matrix
from tfdet.store.cases import current_cases, current_hashes
from tfdet.store.consistency import ConsistencyRules, device_faults
from tfdet.store.evidence import EvidenceStore
from tfdet.store.fast_records import read_record_lines, summarize, to_record_line
from tfdet.store.records import Record, parse
from tfdet.verdicts.infer import CellKey, EvidenceIndex, RecordSummary, Verdict
from tfdet_common import journal

H100 = device_of("nvidia-h100")
ERROR = {"kind": "crashed", "type": "SIGSEGV", "message": "planted", "where": None}
VGPU = device_of("vgpu-sm70")
TODAY = f"{datetime.now(UTC):%Y-%m-%d}T00:00:00Z"


def gpu_fields(**changes: Any) -> dict[str, Any]:
    """Return the fields of a record of a GPU, with changes of its software stack."""
    stack = {"gpu": "NVIDIA H100", "driver": "550.54", "compute_capability": "9.0"}
    return {"device": H100, "ran_on": ["GPU:0"], "stack": {**STACK, **stack, **changes}}


def virtual_gpu_fields(**changes: Any) -> dict[str, Any]:
    """Return the fields of a record of the virtual GPU, with changes of its details; None: without this detail.

    Details: reference and schedules: of the runs; sources: hash of the virtual GPU's source code.
    """
    details = {"reference": "serial", "schedules": ["reverse"], "sources": "0" * 12, **changes}
    given_details = {name: value for name, value in details.items() if value is not None}
    return {"device": {**VGPU, "details": given_details}, "ran_on": ["GPU:0"]}


# Changes of a valid record that make it impossible: (what is wrong, observation, changed fields).  Those of IN_TABLES
# would change a table, or contradict a field that does.  A case runs `repeats` times in each of `relaunches` processes,
# and `distinct` counts different results.
IN_TABLES: list[tuple[str, str, dict[str, Any]]] = [
    ("many results, and yet equal", "equal", {"distinct": 999}),
    ("one result, and yet it differs", "differs", {"distinct": 1, "digests": ["a" * 64]}),
    ("more results than runs differed", "differs", {"differed": 1, "distinct": 3, "digests": [c * 64 for c in "abc"]}),
    ("no digests", "equal", {"digests": []}),
    ("no runs", "equal", {"runs": 0}),
    ("no repeats", "equal", {"runs": 0, "repeats": 0}),
    ("huge", "equal", {"runs": HUGE, "repeats": HUGE}),
    ("large", "equal", {"runs": 10**12, "repeats": 10**12}),
    ("runs that are missing", "equal", {"repeats": 20}),
    ("half a process", "crashed", {"runs": 5, "distinct": 1, "digests": ["a" * 64], "median_seconds": 0.25}),
    ("equal with a crash", "equal", {"error": ERROR}),
    ("a crash without an error", "crashed", {"error": None}),
    ("a crash that raises", "crashed", {"error": {**ERROR, "kind": "raises"}}),
    ("a first difference of nothing", "equal", {"first_differing": {"relaunch": 0, "repeat": 0}}),
    ("a difference without a first", "differs", {"first_differing": None}),
    ("a first beyond the repeats", "differs", {"first_differing": {"relaunch": 0, "repeat": 10}}),
    ("a first beyond the relaunches", "differs", {"first_differing": {"relaunch": 1, "repeat": 0}}),
    ("a distance of nothing", "equal", {"max_ulp": 1}),
    ("an absolute distance of nothing", "equal", {"max_absolute": 0.5}),
    ("runs untimed", "equal", {"median_seconds": None}),
    ("a time of no run", "raises", {"median_seconds": 0.25}),
    ("less than no time", "equal", {"median_seconds": -1.0}),
    ("a year and more", "equal", {"duration_seconds": 4e7}),
    ("a duration that nobody can add up", "equal", {"duration_seconds": 1e308}),
    ("runs that take longer than all", "equal", {"duration_seconds": 1.2}),
    ("a run that takes longer than all", "equal", {"median_seconds": 3.0, "repeats": 1, "runs": 1}),
    ("an end in the future", "equal", {"started": TODAY, "duration_seconds": 3e6}),
    ("1970", "equal", {"started": "1970-01-01T00:00:00Z"}),
    ("no such day", "equal", {"started": "2026-02-30T00:00:00Z"}),
    ("no such hour", "equal", {"started": "2026-01-01T24:00:00Z"}),
    (
        "another GPU",
        "equal",
        {"device": H100, "ran_on": ["GPU:0"], "stack": {**STACK, "gpu": "GT 710"}},
    ),
    ("a CPU with a GPU", "equal", {"stack": {**STACK, "gpu": "GT 710"}}),
    ("a GPU without a name", "equal", {"device": H100, "ran_on": ["GPU:0"]}),
    ("no cores", "equal", {"stack": {**STACK, "cores": 0}}),
    ("fewer cores than none", "equal", {"stack": {**STACK, "cores": -1}}),
    ("a virtual environment of an image", "equal", {"stack": {**STACK, "image_digest": f"x@sha256:{'c' * 64}"}}),
    ("a GPU with another's capability", "equal", gpu_fields(compute_capability="7.0")),
    ("a GPU with no number for a capability", "equal", gpu_fields(compute_capability="hopper")),
    ("a GPU without a capability", "equal", gpu_fields(compute_capability=None)),
    ("a GPU with no number for a driver", "equal", gpu_fields(driver="new")),
    ("a GPU that its name alone tells of", "equal", gpu_fields(driver=None)),
    ("a virtual GPU without details", "equal", {"device": VGPU, "ran_on": ["GPU:0"]}),
    ("a virtual GPU without schedules", "equal", virtual_gpu_fields(schedules=None)),
    ("a schedule that does not exist", "equal", virtual_gpu_fields(schedules=["reverse", "sideways:7"])),
    ("a seed that is none", "equal", virtual_gpu_fields(schedules=["random:x"])),
    ("a reference that does not exist", "equal", virtual_gpu_fields(reference="best")),
    ("code that no kernel has", "equal", virtual_gpu_fields(code=["python"])),
    ("code that cannot be chosen", "equal", virtual_gpu_fields(chosen_code="python")),
    ("no multiprocessors", "equal", virtual_gpu_fields(multiprocessors=0)),
    ("the default number of multiprocessors", "equal", virtual_gpu_fields(multiprocessors=2)),
    ("more multiprocessors than there can be", "equal", virtual_gpu_fields(multiprocessors=1025)),
    ("a number of multiprocessors as a text", "equal", virtual_gpu_fields(multiprocessors="108")),
    ("several numbers of multiprocessors", "equal", virtual_gpu_fields(multiprocessors=["108"])),
    ("a placement as a text", "equal", virtual_gpu_fields(placement="1")),
    ("a seed of the placement that is too large", "equal", virtual_gpu_fields(placement=1 << 32)),
    ("CPU fallbacks", "equal", virtual_gpu_fields(cpu_fallbacks=[])),
    ("a CPU with a proof", "equal", {"proof": proof_of(True)}),
    (
        "a proof of what is no schedule",
        "equal",
        {**virtual_gpu_fields(), "proof": {**proof_of(True), "observed": ["sideways"]}},
    ),
    ("an engine that does not exist", "equal", {"stack": {**STACK, "engine": "venv."}}),
    ("a bundle that tells nothing", "equal", {"stack": {**STACK, "engine": "bundle"}}),
    ("no Python", "equal", {"stack": {**STACK, "python": "3.11.73.11.7"}}),
    ("no NumPy", "equal", {"stack": {**STACK, "numpy": "1.18.5 1.18.5"}}),
    ("a framework of no version", "equal", {"framework": {"name": "tensorflow", "version": "2.0.0../x"}}),
    ("a place twice", "equal", {"ran_on": ["CPU:0", "CPU:0"]}),
    *((f"a place without a number: {place}", "equal", {"ran_on": [place]}) for place in ("CPU:", "CPU:x", "CPU:-1")),
    ("a place with a zero more", "equal", {"ran_on": ["CPU:00"]}),
    ("source code without a hash", "equal", virtual_gpu_fields(sources="abc")),
    ("a schedule twice", "equal", virtual_gpu_fields(schedules=["reverse", "reverse"])),
    ("a code twice", "equal", virtual_gpu_fields(code=["ptx", "ptx"])),
    ("a Python that runs no probe", "equal", {"stack": {**STACK, "python": "2.7.18"}}),
    ("a Python with a zero more", "equal", {"stack": {**STACK, "python": "3.07.16"}}),
    (
        "a capability with a zero more",
        "equal",
        {**gpu_fields(gpu="NVIDIA X900", compute_capability="09.0"), "device": device_of("nvidia-x900")},
    ),
    ("a kind that nobody knows", "equal", {"device": device_of("tpu")}),
    ("a model of another kind", "equal", {"device": {"kind": "cpu", "model": "nvidia-h100"}}),
]
NOT_IN_TABLES: list[tuple[str, str, dict[str, Any]]] = [
    ("a digest that is none", "equal", {"digests": ["a" * 63]}),
    ("a digest twice", "differs", {"digests": ["a" * 64] * 2}),
    ("a CPU with kernels", "equal", {"kernels": ["sgemm"]}),
    ("a CPU with details", "equal", {"device": {**device_of("cpu"), "details": {"clock": 3}}}),
    ("a GPU beside the CPU", "equal", {"ran_on": ["CPU:0", "GPU:0"]}),
    ("nowhere and somewhere", "raises", {"ran_on": ["CPU:0"]}),
]


@pytest.fixture
def project(copy: Project) -> Project:
    """A project without records or trusted keys, to which a test adds."""
    for path in copy.evidence.glob("*/*.jsonl"):
        path.unlink()
    return copy


def line_with_checksum(content: dict[str, Any]) -> bytes:
    """Return the record with a matching checksum."""
    return (journal.dump({**content, "checksum": journal.checksum(content)}) + "\n").encode()


def current_case_fields(project: Project) -> dict[str, Any]:
    """Return the fields of a current case of a source."""
    by_hash = current_cases(project).by_hash  # {(source, case hash): {(case, mode)}}
    code, cases = next((code, cases) for (name, code), cases in by_hash.items() if name == "bias-add-backprop")
    case, mode = sorted(cases or ())[0]
    return {"case_hash": code, "case": case, "mode": mode}


def parse_valid(devices: DeviceRegistry, line: bytes) -> Record:
    """Parse a record; ValueError if it is invalid."""
    record = parse(line)
    if faults := device_faults(devices, record):
        raise ValueError("; ".join(faults))
    return record


@pytest.fixture(scope="module")
def devices(checkout: Project) -> DeviceRegistry:
    return load_matrix(checkout.matrix).devices


@pytest.mark.parametrize("row", IN_TABLES + NOT_IN_TABLES, ids=lambda row: row[0])
def test_a_record_that_no_run_can_write_is_rejected(
    devices: DeviceRegistry, row: tuple[str, str, dict[str, Any]]
) -> None:
    genuine = make_record(row[1])
    parse_valid(devices, line_with_checksum(genuine))
    with pytest.raises(ValueError, match=r"\w"):
        parse_valid(devices, line_with_checksum({**genuine, **row[2]}))


@pytest.mark.parametrize("stack_fields", [gpu_fields(), virtual_gpu_fields(), virtual_gpu_fields(schedules=[])])
def test_the_record_that_stack_rules_are_tested_with_is_valid(
    devices: DeviceRegistry, stack_fields: dict[str, Any]
) -> None:
    parse_valid(devices, line_with_checksum({**make_record(), **stack_fields}))


@pytest.mark.parametrize("row", IN_TABLES, ids=lambda row: row[0])
def test_the_fast_reader_of_status_refuses_it_too(
    devices: DeviceRegistry, row: tuple[str, str, dict[str, Any]], tmp_path: Path
) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(line_with_checksum({**make_record(row[1]), **row[2]}))
    with pytest.raises(DataError):
        list(read_record_lines(path, partial(device_faults, devices)))


@pytest.mark.parametrize(
    "changes",
    [
        {"case": "no-such-case-eager"},
        {"mode": "xla"},
        {"solution": "TDO"},  # TF_DETERMINISTIC_OPS, which is not in determinism_environment
        {"solution": "TCD", "determinism_environment": {"TF_CUDNN_DETERMINISTIC": "1"}},  # concerns no CPU
        {"environment": "tf2.21"},
        {"source": "no-such-source"},
        {"distinct": 999},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_add_write_and_check_refuse_alike(
    project: Project, record_line: Callable[..., bytes], changes: dict[str, Any]
) -> None:
    record = record_line(**{**current_case_fields(project), **changes})
    path = project.root / "records.jsonl"
    path.write_bytes(record)
    (project.evidence / "cpu").mkdir(exist_ok=True)
    stored = project.evidence / "cpu" / f"{changes.get('environment', 'tf2.0')}.jsonl"
    for how in (["evidence", "add", "--yes", path], ["status", "--write"], ["status", "--check"]):
        done = run_tfdet(project, *how)
        assert (done.returncode, "Traceback" in done.stderr) == (ExitCode.USAGE, False), how
        stored.write_bytes(record)


def test_a_case_that_has_changed_since_is_stale_whatever_its_name(
    project: Project, record_line: Callable[..., bytes]
) -> None:
    path = project.root / "records.jsonl"
    path.write_bytes(record_line(case="a-name-of-old-eager"))
    assert run_tfdet(project, "evidence", "add", "--yes", path).returncode == 0


@pytest.mark.no_cover  # thousands of records, and nothing that other tests do not reach
def test_the_evidence_names_cases_that_the_text_of_the_suite_gives(checkout: Project) -> None:
    cases, hashes = current_cases(checkout), current_hashes(checkout)
    assert None not in cases.by_hash.values()
    store = EvidenceStore(checkout.evidence)
    files = weekly.select_for_today(store.files(), days=weekly.DAYS)
    records = [r for path in files for r in store.read(path) if r.case_hash in hashes[r.source]]
    assert len(records) > 1000
    assert all(cases.has(r.source, r.case_hash, r.case, r.mode) for r in records)


MUTANTS = weekly.scale_count(10_000)  # fewer except once a week
InferredCells = dict[CellKey, tuple[Verdict, int]]


def inferred_cells(hashes: dict[str, set[str]], records: list[RecordSummary]) -> InferredCells:
    """Return {cell: (verdict, runs)}, without cells that have only stale records."""
    evidence = EvidenceIndex(hashes).extend(records)
    cells = {key: evidence.cell(key) for key in evidence.cell_keys()}
    return {key: (cell.verdict, cell.runs) for key, cell in cells.items() if cell.verdict is not Verdict.STALE}


def verdict_inputs(record: Record) -> RecordSummary:
    """Return what reaches a verdict; other values differ between honest runs, so only a signature covers them."""
    return replace(summarize(record), machine="", seconds=None, differed=0, digests=[])


@pytest.mark.no_cover  # thousands of records, and nothing that other tests do not reach
def test_every_mutant_is_refused_or_harmless(checkout: Project) -> None:
    """An accepted mutant gives the genuine record's cells, those of that record without its proof, or none.

    No mutation renames a solution or case to another of its kind, because such a record is possible, too.  Without its
    proof a record says less, as one of a run without `--prove` does.
    """
    rules, hashes = (
        ConsistencyRules.from_matrix(load_matrix(checkout.matrix), current_cases(checkout)),
        current_hashes(checkout),
    )
    store, rng = EvidenceStore(checkout.evidence), random.Random(10)
    files = {path: list(store.read(path)) for path in weekly.select_for_today(store.files(), days=weekly.DAYS)}
    refused, judged = 0, 0
    for number in range(MUTANTS):
        path = rng.choice(sorted(files))
        genuine = rng.choice(files[path])
        content = mutate(rng, json.loads(genuine.line()))
        try:
            mutant = parse(line_with_checksum(content))
        except ValueError:
            refused += 1
            continue
        if rules.faults_of_new(to_record_line(mutant).record):
            refused += 1
        elif verdict_inputs(mutant) != verdict_inputs(genuine):
            judged += 1
            rest = [summarize(record) for record in files[path] if record is not genuine]
            now = inferred_cells(hashes, [*rest, summarize(mutant)])
            unproved = replace(summarize(genuine), proof=None)
            allowed = ([*rest, summarize(genuine)], [*rest, unproved], rest)
            assert any(now == inferred_cells(hashes, records) for records in allowed), (number, content)
    assert refused > MUTANTS / 2
    assert judged


def test_add_shows_what_would_change_and_takes_nothing_unasked(
    project: Project, record_line: Callable[..., bytes]
) -> None:
    path = project.root / "records.jsonl"
    path.write_bytes(record_line("differs", **current_case_fields(project)))
    done = run_tfdet(project, "evidence", "add", path)
    assert done.returncode == ExitCode.USAGE
    for words in ("--yes", "never run", "nondeterministic 10/10", "measured by a single machine"):
        assert words in done.stderr
    assert not list(project.evidence.glob("*/*.jsonl"))
    assert run_tfdet(project, "evidence", "add", "--yes", path).returncode == 0
    second_run = run_tfdet(project, "evidence", "add", path)
    assert (second_run.returncode, "1 duplicates" in second_run.stderr) == (0, True), (
        "nothing changes: nothing is asked"
    )


@pytest.mark.parametrize(("answer", "code", "files"), [("y\n", 0, 1), ("n\n", ExitCode.INTERRUPTED, 0)])
def test_add_asks_a_person(
    project: Project, record_line: Callable[..., bytes], answer: str, code: int, files: int
) -> None:
    path = project.root / "records.jsonl"
    path.write_bytes(record_line("differs", **current_case_fields(project)))
    controller, terminal = pty.openpty()
    os.write(controller, answer.encode())
    done = subprocess.run(
        [sys.executable, "-m", "tfdet", "evidence", "add", str(path)], stdin=terminal, capture_output=True, text=True,
        env={**os.environ, "TFDET_ROOT": str(project.root)}, timeout=120,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert len(list(project.evidence.glob("*/*.jsonl"))) == files


@pytest.mark.parametrize(
    ("machines", "text", "mark"),
    [("a", "measured by a single machine", "| ✗ 10/10 |"), ("ab", "measured by 2 machines", "| ✗ 20/20 ×2 |")],
)
def test_a_cell_says_how_many_machines_measured_it(
    project: Project, record_line: Callable[..., bytes], machines: str, text: str, mark: str
) -> None:
    path = project.root / "records.jsonl"
    path.write_bytes(
        b"".join(record_line("differs", **current_case_fields(project), machine=name * 12) for name in machines)
    )
    assert run_tfdet(project, "evidence", "add", "--yes", path).returncode == 0
    assert run_tfdet(project, "status", "--write").returncode == 0
    cells = json.loads(run_tfdet(project, "status", "--json").stdout)["cells"]
    assert [cell["machines"] for cell in cells if cell["backing"] == "measured"] == [len(machines)]
    assert text in run_tfdet(project, "show", "tf2.0", "bias-add-backprop").stdout
    assert mark in (project.root / "docs" / "reference" / "status" / "cpu.md").read_text()
