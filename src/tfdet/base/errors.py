"""Expected errors: each class is an exit code, each message a line of cause and a line of advice."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    OK = 0
    CONTRADICTED = 1
    USAGE = 2
    RUN_FAILED = 3
    NO_DEVICE = 4
    INTERRUPTED = 130


class TfdetError(Exception):
    """An error to be shown without a traceback: what is wrong, and what to do next."""

    code: Exit = Exit.RUN_FAILED

    def __init__(self, cause: str, advice: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.advice = advice


class UsageError(TfdetError):
    code = Exit.USAGE


class DataError(TfdetError):
    """A file that people or the tool wrote is not what it should be; `cause` names file:line."""

    code = Exit.USAGE


class RunFailed(TfdetError):
    code = Exit.RUN_FAILED


class NoDevice(TfdetError):
    code = Exit.NO_DEVICE


class Interrupted(TfdetError):
    """Ctrl-C, once everything was put in order."""

    code = Exit.INTERRUPTED

    def __init__(self) -> None:
        super().__init__("stopped", "Finished records are kept; running again goes on from there.")


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """`kind` has no member `name`: a UsageError with the nearest names."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    advice = f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(sorted(names)[:12])} ..."
    return UsageError(f"no {kind} is called {name!r}", advice)


def from_system(error: OSError, advice: str = "") -> TfdetError:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno == errno.ENOSPC:
        advice = "Free some space and run again."
    return TfdetError(f"{where}{error.strerror or error}", advice)
