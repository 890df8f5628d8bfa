"""Runs `trace run` on the user's program, and `trace replay` on recorded inputs, each in a child process."""

import contextlib
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys

from .. import backends, errors
from ..interpose import variables

_TAIL = 12  # lines of a failed program that are shown
_TRACEBACK = "Traceback (most recent call last)"
_SHELLS_CODES = 126  # from here on, codes of shells: not executable, not found, ended by a signal
_CPU_FALLBACK = re.compile(r"vgpu: (\S+) is computed by a CPU fallback")


class ProgramFailedError(Exception):
    """A failed run of the program.

    cause, advice: one line each; chosen_code: an exit code that it may have chosen; is_late: whether it did not end in
    the time that it had.
    """

    def __init__(self, cause, advice, chosen_code=None, is_late=False):
        Exception.__init__(self, cause)
        self.cause, self.is_late = cause, is_late
        self.advice = advice
        self.chosen_code = chosen_code


class NothingRecordedError(ProgramFailedError):
    """A run of the program in which there was nothing to record at this level."""


class DeviceUnusedError(ProgramFailedError):
    """A run of the program that did not use the requested device."""


class ProgramRunner(object):
    """The runner of the user's program.

    program: its argv; folder: for its output; cwd: its working directory, None for the current one; steps: training
    steps after which each run is ended, None for no limit; temporary: TMPDIR of the runs, None for the user's.
    expected_code: with which each run ends, if the program chooses it; fallback_calls: calls of vendor libraries
    that the virtual GPU computed on the CPU.
    """

    def __init__(self, program, folder, cwd=None, steps=None, temporary=None):
        self.steps = steps
        self._extra_environment = {} if steps is None else {variables.STOP_AFTER: str(steps)}
        self._extra_environment.update({} if temporary is None else {"TMPDIR": temporary})
        self.expected_code, self.fallback_calls = 0, set()
        self._program, self._cwd = program, cwd
        self._output, self._errors = (os.path.join(folder, name) for name in ("output.txt", "errors.txt"))

    def record(self, number, options, environment=None, prepare=None, limit=None):
        """Record the program: run it under `trace run`. Raises ProgramFailedError.

        number: of the run, for messages; options: of `trace run`; environment: variables to add; prepare(): is called
        in the child before it becomes the program; limit: seconds after which the program is ended, None for no limit.
        """
        command = [sys.executable, "-m", errors.MODULE, "run"] + options + ["--"] + self._program
        with _new_file(self._output) as output, _new_file(self._errors) as errors_file, _open_input() as standard_input:
            environ = _merged_environ(dict(self._extra_environment, **(environment or {})))
            child = subprocess.Popen(command, stdout=output, stderr=errors_file, stdin=standard_input,
                                     env=environ, cwd=self._cwd, preexec_fn=prepare)
            with _terminating(child):
                code = _wait(child, limit)
        calls = map(_CPU_FALLBACK.match, self.errors().splitlines())
        self.fallback_calls.update(call.group(1) for call in calls if call)
        if code != self.expected_code:
            raise self._to_error(code, number)

    def replay(self, path, times, environment=None):
        """Return the result of `trace replay` on recorded inputs, as a dict. Raises ProgramFailedError."""
        command = [sys.executable, "-m", errors.MODULE, "replay", path, "--repeats", str(times)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=_merged_environ(environment))
        with _terminating(child):
            output, error_output = child.communicate()
        if child.returncode not in (0, 1):
            error_lines = error_output.decode("utf-8", "replace").strip().splitlines()
            raise ProgramFailedError(error_lines[0] if error_lines else "no reason given", "compare two traces instead")
        return json.loads(output.decode("utf-8").strip().splitlines()[-1])

    def printed(self):
        """Return the standard output of the last run."""
        return _read(self._output)

    def errors(self):
        """Return the standard error of the last run."""
        return _read(self._errors)

    def _to_error(self, code, number):
        text = self.printed() + "\n" + self.errors()
        lines = [line for line in text.splitlines() if line.strip()][-_TAIL:]
        messages = [line for line in lines if line.startswith(errors.LOG_PREFIX)]  # output may follow the message
        if code == errors.EXIT_NOTHING_RECORDED and messages:
            advice = "is it a program of {}? See --help".format(backends.labels())
            return NothingRecordedError(messages[-1][len(errors.LOG_PREFIX):], advice)
        excerpt = "".join("\n  | " + line[:200] for line in lines)
        is_chosen = 0 < code < _SHELLS_CODES and code != errors.EXIT_USAGE and not messages and _TRACEBACK not in text
        expected = ", not with {}".format(self.expected_code) if self.expected_code else ""
        return ProgramFailedError(
            "the program ended with {} in run {}{}{}".format(_describe_exit(code), number, expected, excerpt),
            "make it run without the tool first: {} {}".format(sys.executable, " ".join(self._program)),
            code if is_chosen else None)


def _read(path):
    with io.open(path, "r", encoding="utf-8", errors="replace") as source:
        return source.read()


def _new_file(path):
    """Open a new file, because a process of the previous run may still write the old one."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
    return io.open(path, "wb")


def _open_input():
    """Open the file that the user redirected to standard input, from its position on; a pipe or terminal is not read.

    Each run opens it anew, so that all get the same.
    """
    try:
        if stat.S_ISREG(os.fstat(0).st_mode):
            redirected = io.open("/dev/fd/0", "rb", buffering=0)
            redirected.seek(os.lseek(0, 0, os.SEEK_CUR))
            return redirected
    except OSError:
        pass
    return io.open(os.devnull, "rb")


def _merged_environ(environment):
    return dict(os.environ, **environment) if environment else None


def _wait(child, limit):
    """Return the exit code of a child. Raises ProgramFailedError after `limit` seconds."""
    try:
        return child.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        _terminate(child)
        raise ProgramFailedError(
            "the program did not end within {:.0f} s".format(limit), "give it more time", is_late=True
        )


@contextlib.contextmanager
def _terminating(child):
    """Terminate the child if the block raises, Ctrl-C included."""
    try:
        yield
    except BaseException:
        _terminate(child)
        raise


def _terminate(child):
    """Wait for a child to end (Ctrl-C reached it, too), then terminate and at last kill it and its descendants."""
    started = _descendants(child.pid)
    for action in (lambda: None, child.terminate, child.kill):
        try:
            action()
            child.wait(timeout=10)
            break
        except subprocess.TimeoutExpired:
            continue
        except OSError:
            break
    for pid, start_time in started:
        if _parent_and_start(pid)[1:] == (start_time,):  # no other process has got its number
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _descendants(pid):
    """Return [(pid, start time)] of all descendants of a process; [] on a system without /proc."""
    children = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        process = _parent_and_start(name) if name.isdigit() else ()
        if process:
            children.setdefault(process[0], []).append((int(name), process[1]))
    descendants = list(children.get(pid, ()))
    for number, _ in descendants:  # the list grows in the loop
        descendants += children.get(number, ())
    return descendants


def _parent_and_start(pid):
    """Return (pid of the parent, start time in clock ticks) of a process, () if it does not exist."""
    try:
        with io.open("/proc/{}/stat".format(pid), encoding="ascii", errors="replace") as source:
            fields = source.read().rpartition(")")[2].split()
    except OSError:
        return ()
    return int(fields[1]), int(fields[19])


def _describe_exit(code):
    return "signal {}".format(-code) if code < 0 else "exit code {}".format(code)
