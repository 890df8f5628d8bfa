"""The ranks of a case: a launcher starts them, and their reports are joined into one.

What the launcher starts is core.rank_process, which asks this process for a fork with its own environment variables: so
no rank imports the framework again.  Each rank does what the child of a case of one process does, in a folder of its
own, and compares its outputs with its own reference.  A run differs if it differs in any rank.  The first rank that
fails ends the case.
"""

import functools
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from typing import TYPE_CHECKING

from tfdet_common import parent_death

from .. import launchers
from ..base.errors import UnsupportedError
from . import child_processes, rank_process

if TYPE_CHECKING:  # for type comments alone
    from typing import Any, Callable  # noqa: F401

    from ..base.case_builder import Launch  # noqa: F401
    from .child_job import ChildJob  # noqa: F401

POLL_SECONDS = 0.02


def run(job, directory, launch, main):
    # type: (ChildJob, str, Launch, Callable[[ChildJob, str], object]) -> dict[str, Any]
    """Run a case in its ranks.  fork_server limits the time.

    Args:
        job: of this child.
        directory: of the case; each rank has its folder there.
        launch: how the case wants its ranks started.
        main: what each rank does with its job and folder: child.main.

    Returns:
        The report of one process, as child.main writes it, with the field `ranks`; or {"error": ...}.

    Raises:
        UnsupportedError: the device is not one that ranks share.
    """
    if not job.target.device.is_shared_by_ranks:
        raise UnsupportedError("{} ranks run on the CPU alone: each would need a device of its own".format(
            launch.number))
    launcher = launchers.load(launch.launcher)
    command = [sys.executable, "-m", rank_process.__name__, directory, launcher.name]
    ranks, started = _Ranks(job, directory, _listen(directory), main), []
    try:
        for line, variables in launcher.commands(launch.number, command):
            started.append(_start(line, dict(launch.variables, **variables)))
        while True:
            ranks.admit()
            reports, error = ranks.reports(), ranks.death()
            error = error or _first_error(reports)
            if not error and len(reports) == launch.number:
                return _joined([reports[rank][1] for rank in range(launch.number)], launch, launcher)
            error = error or _launcher_error(started)
            if error:
                return {"error": error}
            time.sleep(POLL_SECONDS)
    finally:
        ranks.end()
        for process in started:  # the parent of this child ends what they leave, see fork_server.in_child
            process.kill()
            process.wait()


def _listen(directory):
    """Return a listening socket for the ranks; bound through /proc/self/fd, because a socket's path is short."""
    path = os.path.join(directory, rank_process.SOCKET)
    if os.path.exists(path):  # of the process before
        os.unlink(path)
    folder = os.open(directory, os.O_RDONLY)
    try:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("/proc/self/fd/{}/{}".format(folder, rank_process.SOCKET))
    finally:
        os.close(folder)
    listener.listen(64)
    listener.setblocking(False)
    return listener


def _start(command, variables):
    environ = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    environ.update(variables)
    return subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL,
                            preexec_fn=functools.partial(parent_death.set_parent_death_signal, os.getpid()))


def _launcher_error(started):
    codes = sorted({process.returncode for process in started if process.poll() is not None})
    return codes and {"kind": "crashed", "type": "LauncherEnded", "where": None,
                      "message": "the launcher ended before its ranks, with status {}".format(
                          ", ".join(map(str, codes)))}


