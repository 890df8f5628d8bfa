"""`tfdet status --check` passes, and fails when a record, a claim or a cell is edited by hand.

Solutions: TDO and TCD set TF_DETERMINISTIC_OPS and TF_CUDNN_DETERMINISTIC, TEOD is enable_op_determinism(), TDP and ED
are tfdeterminism's patch() and enable_determinism(). The fixture copy is a copy of the data that a test may change.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import weekly
from records import STACK
from signers import Signer, write_attestations

from tfdet.base.errors import ExitCode
from tfdet.base.paths import Project


def run_tfdet(project: Project, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `python -m tfdet` on the project."""
    return subprocess.run(
        [sys.executable, "-m", "tfdet", *map(str, arguments)],
        cwd=project.root,
        env={**os.environ, "TFDET_ROOT": str(project.root)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def first_record(project: Project) -> Path:
    """Return the first of the project's files of CPU records."""
    return next(iter(sorted(project.evidence.glob("cpu/*.jsonl"))))


def test_check_fails_when_a_record_is_changed(copy: Project) -> None:
    path = first_record(copy)
    path.write_text(path.read_text().replace('"observation":"equal"', '"observation":"differs"', 1))
    done = run_tfdet(copy, "status", "--check")
    assert done.returncode == ExitCode.USAGE
    assert f"{path.name}:" in done.stderr
    assert "checksum" in done.stderr


def test_check_fails_when_a_record_is_removed(copy: Project) -> None:
    path = first_record(copy)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    assert run_tfdet(copy, "status", "--check").returncode == ExitCode.CONTRADICTED


def test_check_fails_when_a_claim_is_changed(copy: Project) -> None:
    path = copy.matrix / "sources" / "tensorflow" / "bias-add-backprop.toml"
    path.write_text(path.read_text().replace('solutions = ["TDP"]', 'solutions = ["TCD"]', 1))
    assert run_tfdet(copy, "status", "--check").returncode == ExitCode.CONTRADICTED


def test_check_fails_when_a_cell_is_changed(copy: Project) -> None:
    path = copy.root / "docs" / "reference" / "status" / "cpu.md"
    text = path.read_text()
    changed = re.sub(r"✗ \d+/\d+", "✓ 0/60", text, count=1)
    assert changed != text
    path.write_text(changed)
    done = run_tfdet(copy, "status", "--check")
    assert done.returncode == ExitCode.CONTRADICTED
    assert "cpu.md" in done.stderr
    assert "--write" in done.stderr


def test_check_fails_when_the_evidence_contradicts_a_claim(copy: Project) -> None:
    path = copy.matrix / "sources" / "tensorflow" / "crop-and-resize-backprop.toml"
    text = path.read_text()
    claim = re.search(r'stock = ">=2.6"\nsolutions = \["TDO"\]\noutcome = "deterministic"', text)
    assert claim, "the claim that this test widens"
    path.write_text(text.replace(claim[0], claim[0].replace(">=2.6", ">=2.0")))
    run_tfdet(copy, "status", "--write")
    done = run_tfdet(copy, "status", "--check")
    assert done.returncode == ExitCode.CONTRADICTED, done.stderr
    assert "crop-and-resize-backprop under TDO in tf2.0 on cpu: claimed deterministic" in done.stderr


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *weekly.select_for_today(
            [("<!-- tfdet:begin gpu -->", "<!-- tfdet:begin gpu-->"), ("<!-- tfdet:end gpu -->\n", "")]
        ),
        *weekly.select_for_today([("TCD or TDP<sup>d</sup>", "TCD or TDP<sup>m</sup>"), ("\n", "\r\n")]),
    ],
)
def test_check_fails_when_a_marker_a_gpu_cell_or_line_ends_are_changed(copy: Project, before: str, after: str) -> None:
    path = copy.root / "README.md"
    old = path.read_bytes()
    path.write_bytes(old.replace(before.encode(), after.encode()))
    assert path.read_bytes() != old
    assert run_tfdet(copy, "status", "--check").returncode in (ExitCode.CONTRADICTED, ExitCode.USAGE)


def test_check_fails_when_docs_status_is_changed(copy: Project) -> None:
    path = copy.root / "docs" / "reference" / "status" / "measured.md"
    path.write_text(path.read_text().replace("≈ |", "✓ |", 1))
    assert run_tfdet(copy, "status", "--check").returncode == ExitCode.CONTRADICTED


@pytest.mark.parametrize(
    "change",
    weekly.select_for_today([lambda text: text.replace('"measured": false', '"measured": true', 1), lambda _: ""]),
)
def test_check_fails_when_the_packaged_facts_are_changed(copy: Project, change: Callable[[str], str]) -> None:
    copy.known_file.write_text(change(copy.known_file.read_text()))
    done = run_tfdet(copy, "status", "--check")
    assert done.returncode == ExitCode.CONTRADICTED
    assert "known.json" in done.stderr
    assert run_tfdet(copy, "status", "--write").returncode == 0
    assert run_tfdet(copy, "status", "--check").returncode == 0


