"""A record: one observation with its provenance, as one line of JSON (schema version 1)."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os

SCHEMA = 1
KEPT_DIGESTS = 4
MOST = 1000000  # repeats of a process, and processes of a case: more would take years


def build(key, reports, provenance):
    """A record of what the relaunches of one case reported.

    key: {environment, device, source, case, solution, case_hash, mode}.
    provenance: {stack, machine, determinism_environment, started, duration_seconds,
    repeats, relaunches}, and gpu_state where there is a GPU that tells.
    """
    record = dict(key, schema=SCHEMA)
    record.update(provenance)
    record.update(_measured(reports))
    record["checksum"] = checksum(record)
    return record


def _measured(reports):
    error = next((r["error"] for r in reports if "error" in r), None)
    done = [r for r in reports if "error" not in r]
    digests = [d for r in done for d in r["digests"]]
    differed = [(i, n) for i, r in enumerate(done) for n in r["differed"]]
    reference = done[0]["reference"] if done else None
    others = sorted(set(digests) - {reference})
    # The first repeat of a fresh process pays for building and tuning; beside other work all take longer.
    in_peace = [r for r in done if not r.get("contention")]
    seconds = sorted(s for r in in_peace for s in (r["seconds"][1:] or r["seconds"]))
    observation = ("differs" if differed else error["kind"] if error else "equal")
    measured = {
        "observation": observation,
        "runs": len(digests),
        "differed": len(differed),
        "distinct": len(others) + 1 if done else 0,
        "first_differing": {"relaunch": differed[0][0], "repeat": differed[0][1]} if differed else None,
        "max_ulp": _largest([r["ulp"] for r in done]) if differed else 0,
        "max_absolute": _largest([r["absolute"] for r in done]) if differed else 0.0,
        "digests": ([reference] + others[:KEPT_DIGESTS - 1]) if done else [],
        "median_seconds": round(seconds[len(seconds) // 2], 7) if seconds else None,
        "ran_on": done[0].get("devices", []) if done else [],
        "error": error,
    }
    for name in ("kernels", "contention"):  # where somebody looked
        values = [r[name] for r in done if r.get(name)]
        if values:
            measured[name] = values[0]
    return measured


def _largest(values):
    return None if None in values else max(values)


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
    """

    def __init__(self, path, hold=False):
        self.path = path
        self.records = []
        self._held = _hold(path) if path and hold else None
        if path:
            with self._open() as out:
                out.seek(0)
                content = out.read()
                whole = content.rfind(b"\n") + 1
                self.records = parse(content[:whole], path)
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

        A crash or a timeout may have been the machine's: such a case is not finished.
        """
        results = (record for record in self.records if record.get("observation") not in ("crashed", "timed-out"))
        return next((record for record in results if all(record.get(k) == v for k, v in wanted.items())), None)


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


def parse(content, path):
    """The records of a journal's whole lines."""
    records = []
    for number, line in enumerate(content.splitlines(), 1):
        try:
            record = json.loads(line.decode("ascii"))
            good = isinstance(record, dict) and record.get("checksum") == checksum(record)
        except ValueError:
            good = False
        if not good or record.get("schema") != SCHEMA:
            raise BadRecords("{}:{}: {}; move the file away, or name another with --out".format(
                path, number, "a record of another schema than {}".format(SCHEMA) if good
                else "not a record, or changed since it was written"))
        records.append(record)
    return records
