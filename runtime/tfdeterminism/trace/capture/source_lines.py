"""The lines of the user's program that a trace contains, so that its reader needs no file of this machine."""

import io

_AROUND = 2
_LARGEST = 1 << 22  # bytes of a file that is read
_MAX_LINE_LENGTH = 160


class SourceLines(object):
    """The source lines of one trace, each of which is returned once."""

    def __init__(self):
        self._files = {}  # {path: {number: text} of the lines that were not returned yet}

    def new_lines(self, definitions):
        """Return {file: {line: text}} of the lines around these definitions that were not returned before."""
        new_lines = {}
        for definition in definitions:
            path = definition["file"]
            if path and path.endswith(".py"):
                lines = self._lines(path)
                for number in range(definition["line"] - _AROUND, definition["line"] + _AROUND + 1):
                    if number in lines:
                        new_lines.setdefault(path, {})[number] = lines.pop(number)
        return new_lines

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
