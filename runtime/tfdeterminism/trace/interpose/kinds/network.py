"""What comes from another machine.

Noted: connections that a line of the user's makes. Cannot be pinned: what the other machine answers.
Example: ``urllib.request.urlopen(url)``.
"""

import sys

from .base import Kind


class Network(Kind):
    name, words, has_places = "network", "what another machine answers", False
    pinned = False

    def open(self):
        if sys.version_info >= (3, 8):
            sys.addaudithook(self._heard)  # novm

    def _heard(self, event, args):
        if event == "socket.connect" and isinstance(args[1], tuple):
            self.note(self.interposer.place(), "connect", args[1][:2])
