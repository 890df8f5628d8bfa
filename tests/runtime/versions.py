"""Which versions tests try: each costs a minute or two."""

from __future__ import annotations

import os
from collections.abc import Sequence


def versions(*few: str, of: Sequence[str]) -> Sequence[str]:
    """A TensorFlow 1, the first 2 and the newest; with TFDET_TESTS=all, as CI does once a week, every one."""
    assert set(few) <= set(of), "every one of the few is one of all"
    return of if os.environ.get("TFDET_TESTS") == "all" else few
