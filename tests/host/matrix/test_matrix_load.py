"""matrix/ files are parsed strictly: each fault has its line, and undefined names are reported."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tfdet.base.errors import DataError, ExitCode, UsageError
from tfdet.base.paths import Project
from tfdet.matrix.load import load_file, load_matrix, natural_sort_key
from tfdet.matrix.models import Environment, Source

# A file of matrix/sources. TDO, TDP and TEOD are keys of solutions, which make sources deterministic.
GOOD = """\
title = "a source"
group = "gpu-later"
order = 1
api = "tf.a"
direction = "forward"
devices = ["gpu"]
cite = ["somewhere"]

[[claims]]
stock = ">=2.0"
solutions = ["TDO"]
outcome = "deterministic"
cite = ["there"]

[[claims]]
stock = ">=2.8"
solutions = ["TEOD"]
outcome = "deterministic"
cite = ["there"]
"""


def load_file_error(tmp_path: Path, text: str) -> str:
    """Return the message of the error that this text of a source file raises, with FILE for its path."""
    path = tmp_path / "a-source.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(DataError) as caught:
        load_file(path, Source)
    return caught.value.cause.replace(str(path), "FILE")


def test_a_good_file_loads(tmp_path: Path) -> None:
    path = tmp_path / "a-source.toml"
    path.write_text(GOOD, "utf-8")
    assert load_file(path, Source).claims[1].solutions == ["TEOD"]


def test_all_faults_of_a_file_at_once_with_their_lines(tmp_path: Path) -> None:
    text = GOOD.replace("order = 1", 'order = "one"').replace('stock = ">=2.8"', 'stock = "newer"')
    message = load_file_error(tmp_path, text + "surprise = 1\n")
    assert "FILE:3: order" in message
    assert "FILE:16: claims.1.stock" in message
    assert "surprise" in message
    assert len(message.splitlines()) == 3


def test_invalid_toml_is_reported_with_its_line(tmp_path: Path) -> None:
    assert "FILE:2:" in load_file_error(tmp_path, "a = 1\nb = = 2\n")


def test_a_number_that_python_does_not_convert_is_reported_with_its_line(tmp_path: Path) -> None:
    assert "FILE:2:" in load_file_error(tmp_path, f"a = 1\nb = {'9' * 10_000}\n")


def test_a_claim_without_a_range_or_a_citation_is_a_fault(tmp_path: Path) -> None:
    assert "needs a range" in load_file_error(tmp_path, GOOD.replace('stock = ">=2.0"\n', ""))
    assert "claims.0.cite" in load_file_error(tmp_path, GOOD.replace('cite = ["there"]', "cite = []", 1))


def test_a_solution_that_nothing_defines_is_reported_where_it_stands(copy: Project) -> None:
    path = copy.matrix / "sources" / "tensorflow" / "bias-add-backprop.toml"
    path.write_text(path.read_text("utf-8").replace('"TDP"', '"TPD"'), "utf-8")
    with pytest.raises(DataError, match=r"bias-add-backprop\.toml:\d+: no solution is called 'TPD'"):
        load_matrix(copy.matrix)


def test_unknown_names_are_reported_with_the_nearest(checkout: Project) -> None:
    matrix = load_matrix(checkout.matrix)
    with pytest.raises(UsageError) as caught:
        matrix.environment("tf20")
    assert "tf2.0" in caught.value.advice


def test_environments_are_in_the_order_of_versions() -> None:
    assert sorted(["tf2.10", "tf2.4", "tf1.15", "ngc19.06-py3"], key=natural_sort_key) == [
        "ngc19.06-py3",
        "tf1.15",
        "tf2.4",
        "tf2.10",
    ]


def replace_in_file(path: Path, old: str, new: str) -> None:
    """Replace a text in the file."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def load_error(project: Project) -> str:
    """Return the message of the error that loading the matrix raises."""
    with pytest.raises(DataError) as caught:
        load_matrix(project.matrix)
    assert caught.value.code == ExitCode.USAGE
    return caught.value.cause


def test_a_name_that_only_an_escape_writes_is_reported(copy: Project) -> None:
    replace_in_file(copy.matrix / "sources" / "tensorflow" / "bias-add-backprop.toml", '"TDP"', '"T\\u0050D"')
    assert "bias-add-backprop.toml:1: no solution is called 'TPD'" in load_error(copy)


