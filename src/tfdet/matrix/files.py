"""Loading of files of matrix/ as models, with errors of the form `file:line: reason`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar

import tomli
from pydantic import BaseModel, ValidationError

from tfdet.base.errors import DataError
from tfdet.base.untrusted import read_bytes, read_text
from tfdet.matrix.field_types import format_validation_error

M = TypeVar("M", bound=BaseModel)


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """Return (text, content) of a TOML file; DataError with the line if it is not valid TOML."""
    text = read_text(path)
    try:
        return text, tomli.loads(text)
    except RecursionError as error:
        raise DataError(f"{path}:1: nested too deeply") from error
    except tomli.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))  # None for an unexpected end of the file
        raise DataError(f"{path}:{line.group(1) if line else text.count(chr(10)) + 1}: {error}") from error
    except ValueError as error:  # a number of more digits than Python converts
        raise DataError(f"{path}:{_line_of_longest_number(text)}: a number with too many digits") from error


def _line_of_longest_number(text: str) -> int:
    longest = max(re.finditer(r"[0-9_]+", text), key=lambda number: len(number.group()))
    return text.count("\n", 0, longest.start()) + 1


def load_toml(path: Path, model: type[M]) -> M:
    return to_model(path, *read_toml(path), model)


def to_model(path: Path, text: str, content: dict[str, Any], model: type[M]) -> M:
    """Validate the content of a TOML file; DataError lists all faults.  text: to find the lines of the faults."""
    try:
        return model.model_validate(content)
    except ValidationError as error:
        faults = [
            f"{path}:{line_of(text, fault['loc'])}: {format_validation_error(fault, 'file')}"
            for fault in error.errors()
        ]
        raise DataError("\n".join(faults)) from error


def load_json(path: Path, model: type[M], advice: str) -> M:
    """Load a JSON file, which a tool wrote; DataError names fields, not lines.  advice: how to write it again."""
    try:
        return model.model_validate_json(read_bytes(path, advice))
    except ValidationError as error:
        faults = [f"{path}: {format_validation_error(fault, 'file')}" for fault in error.errors()[:20]]
        raise DataError("\n".join(faults), advice) from error


def line_of(text: str, location: tuple[int | str, ...]) -> int:
    """Return the line of the value at `location` in a TOML text, or of the nearest table around it."""
    lines = text.splitlines()
    at, end = 0, len(lines)
    path: list[str] = []
    for number, part in enumerate(location):
        if isinstance(part, int):
            continue
        path.append(part)
        index = location[number + 1] if number + 1 < len(location) else None
        headers = [i for i, line in enumerate(lines) if re.match(rf"\s*\[\[?\s*{re.escape('.'.join(path))}\s*\]", line)]
        if headers:
            at = headers[index] if isinstance(index, int) and index < len(headers) else headers[0]
            end = next((i for i in range(at + 1, len(lines)) if lines[i].startswith("[")), len(lines))
            continue
        at = next((i for i in range(at, end) if re.match(rf'\s*"?{re.escape(part)}"?\s*=', lines[i])), at)
    return at + 1
