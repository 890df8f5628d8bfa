"""The host parses the cases from text; its hashes equal the probe's in old and new Pythons."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.matrix.load import load_matrix
from tfdet.store.cases import current_hashes, earlier_hashes
from tfdet_probe import case
from tfdet_probe.core import normalized_source

COLLECT = """
import importlib, json, os, sys
from tfdet_probe.core.registry import CaseFunction
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
        [tf_python(key), "-c", COLLECT, checkout.suite("tensorflow")],
        env={"PYTHONPATH": f"{checkout.runtime}:{checkout.suite('tensorflow')}", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    inside = {source: set(hashes) for source, hashes in json.loads(done.stdout.splitlines()[-1]).items()}
    earlier = set(earlier_hashes(checkout.evidence))  # of unchanged cases, by an earlier method of hashing
    sources_of_checkout = load_matrix(checkout.matrix).for_published_framework.sources
    assert inside == {
        source: hashes - earlier for source, hashes in current_hashes(checkout).items() if source in sources_of_checkout
    }


def test_every_case_has_its_source(checkout: Project) -> None:
    assert set(current_hashes(checkout)) <= set(load_matrix(checkout.matrix).sources)


def test_a_case_without_a_source_file_is_refused() -> None:
    """The hash covers the text of the case's file."""
    typed: dict[str, Any] = {"case": case, "__name__": "typed"}
    exec('@case("some-source", unplaced="why")\ndef one(make): pass', typed)
    with pytest.raises(ValueError, match="one: write @case"):
        list(typed["one"].cases(["eager"]))


def test_a_changed_case_changes_its_hash_and_no_other(copy: Project) -> None:
    before = current_hashes(copy)
    path = copy.suite("tensorflow") / "test_bias.py"
    path.write_text(path.read_text("utf-8").replace("(8,)", "(9,)"), "utf-8")
    after = current_hashes(copy)
    assert {source for source in before if before[source] != after[source]} == {"bias-add-backprop"}


SUITE = """
import numpy as np
from tfdet_probe import case

SIZE = 8


def helper(x):
    return other(x)


def other(x):
    return x


@case("one", ops=["A"])
def first(make):
    return make.forward(helper, [np.zeros(SIZE)])


@case("two", ops=["B"])
def second(make):
    return make.forward(lambda x: x, [])
"""


def normalized_texts(suite: str) -> dict[str, str]:
    """Return {case: its normalized source text}."""
    return {name: case.text for name, case in normalized_source.normalize_cases(suite).items()}


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("SIZE = 8", "SIZE = 8  # as ever\n\n# and more", set()),
        ("    return other(x)", '    """What it does."""\n    # how\n\n    return other(\n        x)', set()),
        ("def helper(x):\n    return other(x)\n\n\n", "", {"first"}),
        ("def other(x):\n    return x\n", "def other(x):\n    return -x\n", {"first"}),
        ("SIZE = 8", "SIZE = 9", {"first"}),
        ("import numpy as np", "import jax.numpy as np", {"first"}),
        ("return other(x)", "return x.other(x)", {"first"}),
        ("\n\n\ndef other(x)", "\n\n\ndef unused(x):\n    return 1\n\n\ndef other(x)", set()),
        ("SIZE = 8", "SIZE = 8\nif np:\n    SIZE = 9\nelse:\n    pass", {"first", "second"}),
        ('@case("two", ops=["B"])', '@case("two", ops=["C"])', {"second"}),
        ("lambda x: x, []", "lambda x: (x), []", {"second"}),
    ],
)
def test_a_hash_covers_the_code_of_a_case_and_no_comments(old: str, new: str, changed: set[str]) -> None:
    """It covers the tokens of the case and of what it uses, but no comments, docstrings, blank lines or other cases."""
    assert old in SUITE
    before, after = normalized_texts(SUITE), normalized_texts(SUITE.replace(old, new))
    assert {name for name in before if before[name] != after[name]} == changed


def test_unused_code_of_the_module_does_not_change_the_hash() -> None:
    helper = "def helper(x):\n    return other(x)\n\n\n"
    assert normalized_texts(SUITE.replace(helper, "") + "\n\n" + helper) == normalized_texts(SUITE)


def test_a_comment_leaves_every_cell_as_it_was(copy: Project) -> None:
    """Records keep their cells under today's and earlier hashes until the case itself changes."""
    before = current_hashes(copy)
    for path in copy.suite("tensorflow").glob("test_*.py"):
        path.write_text("# The shared suite.\n" + path.read_text("utf-8").replace(":\n    ", ":  # so\n    "), "utf-8")
    assert current_hashes(copy) == before
    assert any(code in before["bias-add-backprop"] for code in earlier_hashes(copy.evidence))
    test_a_changed_case_changes_its_hash_and_no_other(copy)
    assert not set(earlier_hashes(copy.evidence)) & current_hashes(copy)["bias-add-backprop"]


def test_a_syntax_error_in_a_suite_file_is_reported_with_its_line(copy: Project) -> None:
    (copy.suite("tensorflow") / "test_broken.py").write_text("def f(:\n", "utf-8")
    with pytest.raises(DataError, match=r"test_broken\.py:1:"):
        current_hashes(copy)
