"""Comments by which a program declares a finding as known: `# tfdet: ignore[RULE, ...]` on the line of the call."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

_COMMENT = re.compile(r"#\s*tfdet:\s*ignore\[([^\]]*)\]")


class Ignore(NamedTuple):
    """rule: the key of a source, as a finding names it."""

    rule: str
    file: str
    line: int
    cell: int = 0


def find_ignores(text: bytes | str, file: str, cell: int = 0) -> Iterator[Ignore]:
    """text: of a whole file or of one cell of a notebook; what follows a token that cannot be read is left out."""
    source = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    try:
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            found = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
            for rule in found[1].split(",") if found else ():
                yield Ignore(rule.strip(), file, token.start[0], cell)
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError):
        return  # the parser says what is wrong with it
