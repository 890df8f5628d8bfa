"""Read the comments that suppress findings: `# tfdet: ignore[RULE, ...]` on the line of the call."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

_COMMENT = re.compile(r"#\s*tfdet:\s*ignore\[([^\]]*)\]")


class Ignore(NamedTuple):
    """An ignored rule, or source of nondeterminism, on one line.  cell: the number of the notebook's cell, or 0."""

    rule: str
    file: str
    line: int
    cell: int = 0


def find_ignores(text: bytes | str, file: str, cell: int = 0) -> Iterator[Ignore]:
    """Yield the ignored rules in a file or a notebook's cell, up to the first token that cannot be read."""
    source = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    try:
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            match = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
            for rule in match[1].split(",") if match else ():
                yield Ignore(rule.strip(), file, token.start[0], cell)
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError):
        return  # the parser says what is wrong with it
