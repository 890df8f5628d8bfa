"""Answers of the system and of other programs.

Noted: programs other than Python that a line of the user's starts, files of /proc and /sys that it opens, calls that
return load, times and free space, and timers of threads, which act after a time. Cannot be pinned: the answers.
Example: ``subprocess.check_output(["date", "+%N"])``.
"""

import functools
import os
import shlex

from .base import Kind, no_value

_LONGEST = 60  # characters of a command
_FOLDERS = ("/proc/", "/sys/")
_CALLS = ("getloadavg", "times", "getppid", "statvfs")


class System(Kind):
    name, label, has_places = "system", "what the system and other programs tell", False
    has_pin = False

    def open(self):
        self.interposer.on_audit_event(["open"], self._on_open)
        self.interposer.on_audit_event(["subprocess.Popen", "os.system"], self._on_start)
        for name in _CALLS:
            if hasattr(os, name):
                self.replace(os, name, None, no_value, unless=self.is_called_by_library)
        self.interposer.imports.add({"threading": self._hook_timer})

    def _hook_timer(self, module):
        original = module.Timer.__init__

        @functools.wraps(original)
        def __init__(timer, *args, **kwargs):
            if self.interposer.is_called_by_user():
                self.note(self.interposer.place(), "Timer")
            original(timer, *args, **kwargs)

        module.Timer.__init__ = __init__

    def _on_open(self, event, args):
        if isinstance(args[0], str) and args[0].startswith(_FOLDERS) and self.interposer.is_called_by_user():
            self.note(self.interposer.place(), "read " + args[0])

    def _on_start(self, event, args):
        command = args[0] if event == "os.system" else args[1]
        command = [command] if isinstance(command, (str, bytes)) else list(command)
        if not os.path.basename(os.fsdecode(command[0])).startswith("python"):  # Python is interposed, too
            self.note(self.interposer.place(), "run " + _to_command_line(command))


def _to_command_line(command):
    """Return a command as a person would type it, at most _LONGEST characters."""
    if len(command) > 1 and [os.path.basename(os.fsdecode(command[0])), command[1]] == ["sh", "-c"]:
        command = command[2:3]
    if len(command) == 1:
        return os.fsdecode(command[0])[:_LONGEST]
    return " ".join(shlex.quote(os.fsdecode(argument)) for argument in command)[:_LONGEST]
