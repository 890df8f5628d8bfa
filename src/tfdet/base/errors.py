"""Expected errors: each class has an exit code, and each error a line with its cause and one with advice."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from tfdet.base.nearest import nearest


class ExitCode(IntEnum):
    """The exit codes of all commands; EXIT_CODES describes them for users."""

    OK = 0
    CONTRADICTED = 1  # the result contradicts a claim or a record, or is not what the command checks for
    USAGE = 2
    RUN_FAILED = 3
    NO_DEVICE = 4
    FIXED = 5
    NOTHING_RECORDED = 6
    TRACE_INCOMPLETE = 7
    INTERRUPTED = 130
    TERMINATED = 143


# The table of docs/reference/exit-codes.md, for all commands.  The packages of runtime/ cannot import this module and
# have constants of their own; a test compares them with these.
EXIT_CODES: Final = {
    ExitCode.OK: "Everything is as claimed; two runs agree; nothing that is asked for differs.",
    ExitCode.CONTRADICTED: "A difference: the evidence contradicts a claim, the tables are not up to date, two runs or"
    " two machines differ, or `tfdet check` found an op that is known to differ.",
    ExitCode.USAGE: "Wrong usage, or bad data: a file is not what it should be, or a path cannot be used.",
    ExitCode.RUN_FAILED: "A run failed: a case crashed or did not end, a program or an engine failed, this host"
    " cannot run it, or tfdet has a defect.",
    ExitCode.NO_DEVICE: "The device that was asked for is missing, or the program did not use it.",
    ExitCode.FIXED: "Two runs differ, and the solutions that `--fix` applied make the program repeat itself.",
    ExitCode.NOTHING_RECORDED: "The program ran, and the trace saw no op.",
    ExitCode.TRACE_INCOMPLETE: "The program ran, and its trace could not be written to the end.",
    ExitCode.INTERRUPTED: "Stopped by Ctrl-C, or by the answer *no* to a question.",
    ExitCode.TERMINATED: "Stopped by SIGTERM.",
}


class TfdetError(Exception):
    """An error that is shown without a traceback. cause: the problem. advice: what the user can do next."""

    code: ExitCode = ExitCode.RUN_FAILED

    def __init__(self, cause: str, advice: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.advice = advice


class UsageError(TfdetError):
    """A wrong argument or option, or a path that cannot be used."""

    code = ExitCode.USAGE


class DataError(TfdetError):
    """An invalid file, written by a user or by tfdet; `cause` names file:line."""

    code = ExitCode.USAGE


class RunFailedError(TfdetError):
    """A failed run, program or engine, or a resource that this host lacks."""

    code = ExitCode.RUN_FAILED


class DeviceUnavailableError(TfdetError):
    """A missing device, or a program that did not use the device."""

    code = ExitCode.NO_DEVICE


class InterruptedRunError(TfdetError):
    """Ctrl-C, raised after cleaning up.  advice: what is left of the work."""

    code = ExitCode.INTERRUPTED

    def __init__(self, advice: str = "Finished records are kept; running again resumes from there.") -> None:
        super().__init__("stopped", advice)


def unknown_name_error(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """Return a UsageError for an unknown name of a `kind`, such as "environment", with the nearest known names."""
    names = sorted(set(known))
    nearest_names = nearest(name, names)
    advice = f"Known: {', '.join(names[:12])}{' ...' if len(names) > 12 else ''}"
    if nearest_names:
        advice = f"Did you mean {' or '.join(nearest_names)}?"
    return UsageError(f"no {kind} is called {name!r}", advice)


_RESOURCE_ADVICE = {
    errno.ENOSPC: "Free some space and run again.",
    errno.EDQUOT: "Free some of your quota and run again.",
    errno.EFBIG: "Raise the limit on the size of files (ulimit -f) and run again.",
    errno.EMFILE: "Raise the limit on open files (ulimit -n) and run again.",
    errno.EIO: "The disk may be failing: look at the kernel's log.",
}
_PATH_ADVICE = {  # replaces the caller's advice
    errno.EACCES: "Change its permissions, or name another path.",
    errno.EPERM: "Change its permissions, or name another path.",
    errno.EROFS: "Its file system is read-only: name another path.",
    errno.ELOOP: "Its symbolic links lead in a circle: remove one, or name another path.",
    errno.ENAMETOOLONG: "Name a shorter path.",
}
_DEFAULT_PATH_ADVICE = {  # without advice from the caller
    errno.ENOENT: "Name a path that exists.",
    errno.ENOTDIR: "A part of the path is a file: name another path.",
    errno.EISDIR: "Name a file, not a folder.",
    errno.EEXIST: "Name another path.",
    errno.ENXIO: "Name a regular file.",
}


def from_os_error(error: OSError, advice: str = "", path: object = None) -> TfdetError:
    """Convert an OSError to an error with advice for its errno.

    advice: used if the errno has no advice of its own. path: the path that the user passed.
    """
    prefix = f"{path or error.filename}: " if path or error.filename else ""
    cause = f"{prefix}{error.strerror or error}"
    if error.errno in _PATH_ADVICE or error.errno in _DEFAULT_PATH_ADVICE:
        return UsageError(cause, _PATH_ADVICE.get(error.errno) or advice or _DEFAULT_PATH_ADVICE[error.errno])
    return RunFailedError(cause, _RESOURCE_ADVICE.get(error.errno or 0) or advice)
