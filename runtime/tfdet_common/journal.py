"""The journal: the file of records that one run writes.

Each line is a record as JSON with its checksum.  One process at a time may write; a kill loses at most the line that
was being written.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import stat

SCHEMA = 2
MAX_DIGESTS = 4  # digests that a record lists
MAX_LINE_BYTES = 1 << 24  # a record has 4 KiB
_MOVE_ADVICE = "move the file away, or name another with --out"


def checksum(record):
    """Return the SHA-256 of the record's canonical JSON without its field `checksum`, as 64 hex digits."""
    content = {name: value for name, value in record.items() if name != "checksum"}
    return hashlib.sha256(dump(content).encode("ascii")).hexdigest()


def dump(record):
    """Return a record as one line of canonical JSON: sorted keys, no spaces, no NaN."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)


class JournalUnusableError(Exception):
    """A file that does not contain records, or that another run writes; it is not changed."""


class JournalWriteError(Exception):
    """A record that could not be written; the results of further cases would be lost."""


class Journal(object):
    """The records of one run, appended as they finish.

    Args:
        path: the file; None keeps the records in memory only.
        exclusive: keep other processes from writing the file until this process ends.

    Raises:
        JournalUnusableError: the file holds something else, or another run writes it.
    """

    def __init__(self, path, exclusive=False):
        self.path = path
        self.records = []
        self._locked_file = _lock_exclusively(path) if path and exclusive else None
        if path:
            with self._open() as out:
                out.seek(0)
                self.records, valid_size = parse(out, path)
                out.truncate(valid_size)  # remove a line torn by a kill before the next is added

    def add(self, record):
        if self.path:
            with self._open() as out:
                _append(out.fileno(), (dump(record) + "\n").encode("ascii"), self.path)
        self.records.append(record)

    def _open(self):
        return _locked(self._locked_file) if self._locked_file else _opened(self.path)

    def find_all(self, expected):
        """Return all results whose fields have the values of `expected`.

        A crash or a timeout is not a result: the machine may have caused it, so the case runs again. The device's
        `details` are not compared: they are part of the result.
        """
        results = (record for record in self.records if record.get("observation") not in ("crashed", "timed-out"))
        return (record for record in results if all(_comparable_value(record, k) == v for k, v in expected.items()))


def _comparable_value(record, name):
    value = record.get(name)
    if name == "device" and isinstance(value, dict):
        return {key: value[key] for key in value if key != "details"}
    return value


def _append(out, line, path):
    """Write the whole line, or nothing and raise JournalWriteError."""
    size = os.fstat(out).st_size
    try:
        while line:
            line = line[os.write(out, line):]
        os.fsync(out)
    except (IOError, OSError) as error:
        os.ftruncate(out, size)
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise JournalWriteError("{}: {}{}".format(path, error.strerror, ". Free some space" if is_full else ""))


@contextlib.contextmanager
def _opened(path):
    with _regular(path) as out, _locked(out):
        yield out


def _regular(path):
    """Open the file, creating it if it is missing; refuse a FIFO or a device: reading one might never end."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)  # does not wait for a FIFO's writer
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise JournalUnusableError("{}: not a regular file; name another with --out".format(path))
    return os.fdopen(descriptor, "a+b")


@contextlib.contextmanager
def _locked(out):
    """Hold a lock, so that no reader takes a line that is being written for a torn one."""
    fcntl.flock(out, fcntl.LOCK_EX)
    try:
        yield out
    finally:
        fcntl.flock(out, fcntl.LOCK_UN)


def _lock_exclusively(path):
    """Open the file with a POSIX lock, which children do not inherit and which the process's end releases.

    POSIX drops the lock if any other code of this process opens and closes the file.
    """
    out = _regular(path)
    try:
        fcntl.lockf(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (IOError, OSError) as error:
        out.close()
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise
        raise JournalUnusableError("another run is writing {}; wait for it to end, or name another file".format(path))
    return out


def is_locked_by_writer(path):
    """Return whether another process writes this journal.

    The path is untrusted: links and pipes are not followed.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (IOError, OSError):
        return False
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (IOError, OSError) as error:
        return error.errno in (errno.EACCES, errno.EAGAIN)
    finally:
        os.close(descriptor)
    return False


def parse(source, path):
    """Parse the complete lines of a journal.

    Args:
        source: the binary file, at its start.
        path: its name, for messages.

    Returns:
        The records, and the number of bytes of their lines.
    """
    records, valid_size = [], 0
    for number, line in enumerate(iter(lambda: source.readline(MAX_LINE_BYTES), b""), 1):
        if not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
            break  # torn by a kill
        records.append(_parse_line(line, "{}:{}".format(path, number)))
        valid_size += len(line)
    return records, valid_size


def _parse_line(line, place):
    try:
        record = json.loads(line.decode("ascii"))
        is_valid = isinstance(record, dict) and record.get("checksum") == checksum(record)
    except (ValueError, RecursionError):
        is_valid = False
    if not is_valid:
        raise JournalUnusableError("{}: not a record, or changed since it was written; {}".format(place, _MOVE_ADVICE))
    if record.get("schema") != SCHEMA:
        raise JournalUnusableError("{}: a record of schema {}, but a run resumes from schema {} only; {}".format(
            place, record.get("schema"), SCHEMA, _MOVE_ADVICE))
    return record
