"""The output of `--json`, `--csv` and `--junit`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from records import make_record
from typer.testing import CliRunner, Result

from tfdet.base.errors import UsageError
from tfdet.base.paths import Project
from tfdet.cli.main import app
from tfdet.publish import exports
from tfdet.store.records import parse
from tfdet_common import journal


@pytest.fixture(autouse=True)
def use_small_project(small: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every command of this module use the small project."""
    monkeypatch.setenv("TFDET_ROOT", str(small.root))


def invoke(*words: str) -> Result:
    """Call `tfdet` in this process."""
    return CliRunner().invoke(app, list(words))


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_status_exports_the_same_cells_in_every_format() -> None:
    cells = json.loads(invoke("status", "--json", "--environment", "tf2.0").stdout)["cells"]
    lines = rows(invoke("status", "--csv", "--environment", "tf2.0").stdout)
    assert [(c["source"], c["solution"], c["verdict"]) for c in cells] == [
        (line["source"], line["solution"], line["verdict"]) for line in lines
    ]
    suites = ElementTree.fromstring(invoke("status", "--junit", "--environment", "tf2.0").stdout)
    tests = list(suites.iter("testcase"))
    assert len(tests) == len(cells) == sum(int(suite.get("tests", 0)) for suite in suites)
    names = {f"{c['source']}[{c['solution']}]" for c in cells if c["backing"] in ("measured", "emulated")}
    assert names == {test.get("name") for test in tests if test.find("skipped") is None}


def test_a_contradicted_claim_is_a_failed_test(small: Project, tmp_path: Path) -> None:
    store = next(small.evidence.glob("cpu/tf2.21.jsonl")).read_bytes()
    known = next(r for line in store.splitlines() if (r := parse(line)).source == "tf-data-unordered")
    line = make_record("differs", environment="tf2.21", version="2.21.0", source=known.source, case=known.case,
                       mode=known.mode, case_hash=known.case_hash, solution="TEOD")  # fmt: skip
    (tmp_path / "more.jsonl").write_text(journal.dump(line) + "\n")
    done = invoke("status", "--junit", "--records", str(tmp_path / "more.jsonl"))
    suites = ElementTree.fromstring(done.stdout)
    failures = [test.get("name") for test in suites.iter("testcase") if test.find("failure") is not None]
    assert (done.exit_code, failures) == (1, ["tf-data-unordered[TEOD]"])


def test_show_and_recipe(small: Project) -> None:
    output = json.loads(invoke("show", "tf2.0", "bias-add-backprop", "--json").stdout)
    lines = rows(invoke("show", "tf2.0", "bias-add-backprop", "--csv").stdout)
    assert [record["checksum"] for record in output["records"]] == [line["checksum"] for line in lines] != []
    assert {cell["solution"] for cell in output["cells"]} >= {"none", "TDP"} and output["claims"]
    recipe = json.loads(invoke("recipe", "tf2.0", "--json").stdout)
    assert recipe["recipe"] == invoke("recipe", "tf2.0").stdout.rstrip("\n")
    sources = [line["source"] for line in rows(invoke("recipe", "tf2.0", "--csv").stdout)]
    assert [entry["source"] for entry in recipe["remaining"]] == sources


def test_two_formats_at_once_are_refused() -> None:
    for words in (["status"], ["show", "tf2.0", "bias-add-backprop"], ["recipe", "tf2.0"]):
        assert isinstance(invoke(*words, "--json", "--csv").exception, UsageError)


def test_csv_escapes_formulas() -> None:
    text = exports.as_csv([{"says": "=HYPERLINK(1)\n\u202e", "number": -1}])
    assert text == "says,number\n'=HYPERLINK(1) \\u202e,-1\n"