def test_contradictory_claims_of_a_cell_are_reported(copy: Project) -> None:
    path = copy.matrix / "sources" / "tensorflow" / "bias-add-backprop.toml"
    claim = '\n[[claims]]\nstock = "==2.0"\ndevice = "cpu"\nsolutions = ["none", "TDP"]\noutcome = "{}"\ncite = ["x"]\n'
    text = path.read_text("utf-8")
    path.write_text(text + claim.format("deterministic") + claim.format("deterministic"), "utf-8")
    load_matrix(copy.matrix)
    path.write_text(text + claim.format("deterministic") + claim.format("nondeterministic"), "utf-8")
    lines = path.read_text("utf-8").splitlines()
    first, second = [i for i, line in enumerate(lines, 1) if line == "[[claims]]"][-2:]
    assert load_error(copy) == (
        f"{path}:{second}: none in tf2.0 on the cpu is claimed nondeterministic here and deterministic in line {first}"
    )


def test_unknown_and_circular_includes_are_reported(copy: Project) -> None:
    solutions = copy.matrix / "solutions" / "tensorflow"
    replace_in_file(solutions / "TDO.toml", 'includes = ["TCD"]', 'includes = ["TDC"]')
    assert "TDO.toml:9: no solution is called 'TDC'" in load_error(copy)
    replace_in_file(solutions / "TDO.toml", 'includes = ["TDC"]', 'includes = ["TEOD"]')
    message = load_error(copy)
    assert "TDO.toml:9: TDO includes itself" in message
    assert "TEOD.toml:5: TEOD includes itself" in message
    assert "TDO-FE" not in message


def test_includes_nested_too_deeply_are_reported(tmp_path: Path) -> None:
    assert "FILE:1: nested too deeply" in load_file_error(tmp_path, "a = " + "[" * 100_000 + "]" * 100_000)


@pytest.mark.parametrize("folder", ["frameworks", "environments", "sources", "solutions"])
def test_a_folder_that_is_missing_is_named(copy: Project, folder: str) -> None:
    shutil.rmtree(copy.matrix / folder)
    assert load_error(copy) == f"{copy.matrix / folder}: no such folder"


def test_a_matrix_without_the_control_is_refused(copy: Project) -> None:
    (copy.matrix / "solutions" / "none.toml").unlink()
    assert "none.toml: not there" in load_error(copy)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('version = "2.0"', 'version = "newest"', "version: .*not a version"),
        ('version = "2.0"', 'version = "2.0\\n"', "version: .*not a version"),
        ("min_driver = ", 'min_driver = "at least 410" #', "min_driver: .*does not begin with a number"),
    ],
)
def test_versions_and_drivers_must_be_numbers(copy: Project, old: str, new: str, words: str) -> None:
    path = copy.matrix / "environments" / "tensorflow" / "tf2.0.toml"
    replace_in_file(path, old, new)
    with pytest.raises(DataError, match=words):
        load_file(path, Environment)


def test_a_source_with_several_apis_must_list_its_calls(tmp_path: Path) -> None:
    several = GOOD.replace('api = "tf.a"', 'api = "tf.a, or any layer"')
    assert "calls has to say" in load_file_error(tmp_path, several)
    (tmp_path / "a-source.toml").write_text(several.replace("direction", 'calls = ["tf.a"]\ndirection', 1), "utf-8")
    assert [name for name, _ in load_file(tmp_path / "a-source.toml", Source).call_patterns] == ["tf.a"]
    for calls in ('["tf.a/b"]', '["a"]', '[{ name = "tf.a", when = [{ argument = "b", at = 1 }] }]'):
        assert "calls.0" in load_file_error(tmp_path, several.replace("direction", f"calls = {calls}\ndirection", 1))


def test_calls_must_have_their_documented_names(copy: Project) -> None:
    source = copy.matrix / "sources" / "tensorflow" / "bias-add-backprop.toml"
    replace_in_file(source, '"tf.nn.bias_add"', '"tf.compat.v1.nn.bias_add", "torch.bmm"')
    replace_in_file(copy.matrix / "solutions" / "tensorflow" / "TEOD.toml", '[["tf.config', '[["tensorflow.config')
    message = load_error(copy)
    assert "bias-add-backprop.toml: calls: tf.compat.v1.nn.bias_add: documentation has it as tf.nn.bias_add" in message
    assert "bias-add-backprop.toml: calls: torch.bmm: it is nothing that" in message
    assert "TEOD.toml: switch: tensorflow.config.experimental.enable_op_determinism: documentation has" in message


def test_a_solution_applied_by_a_call_must_name_it(copy: Project) -> None:
    replace_in_file(copy.matrix / "solutions" / "tensorflow" / "TDP.toml", 'switch = [["tfdeterminism.patch"]]\n', "")
    assert "switch has to say" in load_error(copy)


def test_an_error_of_a_whole_file_is_reported_at_its_first_line(tmp_path: Path) -> None:
    message = load_file_error(tmp_path, GOOD.replace('api = "tf.a"', 'api = "tf.a or another"'))
    assert message == "FILE:1: file: Value error, " + message.partition("Value error, ")[2]
    assert "calls has to say by which a program reaches it" in message
