"""Files stay short enough to be read at once: half of them within 100 lines, none above 350 that does not say why."""

from __future__ import annotations

import re
import statistics
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HALF, MOST = 100, 350


def python_files(root: Path) -> dict[str, int]:
    """{path: lines} of every Python file that git knows."""
    listed = subprocess.run(["git", "ls-files", "-z", "*.py"], cwd=root, capture_output=True, text=True, check=True)
    found = [name for name in listed.stdout.split("\0") if name and (root / name).exists()]
    return {name: len((root / name).read_text("utf-8").splitlines()) for name in found}


def reasons(architecture: str) -> dict[str, str]:
    """{path: why} of the rows of the table of long files."""
    rows = re.findall(r"^\| `([^`|]+\.py)` \| ([^|]+?) *\|$", architecture, re.M)
    return dict(rows)


def faults(files: dict[str, int], allowed: dict[str, str]) -> list[str]:
    """What is wrong, in sentences."""
    found = [
        f"{name} has {lines} lines: split it by what it speaks of, or say in docs/architecture.md why it is one"
        for name, lines in sorted(files.items())
        if lines > MOST and name not in allowed
    ]
    found += [f"docs/architecture.md gives a reason for {name}, which needs none" for name in sorted(allowed)
              if files.get(name, 0) <= MOST]  # fmt: skip
    median = statistics.median(files.values())
    return found + ([f"half of all files have more than {median:g} lines"] if median > HALF else [])


def test_no_file_is_longer_than_can_be_read_at_once() -> None:
    files = python_files(ROOT)
    assert len(files) > 200, "git lists no files here"
    assert faults(files, reasons((ROOT / "docs" / "architecture.md").read_text("utf-8"))) == []


@pytest.mark.parametrize(
    ("files", "table", "said"),
    [
        ({"a.py": 90, "b.py": 351, "c.py": 9}, "", ["b.py has 351 lines"]),
        ({"a.py": 90, "b.py": 351, "c.py": 9}, "| `b.py` | one table, read from top to bottom |", []),
        ({"a.py": 90, "b.py": 350, "c.py": 9}, "| `b.py` | it was long once |", ["b.py, which needs none"]),
        ({"a.py": 90, "b.py": 350, "c.py": 9}, "| `gone.py` | it was long once |", ["gone.py, which needs none"]),
        ({"a.py": 101, "b.py": 350, "c.py": 9}, "", ["more than 101 lines"]),
        ({"a.py": 90, "b.py": 351, "c.py": 9}, "| `b.py` | |", ["b.py has 351 lines"]),
    ],
)
def test_what_is_too_long_is_told(files: dict[str, int], table: str, said: list[str]) -> None:
    found = faults(files, reasons(table))
    assert len(found) == len(said)
    assert all(words in sentence for words, sentence in zip(said, found, strict=True))
