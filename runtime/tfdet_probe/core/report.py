"""What a person watching the run sees: progress with time left, failures, the closing table."""

import os
import time

_SHORT = {"equal": "equal {runs}", "differs": "differs {differed}/{runs}"}
_PACE = 4  # records that tell one


class Progress(object):
    """Called with each record: one line on a terminal that rewrites itself, plain lines elsewhere."""

    def __init__(self, stream):
        self._stream = stream
        self._live = stream.isatty()
        self._start = None  # when the first record was there: before it the framework starts
        self._done = 0

    def __call__(self, record, suite):
        self._done += 1
        head = "[{}/{}]{}  ".format(self._done, suite.total, self._left(suite.total))
        where = "{} {} {}".format(record["source"], record["case"], record["solution"])
        if self._live:
            brief = "{} {}".format(record["source"], record["solution"])
            line = _fitted(head, [where, brief, record["solution"]], ": " + words(record), _width(self._stream) - 1)
            self._stream.write("\r\x1b[K" + line)
        else:
            self._stream.write("{}{}: {}\n".format(head, where, words(record)))
        self._stream.flush()

    def _left(self, total):
        """Of the time, by the pace since the first record; nothing of the first ones, which tell no pace."""
        if self._start is None:
            self._start = time.time()
        if self._done < _PACE:
            return ""
        pace = (time.time() - self._start) / (self._done - 1)
        return " " + _minutes(pace * max(0, total - self._done))

    def end(self):
        if self._live:
            self._stream.write("\r\x1b[K")


class Failures(object):
    """pytest's failures without its terminal: one line each."""

    def __init__(self, stream):
        self._stream = stream

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self._stream.write("\n! {}\n".format(report.longrepr))

    def pytest_collectreport(self, report):
        if report.failed:
            self._stream.write("\n! {}\n".format(report.longrepr))


def words(record):
    # type: (dict) -> str
    text = _SHORT.get(record["observation"], record["observation"])
    return text.format(**record)


def table(records):
    # type: (list[dict]) -> str
    """Observations, source by solution. Verdicts are inferred later, by `tfdet status`."""
    solutions = sorted({r["solution"] for r in records}, key=lambda key: (key != "none", key))
    rows = [["source"] + solutions]
    for source in sorted({r["source"] for r in records}):
        mine = [r for r in records if r["source"] == source]
        rows.append([source] + [_cell([r for r in mine if r["solution"] == key]) for key in solutions])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in rows)


def _cell(records):
    parts = []
    for observation in ("differs", "equal", "raises", "unsupported", "crashed", "timed-out"):
        some = [r for r in records if r["observation"] == observation]
        if some:
            total = {"runs": sum(r["runs"] for r in some), "differed": sum(r["differed"] for r in some)}
            parts.append(words(dict(total, observation=observation)))
    return ", ".join(parts)


def _fitted(head, middles, tail, width):
    """What happened is never cut off: of what it happened to, the longest text that has room is said."""
    for middle in middles:
        if len(head + middle + tail) <= width:
            return head + middle + tail
    return (head + tail[2:])[:width]


def _width(stream):
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):  # a stand-in for one
        return 80


def _minutes(seconds):
    return "{:.0f} min left".format(seconds / 60) if seconds >= 90 else "{:.0f} s left".format(seconds)
