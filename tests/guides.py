"""What the guides in docs/ show: files to write, commands to run, lines that a command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

_FILE = re.compile(r"^```python file=(\S+)\n(.*?)^```", re.M | re.S)
_CONSOLE = re.compile(r"^```console run\n(.*?)^```", re.M | re.S)


def write_files(text: str, folder: Path) -> None:
    """Each block "python file=NAME" into the folder."""
    for name, content in _FILE.findall(text):
        (folder / name).write_text(content, "utf-8")


def commands(text: str) -> list[tuple[list[str], list[str]]]:
    """(command, lines that it is shown to print) of each command in the blocks "console run"."""
    parts = [part for block in _CONSOLE.findall(text) for part in re.split(r"^\$ ", block, flags=re.M)[1:]]
    return [(shlex.split(first, comments=True), rest.splitlines())
            for first, _, rest in (part.partition("\n") for part in parts)]  # fmt: skip


def missing_lines(shown: list[str], printed: str) -> list[str]:
    """Lines that were not printed, in that order; "..." ends what is compared, folders are left out."""
    lines = iter(re.sub(r"\S*/(?=\w+\.py)", "", line) for line in printed.splitlines())
    return [line for line in shown if not any(one.startswith(line.replace("...", "").rstrip()) for one in lines)]
