"""The lines of the user's program that a trace carries, so that whoever reads it needs no file of this machine."""

import io

_AROUND = 2
_LARGEST = 1 << 22  # bytes of a file that is read
_MAX_LINE_LENGTH = 160


class SourceLines(object):
    """Each line once."""

    def __init__(self):
        self._files = {}  # path: its lines that were not given out yet, by number

    def new_lines(self, definitions):
        """{file: {line: text}} about the lines that these definitions name, and that nobody was given before."""
        found = {}
        for one in definitions:
            path = one["file"]
            if path and path.endswith(".py"):
                lines = self._lines(path)
                for number in range(one["line"] - _AROUND, one["line"] + _AROUND + 1):
                    if number in lines:
                        found.setdefault(path, {})[number] = lines.pop(number)
        return found

    def _lines(self, path):
        if path not in self._files:
            self._files[path] = _read(path)
        return self._files[path]


def _read(path):
    try:
        with io.open(path, "rb") as source:
            text = source.read(_LARGEST).decode("utf-8", "replace")
    except (IOError, OSError):
        return {}
    return {number: line.rstrip()[:_MAX_LINE_LENGTH] for number, line in enumerate(text.splitlines(), 1)}
