"""The progress of unpacking."""

import sys
import time

from unbundle.errors import MIB


class Progress(object):
    """A progress line on stderr that updates itself on a terminal; elsewhere one line at the end.

    Args:
        title: text at the begin of the line.
        total: the number of bytes to write.
    """

    def __init__(self, title, total):
        self.title, self.total, self.written, self.start = title, total, 0, time.time()
        self.is_terminal = sys.stderr.isatty()

    def add(self, size):
        self.written += size
        if self.is_terminal:
            spent = time.time() - self.start
            remaining = spent * (self.total - self.written) / max(1, self.written)
            percent = 100.0 * self.written / max(1, self.total)
            sys.stderr.write("\r\x1b[K{}: {:.0f} %, {:.0f} s left".format(self.title, percent, remaining))
            sys.stderr.flush()

    def end(self):
        sys.stderr.write(
            "{}{}: {:.0f} MiB in {:.0f} s\n".format(
                "\r\x1b[K" if self.is_terminal else "", self.title, self.written / MIB, time.time() - self.start
            )
        )
