"""How far unpacking is."""

import sys
import time

from unbundle.stop import MIB


class Progress(object):
    """One line that rewrites itself on a terminal; elsewhere a line at the end."""

    def __init__(self, what, total):
        self.what, self.total, self.done, self.start = what, total, 0, time.time()
        self.live = sys.stderr.isatty()

    def add(self, size):
        self.done += size
        if self.live:
            spent = time.time() - self.start
            left = spent * (self.total - self.done) / max(1, self.done)
            sys.stderr.write(
                "\r\x1b[K{}: {:.0f} %, {:.0f} s left".format(self.what, 100.0 * self.done / max(1, self.total), left)
            )
            sys.stderr.flush()

    def end(self):
        sys.stderr.write(
            "{}{}: {:.0f} MiB in {:.0f} s\n".format(
                "\r\x1b[K" if self.live else "", self.what, self.done / MIB, time.time() - self.start
            )
        )