def test_check_fails_when_a_solution_was_changed_after_its_measurement(copy: Project) -> None:
    path = copy.matrix / "solutions" / "tensorflow" / "TDO.toml"
    path.write_text(path.read_text().replace('TF_DETERMINISTIC_OPS = "1"', 'TF_DETERMINISTIC_OPS = "0"'))
    run_tfdet(copy, "status", "--write")
    done = run_tfdet(copy, "status", "--check")
    assert done.returncode == ExitCode.USAGE
    assert "made with another TDO" in done.stderr


def test_check_passes_after_write(copy: Project) -> None:
    path = copy.root / "docs" / "reference" / "status" / "cpu.md"
    path.write_text(path.read_text().replace("✗", "?"))
    assert run_tfdet(copy, "status", "--write").returncode == 0
    assert run_tfdet(copy, "status", "--check").returncode == 0


@pytest.fixture(scope="module")
def cells(checkout: Project) -> list[dict[str, Any]]:
    """Return the cells of `tfdet status --json` in this checkout."""
    output = json.loads(run_tfdet(checkout, "status", "--json").stdout)
    assert set(output) == {"cells"}
    listed: list[dict[str, Any]] = output["cells"]
    return listed


def test_json_is_the_documented_shape(cells: list[dict[str, Any]]) -> None:
    shape = {"environment", "device", "source", "solution", "verdict", "runs", "differed", "bound95", "time_ratio",
             "backing"}  # fmt: skip
    assert all(shape <= set(cell) for cell in cells)
    assert {cell["backing"] for cell in cells} <= {"measured", "emulated", "audited", "documented", ""}


def test_a_gpu_claim_is_never_backed_by_a_cpu(cells: list[dict[str, Any]]) -> None:
    gpu = [cell for cell in cells if cell["device"] == "gpu"]
    assert gpu
    assert {(cell["backing"], cell["verdict"]) for cell in gpu} <= {("documented", ""), ("audited", "")}


@pytest.fixture
def mark_on_a_gpu(copy: Project, record_line: Callable[..., bytes], tmp_path: Path) -> Callable[..., str]:
    """Return the GPU page's marks of a source for TF 2.1 with these (observation, solution) records of a GPU.

    d: documented, a: audited, p: replaced, m: measured, ✗: refuted; NS1: no solution.
    """
    from tfdet.store.cases import current_cases

    for emulated in copy.evidence.glob("vgpu-*"):
        shutil.rmtree(emulated)
    by_hash, lab = current_cases(copy).by_hash, Signer("lab")
    stack = {**STACK, "gpu": "NVIDIA H200", "driver": "550.54", "compute_capability": "9.0"}
    variables = {"TDO": {"TF_DETERMINISTIC_OPS": "1"}, "ED": {}, "none": {}}

    def mark(source: str, row: str, *showed: tuple[str, str]) -> str:
        shutil.rmtree(copy.evidence / "nvidia-h200", ignore_errors=True)
        case_hash, cases = next((code, cases) for (name, code), cases in by_hash.items() if name == source)
        case, mode = sorted(cases or ())[0]
        gpu = {
            "environment": "tf2.1",
            "device": "nvidia-h200",
            "source": source,
            "case_hash": case_hash,
            "case": case,
            "mode": mode,
            "stack": stack,
            "version": "2.1.0",
        }
        records = [
            record_line(
                observations,
                **gpu,
                ran_on=[] if observations == "crashed" else ["GPU:0"],
                solution=s,
                relaunches=2,
                determinism_environment=variables[s],
            )
            for observations, s in showed
        ]
        path = tmp_path / "records.jsonl"
        path.write_bytes(b"".join(records))
        write_attestations(copy, path, lab)
        assert run_tfdet(copy, "evidence", "add", "--yes", path).returncode == 0
        run_tfdet(copy, "status", "--write")
        page = (copy.root / "docs" / "reference" / "status" / "gpu.md").read_text()
        (table_row,) = re.findall(rf"^.*{re.escape(row)}.*$", page, re.M)
        return table_row.split(row)[1].split("|")[1]

    return mark


@weekly.on_day(0, days=2)
def test_a_gpu_mark_needs_a_gpu_that_agrees(mark_on_a_gpu: Callable[..., str]) -> None:
    """A crash backs nothing, a difference refutes; equal runs count only beside a control that differed."""
    row = "`tf.nn.bias_add` backprop (see XLA note)"

    def cell(*showed: tuple[str, str]) -> str:
        return mark_on_a_gpu("bias-add-backprop", row, *showed)

    assert "TDO<sup>d</sup>" in cell(("crashed", "TDO"))
    assert "TDO<sup>d</sup>" in cell(("equal", "TDO"))
    assert "TDO<sup>✗</sup>" in cell(("differs", "TDO"))
    assert "TDO<sup>m</sup>" in cell(("differs", "none"), ("equal", "TDO"))


