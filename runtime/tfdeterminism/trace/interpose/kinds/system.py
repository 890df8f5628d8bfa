"""What the system and other programs tell.

Noted: programs other than Python that a line of the user's starts, files of /proc and /sys that it opens, and calls
that ask for load, times and free space. Cannot be pinned: the answers.
Example: ``subprocess.check_output(["date", "+%N"])``.
"""

import os
import shlex

from .base import Kind, nothing

_LONGEST = 60  # characters of a command
_FOLDERS = ("/proc/", "/sys/")
_CALLS = ("getloadavg", "times", "getppid", "statvfs")


class System(Kind):
    name, words, has_places = "system", "what the system and other programs tell", False
    pinned = False

    def open(self):
        self.interposer.hear(["open"], self._opens)
        self.interposer.hear(["subprocess.Popen", "os.system"], self._starts)
        for name in _CALLS:
            if hasattr(os, name):
                self.replace(os, name, None, nothing, unless=self.is_called_by_library)

    def _opens(self, event, args):
        if isinstance(args[0], str) and args[0].startswith(_FOLDERS) and self.interposer.is_called_by_user():
            self.note(self.interposer.place(), "read " + args[0])

    def _starts(self, event, args):
        words = args[0] if event == "os.system" else args[1]
        words = [words] if isinstance(words, (str, bytes)) else list(words)
        if not os.path.basename(os.fsdecode(words[0])).startswith("python"):  # Python is interposed, too
            self.note(self.interposer.place(), "run " + _shown(words))


def _shown(words):
    """A command as a person would type it."""
    if len(words) > 1 and [os.path.basename(os.fsdecode(words[0])), words[1]] == ["sh", "-c"]:
        words = words[2:3]
    if len(words) == 1:
        return os.fsdecode(words[0])[:_LONGEST]
    return " ".join(shlex.quote(os.fsdecode(word)) for word in words)[:_LONGEST]
