"""Starts the other commands on the user's program, and says what became of them."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys

from .. import backends, errors
from ..interpose import variables

_TAIL = 12  # lines of a failed program that are shown
_CPU_FALLBACK = re.compile(r"vgpu: (\w+) is computed by a CPU fallback")


class ProgramFailedError(Exception):
    """cause, advice: one line each."""

    def __init__(self, cause, advice):
        Exception.__init__(self, cause)
        self.cause = cause
        self.advice = advice


class NothingRecordedError(ProgramFailedError):
    """The program ran, and at this level there was nothing to record."""


class DeviceUnusedError(ProgramFailedError):
    """The program ran, and not on the device that was asked for."""


class Launcher(object):
    """Runs the user's program.

    program: its argv; folder: where its output goes; cwd: where it runs, None for here; steps: training steps after
    which each run is ended, None for none. fallback_calls: calls of vendor libraries that the virtual GPU computed on
    the CPU.
    """

    def __init__(self, program, folder, cwd=None, steps=None):
        self.steps = steps
        self._always = {} if steps is None else {variables.STOP_AFTER: str(steps)}
        self.fallback_calls = set()
        self._program, self._cwd = program, cwd
        self._log = os.path.join(folder, "output.txt")

    def record(self, number, options, environment=None, prepare=None, limit=None):
        """Run the program with probes. number: which run it is; environment: variables to add; prepare(): is called in
        the child before it becomes the program; limit: seconds after which it is ended, None for no limit. Raises
        ProgramFailedError."""
        command = [sys.executable, "-m", errors.MODULE, "run"] + options + ["--"] + self._program
        with _new_file(self._log) as output:
            child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                     env=_merged_environ(dict(self._always, **(environment or {}))), cwd=self._cwd,
                                     preexec_fn=prepare)
            with _terminating(child):
                code = _wait(child, limit)
        self._read_log(self._log)
        if code:
            raise self._failed(code, number)

    def replay(self, path, times, environment=None):
        """What `trace replay` says of kept inputs, as a dict. Raises ProgramFailedError."""
        command = [sys.executable, "-m", errors.MODULE, "replay", path, "--repeats", str(times)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=_merged_environ(environment))
        with _terminating(child):
            said, complaint = child.communicate()
        if child.returncode not in (0, 1):
            words = complaint.decode("utf-8", "replace").strip().splitlines()
            raise ProgramFailedError(words[0] if words else "no reason given", "compare two traces instead")
        return json.loads(said.decode("utf-8").strip().splitlines()[-1])

    def printed(self):
        """What the last run printed."""
        with io.open(self._log, "r", encoding="utf-8", errors="replace") as output:
            return output.read()

    def _read_log(self, log):
        with io.open(log, "r", encoding="utf-8", errors="replace") as output:
            self.fallback_calls.update(found.group(1) for found in map(_CPU_FALLBACK.match, output) if found)

    def _failed(self, code, number):
        with io.open(self._log, "r", encoding="utf-8", errors="replace") as output:
            lines = [line for line in output.read().splitlines() if line.strip()][-_TAIL:]
        ours = [line for line in lines if line.startswith(errors.LOG_PREFIX)]  # what is printed may come after it
        if code == errors.EXIT_NOTHING_RECORDED and ours:
            advice = "is it a program of {}? See --help".format(backends.labels())
            return NothingRecordedError(ours[-1][len(errors.LOG_PREFIX):], advice)
        said = "".join("\n  | " + line[:200] for line in lines)
        return ProgramFailedError("the program ended with {} in run {}{}".format(_describe_exit(code), number, said),
                      "make it run without the tool first: {} {}".format(sys.executable, " ".join(self._program)))


def _new_file(path):
    """A process of the run before may still print: it goes on writing the file of that run."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
    return io.open(path, "wb")


def _merged_environ(environment):
    return dict(os.environ, **environment) if environment else None


def _wait(child, limit):
    """Its exit code."""
    try:
        return child.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        _terminate(child)
        raise ProgramFailedError("the program did not end within {:.0f} s".format(limit), "give it more time")


@contextlib.contextmanager
def _terminating(child):
    """Whatever interrupts us, the child does not outlive us."""
    try:
        yield
    except BaseException:
        _terminate(child)
        raise


def _terminate(child):
    """See a child to its end: Ctrl-C reached it too; then less kindly. What it has started is ended with it."""
    started = _descendants(child.pid)
    for what in (lambda: None, child.terminate, child.kill):
        try:
            what()
            child.wait(timeout=10)
            break
        except subprocess.TimeoutExpired:
            continue
        except OSError:
            break
    for pid, begun in started:
        if _parent_and_begin(pid)[1:] == (begun,):  # no other process has got its number
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _descendants(pid):
    """[(number, when it began)] of the processes that one has started, and these; [] on a system without /proc."""
    every = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        found = _parent_and_begin(name) if name.isdigit() else ()
        if found:
            every.setdefault(found[0], []).append((int(name), found[1]))
    found = list(every.get(pid, ()))
    for number, _ in found:  # grows
        found += every.get(number, ())
    return found


def _parent_and_begin(pid):
    """(number of the parent, when it began) of a process, () if there is none."""
    try:
        with io.open("/proc/{}/stat".format(pid), encoding="ascii", errors="replace") as source:
            fields = source.read().rpartition(")")[2].split()
    except OSError:
        return ()
    return int(fields[1]), int(fields[19])


def _describe_exit(code):
    return "signal {}".format(-code) if code < 0 else "exit code {}".format(code)
