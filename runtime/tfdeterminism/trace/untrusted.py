"""Readers of untrusted input: files from anywhere, and the JSON in them."""

import errno
import io
import json
import os
import re
import stat
import unicodedata
from typing import Any  # noqa: F401  (for a type comment)

MAX_BYTES = 1 << 28  # of a file that is read at once
MAX_DEPTH = 32  # of a recorder's JSON; deeper nesting overflows the stack of some later reader
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # Unicode categories
# Escapes in JSON: a backslash, a pair of surrogates, or (group 1) a lone surrogate.
_ESCAPES = re.compile(r"\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(\\ud[89a-f][0-9a-f]{2})")


def open_regular(path, buffering=-1):
    """Open a file for reading bytes. Raises OSError unless it is a regular file: a FIFO may block for ever."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    return io.open(path, "rb", buffering)


def read_regular(path):
    """Return the bytes of a regular file. Raises OSError also for one of more than MAX_BYTES."""
    with open_regular(path) as source:
        content = source.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(errno.EFBIG, "larger than {} MiB".format(MAX_BYTES >> 20), path)
    return content


def parse_json(content):
    """Return the value of JSON in bytes or text. Raises ValueError, also if it is nested deeper than MAX_DEPTH."""
    try:
        value = json.loads(content.decode("utf-8") if isinstance(content, bytes) else content)
    except RecursionError:
        raise ValueError("nested too deeply")
    layer = [[value]]  # type: list[Any]
    for _ in range(MAX_DEPTH + 2):
        layer = [inner for outer in layer for inner in (outer.values() if isinstance(outer, dict) else outer)
                 if isinstance(inner, (dict, list))]
        if not layer:
            return value
    raise ValueError("nested too deeply")


def sanitize_line(line):
    """Return untrusted text for a terminal: "?" replaces characters that control it, or hide or reorder text."""
    return "".join("?" if unicodedata.category(char) in _HIDDEN and char != "\t" else char for char in line)


def to_json(value):
    """Return JSON for any reader: a lone surrogate, as in a file name that is not UTF-8, becomes its escape as text."""
    return _ESCAPES.sub(lambda match: "\\" + match.group() if match.group(1) else match.group(),
                        json.dumps(value, indent=1))
