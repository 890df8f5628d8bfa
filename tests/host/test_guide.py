"""The worked example of docs/adding.md is executed as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tfdet.base.paths import Project
from tfdet.store.records import read_records

GUIDE = Path(__file__).parents[2] / "docs" / "adding.md"
BLOCK = re.compile(r"^```\w+ file=(?P<path>\S+)\n(?P<text>.*?)^```", re.M | re.S)


@pytest.mark.tensorflow
def test_a_source_is_one_toml_and_one_short_function(
    copy: Project, tf_python: Callable[[str], Path], tmp_path: Path
) -> None:
    blocks = {found["path"]: found["text"] for found in BLOCK.finditer(GUIDE.read_text("utf-8"))}
    assert {Path(path).suffix for path in blocks} == {".toml", ".py"}
    (function,) = (text for path, text in blocks.items() if path.endswith(".py"))
    assert len(function.splitlines()) <= 15
    for path, text in blocks.items():
        assert not (copy.root / path).exists(), "the example must be a new source"
        (copy.root / path).write_text(text, "utf-8")
    tf_python("tf2.21")
    records = tmp_path / "records.jsonl"
    command = ["run", "tf2.21", "--device", "cpu", "--source", "cumsum-backprop", "--repeats", "3", "--out", records]
    done = subprocess.run(
        [sys.executable, "-m", "tfdet", *map(str, command)],
        cwd=copy.root,
        env={**os.environ, "TFDET_ROOT": str(copy.root)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = list(read_records(records))
    assert {r.case for r in found} == {
        f"cumsum-{dtype}-{mode}" for dtype in ("float32", "float64") for mode in ("eager", "function", "session")
    }
    assert {r.solution for r in found} == {"none", "TDO", "TEOD", "ED"}
    assert {r.observation for r in found} == {"equal"}
    assert "cumsum-backprop" in done.stdout
