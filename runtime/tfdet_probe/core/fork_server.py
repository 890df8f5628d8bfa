"""Run functions in forked children: the fork comes after the framework's import and before its first op.

So each child has a fresh runtime without importing again.  A child that dies, hangs or exceeds its memory becomes an
observation; the parent continues.
"""

import json
import os
import signal
import sys
import time
import traceback
from typing import TYPE_CHECKING

from tfdet_common import parent_death

from . import child_processes
from .error_report import printable

if TYPE_CHECKING:  # for type comments alone
    from typing import Any, Callable  # noqa: F401

    from ..frameworks.base import Framework  # noqa: F401
    from .child_job import Limits  # noqa: F401

POLL_SECONDS = 0.01
_PR_SET_CHILD_SUBREAPER = 36


class RuntimeAlreadyStartedError(Exception):
    """The framework's runtime was started in the parent: all children would share it."""


def in_child(main, directory, number, limits, framework):
    # type: (Callable[[], object], str, int, Limits, Framework) -> dict[str, Any]
    """Run main() in a forked child.

    Args:
        main: writes report-<number>.json into `directory`.
        directory: for the report and the child's output.
        number: of the report.
        limits: on time and memory.
        framework: whose runtime must not have started.

    Returns:
        The report, or {"error": {kind, type, message, where, output}} if the child failed.

    Raises:
        RuntimeAlreadyStartedError: the children would not have fresh runtimes.
    """
    if framework.started():
        raise RuntimeAlreadyStartedError(
            "{}'s runtime was started before the fork: a case module runs an op at import".format(framework.title))
    output = os.path.join(directory, "output-{}".format(number))
    sys.stdout.flush()
    sys.stderr.flush()
    parent_death.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    parent, known = os.getpid(), child_processes.children()
    pid = os.fork()
    if pid == 0:
        _child(main, output, parent)
    try:
        fault = _watch(pid, limits)
    except BaseException:  # Ctrl-C: leave no child behind
        child_processes.kill(pid)
        child_processes.wait(pid)
        raise
    finally:
        child_processes.end_orphans(known)
    try:
        with open(os.path.join(directory, "report-{}.json".format(number))) as report:
            content = json.load(report)
    except (IOError, ValueError):
        content = {}
        fault = fault or child_processes.no_report()
    if fault and not content.get("whole"):  # a report with `whole` was complete before the process died
        fault.setdefault("where", None)
        fault["output"] = _tail(output)
        return {"error": fault}
    return content


def _child(main, output, parent):
    status = child_processes.EXIT_WITHOUT_REPORT
    try:
        os.setpgid(0, 0)
        parent_death.set_parent_death_signal(parent)
        _prefer_oom_kill()
        handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        main()
        status = 0
    except BaseException:  # never return into the parent's stack
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _prefer_oom_kill():
    """Make the kernel kill this child, not the suite, if memory runs out."""
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("1000")
    except (IOError, OSError):
        pass


def _watch(pid, limits):
    """Wait for the child; returns None, or the fault that ended it."""
    deadline = time.monotonic() + limits.seconds
    fault = None
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            child_processes.kill_group(pid)  # processes that the case left; not by pid, which may be reused by now
            if fault is None:
                child_processes.let_job_end(status)
            return fault or child_processes.fault_of_status(status)
        if fault is None and time.monotonic() > deadline:
            fault = {"kind": "timed-out", "type": "TimeOut", "message": "no end after {:g} s".format(limits.seconds)}
            child_processes.kill(pid)
        elif fault is None:
            fault = child_processes.fault_of_size(pid, limits.mebibytes)
            if fault:
                child_processes.kill(pid)
        time.sleep(POLL_SECONDS)


def _tail(path, size=2000):
    """The last line of a child's output, or its last line that reports a fatal error."""
    try:
        with open(path, "rb") as source:
            source.seek(0, 2)
            source.seek(max(0, source.tell() - size))
            lines = source.read().decode("utf-8", "replace").splitlines()
    except (IOError, OSError):
        return ""
    lines = [line.strip() for line in lines if line.strip()]
    fatal = [line for line in lines if " F " in line or "Check failed" in line]
    return printable((fatal or lines or [""])[-1])[:300]
