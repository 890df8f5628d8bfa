"""Untrusted input: files that may be anybody's, and the JSON in them."""

import errno
import io
import json
import os
import re
import stat
import unicodedata
from typing import Any  # noqa: F401  (for a type comment)

MAX_DEPTH = 32  # of a recorder's JSON; what is nested deeper overflows the stack of some later reader
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_ESCAPES = re.compile(r"\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(\\ud[89a-f][0-9a-f]{2})")


def open_regular(path, buffering=-1):
    """For reading bytes. OSError where it is no regular file: a FIFO would wait for ever, a device may never end."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "not a regular file", path)
    return io.open(path, "rb", buffering)


def parse_json(content):
    """What the JSON in bytes or text says. Raises ValueError, for what is nested deeper than MAX_DEPTH, too."""
    try:
        value = json.loads(content.decode("utf-8") if isinstance(content, bytes) else content)
    except RecursionError:
        raise ValueError("nested too deeply")
    layer = [[value]]  # type: list[Any]
    for _ in range(MAX_DEPTH + 2):
        layer = [inner for one in layer for inner in (one.values() if isinstance(one, dict) else one)
                 if isinstance(inner, (dict, list))]
        if not layer:
            return value
    raise ValueError("nested too deeply")


def sanitize_line(line):
    """A line of untrusted text for a terminal: "?" for what would steer it, or hide or reorder what the line says."""
    return "".join("?" if unicodedata.category(c) in _HIDDEN and c != "\t" else c for c in line)


def to_json(value):
    """JSON for any reader: the half of a surrogate pair, as a name that is no UTF-8 has, becomes its escape as text."""
    return _ESCAPES.sub(lambda found: "\\" + found.group() if found.group(1) else found.group(),
                        json.dumps(value, indent=1))
