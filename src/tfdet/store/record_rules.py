"""What a record may say: one set of rules for every record that is taken in, written into tables or checked.

A rule follows from how the probe makes a record (tfdet_probe.core, .devices): what breaks it, no run gave.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from tfdet.matrix.devices import is_model
from tfdet_common.defaults import MAX_COUNT
from tfdet_common.journal import MAX_DIGESTS
from tfdet_common.virtual_gpu import CHOSEN_CODE

MIN_DATE = date(2019, 2, 26)  # that day came TensorFlow 1.13.1, the oldest of the matrix (its page on PyPI)
TENTH_OF_A_MICROSECOND, YEAR = 1e-7, 366 * 86400.0
_UTC_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ")


class RecordFacts(NamedTuple):
    """What of a record reaches a table, or must agree with what does.

    digests: how many are kept.  first: (relaunch, repeat) of the first that differed.  timed: is there a median?
    error: its kind.
    """

    kind: str
    model: str
    observation: str
    repeats: int
    relaunches: int
    runs: int
    differed: int
    distinct: int
    digests: int
    first: tuple[int, int] | None
    max_ulp: int | None
    max_absolute: float | None
    timed: bool
    error: str | None


@lru_cache(maxsize=4096)  # a million records have few different shapes
def contradictions(f: RecordFacts) -> tuple[str, ...]:
    """Why no run can have given these facts."""
    return tuple(
        text
        for rule in (_check_counts, _check_results, _check_failures, _check_device)
        for text, wrong in rule(f)
        if wrong
    )


_Rule = Iterator[tuple[str, bool]]


def _check_counts(f: RecordFacts) -> _Rule:
    yield "no repeats or no relaunches", not (f.repeats and f.relaunches)
    yield f"more than {MAX_COUNT} repeats or relaunches", max(f.repeats, f.relaunches) > MAX_COUNT
    yield "more runs than repeats and relaunches give", f.runs > f.repeats * f.relaunches
    yield "its runs are not whole processes", bool(f.repeats) and f.runs % f.repeats != 0
    yield "more runs differed than there were", f.differed > f.runs
    yield "timed without a run, or run untimed", f.timed != (f.runs > 0)


def _check_results(f: RecordFacts) -> _Rule:
    some = f.differed > 0
    yield "no distinct result, or one without a run", (f.distinct > 0) != (f.runs > 0)
    yield "more distinct results than the reference and those that differed", f.distinct > f.differed + 1
    yield "runs differed, and yet all results are one", some and f.distinct < 2
    yield "number of digests does not match number of distinct results", f.digests != min(f.distinct, MAX_DIGESTS)
    yield "a first difference without any, or none where runs differed", (f.first is not None) != some
    yield "the first that differed is beyond its runs", f.first is not None and not _is_within_runs(f)
    yield "a distance where nothing differed", not some and (f.max_ulp, f.max_absolute) != (0, 0.0)


def _is_within_runs(f: RecordFacts) -> bool:
    assert f.first is not None
    relaunch, repeat = f.first
    return repeat < f.repeats and relaunch * f.repeats < f.runs


def _check_failures(f: RecordFacts) -> _Rule:
    whole = f.runs == f.repeats * f.relaunches
    yield "equal, and yet not all runs are", f.observation == "equal" and (f.differed > 0 or not whole)
    yield "equal, and yet it ended in an error", f.observation == "equal" and f.error is not None
    yield "differs, and yet no run does", f.observation == "differs" and not f.differed
    other = f.observation not in ("equal", "differs")
    yield "no result, and no error either", other and f.error is None
    yield f"{f.observation}, and yet its error says {f.error}", other and f.error not in (None, f.observation)
    yield f"{f.observation}, and yet runs differed", other and f.differed > 0
    yield "an error, and yet all runs came to their end", f.error is not None and whole
    yield "no error, and yet runs are missing", f.error is None and not whole


def _check_device(f: RecordFacts) -> _Rule:
    yield f"{f.model} is not the key of a device of kind {f.kind}", not is_model(f.model, f.kind)


def is_plausible_duration(seconds: float | None) -> bool:
    """A median as the probe rounds it, of what ended within a year: ratios of such are numbers."""
    return seconds is None or seconds == 0 or TENTH_OF_A_MICROSECOND <= seconds <= YEAR


def is_plausible_time(started: str) -> bool:
    """UTC, not before there was a TensorFlow to run, and not after tomorrow: it would never be renewed."""
    found = _UTC_TIMESTAMP.fullmatch(started)
    return found is not None and _is_day(found[1])


@lru_cache(maxsize=4096)
def _is_day(text: str) -> bool:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return False
    return MIN_DATE <= day <= datetime.now(UTC).date() + timedelta(days=1)


def chosen_code(details: object) -> str:
    """Which code a caller chose to run, of a record's device details: its records stand beside those of the default."""
    found = details.get(CHOSEN_CODE) if isinstance(details, Mapping) else None
    return found if isinstance(found, str) else ""
