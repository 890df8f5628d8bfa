"""Errors about a file contain its name and, where it has one, the line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tfdet.base.errors import DataError
from tfdet.base.paths import Project
from tfdet.matrix import alerts, ops, source_readings, upstream
from tfdet.store import cases
from tfdet.verdicts import programs

READERS: dict[str, Callable[[Project], object]] = {
    "ops/torch/names.toml": lambda project: ops.load_names(project.matrix, "torch"),
    "ops/torch/kernels.toml": lambda project: ops.load_kernels(project.matrix, "torch"),
    "ops/torch/alerts.toml": lambda project: alerts.load_meanings(project.matrix, "torch"),
    "ops/torch/confirmed.toml": lambda project: source_readings.load(project.matrix, "torch"),
    "ops/torch/upstream.toml": lambda project: upstream.load(project.matrix, "torch"),
    "ops/torch/torch2.8.json": lambda project: ops.load_ops(project.matrix, "torch"),
    "alerts/torch2.8.json": lambda project: alerts.load(project.matrix, "torch2.8"),
    "evidence/earlier-hashes.json": lambda project: cases.earlier_hashes(project.evidence),
}


@pytest.mark.parametrize("content", [b"\n\n\xff", b"\n\n[", b"\nstrange = 1\n", b"", b"[[[", b'{"hashes": 3}'])
@pytest.mark.parametrize("name", READERS)
def test_an_error_in_a_file_of_the_matrix_names_file_and_line(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / "matrix" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    try:
        READERS[name](Project(tmp_path))
    except DataError as error:
        line = r":\d+: " if path.suffix == ".toml" else ":"
        assert all(re.match(re.escape(str(path)) + line, line_text) for line_text in error.cause.split("\n")), (
            error.cause
        )
        assert "pydantic.dev" not in error.cause
    else:
        assert content in (b"", b"\n") or path.suffix == ".toml"


@pytest.mark.parametrize(("text", "line"), [("x = 1\n\nif:\n", 3), ("x = (\n", 1), ("def f():\nreturn\n", 2)])
def test_a_syntax_error_in_a_program_names_file_and_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "train.py"
    path.write_text(text)
    with pytest.raises(DataError, match=re.escape(f"{path}:{line}: not Python 3: ")) as caught:
        programs.parse_programs([path])
    assert "<unknown>" not in caught.value.cause
