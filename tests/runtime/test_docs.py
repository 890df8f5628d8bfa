"""docs/how-to/make-a-program-deterministic.md and the package's README: examples run in the TensorFlows they name."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import weekly

from tfdet.base.paths import Project

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "how-to" / "make-a-program-deterministic.md"
BLOCK = re.compile(r"^```(?P<kind>python|text) tf=(?P<versions>\S+)\n(?P<text>.*?)^```", re.M | re.S)
PLAIN = re.compile(r"^```python\n(?P<text>.*?)^```", re.M | re.S)


# Each example in a process of its own, forked after the import that takes the time.
RUNNER = """
import json, os, sys, tensorflow
for lines in json.load(sys.stdin):
    child = os.fork()
    if not child:
        exec(compile(lines, "example", "exec"), {"__name__": "__main__"})
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, lines
"""


def examples(version: str, kind: str) -> list[str]:
    """Return the guide's blocks of that kind (python or text) for a version of TensorFlow."""
    blocks = [b for b in BLOCK.finditer(GUIDE.read_text("utf-8")) if version in b["versions"].split(",")]
    return [block["text"] for block in blocks if block["kind"] == kind]


def run_programs(python: Path, checkout: Project, *programs: str) -> str:
    """Run programs, each in a fork of a process that has imported TensorFlow; return what they print."""
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(checkout.runtime), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [python, "-c", RUNNER], input=json.dumps(programs), env=environ, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_says_where_it_runs() -> None:
    assert not PLAIN.search(GUIDE.read_text("utf-8"))


@pytest.mark.tensorflow
@pytest.mark.parametrize("version", weekly.select_for_today(["1.14", "2.0", "2.21"]))
def test_the_guides_examples_print_what_it_shows(
    checkout: Project, tf_python: Callable[[str], Path], version: str
) -> None:
    blocks = examples(version, "python")
    assert len(blocks) >= 4
    printed = run_programs(tf_python(f"tf{version}"), checkout, *blocks)
    for text in examples(version, "text"):
        assert not [line for line in text.splitlines() if line not in printed.splitlines()]
    if version == "1.14":
        first, second = re.findall(r"^\[.*\]$", printed, re.M)
        assert first == second, "the seeds of the two graphs"


@pytest.mark.tensorflow
def test_the_readmes_of_package_and_project(checkout: Project, tf_python: Callable[[str], Path]) -> None:
    one_call, patch = (block["text"] for block in PLAIN.finditer((ROOT / "runtime" / "README.md").read_text("utf-8")))
    (readme,) = (block["text"] for block in PLAIN.finditer((ROOT / "README.md").read_text("utf-8")))
    printed = run_programs(tf_python("tf2.0"), checkout, one_call, patch, readme)
    assert printed.count("done:") == 2
    assert "TensorFlow version 2.0.0 has been patched" in printed
