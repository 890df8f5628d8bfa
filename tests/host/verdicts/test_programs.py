"""`tfdet check`: how programs and notebooks are parsed, and which cannot be."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from program_checks import parsed_program

from tfdet.base.errors import DataError
from tfdet.publish.check_reports import as_sarif
from tfdet.verdicts.program_check import InstalledBuild, ProgramFinding
from tfdet.verdicts.programs import parse_programs
from tfdet.verdicts.static_analysis import Call

BUILD = InstalledBuild("tensorflow", "2.21.0", "tf2.21", exact_version=True)


def notebook(folder: Path, *cells: Any, **metadata: Any) -> Path:
    """Write a notebook with a Markdown cell and these code cells; return its path."""
    path = folder / "a.ipynb"
    listed = [{"cell_type": "markdown", "source": "# import torch"}]
    listed += [{"cell_type": "code", "source": cell} for cell in cells]
    path.write_text(json.dumps({"cells": listed, "metadata": metadata, "nbformat": 4}), "utf-8")
    return path


def test_names_resolve_to_their_last_assignment(tmp_path: Path) -> None:
    parsed = parsed_program(tmp_path, "import tensorflow as tf\nK = tf.keras\nL = K.layers\nL.Dense(3)\nx = 1\nx.y()\n")
    assert [(call.name, call.line) for call in parsed.calls_and_settings] == [("tensorflow.keras.layers.Dense", 4)]


def test_literal_arguments_are_read(tmp_path: Path) -> None:
    (call,) = parsed_program(
        tmp_path, "import a\na.f(-1, True, x, a.B, a.g(), [1], key='k', **more)"
    ).calls_and_settings[:1]
    # name: of a constant, of a call with (), [] for a collection; known: whether the value or the name is.
    assert [(argument.value, argument.name, argument.known) for argument in call.positional] == [
        (-1, "", True), (True, "", True), (None, "", False),
        (None, "a.B", True), (None, "a.g()", True), (None, "[]", True),
    ]  # fmt: skip
    assert call.keywords["key"].value == "k" and call.has_star_args


def test_the_cells_of_a_notebook_are_read(tmp_path: Path) -> None:
    first = ["%matplotlib inline\n", "import tensorflow as tf\n", "!pip install x\n", "files = !ls\n", "tf.stack?\n"]
    second = "if True:\n    !ls\n    tf.nn.bias_add(x, y)\n(x\n % y)"
    third = "(x\n % y)\ntf.gather(x, y)"
    parsed = parse_programs(
        [notebook(tmp_path, first, second.partition("\n(")[0], "%%bash\nls", "%%time\ntf.stack(x)", third)]
    )
    assert [(call.name, call.notebook_cell, call.line) for call in parsed.calls_and_settings] == [
        ("tensorflow.nn.bias_add", 3, 3), ("tensorflow.stack", 5, 2), ("tensorflow.gather", 6, 3),
    ]  # fmt: skip
    assert parsed.calls_and_settings[0].where == f"{tmp_path / 'a.ipynb'}:cell 3:3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "a.ipynb"),
        ("[]", "no notebook"),
        ('{"worksheets": []}', "no notebook"),
        ('{"cells": [], "metadata": {"kernelspec": {"language": "R"}}}', "no notebook"),
        ('{"cells": [{"cell_type": "code", "source": [1]}]}', "cell 1"),
        ('{"cells": [{"cell_type": "code", "source": "def ("}]}', "cell 1"),
        ("[" * 100_000, "a.ipynb"),
    ],
)
def test_an_invalid_notebook_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(text, "utf-8")
    with pytest.raises(DataError, match=message) as caught:
        parse_programs([path])
    assert caught.value.advice


def test_lines_of_a_notebook_are_counted_within_cells() -> None:
    by_build = {BUILD: [ProgramFinding("error", "a", "b", calls=(Call("tf.x", "a.ipynb", line=2, notebook_cell=3),))]}
    (location,) = as_sarif(by_build)["runs"][0]["results"][0]["locations"]
    assert "region" not in location["physicalLocation"]
    assert location["logicalLocations"] == [{"name": "cell 3, line 2"}]


@pytest.mark.parametrize(
    "text", ["x = " + "1+" * 20_000 + "1", "x = " + "-" * 30_000 + "1", "x = " + "a." * 100_000 + "a"]
)
def test_a_program_nested_too_deeply_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"train\.py.*nested too deeply") as caught:
        parsed_program(tmp_path, text)
    assert caught.value.advice


def test_a_file_name_that_is_not_utf8_is_a_uri_in_sarif(tmp_path: Path) -> None:
    name = os.fsdecode(b"sur\xff.py")
    by_build = {BUILD: [ProgramFinding("error", "a", "b", calls=(Call("tf.x", name, line=1),))]}
    (location,) = as_sarif(by_build)["runs"][0]["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "sur%FF.py"}
