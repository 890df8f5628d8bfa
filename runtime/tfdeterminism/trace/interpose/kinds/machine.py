"""The name of the machine and of the user: each run on one machine gets the same.

Noted: where a line of the user's asks. Varied: another name. Cannot be varied: what C code asks for, the environment.
Example: ``random.seed(socket.gethostname())``.
"""

import os

from .base import Kind


class Machine(Kind):
    name, words = "machine", "the name of the machine and of the user"
    pinned, constant = False, True

    def open(self):
        self._replace(os, "uname", _renamed)
        self._replace(os, "getlogin", _other)
        self.interposer.imports.add(
            {
                "socket": lambda module: [self._replace(module, name, _other) for name in ("gethostname", "getfqdn")],
                "platform": lambda module: [
                    self._replace(module, name, change)
                    for name, change in (
                        ("node", _other),
                        ("uname", lambda seed, system: system._replace(node=_other(seed, system.node))),
                    )
                ],
                "getpass": lambda module: self._replace(module, "getuser", _other),
                "uuid": lambda module: self._replace(module, "getnode", lambda seed, number: number ^ seed),
            }
        )

    def _replace(self, module, name, change):
        """change(seed, what it gives): what it gives on another machine."""
        if hasattr(module, name):
            self.replace(
                module,
                name,
                None,
                unless=self.is_called_by_library,
                varied=lambda seed, original, *args: change(seed, original(*args)),
            )


def _other(seed, name):
    return "{}-{}".format(name, seed)


def _renamed(seed, system):
    return type(system)(_other(seed, part) if part == system[1] else part for part in system)
