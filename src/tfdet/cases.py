"""The cases of the shared suite as the host sees them: read from source text, never imported."""

from __future__ import annotations

import ast
from pathlib import Path

from tfdet.errors import DataError
from tfdet_probe.registry import case_blocks, code_hash


def current_hashes(suite: Path) -> dict[str, set[str]]:
    """{source: hashes of its @case functions}; a record with another hash is stale."""
    found: dict[str, set[str]] = {}
    for path in sorted(suite.glob("test_*.py")):
        text = path.read_text("utf-8")
        try:
            ast.parse(text)
        except SyntaxError as error:
            raise DataError(f"{path}:{error.lineno}: {error.msg}") from error
        blocks, shared = case_blocks(text)
        for source, block in blocks.values():
            found.setdefault(source, set()).add(code_hash(block, shared))
    return found
