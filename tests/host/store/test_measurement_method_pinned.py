"""The method of measurement is pinned: a change must say whether old records keep their meaning."""

from __future__ import annotations

import hashlib

from tfdet.base.paths import Project
from tfdet_probe.core import normalized_source
from tfdet_probe.core.registry import HASH_METHOD

# The modules that decide what a record means.
MEASURES = ["core/host.py", "base/case_builder.py", "base/settings.py", "base/snapshot.py",
            "frameworks/tensorflow/modes.py", "frameworks/tensorflow/solutions.py"]  # fmt: skip
PINNED = {1: "2e4578b68a877729"}  # {HASH_METHOD, the version of the method: digest of the code of these modules}


def test_a_changed_method_is_noticed(checkout: Project) -> None:
    """The hash ignores comments in these files, because they change no result."""
    digest = hashlib.sha256()
    for name in MEASURES:
        text = (checkout.runtime / "tfdet_probe" / name).read_text("utf-8")
        digest.update(normalized_source.normalize_module(text).encode())
    assert PINNED[HASH_METHOD] == digest.hexdigest()[:16], (
        "these files decide what a record means: if results may now differ, raise HASH_METHOD in registry.py "
        "(all records become stale); if not, pin the new digest here"
    )
