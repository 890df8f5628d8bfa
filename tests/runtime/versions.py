"""Which versions tests try: each costs a minute or two."""

from __future__ import annotations

import os
from collections.abc import Sequence


def versions(*few: str, of: Sequence[str]) -> Sequence[str]:
    """A TensorFlow 1, the first 2 and the newest; with TFDET_TESTS=all, as CI does once a week, every one."""
    word = os.environ.get("TFDET_TESTS", "")
    assert word in ("", "all") and set(few) <= set(of)
    return of if word else few
