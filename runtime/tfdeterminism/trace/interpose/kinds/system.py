"""Load, free memory and space, and answers of other programs.

Noted: calls that return load, times of processes, free memory and space; files of /proc and /sys that a line of the
user's opens; programs other than Python that it starts; timers of threads, which act after a time. Pinned: these calls
and files, and the output of programs that only ask (date, free, nvidia-smi): each gets the answer of the first run with
the pin. Cannot be pinned: other programs, timers, os.open. Example: ``size = psutil.virtual_memory().available >> 20``,
``subprocess.check_output(["date", "+%N"])``.
"""

import builtins
import functools
import io
import os
import shlex

from ..answers import Answers
from .base import Function, Kind

ACTS = "acts"  # value of the row of a program that may do more than answer
_LONGEST = 60  # characters of a command
_FOLDERS = ("/proc/", "/sys/")
_OPEN_ARGUMENTS = ("buffering", "encoding", "errors", "newline")  # of open(), behind the mode
_FRAMES = 3  # pathlib and shutil lie between the user's line and the call
_CALLS = ("getloadavg", "times", "statvfs")
_PSUTIL_CALLS = (
    "boot_time cpu_freq cpu_percent cpu_stats cpu_times cpu_times_percent disk_io_counters disk_usage getloadavg "
    "net_io_counters pids swap_memory virtual_memory"
).split()
_PSUTIL_PROCESS_CALLS = "cpu_percent cpu_times create_time memory_full_info memory_info memory_percent".split()
_ASKING = frozenset(  # programs that change nothing
    (
        "cat cut date df du echo env free grep head hostname id ifconfig iostat ip lscpu ls lsof nproc nvidia-smi od "
        "printf ps pwd rocm-smi sensors seq shuf sort stat sum tac tail tr uname uniq uptime uuidgen vmstat w wc who "
        "whoami"
    ).split()
)
_SHELL_SIGNS = frozenset(";&<>`$\n")  # of a command line that does more than to connect programs by "|"


