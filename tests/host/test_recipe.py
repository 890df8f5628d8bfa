"""`tfdet recipe`: lines that run, and the ops that they do not cover."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tfdet.matrix.load import load_matrix
from tfdet.paths import Project
from tfdet.recipe import best_solution, recipe_text
from tfdet.status import Status, load_status


@pytest.fixture(scope="module")
def status(checkout: Project) -> Status:
    return load_status(checkout)


@pytest.mark.parametrize(
    ("key", "solution"),
    [
        ("tf1.13.1", None),
        ("tf1.14", "TCD"),
        ("tf2.0", "TCD"),
        ("tf2.1", "TDO"),
        ("tf2.6", "TDO-FE"),
        ("tf2.8", "TEOD"),
        ("tf2.21", "TEOD"),
        ("ngc19.06-py3", "TDO"),
        ("ngc22.03-tf1", "TDO"),
    ],
)
def test_the_solution_that_covers_most(checkout: Project, key: str, solution: str | None) -> None:
    matrix = load_matrix(checkout.matrix)
    assert best_solution(matrix, matrix.environments[key]) == solution


def test_what_is_not_covered_is_said(status: Status) -> None:
    assert "`tf.nn.bias_add` backprop (see XLA note): needs TDP" in recipe_text(status, "tf2.0")
    assert "bias_add" not in recipe_text(status, "tf2.1")
    assert "`tf.image.crop_and_resize` backprop: nondeterministic" not in recipe_text(status, "tf2.21")


@pytest.mark.tensorflow
@pytest.mark.parametrize("key", ["tf2.0", "tf2.21"])
def test_the_lines_run(status: Status, tf_python: Callable[[str], Path], key: str) -> None:
    done = subprocess.run(
        [tf_python(key), "-c", recipe_text(status, key)], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
