"""The way of measuring is pinned: a change of it must say whether old records still mean the same."""

from __future__ import annotations

import hashlib

from tfdet.base.paths import Project
from tfdet_probe.registry import METHOD

MEASURES = ["make.py", "modes.py", "snapshot.py", "solutions.py"]
PINNED = {1: "70ec9207500d0f26"}


def test_a_changed_method_is_noticed(checkout: Project) -> None:
    digest = hashlib.sha256()
    for name in MEASURES:
        digest.update((checkout.runtime / "tfdet_probe" / name).read_bytes())
    assert PINNED[METHOD] == digest.hexdigest()[:16], (
        "these files decide what a record means: if results may now differ, raise METHOD in registry.py (all "
        "records go stale and are measured anew); if not, pin the new digest here"
    )
