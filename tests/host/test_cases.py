"""The host reads the cases from text; its hashes must be the probe's, in old and new Pythons."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tfdet.cases import current_hashes
from tfdet.errors import DataError
from tfdet.matrix.load import load_matrix
from tfdet.paths import Project

COLLECT = """
import importlib, json, os, sys
from tfdet_probe.registry import CaseFunction
found = {}
for name in sorted(os.listdir(sys.argv[1])):
    if name.startswith("test_"):
        module = importlib.import_module(name[:-3])
        for item in vars(module).values():
            if isinstance(item, CaseFunction):
                found.setdefault(item.source, []).append(item.hash)
print(json.dumps(found))
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize("key", ["tf2.0", "tf2.21"])
def test_host_and_environment_agree_on_every_hash(
    checkout: Project, tf_python: Callable[[str], Path], key: str
) -> None:
    done = subprocess.run(
        [tf_python(key), "-c", COLLECT, checkout.suite],
        env={"PYTHONPATH": f"{checkout.runtime}:{checkout.suite}", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    inside = {source: set(hashes) for source, hashes in json.loads(done.stdout.splitlines()[-1]).items()}
    assert inside == current_hashes(checkout.suite)


def test_every_case_has_its_source(checkout: Project) -> None:
    assert set(current_hashes(checkout.suite)) <= set(load_matrix(checkout.matrix).sources)


def test_a_changed_case_changes_its_hash_and_no_other(copy: Project) -> None:
    before = current_hashes(copy.suite)
    path = copy.suite / "test_bias.py"
    path.write_text(path.read_text("utf-8").replace("(8,)", "(9,)"), "utf-8")
    after = current_hashes(copy.suite)
    assert {source for source in before if before[source] != after[source]} == {"bias-add-backprop"}


def test_a_suite_file_that_is_no_python_is_told_with_its_line(copy: Project) -> None:
    (copy.suite / "test_broken.py").write_text("def f(:\n", "utf-8")
    with pytest.raises(DataError, match=r"test_broken\.py:1:"):
        current_hashes(copy.suite)
