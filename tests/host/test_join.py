"""What a framework says of its ops in its own lists; what does not fit; the recipe of one that has no library here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfdet.base.paths import Project
from tfdet.engines.venv import as_pip_is_told
from tfdet.matrix.ops import Entry, Op
from tfdet.publish.join import Row, joins
from tfdet.publish.recipe import recipe_text, remaining_rows
from tfdet.verdicts.infer import Verdict
from tfdet.verdicts.read import load_status
from tfdet.verdicts.status import Status

KEY = "torch2.13"


@pytest.fixture(scope="module")
def status(checkout: Project) -> Status:
    return load_status(checkout)


def row(documented: list[Entry], none: Verdict, uda: Verdict, tolerance: float = 0.0) -> Row:
    op = Op(
        key="an-op", name="an_op", variant="", samples=1, dtype="float32", backward=True, tolerance=tolerance,
        reached=["an_op"], tags=[],
    )  # fmt: skip
    return Row(op, "torch-an-op", documented, [], {"none": none, "UDA": uda})


CUDA = Entry(api="torch.an_op", says="raises", devices=["gpu"], backward=True, modes=[])
EQUAL, DIFFERS, RAISES = Verdict.NOT_SHOWN, Verdict.NONDETERMINISTIC, Verdict.RAISES


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (row([], EQUAL, EQUAL), []),
        (row([CUDA], EQUAL, EQUAL, 1e-12), []),
        (row([], EQUAL, EQUAL, 1e-12), ["the documentation does not name it"]),
        (row([CUDA], EQUAL, EQUAL), ["let no two runs differ"]),
        (row([CUDA], DIFFERS, EQUAL, 1e-12), ["it differs on a CPU; the documentation names it for none"]),
        (row([CUDA], EQUAL, RAISES, 1e-12), ["it raises on a CPU under UDA; the documentation names it for none"]),
        (row([CUDA], EQUAL, DIFFERS, 1e-12), ["it differs on a CPU under UDA"]),
    ],
)
def test_what_does_not_fit(made: Row, words: list[str]) -> None:
    found = list(made.disagreements("UDA"))
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True))


def test_every_op_has_its_row(checkout: Project, status: Status) -> None:
    (join,) = joins(checkout.matrix, status, "torch")
    assert (join.environment, len(join.rows), sum(number for _, number in join.coverage)) == (KEY, 702, 702)
    assert join.solutions == ["none", "UDA", "ONETHREAD"]
    rows = {row.op.key: row for row in join.told}
    assert rows["cumsum"].words == "raises (CUDA)"
    assert rows["scatter-reduce-prod"].words == "raises (CUDA, reduce='prod')"
    assert rows["dunder-getitem"].words == "deterministic (CPU, backward)"


def test_the_recipe_is_that_of_its_solutions(status: Status) -> None:
    lines = recipe_text(status, KEY).splitlines()
    compile("\n".join(lines), "recipe", "exec")
    assert lines.index("torch.use_deterministic_algorithms(True)") < lines.index(
        "torch.manual_seed(1)  # of all devices"
    )
    assert not any("tensorflow" in line or "tfdeterminism" in line for line in lines)
    left = {entry["source"] for entry in remaining_rows(status, KEY)}
    assert {"torch-cumsum", "torch-histc", "torch-put"} <= left
    assert not {"torch-index-add", "torch-scatter-add"} & left


def test_uv_looks_where_pip_does() -> None:
    found = as_pip_is_told({"PIP_FIND_LINKS": "/one /two", "PIP_EXTRA_INDEX_URL": "file:///three"})
    assert (found["UV_FIND_LINKS"], found["UV_EXTRA_INDEX_URL"]) == ("/one,/two", "file:///three")
    assert as_pip_is_told({"PIP_FIND_LINKS": "/one", "UV_FIND_LINKS": "/mine"})["UV_FIND_LINKS"] == "/mine"
    assert as_pip_is_told({"HOME": "/home"}) == {"HOME": "/home"}


@pytest.mark.parametrize("name", ["lock", "ops"])
def test_a_chore_calls_itself_once(checkout: Project, tmp_path: Path, name: str) -> None:
    """By a Python without packages, which also comes first on PATH: the one of .venv is named by its path."""
    (tmp_path / "python").symlink_to(Path(sys.executable).resolve())
    environ = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}
    command = [tmp_path / "python", "-I", "-S", checkout.root / "scripts" / name, "no-such-environment"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "no-such-environment" in done.stderr


def test_the_quickstart_of_another_framework_is_asked_for_by_name(checkout: Project) -> None:
    done = subprocess.run(
        [checkout.root / "scripts" / "quickstart", "--framework", "jax"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, "usage: scripts/quickstart" in done.stderr) == (2, True)
    text = (checkout.root / "scripts" / "quickstart-torch").read_text("utf-8")
    assert f"run {KEY} --engine venv --device cpu" in text
