"""A record has one canonical line: both readers reject any other spelling of the same content."""

from __future__ import annotations

import random
from typing import Any

import pytest
from records import STACK, device_of, make_record, with_checksum

from tfdet.store.fast_records import read_line
from tfdet.store.records import parse
from tfdet_common import journal

LARGE = (1 << 64) - 1
GPU_STATE = {"driver": None, "sm_mhz": None, "memory_mhz": None, "celsius": -3, "performance_state": None,
          "throttle_reasons": LARGE, "ecc": None, "ecc_errors": None, "mig": False}  # fmt: skip
NUMBERS = [1e-07, 9.999e-05, 1e-4, 0.5, 123456.75, 1e6]


def line(*arguments: Any, **changes: Any) -> bytes:
    return journal.dump(make_record(*arguments, **changes)).encode("ascii")


def is_accepted(text: bytes) -> bool:
    """Return whether the readers accept the line; both must agree."""
    answers = []
    for reader in (read_line, parse):
        try:
            answers.append(reader(text) is not None)
        except ValueError:
            answers.append(False)
    assert len(set(answers)) == 1, text
    return answers[0]


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_must_be_written_as_python_writes_them(number: float) -> None:
    for times in ({"duration_seconds": number, "median_seconds": 0.0}, {"median_seconds": number}):
        assert is_accepted(line("differs", max_absolute=number, **{"duration_seconds": 1e7, **times}))


def test_optional_fields_may_be_absent_or_null() -> None:
    for name in ("kernels", "contention", "gpu_state"):
        assert is_accepted(line(**{name: None}))
        assert is_accepted(line(**{name: None, "max_absolute": 0}))
    assert is_accepted(line(stack={**STACK, "bundle": None}))
    assert is_accepted(line(device={**device_of("cpu"), "details": None}))
    assert is_accepted(line("differs", max_ulp=LARGE, gpu_state={"before": GPU_STATE, "after": GPU_STATE}))
    assert not is_accepted(line("differs", max_ulp=LARGE + 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"max_absolute":1e-07', b'"max_absolute":1e-7'),
        (b'"max_absolute":1e-07', b'"max_absolute":1E-07'),
        (b'"max_absolute":1e-07', b'"max_absolute":0.0000001'),
        (b'"duration_seconds":1.5', b'"duration_seconds":1.50'),
        (b'"duration_seconds":1.5', b'"duration_seconds":15e-1'),
        (b'"runs":10', b'"runs":10.0'),
        (b'"runs":10', b'"runs":1e1'),
        (b'"runs":10', b'"runs":10,"runs":10'),
        (b'"runs":10', b'"runs": 10'),
        (b'"cores":2', b'"cores":2,"cores":2'),
        (b'"cores":2,"cpu":"a CPU"', b'"cpu":"a CPU","cores":2'),
        (b'"repeats":10,"runs":10', b'"runs":10,"repeats":10'),
        (b'"kind":"cpu"', b'"kind":"\\u0063pu"'),
        (b'"a CPU"', b'"a\tCPU"'),
        (b'"max_absolute":1e-07', b'"max_absolute":1e-07,"max_absolute":1e-07'),
    ],
)
def test_a_line_in_another_notation_is_refused(old: bytes, new: bytes) -> None:
    good = line("differs", max_absolute=1e-07)
    assert is_accepted(good)
    assert old in good
    assert not is_accepted(with_checksum(good.replace(old, new, 1)))


def test_inserting_or_removing_a_byte_changes_the_content_or_is_refused() -> None:
    """A changed line is either valid in its canonical form and says something else, or no reader accepts it."""
    rng, good = random.Random(7), line("differs", max_absolute=1e-07, median_seconds=1e-05)
    for _ in range(1500):
        position = rng.randrange(1, len(good) - 1)
        byte = bytes([rng.choice(b'0123456789.eE+-" ,:{}[]nula')])
        damaged = with_checksum(
            good[:position] + rng.choice([b"", byte, good[position : position + 1] + byte]) + good[position + 1 :]
        )
        try:
            read_line(damaged)
        except ValueError:
            continue
        assert is_accepted(damaged)
