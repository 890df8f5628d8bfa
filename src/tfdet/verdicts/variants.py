"""In which way a case was run: in which dtype, and compiled or op by op.  A verdict speaks of those that ran alone.

Said by its name: a case in a dtype beside an op's first is `NAME-in-DTYPE-MODE`, and the mode is the last word of all.
"""

from __future__ import annotations

import re
from functools import lru_cache

COMPILED = "compiled"  # by torch.compile
EAGER = "eager"  # all that is not compiled, in whichever dtype
FIRST_DTYPE_LABEL = "its first dtype"

_NAMED = re.compile(r"(?:.*-in-(?P<dtype>[a-z]+\d+))?.*-(?P<mode>[a-z]+)")


@lru_cache(maxsize=4096)
def variants_of(case: str) -> tuple[str, ...]:
    """The parts of a cell that a case belongs to; none: no case of its kind is run in more than one way."""
    found = _NAMED.fullmatch(case)
    if found is None:
        return ()
    if found["mode"] == COMPILED:
        return (COMPILED,)
    if found["dtype"]:
        return (EAGER, found["dtype"])
    return (EAGER, FIRST_DTYPE_LABEL) if found["mode"] == EAGER else ()
