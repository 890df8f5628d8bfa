"""The terminal output of a run: progress with the time left, failures, the final table."""

import os
import time

from tfdet_common.defaults import MAX_TABLE_ROWS

_SHORT = {"equal": "equal {runs}", "differs": "differs {differed}/{runs}"}
_MIN_RECORDS_FOR_PACE = 4
_LINES = 20  # of a run's progress, where it is no terminal
_TELLING = ("differs", "crashed", "timed-out")  # observations that a table shows even if it leaves out others


class Progress(object):
    """Prints how far the run is: on a terminal one line that updates itself, else some twenty lines in all.

    There a case that crashed or timed out has its own line too: nothing else of the run tells of it so soon.
    """

    def __init__(self, stream):
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._start = None  # of the first record: before it the framework starts
        self._done = 0

    def __call__(self, record, suite):
        self._done += 1
        prefix = "[{}/{}]{}  ".format(self._done, suite.total, self._remaining_time(suite.total))
        case_name = "{} {} {}".format(record["source"], record["case"], record["solution"])
        if self._is_terminal:
            brief = "{} {}".format(record["source"], record["solution"])
            line = _truncate_middle(prefix, [case_name, brief, record["solution"]], ": " + observation_text(record),
                                    _width(self._stream) - 1)
            self._stream.write("\r\x1b[K" + line)
        elif self._is_worth_a_line(record, suite.total):
            self._stream.write("{}{}: {}\n".format(prefix, case_name, observation_text(record)))
        self._stream.flush()

    def _is_worth_a_line(self, record, total):
        if record["observation"] in ("crashed", "timed-out"):
            return True
        return self._done in (1, total) or self._done % max(1, total // _LINES) == 0

    def _remaining_time(self, total):
        """The time left by the pace since the first record, as text; empty for the first few records."""
        if self._start is None:
            self._start = time.time()
        if self._done < _MIN_RECORDS_FOR_PACE:
            return ""
        pace = (time.time() - self._start) / (self._done - 1)
        return " " + _minutes(pace * max(0, total - self._done))

    def end(self):
        if self._is_terminal:
            self._stream.write("\r\x1b[K")


class Failures(object):
    """Prints pytest's failures, a line each; pytest's own terminal plugin is off."""

    def __init__(self, stream):
        self._stream = stream

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self._stream.write("\n! {}\n".format(report.longrepr))

    def pytest_collectreport(self, report):
        if report.failed:
            self._stream.write("\n! {}\n".format(report.longrepr))


def observation_text(record):
    # type: (dict) -> str
    """The observation of a record as text, such as "differs 3/20"."""
    text = _SHORT.get(record["observation"], record["observation"])
    return text.format(**record)


def result(records, full_table):
    # type: (list[dict], bool) -> str
    """The table; of many sources those in which something differed or did not end.  full_table: of all sources."""
    sources = {r["source"] for r in records}
    telling = {r["source"] for r in records if r["observation"] in _TELLING}
    if full_table or len(sources) <= MAX_TABLE_ROWS or sources == telling:
        return table(records)
    rest = "{} more sources in which nothing differed: --table prints them".format(len(sources - telling))
    return "\n".join([table([r for r in records if r["source"] in telling]), rest] if telling else [rest])


def table(records):
    # type: (list[dict]) -> str
    """A table of observations: a row for each source of nondeterminism, a column for each solution, `none` first.

    Under `none` nothing makes the source deterministic.  `tfdet status` later infers verdicts from the observations.
    """
    solutions = sorted({r["solution"] for r in records}, key=lambda key: (key != "none", key))
    rows = [["source"] + solutions]
    for source in sorted({r["source"] for r in records}):
        of_source = [r for r in records if r["source"] == source]
        rows.append([source] + [_cell([r for r in of_source if r["solution"] == key]) for key in solutions])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows)


def _cell(records):
    parts = []
    for observation in ("differs", "equal", "raises", "unsupported", "crashed", "timed-out"):
        matching = [r for r in records if r["observation"] == observation]
        if matching:
            total = {"runs": sum(r["runs"] for r in matching), "differed": sum(r["differed"] for r in matching)}
            parts.append(observation_text(dict(total, observation=observation)))
    return ", ".join(parts)


def _truncate_middle(prefix, middles, suffix, width):
    """Join three texts within a width: the first middle that fits; without one, cut off the end."""
    for middle in middles:
        if len(prefix + middle + suffix) <= width:
            return prefix + middle + suffix
    return (prefix + suffix[2:])[:width]


def _width(stream):
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):  # not a terminal
        return 80


def _minutes(seconds):
    return "{:.0f} min left".format(seconds / 60) if seconds >= 90 else "{:.0f} s left".format(seconds)
