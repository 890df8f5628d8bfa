"""The progress of unpacking."""

import sys
import time

from unbundle.errors import MIB


class Progress(object):
    """Print progress: a line that updates itself on a terminal, otherwise one line at the end.

    Args:
        title: begins the line.
        total: bytes.
    """

    def __init__(self, title, total):
        self.title, self.total, self.done, self.start = title, total, 0, time.time()
        self.is_terminal = sys.stderr.isatty()

    def add(self, size):
        self.done += size
        if self.is_terminal:
            spent = time.time() - self.start
            left = spent * (self.total - self.done) / max(1, self.done)
            sys.stderr.write(
                "\r\x1b[K{}: {:.0f} %, {:.0f} s left".format(self.title, 100.0 * self.done / max(1, self.total), left)
            )
            sys.stderr.flush()

    def end(self):
        sys.stderr.write(
            "{}{}: {:.0f} MiB in {:.0f} s\n".format(
                "\r\x1b[K" if self.is_terminal else "", self.title, self.done / MIB, time.time() - self.start
            )
        )
