"""Fixtures of the host tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from records import make_record

from tfdet_probe import record as probe_record


@pytest.fixture
def line() -> Callable[..., bytes]:
    """line(observation, **changes): one record as the probe writes it."""
    return lambda observation="equal", **changes: (
        probe_record.dump(make_record(observation, **changes)) + "\n"
    ).encode()
