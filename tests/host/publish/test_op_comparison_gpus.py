"""What signed records of a GPU show about a framework's ops, on its page and on the site.

UDA is the solution `torch.use_deterministic_algorithms(True)`, "the switch"; none is the control.  Marks: ✗ 20/20
differs, ✓ 0/20 does not although the control does, ≈ was not seen to differ.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import weekly
from records import make_record
from signers import Signer, run_tfdet, write_bundle
from site_builder import ROOT, PageParser, small_project

from tfdet.base.errors import ExitCode
from tfdet.base.paths import Project
from tfdet.matrix.devices import CPU
from tfdet.publish.op_comparison import MeasurementColumn, compare_ops
from tfdet.site.build import build
from tfdet.store.cases import current_cases
from tfdet.store.records import Record, parse
from tfdet.verdicts.status_loading import load_status
from tfdet_common import journal
from tfdet_common.machine import device_key

KEY, GPU = "torch2.11", "NVIDIA L4"  # of which the repository has no records
MODEL = device_key(GPU)
ENVIRON = {"none": {}, "UDA": {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}}
CASE = ("samples-forward-eager", "eager")
# By op: what it does with nothing set, and under the switch.
SIGNED = {
    "torch-abs": ("differs", "equal"),  # of which no list says anything
    "torch-index-add": ("differs", "differs"),  # which is promised to repeat itself under the switch
    "torch-cumsum": ("differs", "raises"),
    "torch-histc": ("equal", "equal"),  # which is said to raise
}
UNSIGNED = {"torch-eq": ("differs", "differs")}


def records(project: Project, outcomes: dict[str, tuple[str, str]]) -> list[Record]:
    """Return records of these sources on the GPU: {source: (observation without a solution, under UDA)}."""
    codes = {source: code for (source, code), cases in current_cases(project).by_hash.items() if CASE in (cases or ())}
    return [
        one_record(source, codes[source], solution, observation)
        for source, observations in outcomes.items()
        for solution, observation in zip(ENVIRON, observations, strict=True)
    ]


def one_record(source: str, code: str, solution: str, observation: str) -> Record:
    """Return a record of a source on the GPU; code: the hash of its case."""
    case, mode = CASE
    record = make_record(
        observation, environment=KEY, device=MODEL, source=source, case=case, mode=mode, solution=solution,
        case_hash=code, framework={"name": "torch", "version": "2.11.0"}, relaunches=2,
        determinism_environment=ENVIRON[solution],
    )  # fmt: skip
    record["stack"] = {**record["stack"], "gpu": GPU, "driver": "580.95", "compute_capability": "8.9"}
    record["ran_on"] = ["GPU:0"] if observation in ("equal", "differs") else []
    record["checksum"] = journal.checksum(record)
    return parse((journal.dump(record) + "\n").encode())


def measure(project: Project) -> None:
    """Store a trusted lab's records of the card, and some unsigned ones."""
    for batch, signers in ((records(project, SIGNED), [Signer("lab")]), (records(project, UNSIGNED), [])):
        for signer in signers:
            signer.trust_in(project)
        envelopes = [line for signer in signers for line in signer.sign(project, batch)]
        done = run_tfdet(project, "evidence", "add", "--yes", write_bundle(project, "batch.jsonl", batch, envelopes))
        assert done.returncode == 0, done.stderr


def make_project_with_gpu(root: Path) -> None:
    """Make a small project with a PyTorch environment and records of the GPU."""
    project = small_project(root)
    for name in (f"environments/torch/{KEY}.toml", f"ops/torch/{KEY}.json"):
        shutil.copy(ROOT / "matrix" / name, project.matrix / name)
    measure(project)


@pytest.fixture(scope="module")
def project(shared_folder: Callable[..., Path]) -> Project:
    """The project with records of a GPU; read-only."""
    return Project(shared_folder("carded", make_project_with_gpu))


@pytest.fixture(scope="module")
def site(project: Project, shared_folder: Callable[..., Path]) -> Path:
    """The site of that project."""
    return shared_folder("site-of-a-card", partial(build, project))


def page_data(page: Path) -> dict[str, Any]:
    """Return the data of the page's JSON file."""
    content: dict[str, Any] = json.loads(page.with_suffix(".json").read_text("utf-8"))["data"]
    return content


def test_a_gpu_with_signed_records_has_columns(project: Project) -> None:
    comparisons = {
        comparison.environment: comparison for comparison in compare_ops(project.matrix, load_status(project), "torch")
    }
    on_cpu = [MeasurementColumn(CPU, solution) for solution in ("none", "UDA", "ONETHREAD")]
    assert comparisons["torch2.13"].columns == on_cpu, "the card ran another build"
    comparison = comparisons[KEY]
    assert comparison.columns == [*on_cpu, MeasurementColumn(MODEL, "none"), MeasurementColumn(MODEL, "UDA")]
    marks = {row.source: row.measured[len(on_cpu) :] for row in comparison.notable_rows}
    assert {source: marks.get(source) for source in (*SIGNED, *UNSIGNED)} == {
        "torch-abs": ["✗ 20/20", "✓ 0/20 (≤ 14%)"],
        "torch-index-add": ["✗ 20/20", "✗ 20/20"],
        "torch-cumsum": ["✗ 20/20", "raises"],
        "torch-histc": ["≈", "≈"],
        "torch-eq": None,
    }
    assert dict(comparison.coverage[MODEL])["ran"] == len(SIGNED)
    assert "ran" not in dict(comparison.coverage[CPU])
    unlike = [
        (disagreement.row.source, disagreement.text)
        for disagreement in comparison.disagreements
        if disagreement.kind.startswith("gpu-")
    ]
    assert sorted(unlike) == [
        ("torch-abs", f"it differs on {MODEL}; the documentation names it for no GPU"),
        ("torch-histc", f"it does not raise on {MODEL} under UDA; the documentation says raises"),
        ("torch-index-add", f"it differs on {MODEL} under UDA; the documentation says deterministic"),
    ]


