"""Fresh runtimes by fork: after the framework's import, before its first op.

A child that dies, hangs or grows too large becomes an observation; the parent goes on.
"""

import functools
import glob
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from typing import TYPE_CHECKING, NamedTuple

from tfdet_common import parent_death

from ..devices.base import Device
from ..frameworks.base import Framework
from . import child

if TYPE_CHECKING:  # for type comments alone
    from typing import Any, Callable, Sequence  # noqa: F401

    from .registry import Case  # noqa: F401

POLL_SECONDS = 0.01
ALL_KILLED_SECONDS = 1.0  # in which who ends a whole job by force gets from one process of it to another
_PR_SET_CHILD_SUBREAPER = 36

# Where cases run.
Place = NamedTuple("Place", [("framework", Framework), ("device", Device)])


class RuntimeStarted(Exception):
    """The framework's runtime runs in the parent already."""


class Job(object):
    """One process of one case under one solution."""

    def __init__(self, case, solution, place, repeats, process_index, determinism_variables=(), contention=False):
        # type: (Case, dict[str, Any], Place, int, int, Sequence[str], bool) -> None
        self.case = case
        self.solution = solution
        self.place = place
        self.repeats = repeats
        self.process_index = process_index
        self.determinism_variables = determinism_variables
        self.contention = contention


class Limits(object):
    """seconds: of wall clock for one child; mebibytes: of resident memory for one child."""

    def __init__(self, seconds, mebibytes):
        # type: (float, int) -> None
        self.seconds = seconds
        self.mebibytes = mebibytes


def run_case(case, solution, place, repeats, processes, limits, determinism_variables=(), contention=False):
    # type: (Case, dict[str, Any], Place, int, int, Limits, Sequence[str], bool) -> list[dict[str, Any]]
    """All processes of a case: a list of the children's reports; the first error ends it.

    contention: keep the device busy beside every process but the first.
    """
    directory = tempfile.mkdtemp(prefix="tfdet-")
    try:
        reports = []
        for process_index in range(processes):
            job = Job(case, solution, place, repeats, process_index, determinism_variables, contention)
            main = functools.partial(child.main, job, directory)
            reports.append(in_child(main, directory, process_index, limits, place.framework))
            if "error" in reports[-1]:
                break
        return reports
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def in_child(main, directory, number, limits, framework):
    # type: (Callable[[], object], str, int, Limits, Framework) -> dict[str, Any]
    """Run main() in a forked child; its report, or {"error": ...} that says how it ended."""
    if framework.started():  # every child would share it
        raise RuntimeStarted("{}'s runtime was started before the fork: a case module runs an op at import".format(
            framework.title))
    output = os.path.join(directory, "output-{}".format(number))
    sys.stdout.flush()
    sys.stderr.flush()
    parent_death.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    parent, others = os.getpid(), _children()
    pid = os.fork()
    if pid == 0:
        _child(main, output, parent)
    try:
        fault = _watch(pid, limits)
    except BaseException:  # Ctrl-C: no child stays behind
        _kill(pid)
        _wait(pid)
        raise
    finally:
        _end_orphans(others)
    try:
        with open(os.path.join(directory, "report-{}.json".format(number))) as report:
            found = json.load(report)
    except (IOError, ValueError):
        found = {}
        fault = fault or {"kind": "crashed", "type": "NoReport", "message": "the process ended without a report"}
    if fault and not found.get("whole"):
        fault.setdefault("where", None)
        fault["output"] = _tail(output)
        return {"error": fault}
    return found


def _child(main, output, parent):
    status = 70
    try:
        os.setpgid(0, 0)
        parent_death.set_parent_death_signal(parent)
        _die_first()
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


def _die_first():
    """Where memory runs out, the kernel is to take the case, not the suite."""
    try:
        with open("/proc/self/oom_score_adj", "w") as knob:
            knob.write("1000")
    except (IOError, OSError):
        pass


def _watch(pid, limits):
    """Wait for the child; None, or the fault by which it ended."""
    deadline = time.monotonic() + limits.seconds
    fault = None
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            _kill_group(pid)  # what the case left running; its own number may be another's by now
            if fault is None and os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGTERM):
                time.sleep(ALL_KILLED_SECONDS)  # a machine that is taken away is no crash of the case
            return fault or _death(status)
        if fault is None and time.monotonic() > deadline:
            fault = {"kind": "timed-out", "type": "TimeOut", "message": "no end after {:g} s".format(limits.seconds)}
            _kill(pid)
        elif fault is None and _resident(pid) > limits.mebibytes:
            fault = {"kind": "crashed", "type": "OutOfMemory",
                     "message": "killed above {} MiB of resident memory".format(limits.mebibytes)}
            _kill(pid)
        time.sleep(POLL_SECONDS)


def _death(status):
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = next((n for n in dir(signal) if n.startswith("SIG") and "_" not in n
                     and getattr(signal, n) == number), str(number))
        hint = " (out of memory?)" if number == signal.SIGKILL else ""
        return {"kind": "crashed", "type": name, "message": "the process was ended by {}{}".format(name, hint)}
    if os.WEXITSTATUS(status):
        return {"kind": "crashed", "type": "Exit", "message": "exit status {}".format(os.WEXITSTATUS(status))}
    return None


def _kill(pid):
    _kill_group(pid)
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def _kill_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass


def _wait(pid):
    try:
        os.waitpid(pid, 0)
    except OSError:  # waited for already
        pass


def _children():
    """The processes whose parent we are, as far as the kernel tells."""
    found = set()
    for path in glob.glob("/proc/self/task/*/children"):
        try:
            with open(path) as source:
                found.update(int(word) for word in source.read().split())
        except (IOError, OSError):  # a thread that just ended
            pass
    return found


def _end_orphans(others):
    """What left the child's process group came to us, its subreaper, when the child ended."""
    for _ in range(100):  # each may leave children of its own
        orphans = _children() - others
        if not orphans:
            return
        for pid in orphans:
            _kill(pid)
            _wait(pid)


def _resident(pid):
    """Resident memory in MiB; 0 if the process is gone."""
    try:
        with open("/proc/{}/statm".format(pid)) as statm:
            pages = int(statm.read().split()[1])
    except (IOError, OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // (1024 * 1024)


def _tail(path, size=2000):
    """The last line a dying process said that is not a log of information."""
    try:
        with open(path, "rb") as source:
            source.seek(0, 2)
            source.seek(max(0, source.tell() - size))
            lines = source.read().decode("utf-8", "replace").splitlines()
    except (IOError, OSError):
        return ""
    spoken = [line.strip() for line in lines if line.strip()]
    fatal = [line for line in spoken if " F " in line or "Check failed" in line]
    return child.printable((fatal or spoken or [""])[-1])[:300]
