"""Answers of other machines.

Noted: connections that a line of the user's makes. Cannot be pinned: what the other machine answers. Example:
``urllib.request.urlopen(url)``.
"""

from .base import Kind


class Network(Kind):
    name, label, has_places = "network", "what another machine answers", False
    has_pin = False

    def open(self):
        self.interposer.on_audit_event(["socket.connect"], self._on_connect)

    def _on_connect(self, event, args):
        if isinstance(args[1], tuple):
            self.note(self.interposer.place(), "connect", args[1][:2])
