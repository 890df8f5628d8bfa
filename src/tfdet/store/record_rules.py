"""Rules on the fields of one record: which values contradict each other, or are impossible for any run.

They hold for every record that is added, written into tables or checked.  Each rule follows from how the probe makes a
record (tfdet_probe.core, .devices).
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
from tfdet_common.virtual_gpu import AXIS_VARIABLES, CHOSEN_CODE

MIN_DATE = date(2019, 2, 26)  # release of TensorFlow 1.13.1, the oldest of the matrix (its page on PyPI)
TENTH_OF_A_MICROSECOND, MILLISECOND, DAY, YEAR = 1e-7, 1e-3, 86400.0, 366 * 86400.0
_UTC_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ")


class RecordFacts(NamedTuple):
    """The fields of a record that reach a table, or that must agree with one that does.

    kind, model: of the device.  repeats: in each process.  relaunches: the number of processes.  distinct: of all
    results, the reference (the first result of the first process) included.
    digests: the number of stored digests.  first: (relaunch, repeat) of the first run that differed.  timed: whether
    the record has a median time.  error: the kind of its error.
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
def contradictions(facts: RecordFacts) -> tuple[str, ...]:
    """Return the contradictions in these facts, as messages; no run of the probe gives any."""
    return tuple(
        text
        for rule in (_check_counts, _check_results, _check_failures, _check_device)
        for text, is_broken in rule(facts)
        if is_broken
    )


_Rule = Iterator[tuple[str, bool]]  # (message, whether the rule is broken)


def _check_counts(facts: RecordFacts) -> _Rule:
    yield "no repeats or no relaunches", not (facts.repeats and facts.relaunches)
    yield f"more than {MAX_COUNT} repeats or relaunches", max(facts.repeats, facts.relaunches) > MAX_COUNT
    yield "more runs than repeats and relaunches give", facts.runs > facts.repeats * facts.relaunches
    yield (
        "its runs are not a multiple of the repeats of a process",
        bool(facts.repeats) and facts.runs % facts.repeats != 0,
    )
    yield "more runs differed than there were", facts.differed > facts.runs
    yield "timed without a run, or run untimed", facts.timed != (facts.runs > 0)


def _check_results(facts: RecordFacts) -> _Rule:
    differs = facts.differed > 0
    yield "no distinct result, or one without a run", (facts.distinct > 0) != (facts.runs > 0)
    yield "more distinct results than the reference and those that differed", facts.distinct > facts.differed + 1
    yield "runs differed, but there is only one distinct result", differs and facts.distinct < 2
    expected_digests = min(facts.distinct, MAX_DIGESTS)
    yield "number of digests does not match number of distinct results", facts.digests != expected_digests
    yield (
        "it has a first difference although no run differed, or has none although runs differed",
        (facts.first is not None) != differs,
    )
    yield "the first that differed is beyond its runs", facts.first is not None and not _is_within_runs(facts)
    yield "a distance where nothing differed", not differs and (facts.max_ulp, facts.max_absolute) != (0, 0.0)


def _is_within_runs(facts: RecordFacts) -> bool:
    assert facts.first is not None
    relaunch, repeat = facts.first
    return repeat < facts.repeats and relaunch * facts.repeats < facts.runs


def _check_failures(facts: RecordFacts) -> _Rule:
    is_complete = facts.runs == facts.repeats * facts.relaunches
    yield (
        "equal, but runs differed or are missing",
        facts.observation == "equal" and (facts.differed > 0 or not is_complete),
    )
    yield "equal, but it ended in an error", facts.observation == "equal" and facts.error is not None
    yield "differs, but no run differed", facts.observation == "differs" and not facts.differed
    has_no_result = facts.observation not in ("equal", "differs")
    yield "no result, and no error either", has_no_result and facts.error is None
    other_error = facts.error not in (None, facts.observation)
    yield f"{facts.observation}, but its error is of kind {facts.error}", has_no_result and other_error
    yield f"{facts.observation}, but runs differed", has_no_result and facts.differed > 0
    yield "an error, but no run is missing", facts.error is not None and is_complete
    yield "no error, but runs are missing", facts.error is None and not is_complete


def _check_device(facts: RecordFacts) -> _Rule:
    yield f"{facts.model} is not the key of a device of kind {facts.kind}", not is_model(facts.model, facts.kind)


def check_times(started: str, duration: float, median: float | None, repeats: int) -> _Rule:
    """Rules on the times of a record.  started: in UTC.  duration, median: seconds of the case, and of one run."""
    yield "its start is not a possible time", not _is_plausible_time(started)
    yield "its median is not a possible duration", not _is_plausible_duration(median)
    yield "its duration is not possible", not _is_plausible_duration(duration)
    yield "it ends after tomorrow", _ends_too_late(started, duration)
    yield "its runs take longer than it took", median is not None and _is_too_short(duration, median, repeats)


def _is_plausible_duration(seconds: float | None) -> bool:
    """Return whether a time is None, 0, or from 0.1 microseconds to a year, so that sums and ratios are finite."""
    return seconds is None or seconds == 0 or TENTH_OF_A_MICROSECOND <= seconds <= YEAR


def _ends_too_late(started: str, duration: float) -> bool:
    """Return whether a record of more than a day ends after tomorrow; a shorter one may, by its machine's clock."""
    if not DAY < duration <= YEAR or not _is_plausible_time(started):
        return False
    end = datetime.fromisoformat(started) + timedelta(seconds=duration)
    return not _is_plausible_date(end.date().isoformat())


def _is_too_short(duration: float, median: float, repeats: int) -> bool:
    """Return whether half of the timed runs of one process take longer than the whole case.

    The median is of all runs of one or more processes, without the first of each if there are several.  Processes run
    one after another, so at least one of them spent this time.  Half a millisecond may be lost in rounding.
    """
    timed = max(repeats - 1, 1)
    return (median - TENTH_OF_A_MICROSECOND) * (timed - timed // 2) > duration + MILLISECOND


def _is_plausible_time(started: str) -> bool:
    """Return whether a text is a UTC time from MIN_DATE to tomorrow.

    A later time is refused because no newer record could replace that one.
    """
    match = _UTC_TIMESTAMP.fullmatch(started)
    return match is not None and _is_plausible_date(match[1])


@lru_cache(maxsize=4096)
def _is_plausible_date(text: str) -> bool:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return False
    return MIN_DATE <= day <= datetime.now(UTC).date() + timedelta(days=1)


def device_choices(details: object) -> str:
    """Return what the caller chose on the virtual GPU, from a record's device details; empty for the defaults.

    Records of other choices are kept beside those of the defaults.
    """
    if not isinstance(details, Mapping):
        return ""
    code = details.get(CHOSEN_CODE)  # PTX or machine code, where a container has both
    axes = [f"{name}={number}" for name in AXIS_VARIABLES if (number := details.get(name)) is not None]
    return " ".join([code if isinstance(code, str) else "", *axes]).rstrip()
