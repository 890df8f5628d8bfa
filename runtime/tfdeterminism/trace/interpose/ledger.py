"""The ledger of one process: the nondeterministic values that it received, by kind and line."""

import hashlib
import json
import os
import threading

_KEPT = 3  # values that are kept as text
_DIGESTED = 10000  # values of a row that are digested
_MAX_ROWS = 5000  # of one process
_MAX_TEXT = 120  # characters of a value


class Ledger(object):
    """Rows by kind, place and function: numbers of all calls and of pinned ones, and a digest of the values in order.

    A pinned call gets the same value in every run.

    folder: for the file; position: of the process in the tree of processes.
    """

    def __init__(self, folder, position):
        self._folder, self._position = folder, position
        self._rows, self._lock, self._writing = {}, threading.Lock(), threading.Lock()

    def on_fork(self, position):
        self._position, self._rows = position, {}
        self._lock, self._writing = threading.Lock(), threading.Lock()

    def note(self, kind, place, what, value, held):
        """Count a call of the function `what`.

        value: what the program got, None for no value; held: whether that was a pinned value.
        """
        with self._lock:
            row = self._rows.get((kind, place, what))
            if row is None:
                if len(self._rows) >= _MAX_ROWS:
                    return
                row = self._rows[kind, place, what] = [0, 0, [], hashlib.sha1()]
            row[0] += 1
            row[1] += bool(held)
            if value is not None and row[0] <= _DIGESTED:
                text = repr(value)
                if len(row[2]) < _KEPT:
                    row[2].append(text[:_MAX_TEXT])
                row[3].update(text.encode("utf-8", "replace"))

    def write(self):
        """Write the file; a process that continues writes it again later.

        A worker that ends by itself may get SIGTERM meanwhile, for which another thread writes the file.
        """
        with self._writing:
            self._write()

    def _write(self):
        with self._lock:  # other threads may still add rows
            items = sorted(self._rows.items())
        rows = [
            {
                "kind": kind,
                "place": place,
                "what": what,
                "count": row[0],
                "held": row[1],
                "values": row[2],
                "digest": row[3].hexdigest(),
                "position": self._position,
            }
            for (kind, place, what), row in items
        ]
        path = os.path.join(self._folder, "ledger-{}-{}.json".format(self._position, _real_pid()))
        with open(path + ".part", "w") as target:
            json.dump(rows, target)
        os.replace(path + ".part", path)


def _real_pid():
    """Return the process's number from the kernel, as text: os.getpid may be pinned."""
    return os.readlink("/proc/self") if os.path.exists("/proc/self") else "0"
