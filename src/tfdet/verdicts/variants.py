"""The variants of a case: its dtype, and whether it was compiled.  A verdict covers only the variants that ran.

The name of a case contains them: `NAME-MODE`, or `NAME-in-DTYPE-MODE` if the dtype is not the op's first.
A case is one runnable form of a source of nondeterminism; a cell combines the cases of one source.
"""

from __future__ import annotations

import re
from functools import lru_cache

COMPILED = "compiled"  # by torch.compile
EAGER = "eager"  # all that is not compiled, in any dtype
FIRST_DTYPE_LABEL = "its first dtype"

_CASE_NAME = re.compile(r"(?:.*-in-(?P<dtype>[a-z]+\d+))?.*-(?P<mode>[a-z]+)")


@lru_cache(maxsize=4096)
def variants_of(case: str) -> tuple[str, ...]:
    """Return the variants of a cell that a case belongs to; empty if its kind of case has only one variant."""
    match = _CASE_NAME.fullmatch(case)
    if match is None:
        return ()
    if match["mode"] == COMPILED:
        return (COMPILED,)
    if match["dtype"]:
        return (EAGER, match["dtype"])
    return (EAGER, FIRST_DTYPE_LABEL) if match["mode"] == EAGER else ()