def test_a_list_of_calls_that_raise_is_contradicted_by_a_difference_alone(project: Project) -> None:
    """torch-histc did not raise on its samples; the list speaks of some calls, so that is not a conflict."""
    cell = [text for text in load_status(project).contradictions() if f"in {KEY} on {MODEL}" in text]
    assert [text.split()[0] for text in cell] == ["torch-index-add"]


def test_a_gpu_without_signed_records_has_no_column(project: Project, tmp_path: Path) -> None:
    copy = Project(shutil.copytree(project.root, tmp_path / "copy", symlinks=True))
    (path,) = copy.matrix.glob("keys/lab.toml")
    path.unlink()
    (comparison,) = (
        comparison
        for comparison in compare_ops(copy.matrix, load_status(copy), "torch")
        if comparison.environment == KEY
    )
    assert {column.device for column in comparison.columns} == {CPU}
    assert list(comparison.coverage) == [CPU]


def test_the_site_shows_a_gpu_with_signed_records(site: Path) -> None:
    lists = page_data(site / "lists" / f"{KEY}.html")
    assert [column["title"] for column in lists["columns"]][3:] == [f"{MODEL}, none", f"{MODEL}, UDA"]
    (row,) = (row for row in lists["rows"] if row["source"] == "torch-index-add")
    assert (len(row["measured"]), row["marks"][3:]) == (3, ["✗ 20/20", "✗ 20/20"])
    text = (site / "lists" / f"{KEY}.html").read_text("utf-8")
    assert f"<th>{MODEL}, UDA</th>" in text
    assert f"on {MODEL}: " in text
    header, first = (text.split(tag)[2].count(cell) for tag, cell in (("<thead>", "<th>"), ("<tbody>", "<td")))
    assert first % header == 0, "a cell a column"
    (build,) = (
        entry for entry in page_data(site / "lists" / "index.html")["environments"] if entry["environment"] == KEY
    )
    assert (build["ran"], build["ran_on"]) == (0, {CPU: 0, MODEL: len(SIGNED)})
    assert f"4 on {MODEL}" in (site / "lists" / "index.html").read_text("utf-8")


def test_the_pages_of_an_op_and_of_the_build_name_the_gpu(site: Path) -> None:
    op = page_data(site / "sources" / "torch-abs.html")
    strips = {(row["device"], row["solution"]): row["cells"] for row in op["strips"]}
    says_by_environment = {cell["environment"]: cell["says"] for cell in strips[MODEL, "none"]}
    assert says_by_environment[KEY] == "nondeterministic 20/20, measured"
    assert says_by_environment["torch2.13"] == "nothing is known"
    assert any(
        f"differs on {MODEL}" in item["text"] for disagreement in op["lists"] for item in disagreement["disagreements"]
    )
    build = page_data(site / "environments" / f"{KEY}.html")
    (row,) = (row for row in build["rows"] if row["source"] == "torch-index-add")
    symbols = {(cell["device"], cell["solution"]): cell["symbol"] for cell in row["cells"]}
    assert symbols[MODEL, "none"] == symbols[MODEL, "UDA"] == "✗"
    (remaining,) = (entry for entry in build["remaining"] if entry["source"] == "torch-index-add")
    assert (remaining["measured"], remaining["says"]) == (True, f"differs (measured on {MODEL})")
    page = site / "cells" / KEY / "torch-abs.html"
    assert {record["device"]["model"] for record in page_data(page)["records"]} == {MODEL}
    assert f"{MODEL}.none" in PageParser(page).ids()
    assert not (site / "cells" / KEY / "torch-eq.html").exists(), "nobody signed it"


@weekly.on_day(2)
def test_only_the_page_of_the_framework_lists_the_gpu(whole_copy: Project) -> None:
    before = {path: path.read_text("utf-8") for path in whole_copy.root.glob("docs/**/*.md")}
    measure(whole_copy)
    page = whole_copy.root / "docs" / "reference" / "pytorch.md"
    done = run_tfdet(whole_copy, "status", "--write")
    assert done.returncode == ExitCode.CONTRADICTED, "what a list promises and a card breaks is named, and written"
    assert f"torch-index-add under UDA in {KEY} on {MODEL}: claimed deterministic" in done.stderr
    text = page.read_text("utf-8")
    (section,) = (part for part in text.split("\n### ") if part.startswith(f"{KEY}\n"))
    header, _, *rows = [line for line in section.splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in header.split("|")][10:12] == [f"{MODEL}, none", f"{MODEL}, UDA"]
    assert [cell.strip() for cell in next(row for row in rows if "`abs`" in row).split("|")][10:12] == [
        "✗ 20/20",
        "✓ 0/20 (≤ 14%)",
    ]
    assert all(row.count("|") == header.count("|") for row in rows)
    assert f"- {KEY}, 697 ops on {MODEL}: " in text
    assert text.count(f"| {MODEL}, none |") == 1
    of_torch = {page, page.with_name("pytorch-conflicts.md"), *page.parent.glob("upstream/torch/*.md")}
    other_pages = [path for path in before if path not in of_torch and MODEL in path.read_text("utf-8")]
    assert other_pages == [], "nothing of TensorFlow ran on it"
    known_sources = json.loads((whole_copy.runtime / "tfdeterminism" / "pytorch" / "known.json").read_text("utf-8"))[
        "2.11"
    ]
    assert {"title": "`index_add`", "says": f"differs (measured on {MODEL})", "measured": True} in known_sources
