"""Models saved under the library run and differentiate where they are loaded, with the library and without it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import weekly
from inside import run_check_for_json

from tfdet.base.paths import Project

SCRIPT = "saved_checks.py"
GRAPHS = {"frozen", "meta graph", "scope", "served"}
FUNCTIONS = {"function", "signature", "frozen function", "keras h5"}
KEYS = weekly.select_for_today(
    ["tf1.14", "tf2.0", "tf2.21"],
    all_values=["tf1.14", "tf1.15", *(f"tf2.{n}" for n in range(22))],
    days=weekly.DAYS,
    first=3,
)


def version(key: str) -> tuple[int, ...]:
    return tuple(int(part) for part in key.removeprefix("tf").split("."))


def formats(key: str) -> set[str]:
    """Return the formats in which this TensorFlow can save."""
    if version(key) < (2, 0):
        return GRAPHS
    keras = {"keras SavedModel": version(key) < (2, 16), "keras zip": version(key) >= (2, 13)}
    return GRAPHS | FUNCTIONS | {name for name, supported in keras.items() if supported}


@pytest.mark.tensorflow
@pytest.mark.parametrize("key", KEYS)
def test_saved_models_differentiate_where_they_are_loaded(
    checkout: Project, tf_python: Callable[[str], Path], key: str, tmp_path: Path
) -> None:
    """Each step is a process: save originals, save, load without the library, load with it."""
    python = tf_python(key)
    for step in ("originals", "save"):
        run_check_for_json(checkout, python, SCRIPT, step, tmp_path)
    for step in ("load", "load-after"):
        [report] = run_check_for_json(checkout, python, SCRIPT, step, tmp_path)
        assert report["faults"] == []
        assert set(report["compared"]) == formats(key)
        assert report["compared"]["frozen"] > 40, "values and gradients were compared"
    written = [path for path in tmp_path.glob("ours/**/*") if path.suffix in (".pb", ".meta")]
    names_of_this_process = [path for path in written if b"tfdeterminism/" in path.read_bytes()]
    assert written and names_of_this_process == []


@pytest.mark.tensorflow
@pytest.mark.parametrize("key", weekly.select_for_today(["tf2.0"], all_values=["tf2.0", "tf2.6"]))
def test_a_gradient_is_not_that_of_the_op_with_the_same_number(
    checkout: Project, tf_python: Callable[[str], Path], key: str, tmp_path: Path
) -> None:
    """Op numbers of one process mean other ops in the next one: here a subtraction."""
    python = tf_python(key)
    run_check_for_json(checkout, python, SCRIPT, "save-add", tmp_path)
    assert run_check_for_json(checkout, python, SCRIPT, "load-add", tmp_path) == [{"gradient": [1, 1, 1]}]
