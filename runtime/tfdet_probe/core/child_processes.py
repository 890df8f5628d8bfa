"""Watch and end processes: how one ended, what it left behind, how much memory it has."""

import glob
import os
import signal
import time

EXIT_WITHOUT_REPORT = 70  # of a child that failed before it wrote one; EX_SOFTWARE of sysexits.h
JOB_KILL_SECONDS = 1.0  # in which a scheduler that kills a whole job reaches this process, too


def fault_of_status(status):
    # type: (int) -> dict[str, str] | None
    """The fault {kind, type, message} of a process that ended with this wait status; None if it has none."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = next((n for n in dir(signal) if n.startswith("SIG") and "_" not in n
                     and getattr(signal, n) == number), str(number))
        hint = " (out of memory?)" if number == signal.SIGKILL else ""
        return {"kind": "crashed", "type": name, "message": "the process was ended by {}{}".format(name, hint)}
    if os.WEXITSTATUS(status):
        return {"kind": "crashed", "type": "Exit", "message": "exit status {}".format(os.WEXITSTATUS(status))}
    return None


def let_job_end(status):
    # type: (int) -> None
    """Wait a moment after a child was killed: a preempted machine is not a crash of the case."""
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGTERM):
        time.sleep(JOB_KILL_SECONDS)


def fault_of_size(pid, mebibytes):
    # type: (int, int) -> dict[str, str] | None
    """The fault of a process with more than `mebibytes` of resident memory; None if it has less."""
    if resident(pid) <= mebibytes:
        return None
    return {"kind": "crashed", "type": "OutOfMemory",
            "message": "killed above {} MiB of resident memory".format(mebibytes)}


def no_report():
    # type: () -> dict[str, str]
    """The fault of a process that ended in order, and left no report."""
    return {"kind": "crashed", "type": "NoReport", "message": "the process ended without a report"}


def kill(pid):
    # type: (int) -> None
    """Kill a process and its group; one that has ended is no error."""
    kill_group(pid)
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def kill_group(pid):
    # type: (int) -> None
    """Kill what is in the process group of this number."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass


def wait(pid):
    # type: (int) -> None
    """Wait until a child has ended."""
    try:
        os.waitpid(pid, 0)
    except OSError:  # waited for already
        pass


def children():
    # type: () -> set[int]
    """The ids of this process's children."""
    pids = set()
    for path in glob.glob("/proc/self/task/*/children"):
        try:
            with open(path) as source:
                pids.update(int(word) for word in source.read().split())
        except (IOError, OSError):  # the thread has just ended
            pass
    return pids


def end_orphans(known):
    # type: (set[int]) -> None
    """End processes that left the child's process group: this process is their subreaper, see prctl(2)."""
    for _ in range(100):  # each may leave children of its own
        orphans = children() - known
        if not orphans:
            return
        for pid in orphans:
            kill(pid)
            wait(pid)


def resident(pid):
    # type: (int) -> int
    """Resident memory in MiB; 0 if the process is gone."""
    try:
        with open("/proc/{}/statm".format(pid)) as statm:
            pages = int(statm.read().split()[1])
    except (IOError, OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // (1024 * 1024)