class _Ranks(object):
    """The ranks that have come so far: forks of this process."""

    def __init__(self, job, directory, listener, main):
        # type: (ChildJob, str, socket.socket, Callable[[ChildJob, str], object]) -> None
        self._job, self._directory, self._listener, self._main = job, directory, listener, main
        self._pids = {}  # type: dict[int, int]
        self._connections = []  # type: list[socket.socket]

    def admit(self):
        """Fork for each rank that has come since."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            connection.setblocking(True)
            with connection.makefile() as text:
                hello = json.loads(text.readline())
            self._connections.append(connection)
            parent, pid = os.getpid(), os.fork()
            if not pid:
                self._become(hello["rank"], hello["environ"], parent)
            self._pids[hello["rank"]] = pid

    def _become(self, rank, environ, parent):
        """Run the case as a rank; then wait to be ended, because a rank that leaves early may cut off the others."""
        try:
            parent_death.set_parent_death_signal(parent)
            for connection in [self._listener] + self._connections:
                connection.close()
            os.environ.clear()
            os.environ.update(environ)
            folder = self._folder(rank)
            os.makedirs(folder, exist_ok=True)
            self._main(self._job.as_rank(rank), folder)
            while True:
                signal.pause()
        except BaseException:  # never return into the parent's stack
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(child_processes.EXIT_WITHOUT_REPORT)

    def _folder(self, rank):
        return os.path.join(self._directory, "rank-{}".format(rank))

    def reports(self):
        """{rank: (time, report)} of those that have one."""
        reports = {}
        for rank in self._pids:
            path = os.path.join(self._folder(rank), "report-{}.json".format(self._job.process_index))
            if os.path.exists(path):
                with open(path) as source:
                    reports[rank] = os.path.getmtime(path), json.load(source)
        return reports

    def death(self):
        """The fault of a rank that died or grew too large; None if none did."""
        for rank, pid in list(self._pids.items()):
            fault = self._fault(rank, pid)
            if fault:
                return _of_rank(dict(fault, where=None), rank)
        return None

    def _fault(self, rank, pid):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            del self._pids[rank]
            child_processes.let_job_end(status)
            return child_processes.fault_of_status(status) or child_processes.no_report()
        return child_processes.fault_of_size(pid, self._job.limits.mebibytes)

    def end(self):
        """End all ranks; what the launcher started ends with its connection."""
        for pid in self._pids.values():
            os.kill(pid, signal.SIGKILL)
            child_processes.wait(pid)
        for connection in [self._listener] + self._connections:
            connection.close()


def _first_error(reports):
    """The error of the rank that failed first; None if none has."""
    failed = [(seconds, rank) for rank, (seconds, report) in reports.items() if "error" in report]
    rank = min(failed)[1] if failed else None
    return None if rank is None else _of_rank(reports[rank][1]["error"], rank)


def _of_rank(error, rank):
    return dict(error, message="rank {}: {}".format(rank, error["message"])[:400])


def _joined(reports, launch, launcher):
    """One report of all ranks: a run differs if it differs in any of them."""
    first = reports[0]
    digests = list(zip(*[report["digests"] for report in reports]))
    joined = dict(first, digests=[_digest(run) for run in digests])
    joined["differed"] = sorted(set().union(*[report["differed"] for report in reports]))
    joined["seconds"] = [max(run) for run in zip(*[report["seconds"] for report in reports])]
    for name in ("ulp", "absolute"):
        values = [report[name] for report in reports]
        joined[name] = None if None in values else max(values)
    if "reference" in first:
        joined["reference"] = _digest([report["reference"] for report in reports])
    joined["ranks"] = {
        "number": launch.number, "launcher": launcher.name, "transport": launcher.transport,
        "library": first["library"], "variables": launch.variables,
        "differed": [len(report["differed"]) for report in reports],
        "outputs": _count_outputs(reports),
        "agreed": sum(len(set(run)) == 1 for run in digests),
    }
    return joined


def _count_outputs(reports):
    """{number of an output: in how many runs it differed, in any rank}, for those that did."""
    outputs_by_rank = {}  # type: dict[int, set[int]]
    for report in reports:
        for run, outputs in zip(report["differed"], report["outputs"]):
            for output in outputs:
                outputs_by_rank.setdefault(output, set()).add(run)
    return {str(output): len(outputs_by_rank[output]) for output in outputs_by_rank}


def _digest(digests):
    """Return one digest of those of all ranks, in the order of the ranks."""
    return hashlib.sha256("\n".join(digests).encode("ascii")).hexdigest()
