"""The file of records of one run: lines of JSON, each with its checksum, held by one writer, torn by no kill."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os

SCHEMA = 2
KEPT_DIGESTS = 4  # of a record
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
                content = out.read()
                whole = content.rfind(b"\n") + 1
                self.records = parse(content[:whole], path, schemas)
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
        raise NotKept("{}: {}".format(path, error.strerror))


@contextlib.contextmanager
def _opened(path):
    with open(path, "a+b") as out, _locked(out):
        yield out


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
    out = open(path, "a+b")
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


def parse(content, path, schemas):
    """The records of a journal's whole lines."""
    records = []
    for number, line in enumerate(content.splitlines(), 1):
        try:
            record = json.loads(line.decode("ascii"))
            good = isinstance(record, dict) and record.get("checksum") == checksum(record)
        except ValueError:
            good = False
        if not good:
            raise BadRecords("{}:{}: not a record, or changed since it was written; {}".format(path, number, _AWAY))
        if record.get("schema") not in schemas:
            raise BadRecords("{}:{}: a record of schema {}, and a run goes on with those of schema {} only; take the "
                             "finished ones in with `tfdet evidence add`, then {}".format(
                                 path, number, record.get("schema"), SCHEMA, _AWAY))
        records.append(record)
    return records