class System(Kind):
    name, label, coarseness, is_partial = "system", "what the system and other programs tell", 0, True

    def open(self):
        self._answers = Answers(self.interposer.settings["kept"])
        self.interposer.on_audit_event(["open"], self._on_open)
        self.interposer.on_audit_event(["subprocess.Popen", "os.system"], self._on_start)
        self.interposer.on_audit_event(["os.posix_spawn", "os.spawn", "os.exec"], self._on_spawn)
        for name in _CALLS:
            self.replace_call(os, name)
        self._replace_open()
        self.interposer.imports.add(
            {
                "psutil": self._hook_psutil,
                "resource": lambda module: self.replace_call(module, "getrusage"),
                "subprocess": self._hook_subprocess,
                "threading": self._hook_timer,
            }
        )

    def _ask(self, place, what, ask):
        """Return the answer of the first run in which this call is pinned."""
        with self.interposer.without_notes():
            return self._answers.get((self.interposer.stream, place, what), ask)

    # Calls

    def replace_call(self, owner, name):
        """Replace owner.name, if there is one, by a function whose answers are noted, and pinned."""
        if hasattr(owner, name):
            self.replace(
                owner,
                name,
                lambda place, original, *args, **kwargs: self._ask(place, name, lambda: original(*args, **kwargs)),
                str,
                unless=lambda *args, **kwargs: not self.interposer.is_called_by_user(_FRAMES),
            )

    def _hook_psutil(self, module):
        for name in _PSUTIL_CALLS:
            self.replace_call(module, name)
        for name in _PSUTIL_PROCESS_CALLS:
            self.replace_call(module.Process, name)

    # Files

    def _replace_open(self):
        """Replace builtins.open and io.open, which are the same function; pathlib uses the latter."""
        original = builtins.open

        def call(file, mode="r", *args, **kwargs):
            path = _path_of(file)
            if path.startswith(_FOLDERS) and _reads(mode) and self.interposer.is_called_by_user(_FRAMES):
                place = self.interposer.place()
                if self.is_pinned(place):
                    return self._pinned_file(original, place, path, mode, dict(zip(_OPEN_ARGUMENTS, args), **kwargs))
            return original(file, mode, *args, **kwargs)

        builtins.open = io.open = Function(call, original, "builtins", "open")

    def _pinned_file(self, original, place, path, mode, arguments):
        def read():
            with original(path, "rb") as source:
                return source.read()

        what = "read " + path
        content = io.BytesIO(self._ask(place, what, read))
        self.note(place, what, None, True)
        if "b" in mode:
            return content
        return io.TextIOWrapper(content, **{name: arguments.get(name) for name in _OPEN_ARGUMENTS[1:]})

    def _on_open(self, event, args):
        path = _path_of(args[0])
        if path.startswith(_FOLDERS) and self.interposer.is_called_by_user(_FRAMES):
            self.note(self.interposer.place(), "read " + path)

    # Programs

    def _hook_subprocess(self, module):
        original = module.run

        @functools.wraps(original)
        def run(*args, **kwargs):
            place = self.interposer.place()
            command = _command_of(args, kwargs)
            if not (self.is_pinned(place) and _only_asks(command) and _is_captured(kwargs)):
                return original(*args, **kwargs)
            result = self._pinned_run(place, command, lambda: original(*args, **dict(kwargs, check=False)))
            if kwargs.get("check"):
                result.check_returncode()
            return result

        module.run = run
        self._replace_popen()

    def _replace_popen(self):
        original = os.popen

        def popen(cmd, *args, **kwargs):
            place, command = self.interposer.place(), ["sh", "-c", cmd]
            if args or kwargs or not (self.is_pinned(place) and _only_asks(command)):
                return original(cmd, *args, **kwargs)

            def ask():
                with original(cmd) as output:
                    return output.read()

            return io.StringIO(self._pinned_run(place, command, ask))

        os.popen = Function(popen, original, "os", "popen")

    def _pinned_run(self, place, command, ask):
        what = "run " + _to_command_line(command)
        answer = self._ask(place, what, ask)
        self.note(place, what, None, True)
        return answer

    def _on_start(self, event, args):
        command = args[0] if event == "os.system" else args[1]
        is_line = event == "os.system" or isinstance(command, (str, bytes))
        self._note_program([os.fsdecode(command)] if is_line else list(map(os.fsdecode, command)), event == "os.system")

    def _on_spawn(self, event, args):
        self._note_program(list(map(os.fsdecode, args[2 if event == "os.spawn" else 1])), False)

    def _note_program(self, command, by_shell):
        if command and not os.path.basename(command[0]).startswith("python"):  # Python is interposed, too
            asks = _only_asks(["sh", "-c"] + command if by_shell else command)
            self.note(self.interposer.place(), "run " + _to_command_line(command), None if asks else ACTS)

    # Timers

    def _hook_timer(self, module):
        original = module.Timer.__init__

        @functools.wraps(original)
        def __init__(timer, *args, **kwargs):
            if self.interposer.is_called_by_user():
                self.note(self.interposer.place(), "Timer")
            original(timer, *args, **kwargs)

        module.Timer.__init__ = __init__


def _path_of(file):
    """Return the path of a file as text, "" for an open one."""
    return os.fsdecode(file) if isinstance(file, (str, bytes)) or hasattr(file, "__fspath__") else ""


def _reads(mode):
    return not set(mode) & set("wax+")


def _command_of(args, kwargs):
    """Return the command of a call of subprocess.run() as a list."""
    command = kwargs.get("args", args[0] if args else [])
    if isinstance(command, (str, bytes)):
        return ["sh", "-c", os.fsdecode(command)] if kwargs.get("shell") else [os.fsdecode(command)]
    return [os.fsdecode(argument) for argument in command]


def _is_captured(kwargs):
    """Return whether subprocess.run() returns what the program prints, and gives it no input."""
    pipe = -1
    return (kwargs.get("capture_output") or kwargs.get("stdout") == pipe) and kwargs.get("input") is None


def _only_asks(command):
    """Return whether a command only asks: each of its programs changes nothing, and prints its answer."""
    if command[:2] == ["sh", "-c"]:
        line = command[2]
        if set(line) & _SHELL_SIGNS:
            return False
        return all(_only_asks(part.split()) for part in line.split("|"))
    return bool(command) and os.path.basename(command[0]) in _ASKING


def _to_command_line(command):
    """Return a command as a person would type it, at most _LONGEST characters."""
    if len(command) > 1 and [os.path.basename(os.fsdecode(command[0])), command[1]] == ["sh", "-c"]:
        command = command[2:3]
    if len(command) == 1:
        return os.fsdecode(command[0])[:_LONGEST]
    return " ".join(shlex.quote(os.fsdecode(argument)) for argument in command)[:_LONGEST]
