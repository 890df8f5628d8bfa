"""What a week's CI runs whole (TFDET_TESTS=all), and each commit's in part."""

from __future__ import annotations

import os

import pytest

ALL = os.environ.get("TFDET_TESTS") == "all"
ONLY = pytest.mark.skipif(not ALL, reason="once a week: TFDET_TESTS=all")


def how_many(whole: int) -> int:
    """All of them once a week, else a fifth."""
    return whole if ALL else whole // 5
