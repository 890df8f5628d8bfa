"""The file of records of one run: lines of JSON, each with its checksum, held by one writer, torn by no kill."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import stat

SCHEMA = 2
KEPT_DIGESTS = 4  # of a record
MAX_LINE_BYTES = 1 << 24  # a record has 4 KiB
_AWAY = "move the file away, or name another with --out"


def checksum(record):
    """SHA-256 over the record's canonical JSON, the checksum itself left out."""
    content = {name: value for name, value in record.items() if name != "checksum"}
    return hashlib.sha256(dump(content).encode("ascii")).hexdigest()


def dump(record):
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)


class BadRecords(Exception):
    """The file for the records holds something else, or is another's: it is left as it is."""


class NotKept(Exception):
    """A record could not be written: what runs from here on would be lost."""


class Journal(object):
    """The records of one run, appended as they finish: a kill loses none of them.

    hold: no other run may write them as long as this process lives; BadRecords where one does.
    schemas: of the records that may be there; who does not add any may have older ones.
    """

    def __init__(self, path, hold=False, schemas=(SCHEMA,)):
        self.path = path
        self.records = []
        self._held = _hold(path) if path and hold else None
        if path:
            with self._open() as out:
                out.seek(0)
                self.records, whole = parse(out, path, schemas)
                out.truncate(whole)  # a line torn by a kill is gone before the next is added

    def add(self, record):
        if self.path:
            with self._open() as out:
                _append(out.fileno(), (dump(record) + "\n").encode("ascii"), self.path)
        self.records.append(record)

    def _open(self):
        return _locked(self._held) if self._held else _opened(self.path)

    def finished(self, wanted):
        """The record that has all the values of `wanted`, or None.

        A crash or a timeout may have been the machine's: such a case is not finished.  What a device added to its name
        (details) is a part of what was found, not of what is wanted.
        """
        return next(self.results(wanted), None)

    def results(self, wanted):
        """All records of that kind."""
        results = (record for record in self.records if record.get("observation") not in ("crashed", "timed-out"))
        return (record for record in results if all(_asked(record, k) == v for k, v in wanted.items()))


def _asked(record, name):
    value = record.get(name)
    if name == "device" and isinstance(value, dict):
        return {part: value[part] for part in value if part != "details"}
    return value


def _append(out, line, path):
    """All of the line, or nothing and NotKept."""
    size = os.fstat(out).st_size
    try:
        while line:
            line = line[os.write(out, line):]
        os.fsync(out)
    except (IOError, OSError) as error:
        os.ftruncate(out, size)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise NotKept("{}: {}{}".format(path, error.strerror, ". Free some space" if full else ""))


@contextlib.contextmanager
def _opened(path):
    with _regular(path) as out, _locked(out):
        yield out


def _regular(path):
    """The file, made where it is not there. A FIFO or a device has no records, and reading it might never end."""
    out = open(path, "a+b")
    if not stat.S_ISREG(os.fstat(out.fileno()).st_mode):
        out.close()
        raise BadRecords("{}: not a regular file; name another with --out".format(path))
    return out


@contextlib.contextmanager
def _locked(out):
    """Who looks must not take another's line in the making for a torn one."""
    fcntl.flock(out, fcntl.LOCK_EX)
    try:
        yield out
    finally:
        fcntl.flock(out, fcntl.LOCK_UN)


def _hold(path):
    """The file, held by this process alone: its children inherit no such lock, and its end gives it back.

    Whoever opens and closes the file elsewhere in this process loses the lock.
    """
    out = _regular(path)
    try:
        fcntl.lockf(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (IOError, OSError) as error:
        out.close()
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise
        raise BadRecords("another run is writing {}; wait for it to end, or name another file".format(path))
    return out


def is_written(path):
    """Does another process hold this file of records?  (It may be a stranger's link or pipe: neither is followed.)"""
    try:
        there = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (IOError, OSError):
        return False
    try:
        fcntl.lockf(there, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (IOError, OSError) as error:
        return error.errno in (errno.EACCES, errno.EAGAIN)
    finally:
        os.close(there)
    return False


def parse(source, path, schemas):
    """(the records of a journal's whole lines, how many bytes these are); source: of bytes, at its start."""
    records, whole = [], 0
    for number, line in enumerate(iter(lambda: source.readline(MAX_LINE_BYTES), b""), 1):
        if not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
            break  # torn by a kill
        records.append(_checked(line, "{}:{}".format(path, number), schemas))
        whole += len(line)
    return records, whole


def _checked(line, where, schemas):
    try:
        record = json.loads(line.decode("ascii"))
        good = isinstance(record, dict) and record.get("checksum") == checksum(record)
    except (ValueError, RecursionError):
        good = False
    if not good:
        raise BadRecords("{}: not a record, or changed since it was written; {}".format(where, _AWAY))
    if record.get("schema") not in schemas:
        raise BadRecords("{}: a record of schema {}, and a run goes on with those of schema {} only; take the "
                         "finished ones in with `tfdet evidence add`, then {}".format(
                             where, record.get("schema"), SCHEMA, _AWAY))
    return record
