"""Read the Python cells of a Jupyter notebook."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tfdet.base.errors import DataError
from tfdet.base.strict_json import read_json

SUFFIX = ".ipynb"
_ADVICE = (
    "Name notebooks of nbformat 4 whose language is Python, or write it as a program: jupyter nbconvert --to script."
)
# The cell magics whose cells contain Python.
_PYTHON = ("time", "timeit", "capture", "prun")
_SHELL = re.compile(r"^(\s*)(?:[\w., ]+=\s*)?[%!?].*$|^(\s*)[\w.%]+\?{1,2}\s*$")


def cells(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number among all cells, text) of each code cell; raise DataError if it is not a Python notebook."""
    content = read_json(path, _ADVICE)
    cell_list = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cell_list, list) or _language(content) != "python":
        raise DataError(f"{path}: no notebook with cells of Python", _ADVICE)
    for number, cell in enumerate(cell_list, 1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            yield number, _source(path, number, cell)


def _language(content: dict[str, Any]) -> str:
    metadata = content.get("metadata")
    for name, key in (("kernelspec", "language"), ("language_info", "name")):
        section = metadata.get(name) if isinstance(metadata, dict) else None
        if isinstance(section, dict) and isinstance(section.get(key), str):
            return str(section[key]).lower()
    return "python"


def _source(path: Path, number: int, cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    lines = source if isinstance(source, list) else [source]
    if not all(isinstance(line, str) for line in lines):
        raise DataError(f"{path}: cell {number}: its source is not text", _ADVICE)
    return "".join(lines)


def python(source: str) -> str:
    """Replace magics and shell commands by `pass`; return an empty text for a cell in another language."""
    lines = source.split("\n")
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%") and first[2:].split(" ")[0].strip() not in _PYTHON:
        return ""
    return "\n".join(_SHELL.sub(lambda match: f"{match.group(1) or match.group(2) or ''}pass", line) for line in lines)
