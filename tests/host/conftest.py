"""Fixtures of the host tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from records import make_record

from tfdet_common import journal


@pytest.fixture
def line() -> Callable[..., bytes]:
    """line(observation, **changes): one record as the probe writes it."""
    return lambda observation="equal", **changes: (journal.dump(make_record(observation, **changes)) + "\n").encode()