@weekly.on_day(1, days=2)
def test_a_replaced_op_is_listed_where_tensorflow_has_no_solution(mark_on_a_gpu: Callable[..., str]) -> None:
    """Mark p: replaced by a graph of other ops, until a GPU measures it; never where TensorFlow has a solution."""
    row = "| `tf.math.segment_sum` forward"

    def cell(*showed: tuple[str, str]) -> str:
        return mark_on_a_gpu("segment-sum", row, *showed)

    assert cell() == " NS1<sup>a</sup>, ED<sup>p</sup> (TF 2.1) "
    assert "ED<sup>p</sup>" in cell(("equal", "ED"))
    assert "ED<sup>✗</sup>" in cell(("differs", "none"), ("differs", "ED"))
    assert "ED<sup>m</sup>" in cell(("differs", "none"), ("equal", "ED"))


def test_a_record_given_twice_counts_once(checkout: Project, cells: list[dict[str, Any]]) -> None:
    path = checkout.evidence / "cpu" / "tf2.21.jsonl"
    assert json.loads(run_tfdet(checkout, "status", "--json", "--records", path).stdout) == {"cells": cells}


def test_the_cpu_table_has_the_expected_rows(cells: list[dict[str, Any]]) -> None:
    verdict = {
        (c["source"], c["environment"], c["solution"]): c["verdict"] for c in cells if c["device"] == "cpu"
    }  # fmt: skip
    crop, parallel = "crop-and-resize-backprop", "tf-data-parallel-map"
    for environment in ("tf1.14", "tf1.15", "tf2.0", "tf2.1", "tf2.4", "tf2.6", "tf2.8", "tf2.11", "tf2.15", "tf2.21"):
        assert verdict[crop, environment, "none"] == "nondeterministic"
        assert verdict[parallel, environment, "none"] == "nondeterministic"
    for environment in ("tf1.14", "tf2.0"):
        assert verdict[crop, environment, "TDO"] == "nondeterministic"
    for environment in ("tf2.6", "tf2.8", "tf2.11", "tf2.15", "tf2.21"):
        assert verdict[crop, environment, "TDO"] == "deterministic"
    for environment in ("tf2.8", "tf2.11", "tf2.15", "tf2.21"):
        assert verdict[crop, environment, "TEOD"] == "deterministic"
        assert verdict[parallel, environment, "TEOD"] == "deterministic"
        assert verdict[parallel, environment, "TDO"] == "deterministic"


def test_the_checkout_has_enough_cells_of_every_verdict(cells: list[dict[str, Any]]) -> None:
    control = [c for c in cells if c["device"] == "cpu" and c["solution"] == "none"]
    assert len({c["source"] for c in control if c["verdict"] == "nondeterministic"}) >= 8
    assert len({c["source"] for c in control if c["verdict"] == "not shown to differ"}) >= 10
    measured = {c["verdict"] for c in cells if c["device"] == "cpu"}
    assert {
        "nondeterministic",
        "deterministic",
        "not shown to differ",
        "raises",
        "unsupported",
        "failed",
    } <= measured


def test_a_closed_pipe_prints_no_traceback(checkout: Project) -> None:
    command = f"{sys.executable} -m tfdet status | head -1"
    done = subprocess.run(command, shell=True, cwd=checkout.root, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run", "tf2.00"], "tf2.0"),
        (["show", "tf2.0", "bias-add"], "bias-add-backprop"),
        (["run", "tf2.0", "--device", "cpu", "--source", "crop-and-resise-backprop"], "crop-and-resize-backprop"),
        (["run", "tf2.0", "--device", "cpu", "--solution", "TD0"], "TDO"),
        (["status", "--environment", "tf2.99"], "tf2.9"),
        (["evidence", "add", "nowhere.jsonl"], "No such file"),
        (["run", "tf2.0", "--device", "tpu"], "cpu"),
        (["run", "tf2.0", "--device", "cpu", "--repeats", "0"], "repeats"),
        (["status", "--write", "--check"], "one of them"),
        (["run", "ngc19.06-py2", "--device", "gpu"], "Python 2"),
    ],
)
def test_wrong_usage_exits_2_with_advice(checkout: Project, arguments: list[str], named: str) -> None:
    done = run_tfdet(checkout, *arguments)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def test_records_of_another_machine_are_accepted(
    copy: Project, tmp_path: Path, record_line: Callable[..., bytes]
) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(record_line(machine="f" * 12))
    done = run_tfdet(copy, "evidence", "add", path)
    assert done.returncode == 0, done.stderr
    assert "1 records added" in done.stderr
    assert record_line(machine="f" * 12).decode() in (copy.evidence / "cpu" / "tf2.0.jsonl").read_text()


def test_records_of_unknown_names_are_refused(copy: Project, tmp_path: Path, record_line: Callable[..., bytes]) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(record_line(machine="f" * 12) + record_line(environment="tf9.9"))
    before = {p: p.read_bytes() for p in copy.evidence.rglob("*.jsonl")}
    done = run_tfdet(copy, "evidence", "add", path)
    assert done.returncode == ExitCode.USAGE
    assert "tf9.9" in done.stderr
    assert before == {p: p.read_bytes() for p in copy.evidence.rglob("*.jsonl")}
