"""What the system and other programs tell.

Noted: programs other than Python that a line of the user's starts, files of /proc and /sys that it opens, and calls
that ask for load, times and free space. Cannot be pinned: the answers.
Example: ``subprocess.check_output(["date", "+%N"])``.
"""

import os
import shlex
import sys

from .base import Kind, nothing

_LONGEST = 60  # characters of a command
_FOLDERS = ("/proc/", "/sys/")
_CALLS = ("getloadavg", "times", "getppid", "statvfs")


class System(Kind):
    name, words, has_places = "system", "what the system and other programs tell", False
    pinned = False

    def open(self):
        if sys.version_info >= (3, 8):
            sys.addaudithook(self._heard)  # novm
        for name in _CALLS:
            if hasattr(os, name):
                self.replace(os, name, None, nothing, unless=self.is_called_by_library)

    def _heard(self, event, args):
        if event == "subprocess.Popen":
            words = [args[1]] if isinstance(args[1], (str, bytes)) else args[1]
        elif event == "os.system":
            words = [args[0]]
        elif event == "open" and isinstance(args[0], str) and args[0].startswith(_FOLDERS):
            if self.interposer.is_called_by_user():
                self.note(self.interposer.place(), "read " + args[0])
            return
        else:
            return
        if not os.path.basename(os.fsdecode(words[0])).startswith("python"):  # Python is interposed, too
            self.note(self.interposer.place(), "run " + _shown(list(words)))


def _shown(words):
    """A command as a person would type it."""
    if len(words) > 1 and [os.path.basename(os.fsdecode(words[0])), words[1]] == ["sh", "-c"]:
        words = words[2:3]
    if len(words) == 1:
        return os.fsdecode(words[0])[:_LONGEST]
    return " ".join(shlex.quote(os.fsdecode(word)) for word in words)[:_LONGEST]
